/* gpu.c - `integrate` on an accelerator: tiles of the detector, pieces of cells, no
 * atomics.
 *
 * Exact: of counts and photons, results are the CPU's to the last bit. Sums of keV, of split counts
 * of 32 bits and of what the dark image has in bad pixels are doubles, in another order than the
 * CPU's: these differ by up to n 2^-53 of the sum of n absolute values, and results, which are
 * floats, by their last bit, unless what is added cancels.
 *
 * A batch is worked on in stacks of up to SL_STACK_MOST frames, of those that nobody has rejected.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/integrate/integrate.h"
#include "stage/integrate/tiles.h"

enum { BEGIN, TILES, CONCLUDE, KERNELS };

/* Per batch slot: what sums of pieces there are. */
struct work {
	struct sl_device_memory live; /* uint32_t [1 + frames] */
	struct sl_device_memory signal, variance, missing, dark;
};

struct gpu {
	const struct sl_integrate *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	int input;
	uint32_t items, tiles;
	struct sl_kernel_integrate about;
	struct sl_kernel_conclude conclude;
	struct sl_device_memory tile, piece, rank, place, share, norm, dark, total, dark_total,
		axis;
	struct work work[SL_GPU_BATCH_SLOTS];
};

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->tile,  &t->piece,      &t->rank, &t->place,
					    &t->share, &t->norm,       &t->dark, &t->total,
					    &t->axis,  &t->dark_total, NULL};

	if (!t->device)
		return;
	for (size_t i = 0; table[i]; i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++) {
		struct work *w = &t->work[i];
		struct sl_device_memory *memory[] = {&w->live, &w->signal, &w->variance,
						     &w->missing, &w->dark};

		for (size_t k = 0; k < sizeof(memory) / sizeof(memory[0]); k++)
			t->device->platform->memory_close(t->device, memory[k]);
	}
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

/* ---- opening ---- */

static int send_tables(struct gpu *t, struct sl_device_queue *queue,
		       const struct sl_integrate_tiles *tiles, const float *axis, uint32_t axes)
{
	const struct sl_shares *s = &t->stage->shares;
	const struct {
		const void *from;
		uint64_t bytes;
		struct sl_device_memory *to;
	} table[] = {
		{tiles->tile, tiles->tiles * sizeof(*tiles->tile), &t->tile},
		{tiles->piece, tiles->pieces * sizeof(*tiles->piece), &t->piece},
		{tiles->rank, (s->cells + 1ull) * sizeof(*tiles->rank), &t->rank},
		{tiles->place, tiles->entries * sizeof(*tiles->place), &t->place},
		{tiles->share, tiles->share ? tiles->entries * sizeof(*tiles->share) : 0,
		 &t->share},
		{tiles->norm, tiles->entries * sizeof(*tiles->norm), &t->norm},
		{tiles->dark, tiles->dark ? tiles->entries * sizeof(*tiles->dark) : 0, &t->dark},
		{s->total, s->cells * sizeof(*s->total), &t->total},
		{s->dark_total, s->cells * sizeof(*s->dark_total), &t->dark_total},
		{axis, axes * sizeof(*axis), &t->axis},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !err; i++)
		err = sl_device_table(t->device, queue, table[i].from, table[i].bytes, table[i].to);
	return err;
}

static int make_axes(const struct sl_integrate *s, float **axis)
{
	*axis = malloc((s->bins + (size_t)s->azimuth_bins) * sizeof(**axis));
	if (!*axis)
		return -ENOMEM;
	for (uint32_t b = 0; b < s->bins; b++)
		(*axis)[b] = (float)sl_shares_bin(&s->shares, b);
	for (uint32_t a = 0; a < s->azimuth_bins; a++)
		(*axis)[s->bins + a] = (float)sl_shares_sector(&s->shares, a);
	return 0;
}

/* So that each thread of the last kernel has some eight sums. */
static uint32_t slices_for(const struct sl_integrate_tiles *tiles, uint32_t cells)
{
	uint32_t slices = 1;

	while (slices < 32 && slices * 8 < tiles->pieces / cells)
		slices *= 2;
	return slices;
}

