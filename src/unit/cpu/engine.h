/* engine.h - the cpu unit inside: batches in flight, and the workers that share their items.
 *
 * Model:     up to `flights` batches are worked on at a time. A batch goes through its passes one
 *            after the other; each pass has items, tiles or frames. Workers take items of the
 *            oldest batch first, and of the next one when the oldest has none left to take: so no
 *            worker waits while the last items of a pass are being run (window.c). With
 *            `order: any` each worker takes whole batches instead (alone.c).
 *
 *              ring of batches:  reaped <= finished <= submitted <= reaped + QUEUE
 *              in flight:        finished <= batch < finished + flights
 *
 * Threads:   submit and reap on the dispatcher; the rest on any worker.
 * Ownership: a worker's scratch of a flight is its own from the first item of a batch that it runs
 *            until the item's pass is over; then the worker that concludes the pass may read it. */
#ifndef SL_UNIT_CPU_ENGINE_H
#define SL_UNIT_CPU_ENGINE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/bell.h"
#include "core/unit.h"
#include "unit/cpu/passes.h"
#include "unit/cpu/tiles.h"

enum {
	SL_CPU_QUEUE = 16,
	SL_CPU_LINE = 64,
	SL_CPU_WORKERS = 64, /* a bit each in `joined` */
	/* 2^40 steps: a year of batches of 10,000 frames/s that go through three passes. */
	SL_CPU_ITEM_BITS = 24,
	SL_CPU_ITEM_MASK = (1 << SL_CPU_ITEM_BITS) - 1,
};

/* A batch that is worked on; the next one in the same place is `flights` batches later. */
struct sl_cpu_flight {
	/* (step << ITEM_BITS) + next item; step: number of the batch * passes + pass. */
	alignas(SL_CPU_LINE) _Atomic uint64_t ticket;
	/* Items of a pass that have been run, plus 1 if the batch before has concluded it. */
	alignas(SL_CPU_LINE) _Atomic uint32_t arrived[2 * SL_CHAIN_STAGES];
	alignas(SL_CPU_LINE) _Atomic uint64_t joined; /* a bit for each worker that ran an item */
	/* [stages][workers]; NULL: it needs none. */
	alignas(SL_CPU_LINE) void **scratch[SL_CHAIN_STAGES];
};

/* The worker's own. */
struct sl_cpu_worker {
	/* 1 + the batch that its scratch of a flight was last zeroed for; 0: never. */
	alignas(SL_CPU_LINE) uint64_t begun[SL_CPU_QUEUE];
};

/* Of a tile. Neighbours are noted by other workers at the same time, and read again and again by
 * those that wait, so each has a line of its own: 64 bytes beside some ten thousand pixels. */
struct sl_cpu_seen {
	alignas(SL_CPU_LINE) _Atomic uint32_t batches; /* that the tile has seen, modulo 2^32 */
};

/* Allocated apart from the state, which the pipeline need not align to cache lines. */
struct sl_cpu_engine {
	struct sl_chain chain;
	struct sl_bell *todo, *done;
	unsigned workers, flights;
	struct sl_cpu_passes passes;
	struct sl_cpu_tiles tiles;
	struct sl_cpu_flight *flight; /* [flights] */
	struct sl_cpu_worker *worker; /* [workers] */
	/* Where stages learn pixel by pixel: how far each tile is in this pass. NULL: tiles of the
	 * pass may be run in any order. */
	struct sl_cpu_seen *seen[2 * SL_CHAIN_STAGES];
	struct sl_batch *batch[SL_CPU_QUEUE];
	bool any_order;

	/* The dispatcher's own; held: between submit and reap. */
	alignas(SL_CPU_LINE) uint64_t reaped;
	bool held[SL_CPU_QUEUE];
	/* Released by submit(), acquired by workers. */
	alignas(SL_CPU_LINE) _Atomic uint64_t submitted;
	/* Released by conclude(), acquired by reap(). */
	alignas(SL_CPU_LINE) _Atomic uint64_t finished;
	/* A worker found a tile that another one still works on. */
	alignas(SL_CPU_LINE) _Atomic uint32_t blocked;
	/* Without order: the next batch; and those that are done, released by work_alone(),
	 * acquired by reap(). */
	alignas(SL_CPU_LINE) _Atomic uint64_t next;
	_Atomic uint32_t whole[SL_CPU_QUEUE];
};

/* scratch.c: how many batches may be in flight, and memory for the work on them. 0 or -errno,
 * logged; close() is due in any case. */
int sl_cpu_scratch_open(struct sl_cpu_engine *engine, unsigned flights);
void sl_cpu_scratch_close(struct sl_cpu_engine *engine);
/* This worker's scratch of the flight is zeroed for so many frames. */
void sl_cpu_scratch_clear(const struct sl_cpu_engine *engine, const struct sl_cpu_flight *flight,
			  unsigned worker, uint32_t frames);

/* window.c and alone.c: one item, or one whole batch. 1: done, 0: there is none now. */
int sl_cpu_work_in_order(struct sl_cpu_engine *engine, unsigned worker);
int sl_cpu_work_alone(struct sl_cpu_engine *engine, unsigned worker);

/* How many items this pass has. */
static inline uint32_t sl_cpu_items(const struct sl_cpu_engine *e, const struct sl_cpu_pass *pass)
{
	return !pass->stages ? 1 : pass->frames ? e->chain.batch_frames : e->tiles.n;
}

/* window.c: one item of a pass; and the stages that are done after it, given the scratch of those
 * workers that have a bit in `joined`. */
void sl_cpu_run_item(struct sl_cpu_engine *engine, struct sl_cpu_flight *flight, unsigned worker,
		     const struct sl_cpu_pass *pass, struct sl_batch *batch, uint32_t item);
void sl_cpu_finish_stages(struct sl_cpu_engine *engine, struct sl_cpu_flight *flight,
			  const struct sl_cpu_pass *pass, struct sl_batch *batch, uint64_t joined);

#endif
