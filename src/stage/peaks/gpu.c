/* gpu.c - `peaks` on an accelerator: pixels by rings in a table, so that a group of threads
 * has a ring.
 *
 * Exact: of counts and int16 photons all results are the CPU's to the last bit, as long as the sum
 * of squares of a ring is below 2^53. Sums of floats are in another order, and may differ in the
 * last bits of doubles; what follows from them is rounded to floats, and the same but for rare
 * cases: a limit that differs in its last bit. */
#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/blobs_gpu.h"
#include "stage/gather.h"
#include "stage/peaks/maths.h"
#include "stage/peaks/peaks.h"

enum {
	THREADS = 256,
	TILE = 32,
	GROUPS = 256
}; /* as in stage/peaks/peaks.cl; GROUPS: for candidates */
enum { RINGS, MEASURE, PLACE, KERNELS };

struct gpu {
	const struct sl_peaks *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	uint32_t items, batch_frames;
	struct sl_blobs_gpu blobs;
	struct sl_device_memory ring;  /* uint16_t [pixels] */
	struct sl_device_memory start; /* uint32_t [rings + 1]: in `index` */
	struct sl_device_memory index; /* uint32_t: pixels of one ring after those of another */
	struct sl_device_memory mean[SL_GPU_BATCH_SLOTS],
		upper[SL_GPU_BATCH_SLOTS]; /* float [frames][rings] */
};

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->ring, &t->start, &t->index};

	if (!t->device)
		return;
	sl_blobs_gpu_close(&t->blobs);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++) {
		t->device->platform->memory_close(t->device, &t->mean[i]);
		t->device->platform->memory_close(t->device, &t->upper[i]);
	}
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static int send_tables(struct gpu *t, struct sl_device_queue *queue)
{
	const struct sl_peaks_table *table = &t->stage->table;
	struct sl_gather gather;
	int err = sl_gather_make(&gather, table->ring, table->pixels, table->rings), done;

	if (err)
		return err;
	err = sl_device_table(t->device, queue, table->ring, table->pixels * sizeof(*table->ring),
			      &t->ring);
	if (!err)
		err = sl_gather_send(&gather, table->rings, t->device, queue, &t->start, &t->index);
	done = sl_device_finish(t->device, queue);
	sl_gather_free(&gather);
	return err ? err : done;
}

/* Pixels that can be strong at most. Of numbers with a mean and a deviation sigma, no more than one
 * in 1 + k^2 is above the mean by k sigma (Cantelli); and what is above the last limit of a ring
 * was above that of one of the iterations while it counted for its mean. */
static uint32_t most_strong(const struct sl_peaks *p)
{
	double share = SL_PEAKS_ITERATIONS / (1 + p->snr * p->snr) * 1.000001;
	double most = (double)p->table.pixels * share + 1024;

	return most < (double)p->table.pixels ? (uint32_t)most : (uint32_t)p->table.pixels;
}

static int open_kernels(struct gpu *t)
{
	static const char *const rings[SL_DTYPES] = {[SL_U8] = "peaks_rings_u8",
						     [SL_U16] = "peaks_rings_u16",
						     [SL_U32] = "peaks_rings_u32",
						     [SL_I16] = "peaks_rings_i16",
						     [SL_F32] = "peaks_rings_f32"};
	const char *const names[KERNELS] = {rings[t->stage->dtype], "peaks_measure", "peaks_place"};

	return sl_device_kernels(t->device, &sl_kernels_peaks, names, KERNELS, &t->program,
				 t->kernel);
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	const struct sl_peaks *p = stage->state;
	uint64_t rings = (uint64_t)env->batch_frames * p->table.rings * sizeof(float);
	int err;

	t->device = env->device;
	t->stage = p;
	t->items = env->items;
	t->batch_frames = env->batch_frames;
	t->blobs = (struct sl_blobs_gpu){.device = env->device,
					 .rows = p->table.rows,
					 .columns = p->table.columns,
					 .pixels = p->table.pixels,
					 .items = env->items,
					 .all = p->look == SL_PEAKS_OF_ALL,
					 .inside = 1,
					 .judged = 1,
					 .least = p->min_pixels,
					 .largest = p->max_pixels,
					 .most = most_strong(p)};
	err = open_kernels(t);
	if (!err)
		err = send_tables(t, env->queue);
	if (!err)
		err = sl_blobs_gpu_open(&t->blobs, env, t->program);
	for (unsigned i = 0; i < env->slots && !err; i++) {
		err = t->device->platform->memory_open(t->device, rings, &t->mean[i]);
		if (!err)
			err = t->device->platform->memory_open(t->device, rings, &t->upper[i]);
	}
	return err;
}

