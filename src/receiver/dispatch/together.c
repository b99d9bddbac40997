/* together.c - one data thread that does it all (threads.together): it polls the link, and what it
 * finds it assembles, processes and decides before it polls again. A packet is handed from one
 * function to the next, not from thread to thread: on few cpus each such hand-over costs a switch
 * of context, and waits for whatever has the cpu.
 *
 * The dispatcher's part is dispatch.c, the worker's is the unit's work(): the same code as on
 * threads of their own. Sinks stay with the settler, but for those that are prompt (decide.c). */
#include "base/clock.h"
#include "base/datathread.h"
#include "receiver/private.h"

enum {
	/* Between two items of a batch the link is polled again after this time: a socket buffer
	 * must not overflow behind a stage that takes long. */
	POLL_NS = 200 * 1000,
	FIGURES_TURNS = 64, /* between two looks at the clock */
};

static int poll_link(struct sl_receiver *r, const struct sl_feed *f)
{
	int n = f->link->receiving->poll(f->link_state, 0, SL_POLL_BUDGET);

	sl_turn_note(&r->turn[0]);
	if (n > 0)
		return n;
	atomic_fetch_add_explicit(&r->link_idle[0].polls, 1, memory_order_relaxed);
	return 0;
}

/* Until the unit has nothing left to do. How many items there were. */
static int work(struct sl_receiver *r, const struct sl_feed *f)
{
	const struct sl_unit *unit = r->experiment->unit;
	uint64_t begun_ns = sl_clock_ns(), polled_ns = begun_ns, now = begun_ns;
	int n = 0;

	while (unit->work(r->experiment->unit_state, 0)) {
		n++;
		now = sl_clock_ns();
		if (now - polled_ns < POLL_NS)
			continue;
		poll_link(r, f);
		polled_ns = sl_clock_ns();
	}
	if (n)
		atomic_fetch_add_explicit(&r->busy_ns, now - begun_ns, memory_order_relaxed);
	return n;
}

/* What the unit gives back is decided, and handed on, before the link is polled again. */
static int turn(struct sl_receiver *r, const struct sl_feed *f)
{
	int n = sl_dispatcher_turn(r->dispatcher), items = work(r, f);

	return items ? n + items + sl_dispatcher_turn(r->dispatcher) : n;
}

/* In the link's wait(). Asleep, then look at the bell once more; sl_dispatcher_wake() does it the
 * other way round, so one sees the other (invariant WOKEN, tests/model/wake.pml). */
static void sleep_on_link(struct sl_receiver *r, const struct sl_feed *f, uint32_t seen)
{
	struct sl_wake *wake = &r->wake[0];

	atomic_store(&wake->asleep, 1);
	if (atomic_load(&r->events.count) == seen)
		f->link->receiving->wait(f->link_state, 0, SL_LINK_WAIT_US);
	atomic_store(&wake->asleep, 0);
}

static void renew_figures(struct sl_receiver *r)
{
	uint64_t now = sl_clock_ns();

	if (sl_figures_of_unit(r))
		sl_figures_renew_unit(r, now);
	sl_figures_renew_prompt(r, now);
}

void *sl_together_main(void *arg)
{
	struct sl_receiver *r = ((struct sl_worker_arg *)arg)->receiver;
	const struct sl_feed *f = &r->feed[0];
	bool dispatches = true;
	unsigned turns = 0;
	struct sl_idle idle;

	sl_placement_idle(&r->placement, r->experiment, &idle);
	sl_data_thread_begin("data");
	while (!atomic_load_explicit(&r->stop_link, memory_order_relaxed)) {
		uint32_t seen = sl_bell_read(&r->events);
		int did = poll_link(r, f);

		if (dispatches && !sl_dispatcher_goes_on(r->dispatcher)) {
			sl_dispatcher_end(r->dispatcher);
			dispatches = false;
		}
		if (dispatches && turns++ % FIGURES_TURNS == 0)
			renew_figures(r);
		if (dispatches)
			did += turn(r, f);
		if (did)
			sl_idle_work(&idle);
		else if (sl_idle_sleep(&idle))
			sleep_on_link(r, f, seen);
	}
	sl_data_thread_end();
	return NULL;
}
