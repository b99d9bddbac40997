/* tiles.c - stages over one tile after the other. */
#include "unit/cpu/tiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/cpu.h"

enum { CACHE_LINE = 64 };

/* What one batch touches of a tile should stay in half of a small second-level cache. */
enum { TILE_BYTES = 256 << 10, TILE_PIXELS_MIN = 1024, TILE_PIXELS_MAX = 65536 };

/* Of a last-level cache that the system does not tell the size of. */
enum { CACHE_BYTES = 32 << 20 };

void *sl_cpu_lines(size_t bytes)
{
	size_t whole = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	void *memory = aligned_alloc(CACHE_LINE, whole ? whole : CACHE_LINE);

	return memory ? memset(memory, 0, whole) : NULL;
}

static size_t output_bytes(const struct sl_chain_stage *stage)
{
	return stage->output == SL_CHAIN_NONE ? 0 : sl_dtype_bytes(stage->terms.output[0].dtype);
}

static uint32_t choose_tile(const struct sl_chain *chain)
{
	uint64_t bytes = sl_dtype_bytes(chain->geometry->dtype), tile;

	for (unsigned s = 0; s < chain->stages; s++)
		bytes += output_bytes(&chain->stage[s]);
	tile = TILE_BYTES / (bytes * (chain->batch_frames ? chain->batch_frames : 1));
	tile -= tile % CACHE_LINE;
	return tile < TILE_PIXELS_MIN	? TILE_PIXELS_MIN
	       : tile > TILE_PIXELS_MAX ? TILE_PIXELS_MAX
					: (uint32_t)tile;
}

/* In that pass, as one that works on tiles. */
static bool is_in(const struct sl_cpu_pass *pass, unsigned stage)
{
	for (unsigned i = 0; i < pass->stages; i++)
		if (pass->stage[i] == stage)
			return !pass->frames;
	return false;
}

/* Whether a stage reads what `maker` made of its tiles where it is not in the worker's buffer: in
 * another pass. */
static bool is_read_later(const struct sl_chain *chain, const struct sl_cpu_passes *passes,
			  unsigned maker)
{
	for (unsigned s = 0; s < chain->stages; s++) {
		const struct sl_chain_stage *reader = &chain->stage[s];
		bool together = false;

		if (reader->input != chain->stage[maker].output)
			continue;
		for (unsigned p = 0; p < passes->n; p++)
			together |= is_in(&passes->pass[p], s) && is_in(&passes->pass[p], maker);
		if (!together || reader->ops->frame)
			return true;
	}
	return false;
}

/* Whether a stage reads it in the same pass, when it should be in cache. */
static bool is_read_soon(const struct sl_chain *chain, const struct sl_cpu_passes *passes,
			 unsigned maker)
{
	for (unsigned s = 0; s < chain->stages; s++)
		for (unsigned p = 0; p < passes->n; p++)
			if (chain->stage[s].input == chain->stage[maker].output &&
			    is_in(&passes->pass[p], s) && is_in(&passes->pass[p], maker))
				return true;
	return false;
}

/* Results that the last-level cache cannot hold until they are read are better not put there. */
static bool should_stream(const struct sl_cpu_tiles *t, enum sl_cpu_stores stores)
{
	uint64_t bytes = 0, pixels = (uint64_t)t->pixels * t->chain->geometry->modules;
	uint64_t cache = sl_cpu_last_cache_bytes("");

	for (unsigned s = 0; s < t->chain->stages; s++)
		if (t->stored[s])
			bytes += output_bytes(&t->chain->stage[s]) * pixels;
	return stores == SL_CPU_STORES_STREAMED ||
	       (stores == SL_CPU_STORES_AUTO &&
		bytes * t->chain->batch_frames > (cache ? cache : CACHE_BYTES));
}

static void choose_places(struct sl_cpu_tiles *t, const struct sl_cpu_passes *passes,
			  enum sl_cpu_stores stores)
{
	bool stream;

	for (int i = 0; i < SL_RESULTS; i++)
		t->maker[i] = -1;
	for (unsigned s = 0; s < t->chain->stages; s++) {
		const struct sl_chain_stage *stage = &t->chain->stage[s];

		if (stage->output == SL_CHAIN_NONE)
			continue;
		t->maker[stage->output] = (int)s;
		t->stored[s] = !stage->unread || is_read_later(t->chain, passes, s);
	}
	stream = should_stream(t, stores);
	for (unsigned s = 0; s < t->chain->stages; s++) {
		bool soon = is_read_soon(t->chain, passes, s);

		if (t->chain->stage[s].output == SL_CHAIN_NONE)
			continue;
		t->buffered[s] = !t->stored[s] || (stream && soon);
		t->streamed[s] = stream && !t->buffered[s];
	}
}

static int allocate(struct sl_cpu_tiles *t)
{
	size_t frames = t->chain->batch_frames;

	t->worker = calloc(t->workers, sizeof(*t->worker));
	if (!t->worker)
		return -ENOMEM;
	for (unsigned w = 0; w < t->workers; w++) {
		struct sl_cpu_tile_worker *worker = &t->worker[w];

		worker->in = sl_cpu_lines(frames * sizeof(void *));
		worker->out = sl_cpu_lines(frames * sizeof(void *));
		if (!worker->in || !worker->out)
			return -ENOMEM;
		for (unsigned s = 0; s < t->chain->stages; s++) {
			if (!t->buffered[s])
				continue;
			worker->buffer[s] = sl_cpu_lines(frames * t->tile_pixels *
							 output_bytes(&t->chain->stage[s]));
			if (!worker->buffer[s])
				return -ENOMEM;
		}
	}
	return 0;
}

