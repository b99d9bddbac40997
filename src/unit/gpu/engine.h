/* engine.h - a unit with a device at work: between accelerate.c, which opens and closes it, work.c,
 * which drives it, and give_up.c, which ends it when it fails. */
#ifndef SL_UNIT_GPU_ENGINE_H
#define SL_UNIT_GPU_ENGINE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "unit/gpu/gpu.h"

enum { SL_ENGINE_BATCHES = 16, SL_ENGINE_PINNED = 4 };

struct sl_engine {
	struct sl_engine *before; /* of those that were abandoned */
	struct sl_chain chain;
	struct sl_bell *done, *todo;
	struct sl_device *device; /* NULL: there is none (any more), and the CPU stands in */
	struct sl_batch_slots slots;
	struct sl_poll *poll;  /* instead of batch slots; NULL: batch slots */
	struct sl_host others; /* stages without a GPU side, behind the device */
	struct sl_host all;    /* for the fallback */
	struct sl_cross_check check;
	bool crossing, owed, fall_back; /* owed: a check was due, and another was under way */
	bool forgot;			/* what stages had learned on the device */
	int dead;			/* why the device was given up; 0: it was not */
	uint64_t timeout_ns;
	uint64_t every, seen; /* one of `every` frames is checked */
	uint64_t taken,
		oldest; /* batches that went into batch slots; the first that is still there */
	unsigned lane_of[SL_ENGINE_BATCHES];
	bool checked[SL_ENGINE_BATCHES]; /* to be compared with the CPU */
	uint64_t fallen_back, unlearned; /* frames; of these, without what had been learned */
	uint64_t twice;			 /* dark frames that may have been learned from twice */
	void *pinned[SL_ENGINE_PINNED];

	struct sl_batch *batch[SL_ENGINE_BATCHES], *ready[SL_ENGINE_BATCHES];
	uint64_t reaped;			/* the dispatcher's own */
	alignas(64) _Atomic uint64_t submitted; /* released by submit(), acquired by work() */
	alignas(64) _Atomic uint64_t
		finished; /* released by sl_engine_finish(), acquired by reap() */
};

struct sl_accelerator { /* the state of the unit */
	uint32_t device, slots, order, trigger, processors, backoff_ns;
	uint32_t timeout_ms, fallback, cross_check;
	struct sl_engine *engine;
};

/* ---- work.c: of struct sl_unit ---- */

int sl_accelerator_submit(void *state, struct sl_batch *batch);
int sl_accelerator_reap(void *state, struct sl_batch **batch);
int sl_accelerator_work(void *state, unsigned worker);

/* The batch is the dispatcher's again. */
void sl_engine_finish(struct sl_engine *engine, struct sl_batch *batch, int status);

/* ---- give_up.c ---- */

/* Nothing more is asked of the device; what it was working on is done by the CPU, or not at all. */
void sl_engine_give_up(struct sl_engine *engine, int err);
/* A batch that comes after that. */
void sl_engine_run_here(struct sl_engine *engine, struct sl_batch *batch);

/* Wait for copies from and to frames, and from tables. */
int sl_engine_settle(struct sl_engine *engine);
/* Before it is closed: is it (still) at something? */
bool sl_engine_comes_to_rest(struct sl_engine *engine);
/* It does not: what it has is left to it. */
void sl_engine_abandon(struct sl_engine *engine);

#endif
