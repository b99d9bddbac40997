/* sink_threads.c - sinks that take their time have a thread each: a slow disk delays neither the
 * other sinks nor the frames behind them, until the pool of frames is used up.
 *
 * Threads:   the settler submits, in sequence order; each sink's thread puts, in that order, and
 *            says so; the settler gives a frame its outcome when all of them have. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "receiver/private.h"

enum { WAIT_US = 10000 };

static void refuse(struct sl_receiver *r, unsigned sink, int err)
{
	if (!atomic_load_explicit(&r->sink_error[sink], memory_order_relaxed))
		atomic_store_explicit(&r->sink_error[sink], err, memory_order_relaxed);
}

bool sl_sink_put(struct sl_receiver *r, unsigned sink, struct sl_frame *frame)
{
	const struct sl_experiment *e = r->experiment;
	int err = e->sink[sink]->put(e->sink_state[sink], frame);

	if (err)
		refuse(r, sink, err);
	return !err;
}

static void put(struct sl_receiver *r, unsigned sink, struct sl_flow_frame *flow)
{
	if (!sl_sink_put(r, sink, &flow->frame))
		atomic_store_explicit(&flow->refused, true, memory_order_relaxed);
	/* Release: pairs with the settler's acquire in settle.c; it is the settler's again. */
	if (atomic_fetch_sub_explicit(&flow->at_sinks, 1, memory_order_acq_rel) == 1)
		sl_bell_ring(&r->settling);
}

static void *sink_main(void *arg)
{
	struct sl_sink_thread *t = arg;
	struct sl_receiver *r = t->receiver;

	for (;;) {
		uint32_t seen = sl_bell_read(&t->bell);
		uint32_t last = atomic_load(&t->stop);
		struct sl_flow_frame *flow = sl_queue_pop(&t->frames);

		sl_turn_note(&r->turn[SL_TURN_SINKS + t->sink]);
		if (flow)
			put(r, t->sink, flow);
		else if (last)
			break;
		sl_figures_renew_sink(r, t->sink, sl_clock_ns());
		if (!flow)
			sl_bell_wait(&t->bell, seen, WAIT_US);
	}
	return NULL;
}

void sl_sink_submit(struct sl_receiver *r, unsigned sink, struct sl_flow_frame *flow)
{
	struct sl_sink_thread *t = &r->sink_thread[sink];

	sl_queue_push(&t->frames, flow); /* never full: it has room for all frames there are */
	sl_bell_ring(&t->bell);
}

/* Which sinks have one is known once their options are. */
int sl_sink_threads_open(struct sl_receiver *r)
{
	const struct sl_experiment *e = r->experiment;
	uint32_t frames = r->pool.count + r->dropped.count + SL_STAND_INS;
	int err = 0;

	for (unsigned i = 0; i < e->sinks && !err; i++) {
		struct sl_sink_thread *t = &r->sink_thread[i];

		if (!e->sink[i]->own_thread || !e->sink[i]->own_thread(e->sink_state[i]))
			continue;
		t->receiver = r;
		t->sink = i;
		t->wanted = r->sink_threads = true;
		err = sl_queue_init(&t->frames, frames);
	}
	if (err || !r->sink_threads)
		return err;
	err = sl_queue_init(&r->in_flight, frames);
	if (!err)
		err = sl_pool_init(&r->stand_ins, SL_STAND_INS, r->geometry.modules,
				   sl_geometry_frame_items(&r->geometry), NULL, 0);
	return err;
}

int sl_sink_threads_start(struct sl_receiver *r)
{
	int err = 0;

	for (unsigned i = 0; i < r->experiment->sinks && !err; i++) {
		struct sl_sink_thread *t = &r->sink_thread[i];
		char name[24]; /* the kernel keeps 15 characters */

		if (!t->wanted)
			continue;
		snprintf(name, sizeof(name), "sink-%s", r->experiment->sink[i]->name);
		err = sl_thread_start(&t->thread, name, NULL, sink_main, t);
	}
	return err;
}

/* After the settler, which gives them work. */
void sl_sink_threads_join(struct sl_receiver *r)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++) {
		struct sl_sink_thread *t = &r->sink_thread[i];

		atomic_store(&t->stop, 1);
		sl_bell_ring(&t->bell);
		sl_thread_join(&t->thread);
	}
}

void sl_sink_threads_close(struct sl_receiver *r)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		sl_queue_fini(&r->sink_thread[i].frames);
	sl_queue_fini(&r->in_flight);
	sl_pool_fini(&r->stand_ins);
	r->sink_threads = false;
}
