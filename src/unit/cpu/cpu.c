/* cpu.c - stages on CPU workers, tile by tile.
 *
 * Model: a worker takes a tile and runs all stages over it, one after the other, so that each finds
 * in cache what the one before wrote, and per-pixel tables are read once per batch (tiles.h).
 * Stages that look at whole frames have a pass over the batch to themselves, when the tiles are
 * done: a worker takes a frame and runs all of them. Batches are worked on one pass at a time, in
 * order: the worker that completes the last item of a pass finishes the stages that are done, then
 * opens the next pass, or gives the batch back, and only then can tiles of the next one be taken.
 * So state that a stage keeps per pixel sees all frames in order, whatever the number of workers
 * (invariant ORDERED).
 *
 * Where no stage keeps such state order may be given up (`order: any`): then a worker takes a whole
 * batch and nobody waits for anybody at the end of a pass.
 *
 *   ring of batches:   reaped <= finished <= submitted <= reaped + QUEUE
 *   step:              number of the batch * passes + pass
 *   ticket:            (step << ITEM_BITS) + next item of it, a tile or a frame; without order,
 *                      the next batch
 *
 * Threads: as core/unit.h says. Nobody waits for anybody; work() takes one item or finds none.
 * Cost: per item two atomic operations; per pass one bell; per batch two. */
#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/log.h"
#include "core/unit.h"
#include "unit/cpu/cpu.h"
#include "unit/cpu/passes.h"
#include "unit/cpu/tiles.h"

/* 2^40 steps are years of batches. */
enum { QUEUE = 16, CACHE_LINE = 64, ITEM_BITS = 24, ITEM_MASK = (1 << ITEM_BITS) - 1 };

/* Allocated apart from the state, which the pipeline need not align to cache lines. */
struct engine {
	struct sl_chain chain;
	struct sl_bell *todo, *done;
	unsigned workers;
	struct sl_cpu_passes passes;
	struct sl_cpu_tiles tiles;
	void **scratch[SL_CHAIN_STAGES]; /* [stages][workers] */
	struct sl_batch *batch[QUEUE];
	bool any_order, held[QUEUE]; /* held: between submit and reap, the dispatcher's own */

	alignas(CACHE_LINE) uint64_t reaped; /* the dispatcher's own */
	_Atomic uint64_t submitted;	     /* released by submit(), acquired by take() */
	alignas(CACHE_LINE) _Atomic uint64_t ticket;
	alignas(CACHE_LINE) _Atomic uint32_t items_done;
	_Atomic uint64_t finished; /* released by conclude(), acquired by reap() */
	/* Without order: released by work_alone(), acquired by reap_any(). */
	_Atomic uint32_t whole[QUEUE];
};

enum { KEPT, ANY }; /* the choices of `order` */

struct cpu {
	uint32_t workers, tile_pixels, stores, order;
	unsigned chosen; /* workers: auto: how many the program takes; 0: one */
	struct engine *engine;
};

static const struct sl_option options[] = {
	SL_U32_AUTO(struct cpu, workers, auto, SL_UNIT_WORKERS, "threads",
		    "threads that run stages; auto: as many as the cpus allow"),
	SL_U32(struct cpu, tile_pixels, 0, 0, 16777216, "pixels",
	       "pixels of a module that a worker takes at a time; 0: as many as fit its cache"),
	SL_CHOICE(
		struct cpu, order, kept, "kept|any",
		"kept: all workers on one batch, then on the next; any: each worker on a batch of "
		"its own, for stages that learn nothing from frame to frame"),
	SL_CHOICE(
		struct cpu, stores, auto, "auto|cached|streamed",
		"how images that stages make go to memory: through the cache, or around it; auto: "
		"around it when a batch of them is larger than the last-level cache"),
	SL_OPTION_END};

static int allocate_scratch(struct engine *e)
{
	size_t frames = e->chain.batch_frames;
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

	for (unsigned s = 0; s < e->chain.stages; s++) {
		size_t bytes = e->chain.stage[s].terms.scratch_bytes;
		double all = (double)bytes * (double)frames * e->workers;

		if (all > memory) {
			sl_error("cpu: stage '%s' wants %.1f GB for its work, and this host has "
				 "%.1f GB; lower unit.batch, unit.workers, or what it is to do",
				 e->chain.stage[s].ops->name, all * 1e-9, memory * 1e-9);
			return -ENOMEM;
		}
		e->scratch[s] = calloc(e->workers, sizeof(void *));
		if (!e->scratch[s])
			return -ENOMEM;
		for (unsigned w = 0; bytes && w < e->workers; w++) {
			e->scratch[s][w] = sl_cpu_lines(frames * bytes);
			if (!e->scratch[s][w])
				return -ENOMEM;
		}
	}
	return 0;
}

