/* gpu.c - `spots` on an accelerator.
 *
 * Exact: all results are the CPU's to the last bit: sums of counts are whole numbers, and floats
 * are added in the same order. */
#include <math.h>

#include <sluice/stage.h>

#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/blobs_gpu.h"
#include "stage/spots/spots.h"

enum { THREADS = SL_BLOBS_THREADS, TILE = 32, GROUPS = 256, EIGHT = 8 }; /* GROUPS: for spots */
enum { FIND, MEASURE, DECIDE, KERNELS };

struct gpu {
	const struct sl_spots *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	uint32_t items, batch_frames;
	struct sl_blobs_gpu blobs;
	struct sl_device_memory mask; /* uint8_t [pixels], or one that nobody reads */
};

static void close_gpu(void *state)
{
	struct gpu *t = state;

	if (!t->device)
		return;
	sl_blobs_gpu_close(&t->blobs);
	t->device->platform->memory_close(t->device, &t->mask);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static int open_kernels(struct gpu *t)
{
	static const char *const find[SL_DTYPES] = {[SL_U8] = "spots_find_u8",
						    [SL_U16] = "spots_find_u16",
						    [SL_U32] = "spots_find_u32",
						    [SL_I16] = "spots_find_i16",
						    [SL_F32] = "spots_find_f32"};
	const char *const names[KERNELS] = {find[t->stage->dtype], "spots_measure", "spots_decide"};

	return sl_device_kernels(t->device, &sl_kernels_spots, names, KERNELS, &t->program,
				 t->kernel);
}

/* Pixels that can be strong at most. In a cell of box + 1 pixels a side all are in each other's
 * boxes. The lowest of its strong ones has, of n in its box, at most n / (1 + sigmas^2) that are as
 * high as itself (Cantelli): so there are no more than these, and itself, in the cell. */
static uint32_t most_strong(const struct sl_spots_settings *s)
{
	double side = s->box + 1., n = (2. * s->box + 1) * (2. * s->box + 1) - 1;
	double in_cell = floor(1 + n / (1 + (double)s->sigmas * s->sigmas) * 1.00001);
	double cells = s->modules * ceil(s->rows / side) * ceil(s->columns / side);
	double pixels = (double)s->modules * s->rows * s->columns, most = cells * in_cell;

	return most < pixels ? (uint32_t)most : (uint32_t)pixels;
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	const struct sl_spots *s = stage->state;
	const struct sl_spots_settings *settings = &s->settings;
	uint64_t pixels = (uint64_t)settings->modules * settings->rows * settings->columns;
	static const uint8_t none;
	int err;

	t->device = env->device;
	t->stage = s;
	t->items = env->items;
	t->batch_frames = env->batch_frames;
	t->blobs = (struct sl_blobs_gpu){.device = env->device,
					 .rows = settings->rows,
					 .columns = settings->columns,
					 .pixels = pixels,
					 .items = env->items,
					 .all = s->look == SL_SPOTS_OF_ALL,
					 .least = s->min_pixels,
					 .largest = s->max_pixels,
					 .most = most_strong(settings)};
	err = open_kernels(t);
	if (!err)
		err = sl_device_table(t->device, env->queue,
				      settings->mask ? settings->mask : &none,
				      settings->mask ? pixels : 1, &t->mask);
	return err ? err : sl_blobs_gpu_open(&t->blobs, env, t->program);
}

#define LAUNCH(KERNEL, RANGE, ARGUMENT)                                                \
	t->device->platform->launch(b->queue, t->kernel[KERNEL], &(RANGE), (ARGUMENT), \
				    sizeof(ARGUMENT) / sizeof((ARGUMENT)[0]))

/* Raw pixels are uploaded one frame behind the other, and without gaps. */
static const struct sl_device_memory *image_of(const struct gpu *t, const struct sl_gpu_batch *b)
{
	return t->stage->input == SL_STAGE_RAW ? b->raw : &b->result[t->stage->input];
}

static int find(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_spots_settings *s = &t->stage->settings;
	const uint32_t wide = t->blobs.pixels % EIGHT == 0, masked = s->mask != NULL;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(t->blobs.all),
		SL_ARG(t->blobs.pixels),
		SL_ARG(wide),
		SL_ARG_MEMORY(&t->mask),
		SL_ARG(masked),
		SL_ARG(s->rows),
		SL_ARG(s->columns),
		SL_ARG(s->box),
		SL_ARG(s->threshold),
		SL_ARG(s->sigmas),
		SL_ARG_MEMORY(&t->blobs.slot[b->slot].marked),
	};
	const struct sl_device_range runs = {{t->blobs.spans, b->frames}, THREADS};

	return LAUNCH(FIND, runs, argument);
}

static int measure(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_spots *s = t->stage;
	const struct sl_blobs_batch_slot *l = &t->blobs.slot[b->slot];
	const uint64_t frame_bytes = t->blobs.pixels * sl_dtype_bytes(s->dtype);
	const uint32_t dtype = s->dtype, masked = s->settings.mask != NULL;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG(frame_bytes),
		SL_ARG(dtype),
		SL_ARG_MEMORY(&t->mask),
		SL_ARG(masked),
		SL_ARG(s->settings.rows),
		SL_ARG(s->settings.columns),
		SL_ARG_MEMORY(&l->marked),
		SL_ARG_MEMORY(&l->before),
		SL_ARG(t->blobs.words),
		SL_ARG(t->blobs.most),
		SL_ARG_MEMORY(&l->at),
		SL_ARG_MEMORY(&l->parent),
		SL_ARG_MEMORY(&l->size),
		SL_ARG_MEMORY(&l->blob),
		SL_ARG_MEMORY(&l->blobs),
		SL_ARG(t->blobs.room),
		SL_ARG(s->settings.box),
		SL_ARG(s->max_spots),
		SL_ARG_MEMORY(&b->result[s->result]),
	};
	const struct sl_device_range groups = {{GROUPS, b->frames}, TILE};

	return LAUNCH(MEASURE, groups, argument);
}

static int decide(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_spots *s = t->stage;
	const uint32_t rows_at = (uint32_t)s->result * t->batch_frames;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(t->blobs.all),
		SL_ARG_MEMORY(&t->blobs.slot[b->slot].blobs),
		SL_ARG(s->max_spots),
		SL_ARG(s->min_spots),
		SL_ARG_MEMORY(&b->result[s->result + 1]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(rows_at),
		SL_ARG(b->frames),
	};
	const struct sl_device_range frames = {{sl_device_groups(b->frames, THREADS)}, THREADS};

	return LAUNCH(DECIDE, frames, argument);
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	int err = find(t, b);

	if (!err)
		err = sl_blobs_gpu_choose(&t->blobs, b);
	if (!err)
		err = measure(t, b);
	return err ? err : decide(t, b);
}

const struct sl_gpu sl_gpu_spots = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
