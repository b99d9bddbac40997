/* cpu.c - stages on CPU workers, tile by tile.
 *
 * Model: a worker takes a tile and runs all stages over it, one after the other, so that each finds
 * in cache what the one before wrote, and per-pixel tables are read once per batch (tiles.h).
 * Stages that look at whole frames have a pass over the batch to themselves, when the tiles are
 * done: a worker takes a frame and runs all of them. The worker that completes the last item of a
 * pass finishes the stages that are done, then opens the next pass, or gives the batch back.
 * Meanwhile other workers go on with the next batches, as far as their order allows (window.c): so
 * state that a stage keeps per pixel sees all frames in order, whatever the number of workers
 * (invariant ORDERED).
 *
 * Where no stage keeps such state order may be given up (`order: any`): then a worker takes a whole
 * batch, and batches come back in any order (alone.c).
 *
 * Threads: as core/unit.h says. No call waits; work() takes one item or finds none. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "unit/cpu/cpu.h"
#include "unit/cpu/engine.h"

enum { KEPT, ANY }; /* the choices of `order` */

struct cpu {
	uint32_t workers, tile_pixels, stores, order;
	unsigned chosen; /* workers: auto: how many the program takes; 0: one */
	struct sl_cpu_engine *engine;
};

static const struct sl_option options[] = {
	SL_U32_AUTO(struct cpu, workers, auto, SL_UNIT_WORKERS, "threads",
		    "threads that run stages; auto: as many as the cpus allow"),
	SL_U32(struct cpu, tile_pixels, 0, 0, 16777216, "pixels",
	       "pixels of a module that a worker takes at a time; 0: as many as fit its cache"),
	SL_CHOICE(struct cpu, order, kept, "kept|any",
		  "kept: workers share batches, the oldest first; any: each worker on a batch of "
		  "its own, for stages that learn nothing from frame to frame"),
	SL_CHOICE(
		struct cpu, stores, auto, "auto|cached|streamed",
		"how images that stages make go to memory: through the cache, or around it; auto: "
		"around it when a batch of them is larger than the last-level cache"),
	SL_OPTION_END};

static void close_cpu(void *state)
{
	struct cpu *cpu = state;
	struct sl_cpu_engine *e = cpu->engine;

	if (!e)
		return;
	sl_cpu_scratch_close(e);
	for (unsigned p = 0; p < e->passes.n; p++)
		free(e->seen[p]);
	sl_cpu_tiles_close(&e->tiles);
	free(e);
	cpu->engine = NULL;
}

static int check_order(const struct sl_cpu_engine *e)
{
	for (unsigned s = 0; e->any_order && s < e->chain.stages; s++)
		if (e->chain.stage[s].ops->ordered) {
			sl_error("cpu: stage '%s' learns from frame to frame: with it unit.order "
				 "must be kept",
				 e->chain.stage[s].ops->name);
			return -EINVAL;
		}
	return 0;
}

static unsigned workers_of(const void *state)
{
	const struct cpu *cpu = state;

	return cpu->workers ? cpu->workers : cpu->chosen ? cpu->chosen : 1;
}

/* Batches in flight, so that workers find items while those of the oldest batch come to their end:
 * two, and as many more as it takes for each worker to have two items of a pass over frames. */
static unsigned flights_of(const struct cpu *cpu, uint32_t batch_frames)
{
	unsigned items = batch_frames ? batch_frames : 1, workers = workers_of(cpu);

	if (workers == 1 || cpu->order == ANY)
		return 1;
	return 2 + (2 * workers + items - 1) / items;
}

/* Workers share batches: those of two do not run out of items while a third one fills. */
static unsigned enough(const void *state)
{
	const struct cpu *cpu = state;

	return cpu->order == KEPT ? 2 : UINT_MAX;
}

static int open_seen(struct sl_cpu_engine *e)
{
	for (unsigned p = 0; p < e->passes.n; p++) {
		if (!e->passes.pass[p].learns)
			continue;
		e->seen[p] = sl_cpu_lines(e->tiles.n * sizeof(*e->seen[p]));
		if (!e->seen[p])
			return -ENOMEM;
	}
	return 0;
}

/* The first batch waits for none before it. */
static void begin(struct sl_cpu_engine *e)
{
	for (unsigned p = 0; p < e->passes.n; p++)
		atomic_init(&e->flight[0].arrived[p], 1);
	for (unsigned f = 0; f < e->flights; f++)
		atomic_init(&e->flight[f].ticket, (uint64_t)f * e->passes.n << SL_CPU_ITEM_BITS);
}