static void close_cpu(void *state)
{
	struct cpu *cpu = state;
	struct engine *e = cpu->engine;

	if (!e)
		return;
	for (unsigned s = 0; s < e->chain.stages; s++) {
		for (unsigned w = 0; e->scratch[s] && w < e->workers; w++)
			free(e->scratch[s][w]);
		free(e->scratch[s]);
	}
	sl_cpu_tiles_close(&e->tiles);
	free(e);
	cpu->engine = NULL;
}

static int check_order(const struct engine *e)
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

/* e->chain is set. */
static int prepare(struct engine *e, const struct cpu *cpu)
{
	int err = check_order(e);

	if (!err)
		err = sl_cpu_passes_make(&e->chain, &e->passes);

	if (err)
		return err;
	err = sl_cpu_tiles_open(&e->tiles, &e->chain, &e->passes, cpu->tile_pixels,
				(enum sl_cpu_stores)cpu->stores, e->workers);
	if (err == -EINVAL || (!err && e->tiles.n > ITEM_MASK)) {
		sl_error("cpu: tiles of %u pixels are too many; set unit.tile_pixels higher, or to "
			 "0",
			 cpu->tile_pixels);
		return -EINVAL;
	}
	if (!err)
		err = allocate_scratch(e);
	if (err)
		sl_error("cpu: no memory for %u workers", e->workers);
	return err;
}

static unsigned workers_of(const void *state)
{
	const struct cpu *cpu = state;

	return cpu->workers ? cpu->workers : cpu->chosen ? cpu->chosen : 1;
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
	struct engine *e = sl_cpu_lines(sizeof(*e));
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
	const struct engine *e = ((struct cpu *)state)->engine;
	bool held = false;

	for (unsigned i = 0; i < QUEUE; i++)
		held |= e->held[i];
	return held ? -EBUSY : 0; /* a run that was abandoned leaves batches behind */
}

static unsigned batches(const void *state)
{
	const struct cpu *cpu = state;

	unsigned workers = workers_of(state);

	return cpu->order == KEPT ? 1 : workers < QUEUE ? workers : QUEUE;
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
	struct engine *e = ((struct cpu *)state)->engine;
	uint64_t number = atomic_load_explicit(&e->submitted, memory_order_relaxed);

	if (batch->frames > e->chain.batch_frames)
		return -EINVAL;
	if (e->held[number % QUEUE])
		return -EAGAIN;
	e->held[number % QUEUE] = true;
	e->batch[number % QUEUE] = batch;
	atomic_store_explicit(&e->submitted, number + 1, memory_order_release); /* take() */
	sl_bell_ring(e->todo);
	return 0;
}

static int submit(void *state, struct sl_batch *batch)
{
	sl_verdicts_reset(batch);
	return submit_judged(state, batch);
}

