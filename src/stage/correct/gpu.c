/* gpu.c - `correct` on an accelerator: its tables live there, and pedestals are learned
 * there.
 *
 * Exact: all outputs and tables, floats too, are the CPU's to the last bit: multiplications are not
 * fused, divisions are rounded correctly. */
#include "stage/correct/correct.h"

#include <errno.h>
#include <string.h>

#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"

enum { THREADS = 256, VECTOR = 8, COUNT_FRAMES = 64 };
enum { BRIGHT_THREADS = 64, BRIGHT_FRAMES = 5 }; /* SL_GROUP and SL_AHEAD of the kernel */
enum { PHOTONS_8, PHOTONS_1, FLOAT_1, BRIGHT_8, KERNELS = BRIGHT_8 + 4 };

static const char *const names[KERNELS] = {"correct_photons_8",
					   "correct_photons_1",
					   "correct_float_1",
					   "correct_bright_8",
					   "correct_bright_8_counted",
					   "correct_bright_8_bounded",
					   "correct_bright_8_bounded_counted"};

struct gpu {
	struct sl_correct *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	unsigned use;
	int output;
	uint32_t modules;
	uint32_t dark_seen;				   /* by batches that were queued */
	int32_t threshold;				   /* of pixels that are counted */
	struct sl_device_memory count[SL_GPU_BATCH_SLOTS]; /* of who asked for it */
	struct sl_device_memory nothing;		   /* where nobody did */
	uint32_t batch_frames;
	bool counts;
	struct sl_device_memory factor, other, pedestal, sum, spread, samples, wrong;
};

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->factor, &t->other,   &t->pedestal, &t->sum,
					    &t->spread, &t->samples, &t->wrong,	   &t->nothing};

	if (!t->device)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static int send_tables(struct gpu *t, struct sl_device_queue *queue)
{
	const struct sl_correct *c = t->stage;
	uint64_t in_cells = c->pixels * c->cells;
	uint64_t others = c->other_pixels ? in_cells : c->pixels;
	const struct {
		const void *from;
		uint64_t bytes;
		struct sl_device_memory *to;
	} table[] = {
		{c->factor, c->pixels * sizeof(float), &t->factor},
		{c->other, others * sizeof(*c->other), &t->other},
		{c->pedestal_0, in_cells * sizeof(float), &t->pedestal},
		{c->sum, in_cells * sizeof(float), &t->sum},
		{c->spread, in_cells * sizeof(float), &t->spread},
		{c->samples, in_cells * sizeof(uint16_t), &t->samples},
		{c->wrong, in_cells * sizeof(uint16_t), &t->wrong},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !err; i++)
		err = sl_device_table(t->device, queue, table[i].from, table[i].bytes, table[i].to);
	return err;
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	int err;

	t->device = env->device;
	t->stage = stage->state;
	t->output = stage->output;
	t->modules = env->geometry->modules;
	t->dark_seen = t->stage->dark_seen;
	t->batch_frames = env->batch_frames;
	t->threshold = INT32_MAX;
	t->use = t->stage->output != SL_CORRECT_PHOTONS_I16 ? FLOAT_1
		 : t->stage->module_pixels % VECTOR	    ? PHOTONS_1
							    : PHOTONS_8;
	err = sl_device_kernels(t->device, &sl_kernels_correct, names, KERNELS, &t->program,
				t->kernel);
	if (!err)
		err = t->device->platform->memory_open(t->device, COUNT_FRAMES * sizeof(uint32_t),
						       &t->nothing);
	return err ? err : send_tables(t, env->queue);
}

static int count(void *state, uint32_t threshold, const struct sl_device_memory *slot)
{
	struct gpu *t = state;

	if (t->use != PHOTONS_8 || t->batch_frames > COUNT_FRAMES || t->counts)
		return -ENOTSUP;
	memcpy(t->count, slot, sizeof(t->count));
	t->threshold = (int32_t)threshold;
	t->counts = true;
	return 0;
}

static void prepare(void *state, struct sl_batch *batch)
{
	struct gpu *t = state;

	sl_correct_judge(t->stage, batch, &t->dark_seen);
}

