/* threads.c - the threads of the receiving side: bodies, places, their end. */
#include <stdio.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/datathread.h"
#include "base/log.h"
#include "receiver/private.h"

enum {
	WORKER_WAIT_US = 2000,
	FIGURES_TURNS = 64, /* of a worker, between two looks at the clock: 128 ms at most */
};

static void *link_main(void *arg)
{
	const struct sl_worker_arg *poller = arg;
	struct sl_receiver *r = poller->receiver;
	const struct sl_feed *f = sl_receiver_polled(r, poller->index);
	const struct sl_link_receiving *link = f->link->receiving;
	unsigned mine = poller->index - f->first_poller;
	void *state = f->link_state;
	struct sl_idle idle;

	sl_placement_idle(&r->placement, r->experiment, &idle);
	sl_data_thread_begin("link");
	while (!atomic_load_explicit(&r->stop_link, memory_order_relaxed)) {
		sl_turn_note(&r->turn[poller->index]);
		if (link->poll(state, mine, SL_POLL_BUDGET) > 0) {
			sl_idle_work(&idle);
			continue;
		}
		atomic_fetch_add_explicit(&r->link_idle[poller->index].polls, 1,
					  memory_order_relaxed);
		if (sl_idle_sleep(&idle))
			link->wait(state, mine, SL_LINK_WAIT_US);
	}
	sl_data_thread_end();
	return NULL;
}

/* Looks at the clock only when work begins or ends. */
static void note_busy(struct sl_receiver *r, bool did, uint64_t *since)
{
	uint64_t now = did == (*since != 0) ? 0 : sl_clock_ns();

	if (!now)
		return;
	if (!did)
		atomic_fetch_add_explicit(&r->busy_ns, now - *since, memory_order_relaxed);
	*since = did ? now : 0;
}

static void *worker_main(void *arg)
{
	struct sl_worker_arg *worker = arg;
	struct sl_receiver *r = worker->receiver;
	const struct sl_unit *unit = r->experiment->unit;
	struct sl_idle idle;
	bool copies = worker->index == 0 && sl_figures_of_unit(r);
	uint64_t since = 0; /* busy; 0: idle */
	unsigned turns = 0;

	sl_placement_idle(&r->placement, r->experiment, &idle);
	if (!unit->drives)
		sl_data_thread_begin("worker");
	else
		prctl(PR_SET_TIMERSLACK, 1); /* it naps while a device works: 20 us, not 70 */
	for (;;) {
		bool did;
		uint32_t seen = sl_bell_read(&r->todo);

		/* After the bell was read: a stop that is missed here has yet to ring (invariant
		 * WOKEN). */
		if (atomic_load_explicit(&r->stop_workers, memory_order_relaxed))
			break;
		sl_turn_note(&r->turn[SL_TURN_WORKERS + worker->index]);
		did = unit->work(r->experiment->unit_state, worker->index);
		note_busy(r, did, &since);
		if (copies && turns++ % FIGURES_TURNS == 0)
			sl_figures_renew_unit(r, sl_clock_ns());
		if (did)
			sl_idle_work(&idle);
		else if (sl_idle_sleep(&idle))
			sl_bell_wait(&r->todo, seen, WORKER_WAIT_US);
	}
	note_busy(r, false, &since);
	if (!unit->drives)
		sl_data_thread_end();
	return NULL;
}

static int start(struct sl_receiver *r, struct sl_thread *thread, enum sl_role role, unsigned index,
		 void *(*run)(void *), void *arg)
{
	static const char *const names[] = {"link-%u", "dispatcher", "worker-%u", "settler"};
	char name[24]; /* the kernel keeps 15 characters */
	cpu_set_t set;

	snprintf(name, sizeof(name), run == sl_together_main ? "data" : names[role], index);
	return sl_thread_start(thread, name, sl_placement_of(&r->placement, role, index, &set), run,
			       arg);
}

/* What they work on is there when they begin: workers first, link threads last. */
static int start_apart(struct sl_receiver *r)
{
	int err = 0;

	for (unsigned i = 0; i < r->workers && !err; i++) {
		r->worker_arg[i] = (struct sl_worker_arg){r, i};
		err = start(r, &r->worker_thread[i], SL_ROLE_WORKER, i, worker_main,
			    &r->worker_arg[i]);
	}
	if (!err)
		err = start(r, &r->dispatch_thread, SL_ROLE_DISPATCHER, 0, sl_dispatcher_main, r);
	for (unsigned i = 0; i < r->pollers && !err; i++) {
		r->link_arg[i] = (struct sl_worker_arg){r, i};
		err = start(r, &r->link_thread[i], SL_ROLE_LINK, i, link_main, &r->link_arg[i]);
	}
	return err;
}

static int start_together(struct sl_receiver *r)
{
	r->link_arg[0] = (struct sl_worker_arg){r, 0};
	return start(r, &r->link_thread[0], SL_ROLE_LINK, 0, sl_together_main, &r->link_arg[0]);
}

static void warn_of_polling(const struct sl_receiver *r)
{
	const struct sl_threads_options *threads = &r->experiment->threads;

	if (!r->placement.crowded || threads->polling != SL_POLLING_LATENCY || threads->together)
		return;
	sl_warn("threads.polling: latency wants a cpu for each data thread: here they take turns; "
		"adaptive is faster, or threads.together (docs/how-to/tuning.md)");
}

int sl_receiver_start(struct sl_receiver *r)
{
	int err = sl_dispatcher_open(r, &r->dispatcher);

	r->started = true;
	atomic_store(&r->state, SL_STATE_RUNNING);
	__atomic_store_n(&r->feedback.idle, false, __ATOMIC_SEQ_CST);
	warn_of_polling(r);
	if (!err)
		err = sl_sink_threads_start(r);
	if (!err)
		err = start(r, &r->settle_thread, SL_ROLE_SETTLER, 0, sl_settler_main, r);
	if (!err)
		err = r->experiment->threads.together ? start_together(r) : start_apart(r);
	return err;
}

void sl_receiver_log(const struct sl_receiver *r)
{
	uint64_t buffer = atomic_load(&r->counters.receive_buffer);
	char text[512];

	sl_info("threads: %s", r->placement.counts);
	sl_placement_describe(&r->placement, text, sizeof(text));
	sl_info("%s", text);
	if (r->memory[0].node >= 0)
		sl_info("the ring's memory is on node %d", r->memory[0].node);
	if (buffer)
		sl_info("receive buffers of %.1f MB each", (double)buffer * 1e-6);
}

/* Join in this order: dispatcher, settler, sinks, workers. Each ends when the one before it, which
 * gives it work, has. The thread that does it all goes on polling the link: its dispatcher has
 * ended when the settler has. */
void sl_receiver_join(struct sl_receiver *r)
{
	sl_thread_join(&r->dispatch_thread);
	if (!r->experiment->threads.together || !r->link_thread[0].running)
		atomic_store(&r->dispatched, 1); /* no dispatcher was there to say so */
	sl_bell_ring(&r->settling);
	sl_thread_join(&r->settle_thread);
	sl_sink_threads_join(r);
	atomic_store(&r->stop_workers, 1);
	sl_bell_ring(&r->todo);
	for (unsigned i = 0; i < r->workers; i++)
		sl_thread_join(&r->worker_thread[i]);
}

void sl_receiver_join_link(struct sl_receiver *r)
{
	atomic_store(&r->stop_link, 1);
	for (unsigned i = 0; i < r->pollers; i++)
		sl_thread_join(&r->link_thread[i]);
}