static int open_tables(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_geometry *g = env->geometry;
	struct sl_integrate_tiles tiles;
	float *axis = NULL;
	int done, err = sl_integrate_tiles_open(&tiles, &t->stage->shares, g->modules, g->rows,
						g->columns);

	if (!err)
		err = make_axes(t->stage, &axis);
	if (!err)
		err = send_tables(t, env->queue, &tiles, axis,
				  t->stage->bins + t->stage->azimuth_bins);
	done = sl_device_finish(t->device, env->queue); /* they are freed below, in any case */
	err = err ? err : done;
	t->tiles = tiles.tiles;
	if (!err)
		t->conclude.slices = slices_for(&tiles, t->stage->shares.cells);
	for (unsigned i = 0; i < env->slots && !err; i++) {
		struct work *w = &t->work[i];
		uint64_t sums = (uint64_t)tiles.pieces * t->about.most * sizeof(int64_t);
		int (*open)(struct sl_device *, uint64_t, struct sl_device_memory *) =
			t->device->platform->memory_open;

		err = open(t->device, (1ull + env->batch_frames) * sizeof(uint32_t), &w->live);
		if (!err)
			err = open(t->device, sums, &w->signal);
		if (!err)
			err = open(t->device, t->about.two ? sums : 0, &w->variance);
		if (!err)
			err = open(t->device, sums, &w->missing);
		if (!err)
			err = open(t->device, t->about.has_dark ? sums : 0, &w->dark);
		if (err)
			sl_error("%s: integrate: no memory on the device for sums of %.1f MB: %s",
				 t->device->platform->name, (double)sums * 1e-6,
				 t->device->platform->problem(t->device));
	}
	free(axis);
	sl_integrate_tiles_close(&tiles);
	return err;
}

/* What rows, and eight pixels, are multiples of. */
static uint32_t grain_of(uint32_t row_bytes, uint32_t eight_bytes)
{
	uint32_t grain = 16;

	while (grain > 2 && (row_bytes % grain || eight_bytes % grain))
		grain /= 2;
	return grain > 2 ? grain : 0;
}

static void fill_in(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_integrate *s = t->stage;
	const struct sl_geometry *g = env->geometry;
	uint32_t cells = s->shares.cells, profile = !s->azimuth_bins;

	t->about = (struct sl_kernel_integrate){
		.module_pixels = s->module_pixels,
		.modules = g->modules,
		.rows = g->rows,
		.columns = g->columns,
		.raw = t->input == SL_STAGE_RAW,
		.grain = grain_of(g->columns * (uint32_t)sl_dtype_bytes(s->dtype),
				  8 * (uint32_t)sl_dtype_bytes(s->dtype)),
		.most = env->batch_frames < SL_STACK_MOST ? env->batch_frames : SL_STACK_MOST,
		/* Whole pixels whose variance is what they count have one sum for both. */
		.two = !s->shares.cell || s->variance != SL_VARIANCE_COUNTS,
		.has_dark = s->shares.dark != NULL,
		.bits = s->shares.bits,
		.least = s->real ? 0 : (int32_t)s->least,
		.least_f32 = (float)s->least,
	};
	t->conclude = (struct sl_kernel_conclude){
		.most = t->about.most,
		.two = t->about.two,
		.has_dark = t->about.has_dark,
		.cells = cells,
		.bins = s->bins,
		.sectors = s->azimuth_bins,
		.radius_stride = profile ? 3 * s->bins : s->bins,
		.stride = profile ? 3 * s->bins : cells,
		.intensity_at = profile ? s->bins : 0,
		.sigma_at = profile ? 2 * s->bins : 0,
		.bits = s->shares.bits,
	};
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	static const char *const tiles[SL_DTYPES][2] = {
		[SL_U8] = {"integrate_u8_once", "integrate_u8_split"},
		[SL_U16] = {"integrate_u16_once", "integrate_u16_split"},
		[SL_U32] = {"integrate_u32_once", "integrate_u32_split"},
		[SL_I16] = {"integrate_i16_once", "integrate_i16_split"},
		[SL_F32] = {"integrate_f32_once", "integrate_f32_split"}};
	struct gpu *t = state;
	const char *names[KERNELS] = {[BEGIN] = "integrate_begin"};
	int err;

	t->device = env->device;
	t->stage = stage->state;
	t->input = stage->input;
	t->items = env->items;
	fill_in(t, env);
	names[TILES] = tiles[t->stage->dtype][!t->stage->shares.cell];
	names[CONCLUDE] = t->stage->real ? "integrate_conclude_real" : "integrate_conclude_whole";
	err = sl_device_kernels(t->device, &sl_kernels_integrate, names, KERNELS, &t->program,
				t->kernel);
	return err ? err : open_tables(t, env);
}