#define LAUNCH(KERNEL, RANGE, ARGUMENT)                                                \
	t->device->platform->launch(b->queue, t->kernel[KERNEL], &(RANGE), (ARGUMENT), \
				    sizeof(ARGUMENT) / sizeof((ARGUMENT)[0]))

/* Raw pixels are uploaded one frame behind the other, and without gaps. */
static const struct sl_device_memory *image_of(const struct gpu *t, const struct sl_gpu_batch *b)
{
	return t->stage->input == SL_STAGE_RAW ? b->raw : &b->result[t->stage->input];
}

static int mark(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_peaks *p = t->stage;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(t->blobs.all),
		SL_ARG(p->table.pixels),
		SL_ARG_MEMORY(&t->start),
		SL_ARG_MEMORY(&t->index),
		SL_ARG(p->settings.snr),
		SL_ARG(p->settings.threshold),
		SL_ARG_MEMORY(&t->mean[b->slot]),
		SL_ARG_MEMORY(&t->upper[b->slot]),
		SL_ARG_MEMORY(&t->blobs.slot[b->slot].marked),
		SL_ARG(t->blobs.words),
	};
	const struct sl_device_range rings = {{p->table.rings, b->frames}, THREADS};

	return LAUNCH(RINGS, rings, argument);
}

static int measure(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_peaks *p = t->stage;
	const struct sl_blobs_batch_slot *l = &t->blobs.slot[b->slot];
	const uint64_t frame_bytes = p->table.pixels * sl_dtype_bytes(p->dtype);
	const uint32_t dtype = p->dtype;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG(frame_bytes),
		SL_ARG(dtype),
		SL_ARG_MEMORY(&t->ring),
		SL_ARG_MEMORY(&t->mean[b->slot]),
		SL_ARG_MEMORY(&t->upper[b->slot]),
		SL_ARG(p->table.rings),
		SL_ARG(p->table.rows),
		SL_ARG(p->table.columns),
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
		SL_ARG(p->settings.radius),
		SL_ARG(p->settings.snr),
		SL_ARG_MEMORY(&l->row),
		SL_ARG_MEMORY(&l->good),
	};
	const struct sl_device_range groups = {{GROUPS, b->frames}, TILE};

	return LAUNCH(MEASURE, groups, argument);
}

static int place(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_peaks *p = t->stage;
	const struct sl_blobs_batch_slot *l = &t->blobs.slot[b->slot];
	const uint32_t rows_at = (uint32_t)p->result * t->batch_frames;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(t->blobs.all),
		SL_ARG_MEMORY(&l->blobs),
		SL_ARG(t->blobs.room),
		SL_ARG_MEMORY(&l->row),
		SL_ARG_MEMORY(&l->good),
		SL_ARG(p->max_peaks),
		SL_ARG(p->min_peaks),
		SL_ARG_MEMORY(&b->result[p->result]),
		SL_ARG_MEMORY(&b->result[p->result + 1]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(rows_at),
	};
	const struct sl_device_range frames = {{b->frames}, THREADS};

	return LAUNCH(PLACE, frames, argument);
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	int err = sl_blobs_gpu_clear(&t->blobs, b);

	if (!err)
		err = mark(t, b);
	if (!err)
		err = sl_blobs_gpu_choose(&t->blobs, b);
	if (!err)
		err = measure(t, b);
	return err ? err : place(t, b);
}

const struct sl_gpu sl_gpu_peaks = {
	.state_bytes = sizeof(struct gpu),
	.float_bound = 1e-5,
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