static int reap_any(struct engine *e, struct sl_batch **batch)
{
	for (unsigned i = 0; i < QUEUE; i++) {
		if (!atomic_load_explicit(&e->whole[i], memory_order_acquire)) /* work_alone() */
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
	struct engine *e = ((struct cpu *)state)->engine;

	if (e->any_order)
		return reap_any(e, batch);
	if (e->reaped == atomic_load_explicit(&e->finished, memory_order_acquire)) /* conclude() */
		return 0;
	*batch = e->batch[e->reaped % QUEUE];
	e->held[e->reaped++ % QUEUE] = false;
	return 1;
}

static void run_frame(struct engine *e, unsigned worker, const struct sl_cpu_pass *pass,
		      struct sl_batch *batch, uint32_t f)
{
	if (f >= batch->frames)
		return; /* the batch is not full */
	for (unsigned i = 0; i < pass->stages; i++) {
		const struct sl_chain_stage *stage = &e->chain.stage[pass->stage[i]];
		char *scratch = e->scratch[pass->stage[i]][worker]; /* NULL: it needs none */

		stage->ops->frame(stage->state,
				  scratch ? scratch + f * stage->terms.scratch_bytes : NULL, batch,
				  f);
	}
}

/* How many items a pass of this step has. */
static uint32_t items_of(const struct engine *e, const struct sl_cpu_pass *pass)
{
	return !pass->stages ? 1 : pass->frames ? e->chain.batch_frames : e->tiles.n;
}

/* Last of all that belongs to a step: pairs with the acquire in take(). */
static void open_step(struct engine *e, uint64_t step)
{
	atomic_store_explicit(&e->items_done, 0, memory_order_relaxed);
	atomic_store_explicit(&e->ticket, step << ITEM_BITS, memory_order_release);
}

/* Stages that have seen all of the batch, which workers from `first` on worked on. */
static void finish_stages(struct engine *e, const struct sl_cpu_pass *pass, struct sl_batch *batch,
			  unsigned first, unsigned workers)
{
	for (unsigned i = 0; i < pass->finishes; i++) {
		const struct sl_chain_stage *stage = &e->chain.stage[pass->finish[i]];

		stage->ops->finish(stage->state, e->scratch[pass->finish[i]] + first, workers,
				   batch);
	}
}

static void clear_scratch(struct engine *e, const struct sl_batch *batch, unsigned first,
			  unsigned workers)
{
	for (unsigned s = 0; s < e->chain.stages; s++) {
		const struct sl_stage_terms *terms = &e->chain.stage[s].terms;
		size_t zeroed = terms->scratch_bytes - terms->stale_bytes;

		for (unsigned w = first; zeroed && w < first + workers; w++)
			for (uint32_t f = 0; f < batch->frames; f++)
				memset((char *)e->scratch[s][w] + f * terms->scratch_bytes, 0,
				       zeroed);
	}
}

/* By the worker that completed the last item; the others find none until the next step is open. */
static void conclude(struct engine *e, struct sl_batch *batch, uint64_t step)
{
	uint64_t finished = atomic_load_explicit(&e->finished, memory_order_relaxed);
	unsigned pass = (unsigned)(step % e->passes.n);

	finish_stages(e, &e->passes.pass[pass], batch, 0, e->workers);
	if (pass < e->passes.n - 1) {
		open_step(e, step + 1);
		return;
	}
	clear_scratch(e, batch, 0, e->workers);
	batch->status = 0;
	atomic_store_explicit(&e->finished, finished + 1, memory_order_release); /* reap() */
	/* All of the above comes before any tile of the next batch, whose conclusion may run on
	 * another worker at once. */
	open_step(e, step + 1);
	sl_bell_ring(e->done);
}

/* The next item, if any batch has one. */
static bool take(struct engine *e, uint64_t *ticket)
{
	uint64_t t = atomic_load_explicit(&e->ticket, memory_order_acquire); /* open_step() */

	do {
		uint64_t submitted =
			atomic_load_explicit(&e->submitted, memory_order_acquire); /* submit() */
		uint64_t step = t >> ITEM_BITS;

		if (step / e->passes.n == submitted ||
		    (t & ITEM_MASK) >= items_of(e, &e->passes.pass[step % e->passes.n]))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&e->ticket, &t, t + 1, memory_order_acquire,
							memory_order_acquire));
	*ticket = t;
	return true;
}

static void run_item(struct engine *e, unsigned worker, const struct sl_cpu_pass *pass,
		     struct sl_batch *batch, uint32_t item)
{
	if (pass->frames)
		run_frame(e, worker, pass, batch, item);
	else
		sl_cpu_tiles_run(&e->tiles, worker, pass, e->scratch, batch, item);
}

/* All passes over a batch, without the help of others. */
static int work_alone(struct engine *e, unsigned worker)
{
	uint64_t number = atomic_load_explicit(&e->ticket, memory_order_relaxed);
	struct sl_batch *batch;

	do {
		if (number == atomic_load_explicit(&e->submitted, memory_order_acquire))
			return 0; /* pairs with submit() */
	} while (!atomic_compare_exchange_weak_explicit(
		&e->ticket, &number, number + 1, memory_order_relaxed, memory_order_relaxed));
	batch = e->batch[number % QUEUE];
	for (unsigned p = 0; p < e->passes.n; p++) {
		const struct sl_cpu_pass *pass = &e->passes.pass[p];

		for (uint32_t item = 0; item < items_of(e, pass); item++)
			run_item(e, worker, pass, batch, item);
		finish_stages(e, pass, batch, worker, 1);
	}
	clear_scratch(e, batch, worker, 1);
	batch->status = 0;
	atomic_store_explicit(&e->whole[number % QUEUE], 1, memory_order_release); /* reap_any() */
	sl_bell_ring(e->done);
	return 1;
}

static int work(void *state, unsigned worker)
{
	struct engine *e = ((struct cpu *)state)->engine;
	const struct sl_cpu_pass *pass;
	struct sl_batch *batch;
	uint64_t ticket, step;
	uint32_t done;

	if (e->any_order)
		return work_alone(e, worker);
	if (!take(e, &ticket))
		return 0;
	step = ticket >> ITEM_BITS;
	batch = e->batch[step / e->passes.n % QUEUE];
	pass = &e->passes.pass[step % e->passes.n];
	run_item(e, worker, pass, batch, (uint32_t)(ticket & ITEM_MASK));
	/* Releases this item to the worker that counts the last one, which acquires them all. */
	done = atomic_fetch_add_explicit(&e->items_done, 1, memory_order_acq_rel) + 1;
	if (done < items_of(e, pass))
		return 1;
	conclude(e, batch, step);
	/* Workers that found nothing may have gone to sleep although there is more now. */
	if (e->workers > 1)
		sl_bell_ring(e->todo);
	return 1;
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
	.submit = submit,
	.reap = reap,
	.work = work,
	.again = again,
};
