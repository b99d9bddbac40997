/* work.c - what the units for accelerators do with batches: the dispatcher leaves them and takes
 * them back, worker 0 has them go through the device.
 *
 * Model: submit() leaves a batch in a ring of batches; worker 0 takes it into a free batch slot and
 * queues all of its work, then looks which batch slots have come further.
 *
 *   ring of batches:   reaped <= finished <= begun <= submitted <= reaped + QUEUE
 *
 * Threads: as core/unit.h says; the device belongs to worker 0. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/bell.h"
#include "base/clock.h"
#include "core/unit.h"
#include "unit/cpu/cpu.h"
#include "unit/gpu/engine.h"

enum { QUEUE = SL_ENGINE_BATCHES, NAP_NS = 20000 };

/* ---- the dispatcher's side ---- */

int sl_accelerator_submit(void *state, struct sl_batch *batch)
{
	struct sl_engine *e = ((struct sl_accelerator *)state)->engine;
	uint64_t number = atomic_load_explicit(&e->submitted, memory_order_relaxed);

	if (batch->frames > e->chain.batch_frames)
		return -EINVAL;
	if (number - e->reaped == QUEUE)
		return -EAGAIN;
	sl_verdicts_reset(batch);
	e->batch[number % QUEUE] = batch;
	atomic_store_explicit(&e->submitted, number + 1, memory_order_release); /* work() */
	sl_bell_ring(e->todo);
	return 0;
}

int sl_accelerator_reap(void *state, struct sl_batch **batch)
{
	struct sl_engine *e = ((struct sl_accelerator *)state)->engine;

	if (e->reaped == atomic_load_explicit(&e->finished, memory_order_acquire)) /* finish() */
		return 0;
	*batch = e->ready[e->reaped++ % QUEUE];
	return 1;
}

/* ---- worker 0 ---- */

void sl_engine_finish(struct sl_engine *e, struct sl_batch *batch, int status)
{
	uint64_t number = atomic_load_explicit(&e->finished, memory_order_relaxed);

	batch->status = status;
	e->ready[number % QUEUE] = batch;
	atomic_store_explicit(&e->finished, number + 1, memory_order_release); /* reap() */
	sl_bell_ring(e->done);
}

/* The next batch is to be compared with the CPU, if one of its frames is due. */
static int begin_check(struct sl_engine *e, struct sl_batch *batch)
{
	int err = 0;

	if (e->every && (e->seen + e->every - 1) / e->every * e->every < e->seen + batch->frames)
		e->owed = true;
	e->seen += batch->frames;
	e->checked[e->taken % QUEUE] = e->owed && !e->crossing;
	if (!e->checked[e->taken % QUEUE])
		return 0;
	e->owed = false;
	e->crossing = true;
	err = sl_batch_slots_give_back(&e->slots);
	return err ? err : sl_cross_check_begin(&e->check, &e->slots, batch);
}

/* A batch slot, or the ring, takes the next batch, if there is one. 1: it did, 0: not now. */
static int begin(struct sl_engine *e, uint64_t submitted)
{
	struct sl_batch *batch = e->batch[e->taken % QUEUE];
	int slot = -1, err;

	if (e->taken == submitted)
		return 0;
	if (!e->poll)
		slot = sl_batch_slots_next(&e->slots);
	if (e->poll ? !sl_poll_has_room(e->poll, batch->frames) : slot < 0)
		return 0;
	err = begin_check(e, batch);
	e->lane_of[e->taken++ % QUEUE] = (unsigned)slot;
	if (!err)
		err = e->poll ? sl_poll_begin(e->poll, batch)
			      : sl_batch_slot_begin(&e->slots, (unsigned)slot, batch);
	return err ? err : 1;
}

/* All that the device makes of the batch is here. */
static void conclude(struct sl_engine *e, uint64_t number)
{
	struct sl_batch *batch = e->batch[number % QUEUE];

	if (e->checked[number % QUEUE]) {
		sl_cross_check_compare(&e->check, &e->slots, batch);
		e->crossing = false;
	}
	sl_engine_finish(e, batch, sl_host_run(&e->others, batch));
}

/* 1: it came further, 0: not yet, or what is wrong. */
static int advance(struct sl_engine *e, uint64_t number, bool may_leave)
{
	unsigned index = e->lane_of[number % QUEUE];
	struct sl_batch_slot *slot = &e->slots.slot[index];
	bool returning = slot->state == SL_BATCH_SLOT_RETURNING;
	int reached;

	if (returning && !may_leave)
		return 0;
	reached = returning ? e->slots.platform->reached(slot->back)
			    : sl_batch_slot_reached(&e->slots, index);
	if (reached == 0 && sl_clock_ns() - slot->since_ns > e->timeout_ns)
		return -ETIMEDOUT;
	if (reached != 1)
		return reached;
	if (returning) {
		slot->state = SL_BATCH_SLOT_FREE;
		slot->batch = NULL;
		conclude(e, number);
		return 1;
	}
	reached = sl_batch_slot_judged(&e->slots, index);
	return reached ? reached : 1;
}

/* Batch slots in the order in which they were filled, so that batches leave in order, too. */
static int advance_all(struct sl_engine *e)
{
	bool may_leave = true;
	int did = 0;

	for (uint64_t number = e->oldest; number < e->taken; number++) {
		int err = advance(e, number, may_leave);

		if (err < 0)
			return err;
		did |= err;
		if (e->slots.slot[e->lane_of[number % QUEUE]].state == SL_BATCH_SLOT_FREE &&
		    number == e->oldest)
			e->oldest++;
		else
			may_leave = false;
	}
	return did;
}

/* Batches whose last answer is in the ring. */
static int take_all(struct sl_engine *e)
{
	int did = 0, err = 1;

	while (e->oldest < e->taken) {
		err = sl_poll_take(e->poll, e->batch[e->oldest % QUEUE]);
		if (err != 1)
			return err < 0 ? err : did;
		conclude(e, e->oldest++);
		did = 1;
	}
	return did;
}

int sl_accelerator_work(void *state, unsigned worker)
{
	struct sl_engine *e = ((struct sl_accelerator *)state)->engine;
	struct timespec nap = {0, NAP_NS};
	uint64_t submitted =
		atomic_load_explicit(&e->submitted, memory_order_acquire); /* submit() */
	int did, err = 0;

	if (e->dead) {
		if (e->taken == submitted)
			return 0;
		sl_engine_run_here(e, e->batch[e->taken++ % QUEUE]);
		e->oldest = e->taken;
		return 1;
	}
	did = begin(e, submitted);
	err = did < 0 ? did : e->poll ? take_all(e) : advance_all(e);
	if (err < 0) {
		sl_engine_give_up(e, err);
		return 1;
	}
	if (!did && !err && e->oldest < e->taken && !e->poll &&
	    e->slots.trigger != SL_BATCH_SLOTS_LOOP)
		nanosleep(&nap, NULL); /* the device is at it */
	return did || err || e->oldest < e->taken;
}
