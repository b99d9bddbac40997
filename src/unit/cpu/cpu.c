/* cpu.c - stages on CPU workers, tile by tile.
 *
 * Model: a tile is a run of pixels of one module, across all frames of a batch. A worker takes a
 * tile and runs all stages over it, one after the other, so that each finds in cache what the one
 * before wrote, and per-pixel tables are read once per batch. Tiles are small enough for that.
 * Stages that look at whole frames have a pass over the batch to themselves, when the tiles are
 * done: a worker takes a frame and runs all of them. Batches are worked on one pass at a time, in
 * order: the worker that completes the last item of a pass opens the next one, or concludes the
 * batch, and only then can tiles of the next one be taken. So state that a stage keeps per
 * pixel sees all frames in order, whatever the number of workers (invariant ORDERED).
 *
 *   ring of batches:   reaped <= finished <= submitted <= reaped + QUEUE
 *   step:              number of the batch * passes + pass
 *   ticket:            (step << ITEM_BITS) + next item of it, a tile or a frame
 *
 * Threads: as unit.h says. Nobody waits for anybody; work() takes one item or finds none.
 * Cost: per item two atomic operations; per pass one bell; per batch two. */
#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/unit.h>

#include "base/bell.h"
#include "base/log.h"
#include "unit/cpu/passes.h"

/* 2^40 steps are years of batches. */
enum { QUEUE = 16, CACHE_LINE = 64, ITEM_BITS = 24, ITEM_MASK = (1 << ITEM_BITS) - 1 };

/* What one batch touches of a tile should stay in half of a small second-level cache. */
enum { TILE_BYTES = 256 << 10, TILE_PIXELS_MIN = 1024, TILE_PIXELS_MAX = 65536 };

struct worker {
	const void **in; /* [batch_frames] */
	void **out;	 /* [batch_frames] */
};

/* Allocated apart from the state, which the pipeline need not align to cache lines. */
struct engine {
	struct sl_chain chain;
	struct sl_bell *todo, *done;
	unsigned workers;
	uint32_t pixels, columns, tile_pixels, module_tiles, tiles;
	struct sl_cpu_passes passes;
	struct worker *worker;		 /* [workers] */
	void **scratch[SL_CHAIN_STAGES]; /* [stages][workers] */
	struct sl_batch *batch[QUEUE];

	alignas(CACHE_LINE) uint64_t reaped; /* the dispatcher's own */
	_Atomic uint64_t submitted;	     /* released by submit(), acquired by take() */
	alignas(CACHE_LINE) _Atomic uint64_t ticket;
	alignas(CACHE_LINE) _Atomic uint32_t items_done;
	_Atomic uint64_t finished; /* released by conclude(), acquired by reap() */
};

struct cpu {
	uint32_t workers, tile_pixels;
	struct engine *engine;
};

static const struct sl_option options[] = {
	SL_U32(struct cpu, workers, 1, 1, 64, "threads", "threads that run stages"),
	SL_U32(struct cpu, tile_pixels, 0, 0, 16777216, "pixels",
	       "pixels of a module that a worker takes at a time; 0: as many as fit its cache"),
	SL_OPTION_END};

static uint32_t choose_tile(const struct sl_chain *chain)
{
	uint64_t bytes = sl_dtype_bytes(chain->geometry->dtype), tile;

	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].output != SL_CHAIN_NONE)
			bytes += sl_dtype_bytes(chain->stage[s].terms.output[0].dtype);
	tile = TILE_BYTES / (bytes * (chain->batch_frames ? chain->batch_frames : 1));
	tile -= tile % CACHE_LINE;
	return tile < TILE_PIXELS_MIN	? TILE_PIXELS_MIN
	       : tile > TILE_PIXELS_MAX ? TILE_PIXELS_MAX
					: (uint32_t)tile;
}

/* Zeroed, and alone on its cache lines: workers write to these all the time. */
static void *allocate_lines(size_t bytes)
{
	size_t whole = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *memory = aligned_alloc(CACHE_LINE, whole ? whole : CACHE_LINE);

	return memory ? memset(memory, 0, whole) : NULL;
}