/* Nothing to learn, one table for all. */
static bool is_simple(const struct gpu *t, const struct sl_batch *batch)
{
	if (!batch || t->use != PHOTONS_8 || t->stage->cells > 1 ||
	    (t->counts && batch->frames > COUNT_FRAMES))
		return false;
	for (uint32_t f = 0; f < batch->frames; f++)
		if (batch->frame[f]->flags & SL_FRAME_DARK)
			return false;
	return true;
}

static int kind(void *state, const struct sl_batch *batch)
{
	return is_simple(state, batch);
}

static int enqueue_bright(struct gpu *t, const struct sl_gpu_batch *b,
			  const struct sl_device_memory *counts)
{
	struct sl_correct *c = t->stage;
	/* Counts are collected by a group for all its frames: cheaper in one piece. */
	uint32_t parts = t->counts ? 1 : sl_device_groups(b->frames, BRIGHT_FRAMES);
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->raw),	     SL_ARG_MEMORY(b->view),
		SL_ARG(b->frames),	     SL_ARG(t->modules),
		SL_ARG(c->module_pixels),    SL_ARG_MEMORY(&b->result[t->output]),
		SL_ARG_MEMORY(&t->factor),   SL_ARG_MEMORY(&t->other),
		SL_ARG_MEMORY(&t->pedestal), SL_ARG(t->threshold),
		SL_ARG_MEMORY(counts),	     SL_ARG(parts),
	};
	struct sl_device_range range = {
		{parts * sl_device_groups(c->pixels / VECTOR, BRIGHT_THREADS)}, BRIGHT_THREADS};
	unsigned kernel = BRIGHT_8 + (t->counts ? 1 : 0) + (c->bounded ? 2 : 0);

	return t->device->platform->launch(b->queue, t->kernel[kernel], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	struct sl_correct *c = t->stage;
	uint64_t threads = c->pixels / (t->use == PHOTONS_8 ? VECTOR : 1);
	const struct sl_device_memory *counts = t->counts ? &t->count[b->slot] : &t->nothing;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->raw),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->view),
		SL_ARG(b->frames),
		SL_ARG(t->modules),
		SL_ARG(c->module_pixels),
		SL_ARG_MEMORY(&b->result[t->output]),
		SL_ARG_MEMORY(&t->factor),
		SL_ARG_MEMORY(&t->other),
		SL_ARG(c->other_pixels),
		SL_ARG_MEMORY(&t->pedestal),
		SL_ARG_MEMORY(&t->sum),
		SL_ARG_MEMORY(&t->spread),
		SL_ARG_MEMORY(&t->samples),
		SL_ARG_MEMORY(&t->wrong),
		SL_ARG(c->cells),
		SL_ARG(c->darks),
		SL_ARG(c->noise_squared),
		SL_ARG(c->noise_samples),
		SL_ARG(t->threshold), /* from here on: of PHOTONS_8 alone */
		SL_ARG_MEMORY(counts),
	};
	struct sl_device_range range = {{sl_device_groups(threads, THREADS)}, THREADS};
	unsigned arguments = sizeof(argument) / sizeof(argument[0]) - (t->use == PHOTONS_8 ? 0 : 2);

	if (is_simple(t, b->batch))
		return enqueue_bright(t, b, counts);
	return t->device->platform->launch(b->queue, t->kernel[t->use], &range, argument,
					   arguments);
}

static int give_back(void *state, struct sl_device_queue *queue)
{
	struct gpu *t = state;
	struct sl_correct *c = t->stage;
	int (*read)(struct sl_device_queue *, void *, const struct sl_device_memory *, uint64_t,
		    uint64_t) = t->device->platform->read;
	int err = read(queue, c->pedestal_0, &t->pedestal, 0, t->pedestal.bytes);

	c->dark_seen = t->dark_seen;
	if (!err)
		err = read(queue, c->sum, &t->sum, 0, t->sum.bytes);
	if (!err)
		err = read(queue, c->spread, &t->spread, 0, t->spread.bytes);
	if (!err)
		err = read(queue, c->samples, &t->samples, 0, t->samples.bytes);
	if (!err)
		err = read(queue, c->wrong, &t->wrong, 0, t->wrong.bytes);
	return err ? err : sl_device_finish(t->device, queue);
}

const struct sl_gpu sl_gpu_correct = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.prepare = prepare,
	.enqueue = enqueue,
	.kind = kind,
	.count = count,
	.give_back = give_back,
};