/* e->chain is set. */
static int prepare(struct sl_cpu_engine *e, const struct cpu *cpu)
{
	int err = check_order(e);

	if (!err)
		err = sl_cpu_passes_make(&e->chain, &e->passes);

	if (err)
		return err;
	err = sl_cpu_tiles_open(&e->tiles, &e->chain, &e->passes, cpu->tile_pixels,
				(enum sl_cpu_stores)cpu->stores, e->workers);
	if (err == -EINVAL || (!err && e->tiles.n > SL_CPU_ITEM_MASK)) {
		sl_error("cpu: tiles of %u pixels are too many; set unit.tile_pixels higher, or to "
			 "0",
			 cpu->tile_pixels);
		return -EINVAL;
	}
	if (!err)
		err = sl_cpu_scratch_open(e, flights_of(cpu, e->chain.batch_frames));
	if (!err)
		err = open_seen(e);
	if (err)
		sl_error("cpu: no memory for %u workers", e->workers);
	else
		begin(e);
	return err;
}

static int choose_workers(void *state, unsigned workers)
{
	struct cpu *cpu = state;

	if (workers)
		cpu->chosen = workers;
	return cpu->workers == 0;
}

static int open_cpu(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		    struct sl_bell *done, unsigned *workers)
{
	struct cpu *cpu = state;
	struct sl_cpu_engine *e = sl_cpu_lines(sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	cpu->engine = e;
	e->chain = *chain;
	e->todo = todo;
	e->done = done;
	e->workers = workers_of(cpu);
	e->any_order = cpu->order == ANY;
	err = prepare(e, cpu);
	if (err) {
		close_cpu(state);
		return err;
	}
	*workers = e->workers;
	return 0;
}

static int again(void *state)
{
	const struct sl_cpu_engine *e = ((struct cpu *)state)->engine;
	bool held = false;

	for (unsigned i = 0; i < SL_CPU_QUEUE; i++)
		held |= e->held[i];
	return held ? -EBUSY : 0; /* a run that was abandoned leaves batches behind */
}

static unsigned batches(const void *state, uint32_t batch_frames)
{
	const struct cpu *cpu = state;
	unsigned n = cpu->order == KEPT ? flights_of(cpu, batch_frames) : workers_of(cpu);

	return n < SL_CPU_QUEUE ? n : SL_CPU_QUEUE;
}

void sl_verdicts_reset(struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];

		for (uint32_t i = 0; i < frame->items; i++)
			frame->verdict[i] = (struct sl_verdict){
				.number = frame->number * frame->items + i,
				.timestamp = frame->timestamp,
				.keep = 1,
				.reason = SL_REASON_UNJUDGED,
			};
	}
}

static int submit_judged(void *state, struct sl_batch *batch)
{
	struct sl_cpu_engine *e = ((struct cpu *)state)->engine;
	uint64_t number = atomic_load_explicit(&e->submitted, memory_order_relaxed);

	if (batch->frames > e->chain.batch_frames)
		return -EINVAL;
	if (e->held[number % SL_CPU_QUEUE])
		return -EAGAIN;
	e->held[number % SL_CPU_QUEUE] = true;
	e->batch[number % SL_CPU_QUEUE] = batch;
	atomic_store_explicit(&e->submitted, number + 1,
			      memory_order_release); /* window.c, alone.c */
	sl_bell_ring(e->todo);
	return 0;
}

static int submit(void *state, struct sl_batch *batch)
{
	sl_verdicts_reset(batch);
	return submit_judged(state, batch);
}

static int reap_any(struct sl_cpu_engine *e, struct sl_batch **batch)
{
	for (unsigned i = 0; i < SL_CPU_QUEUE; i++) {
		if (!atomic_load_explicit(&e->whole[i], memory_order_acquire)) /* alone.c */
			continue;
		*batch = e->batch[i];
		atomic_store_explicit(&e->whole[i], 0, memory_order_relaxed);
		e->held[i] = false;
		return 1;
	}
	return 0;
}

static int reap(void *state, struct sl_batch **batch)
{
	struct sl_cpu_engine *e = ((struct cpu *)state)->engine;

	if (e->any_order)
		return reap_any(e, batch);
	if (e->reaped == atomic_load_explicit(&e->finished, memory_order_acquire)) /* window.c */
		return 0;
	*batch = e->batch[e->reaped % SL_CPU_QUEUE];
	e->held[e->reaped++ % SL_CPU_QUEUE] = false;
	return 1;
}

static int work(void *state, unsigned worker)
{
	struct sl_cpu_engine *e = ((struct cpu *)state)->engine;

	return e->any_order ? sl_cpu_work_alone(e, worker) : sl_cpu_work_in_order(e, worker);
}

int sl_cpu_run(void *state, struct sl_batch *batch)
{
	struct sl_batch *back;
	int err = submit_judged(state, batch);

	while (!err && !reap(state, &back))
		work(state, 0);
	return err ? err : batch->status;
}

const struct sl_unit sl_unit_cpu = {
	.name = "cpu",
	.doc = "worker threads that run all stages over one tile after the other",
	.state_bytes = sizeof(struct cpu),
	.options = options,
	.open = open_cpu,
	.close = close_cpu,
	.choose_workers = choose_workers,
	.workers = workers_of,
	.batches = batches,
	.enough = enough,
	.submit = submit,
	.reap = reap,
	.work = work,
	.again = again,
};