int sl_cpu_tiles_open(struct sl_cpu_tiles *t, const struct sl_chain *chain,
		      const struct sl_cpu_passes *passes, uint32_t tile_pixels,
		      enum sl_cpu_stores stores, unsigned workers)
{
	*t = (struct sl_cpu_tiles){
		.chain = chain,
		.pixels = (uint32_t)sl_geometry_pixels(chain->geometry),
		.columns = chain->geometry->columns,
		.tile_pixels = tile_pixels ? tile_pixels : choose_tile(chain),
		.workers = workers,
	};
	t->module_tiles = (t->pixels + t->tile_pixels - 1) / t->tile_pixels;
	if (t->tile_pixels > t->pixels)
		t->tile_pixels = t->pixels;
	if ((uint64_t)t->module_tiles * chain->geometry->modules > UINT32_MAX)
		return -EINVAL;
	t->n = t->module_tiles * chain->geometry->modules;
	choose_places(t, passes, stores);
	return allocate(t);
}

void sl_cpu_tiles_close(struct sl_cpu_tiles *t)
{
	for (unsigned w = 0; t->worker && w < t->workers; w++) {
		free(t->worker[w].in);
		free(t->worker[w].out);
		for (unsigned s = 0; s < SL_CHAIN_STAGES; s++)
			free(t->worker[w].buffer[s]);
	}
	free(t->worker);
	t->worker = NULL;
}

/* Where pixels of frame f are, in an array of the frame. `tile` is the whole tile. */
static void *address(const struct sl_cpu_tiles *t, unsigned worker, const struct sl_batch *batch,
		     uint32_t f, int array, const struct sl_tile *tile, uint32_t pixel,
		     size_t bytes)
{
	const struct sl_frame *frame = batch->frame[f];
	const struct sl_array *raw = &frame->view[tile->module].pixels;
	int maker = array == SL_CHAIN_RAW ? -1 : t->maker[array];

	if (maker >= 0 && t->buffered[maker])
		return t->worker[worker].buffer[maker] +
		       ((uint64_t)f * t->tile_pixels + pixel - tile->first) * bytes;
	if (array != SL_CHAIN_RAW)
		return (char *)frame->result[array].host +
		       ((uint64_t)tile->module * t->pixels + pixel) * bytes;
	if (!raw->pitch)
		return (char *)raw->host + pixel * bytes;
	return (char *)raw->host + pixel / t->columns * raw->pitch + pixel % t->columns * bytes;
}

/* How many pixels from this one on lie in one piece, in the input of the stage. All frames of a
 * batch come from one ring, and so with one pitch. */
static uint32_t run_of(const struct sl_cpu_tiles *t, const struct sl_chain_stage *stage,
		       const struct sl_batch *batch, const struct sl_tile *tile)
{
	uint32_t row = t->columns - tile->first % t->columns;

	if (stage->input != SL_CHAIN_RAW || !batch->frames ||
	    !batch->frame[0]->view[tile->module].pixels.pitch)
		return tile->count;
	return row < tile->count ? row : tile->count;
}

static void run_stage(const struct sl_cpu_tiles *t, unsigned worker, unsigned number, void *scratch,
		      struct sl_batch *batch, const struct sl_tile *whole)
{
	const struct sl_chain_stage *stage = &t->chain->stage[number];
	struct sl_cpu_tile_worker *w = &t->worker[worker];
	size_t in_bytes = sl_dtype_bytes(stage->in.dtype), out_bytes = output_bytes(stage);
	struct sl_tile tile = *whole;
	uint32_t left = whole->count;

	tile.out = out_bytes ? w->out : NULL;
	tile.stream = t->streamed[number];
	while (left) {
		tile.count = left;
		tile.count = run_of(t, stage, batch, &tile);
		for (uint32_t f = 0; f < batch->frames; f++) {
			w->in[f] = address(t, worker, batch, f, stage->input, whole, tile.first,
					   in_bytes);
			if (tile.out)
				w->out[f] = address(t, worker, batch, f, stage->output, whole,
						    tile.first, out_bytes);
		}
		stage->ops->tile(stage->state, scratch, batch, &tile);
		tile.first += tile.count;
		left -= tile.count;
	}
}

/* What was made in the worker's buffer goes where others read it. Dark frames have no image. */
static void store(const struct sl_cpu_tiles *t, unsigned worker, unsigned number,
		  const struct sl_batch *batch, const struct sl_tile *tile)
{
	const struct sl_chain_stage *stage = &t->chain->stage[number];
	size_t bytes = output_bytes(stage);

	for (uint32_t f = 0; f < batch->frames; f++)
		sl_copy_stream((char *)batch->frame[f]->result[stage->output].host +
				       ((uint64_t)tile->module * t->pixels + tile->first) * bytes,
			       t->worker[worker].buffer[number] +
				       (uint64_t)f * t->tile_pixels * bytes,
			       tile->count * bytes);
}

void sl_cpu_tiles_run(const struct sl_cpu_tiles *t, unsigned worker, const struct sl_cpu_pass *pass,
		      void **const *scratch, struct sl_batch *batch, uint32_t number)
{
	struct sl_tile tile = {.module = number / t->module_tiles, .in = t->worker[worker].in};

	tile.first = number % t->module_tiles * t->tile_pixels;
	tile.count = t->pixels - tile.first < t->tile_pixels ? t->pixels - tile.first
							     : t->tile_pixels;
	for (unsigned i = 0; i < pass->stages; i++)
		run_stage(t, worker, pass->stage[i], scratch[pass->stage[i]][worker], batch, &tile);
	for (unsigned i = 0; i < pass->stages; i++)
		if (t->buffered[pass->stage[i]] && t->stored[pass->stage[i]])
			store(t, worker, pass->stage[i], batch, &tile);
	sl_copy_fence();
}