/* ---- a batch ---- */

static uint32_t lanes_of(enum sl_dtype dtype)
{
	return 4 / (uint32_t)sl_dtype_bytes(dtype);
}

static int begin(struct gpu *t, const struct sl_gpu_batch *b, struct sl_device_memory *result)
{
	const struct sl_device_memory *live = &t->work[b->slot].live;
	bool cake = t->stage->azimuth_bins;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->conclude),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(b->frames),
		SL_ARG_MEMORY(&t->axis),
		SL_ARG_MEMORY(&result[cake ? 2 : 0]),
		SL_ARG_MEMORY(&result[cake ? 3 : 0]),
		SL_ARG_MEMORY(&result[0]),
		SL_ARG_MEMORY(&result[cake ? 1 : 0]),
		SL_ARG_MEMORY(live),
	};
	struct sl_device_range range = {
		{sl_device_groups(t->conclude.cells, SL_CONCLUDE_THREADS), b->frames},
		SL_CONCLUDE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[BEGIN], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int add_up(struct gpu *t, const struct sl_gpu_batch *b)
{
	struct work *w = &t->work[b->slot];
	uint32_t words = sl_device_groups(t->about.most, lanes_of(t->stage->dtype));
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),
		SL_ARG_MEMORY(t->about.raw ? b->raw : &b->result[t->input]),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(&w->live),
		SL_ARG_MEMORY(&t->tile),
		SL_ARG_MEMORY(&t->piece),
		SL_ARG_MEMORY(&t->place),
		SL_ARG_MEMORY(&t->share),
		SL_ARG_MEMORY(&t->norm),
		SL_ARG_MEMORY(&t->dark),
		SL_ARG_MEMORY(&w->signal),
		SL_ARG_MEMORY(&w->variance),
		SL_ARG_MEMORY(&w->missing),
		SL_ARG_MEMORY(&w->dark),
	};
	struct sl_device_range range = {{t->tiles, sl_device_groups(words, SL_TILE_WORDS)},
					SL_TILE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[TILES], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int conclude(struct gpu *t, const struct sl_gpu_batch *b, struct sl_device_memory *result)
{
	struct work *w = &t->work[b->slot];
	uint64_t items = (uint64_t)t->conclude.cells * t->conclude.most;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->conclude),
		SL_ARG_MEMORY(&w->live),
		SL_ARG_MEMORY(&t->rank),
		SL_ARG_MEMORY(&w->signal),
		SL_ARG_MEMORY(&w->variance),
		SL_ARG_MEMORY(&w->missing),
		SL_ARG_MEMORY(&w->dark),
		SL_ARG_MEMORY(&t->total),
		SL_ARG_MEMORY(&t->dark_total),
		SL_ARG(t->stage->shares.norm_unit),
		SL_ARG(t->stage->photon),
		SL_ARG_MEMORY(&result[0]),
		SL_ARG_MEMORY(&result[t->stage->azimuth_bins ? 1 : 0]),
	};
	struct sl_device_range range = {
		{sl_device_groups(items, SL_CONCLUDE_THREADS / t->conclude.slices)},
		SL_CONCLUDE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[CONCLUDE], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	struct sl_device_memory *result = &b->result[t->stage->result];
	int err = begin(t, b, result);

	for (uint32_t first = 0; first < b->frames && !err; first += t->about.most) {
		t->about.first = t->conclude.first = first;
		err = add_up(t, b);
		if (!err)
			err = conclude(t, b, result);
	}
	return err;
}

const struct sl_gpu sl_gpu_integrate = {
	.state_bytes = sizeof(struct gpu),
	.float_bound = 1e-6,
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