static int allocate_workers(struct engine *e)
{
	size_t frames = e->chain.batch_frames;

	e->worker = calloc(e->workers, sizeof(*e->worker));
	if (!e->worker)
		return -ENOMEM;
	for (unsigned w = 0; w < e->workers; w++) {
		e->worker[w].in = allocate_lines(frames * sizeof(void *));
		e->worker[w].out = allocate_lines(frames * sizeof(void *));
		if (!e->worker[w].in || !e->worker[w].out)
			return -ENOMEM;
	}
	for (unsigned s = 0; s < e->chain.stages; s++) {
		size_t bytes = e->chain.stage[s].terms.scratch_bytes;

		e->scratch[s] = calloc(e->workers, sizeof(void *));
		if (!e->scratch[s])
			return -ENOMEM;
		for (unsigned w = 0; bytes && w < e->workers; w++) {
			e->scratch[s][w] = allocate_lines(frames * bytes);
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
	for (unsigned w = 0; e->worker && w < e->workers; w++) {
		free(e->worker[w].in);
		free(e->worker[w].out);
	}
	free(e->worker);
	free(e);
	cpu->engine = NULL;
}

static int open_cpu(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		    struct sl_bell *done, unsigned *workers)
{
	struct cpu *cpu = state;
	struct engine *e = allocate_lines(sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	cpu->engine = e;
	err = sl_cpu_passes_make(chain, &e->passes);
	if (err) {
		close_cpu(state);
		return err;
	}
	e->chain = *chain;
	e->todo = todo;
	e->done = done;
	e->workers = cpu->workers;
	e->pixels = (uint32_t)sl_geometry_pixels(chain->geometry);
	e->columns = chain->geometry->columns;
	e->tile_pixels = cpu->tile_pixels ? cpu->tile_pixels : choose_tile(chain);
	e->module_tiles = (e->pixels + e->tile_pixels - 1) / e->tile_pixels;
	e->tiles = e->module_tiles * chain->geometry->modules;
	err = (uint64_t)e->module_tiles * chain->geometry->modules > ITEM_MASK
		      ? -EINVAL
		      : allocate_workers(e);
	if (err) {
		if (err == -EINVAL)
			sl_error("cpu: tiles of %u pixels are too many; set unit.tile_pixels "
				 "higher, or to 0",
				 e->tile_pixels);
		else
			sl_error("cpu: no memory for %u workers", e->workers);
		close_cpu(state);
		return err;
	}
	*workers = e->workers;
	return 0;
}

static int submit(void *state, struct sl_batch *batch)
{
	struct engine *e = ((struct cpu *)state)->engine;
	uint64_t number = atomic_load_explicit(&e->submitted, memory_order_relaxed);

	if (batch->frames > e->chain.batch_frames)
		return -EINVAL;
	if (number - e->reaped == QUEUE)
		return -EAGAIN;
	e->batch[number % QUEUE] = batch;
	atomic_store_explicit(&e->submitted, number + 1, memory_order_release); /* take() */
	sl_bell_ring(e->todo);
	return 0;
}

static int reap(void *state, struct sl_batch **batch)
{
	struct engine *e = ((struct cpu *)state)->engine;

	if (e->reaped == atomic_load_explicit(&e->finished, memory_order_acquire)) /* conclude() */
		return 0;
	*batch = e->batch[e->reaped++ % QUEUE];
	return 1;
}

/* One pixel of an array of the frame, by its number in the module. */
static void *address(const struct engine *e, const struct sl_frame *frame, int array,
		     uint32_t module, uint32_t pixel, size_t bytes)
{
	const struct sl_array *raw = &frame->view[module].pixels;

	if (array != SL_CHAIN_RAW)
		return (char *)frame->result[array].host +
		       ((uint64_t)module * e->pixels + pixel) * bytes;
	if (!raw->pitch)
		return (char *)raw->host + pixel * bytes;
	return (char *)raw->host + pixel / e->columns * raw->pitch + pixel % e->columns * bytes;
}

/* How many pixels from this one on lie in one piece, in the input of the stage. All frames of a
 * batch come from one ring, and so with one pitch. */
static uint32_t run_of(const struct engine *e, const struct sl_chain_stage *stage,
		       const struct sl_batch *batch, const struct sl_tile *tile)
{
	uint32_t row = e->columns - tile->first % e->columns;

	if (stage->input != SL_CHAIN_RAW || !batch->frames ||
	    !batch->frame[0]->view[tile->module].pixels.pitch)
		return tile->count;
	return row < tile->count ? row : tile->count;
}

static void run_stage(struct engine *e, unsigned worker, unsigned number, struct sl_batch *batch,
		      const struct sl_tile *whole)
{
	const struct sl_chain_stage *stage = &e->chain.stage[number];
	struct worker *w = &e->worker[worker];
	size_t in_bytes = sl_dtype_bytes(stage->in.dtype);
	size_t out_bytes = sl_dtype_bytes(stage->terms.output[0].dtype);
	struct sl_tile tile = *whole;
	uint32_t left = whole->count;

	tile.out = stage->output == SL_CHAIN_NONE ? NULL : w->out;
	while (left) {
		tile.count = left;
		tile.count = run_of(e, stage, batch, &tile);
		for (uint32_t f = 0; f < batch->frames; f++) {
			w->in[f] = address(e, batch->frame[f], stage->input, tile.module,
					   tile.first, in_bytes);
			if (tile.out)
				w->out[f] = address(e, batch->frame[f], stage->output, tile.module,
						    tile.first, out_bytes);
		}
		stage->ops->tile(stage->state, e->scratch[number][worker], batch, &tile);
		tile.first += tile.count;
		left -= tile.count;
	}
}

static void run_tile(struct engine *e, unsigned worker, const struct sl_cpu_pass *pass,
		     struct sl_batch *batch, uint32_t number)
{
	struct sl_tile tile = {.module = number / e->module_tiles, .in = e->worker[worker].in};

	tile.first = number % e->module_tiles * e->tile_pixels;
	tile.count = e->pixels - tile.first < e->tile_pixels ? e->pixels - tile.first
							     : e->tile_pixels;
	for (unsigned i = 0; i < pass->stages; i++)
		run_stage(e, worker, pass->stage[i], batch, &tile);
}

static void run_frame(struct engine *e, unsigned worker, const struct sl_cpu_pass *pass,
		      struct sl_batch *batch, uint32_t f)
{
	if (f >= batch->frames)
		return; /* the batch is not full */
	for (unsigned i = 0; i < pass->stages; i++) {
		const struct sl_chain_stage *stage = &e->chain.stage[pass->stage[i]];

		stage->ops->frame(stage->state,
				  (char *)e->scratch[pass->stage[i]][worker] +
					  f * stage->terms.scratch_bytes,
				  batch, f);
	}
}

/* Until a stage decides, a frame is kept. */
static void reset_verdicts(struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];

		for (uint32_t i = 0; i < frame->items; i++)
			frame->verdict[i] = (struct sl_verdict){
				.number = frame->number,
				.timestamp = frame->timestamp,
				.keep = 1,
				.reason = SL_REASON_UNJUDGED,
			};
	}
}

/* How many items a pass of this step has. */
static uint32_t items_of(const struct engine *e, const struct sl_cpu_pass *pass)
{
	return !pass->stages ? 1 : pass->frames ? e->chain.batch_frames : e->tiles;
}

/* Last of all that belongs to a step: pairs with the acquire in take(). */
static void open_step(struct engine *e, uint64_t step)
{
	atomic_store_explicit(&e->items_done, 0, memory_order_relaxed);
	atomic_store_explicit(&e->ticket, step << ITEM_BITS, memory_order_release);
}

/* By the worker that completed the last item; the others find none until the next step is open. */
static void conclude(struct engine *e, struct sl_batch *batch, uint64_t step)
{
	uint64_t finished = atomic_load_explicit(&e->finished, memory_order_relaxed);

	reset_verdicts(batch);
	for (unsigned s = 0; s < e->chain.stages; s++) {
		const struct sl_chain_stage *stage = &e->chain.stage[s];
		size_t bytes = stage->terms.scratch_bytes;

		if (stage->ops->finish)
			stage->ops->finish(stage->state, e->scratch[s], e->workers, batch);
		for (unsigned w = 0; bytes && w < e->workers; w++)
			memset(e->scratch[s][w], 0, batch->frames * bytes);
	}
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

static int work(void *state, unsigned worker)
{
	struct engine *e = ((struct cpu *)state)->engine;
	const struct sl_cpu_pass *pass;
	struct sl_batch *batch;
	uint64_t ticket, step;
	uint32_t done;

	if (!take(e, &ticket))
		return 0;
	step = ticket >> ITEM_BITS;
	batch = e->batch[step / e->passes.n % QUEUE];
	pass = &e->passes.pass[step % e->passes.n];
	if (pass->frames)
		run_frame(e, worker, pass, batch, (uint32_t)(ticket & ITEM_MASK));
	else
		run_tile(e, worker, pass, batch, (uint32_t)(ticket & ITEM_MASK));
	/* Releases this item to the worker that counts the last one, which acquires them all. */
	done = atomic_fetch_add_explicit(&e->items_done, 1, memory_order_acq_rel) + 1;
	if (done < items_of(e, pass))
		return 1;
	if (step % e->passes.n == e->passes.n - 1)
		conclude(e, batch, step);
	else
		open_step(e, step + 1);
	/* Workers that found nothing may have gone to sleep although there is more now. */
	if (e->workers > 1)
		sl_bell_ring(e->todo);
	return 1;
}

const struct sl_unit sl_unit_cpu = {
	.name = "cpu",
	.doc = "worker threads that run all stages over one tile after the other",
	.state_bytes = sizeof(struct cpu),
	.options = options,
	.open = open_cpu,
	.close = close_cpu,
	.submit = submit,
	.reap = reap,
	.work = work,
};
