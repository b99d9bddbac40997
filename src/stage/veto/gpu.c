/* gpu.c - `veto` on an accelerator. */
#include "stage/veto/veto.h"

#include <stdbool.h>

#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"

enum { THREADS = 256, RUN = 16 }; /* RUN: pixels of a thread, at least */
enum { I16, F32, U8, U16, U32, DECIDE, KERNELS };

static const char *const names[KERNELS] = {"veto_count_i16", "veto_count_f32", "veto_count_u8",
					   "veto_count_u16", "veto_count_u32", "veto_decide"};

struct gpu {
	const struct sl_veto *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	unsigned use;
	bool counted; /* by who makes the image */
	int input;
	uint64_t pixels;
	uint32_t items;
	struct sl_device_memory count[SL_GPU_BATCH_SLOTS]; /* uint32_t [frames]; 0 before a batch */
};

static void close_gpu(void *state)
{
	struct gpu *t = state;

	if (!t->device)
		return;
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		t->device->platform->memory_close(t->device, &t->count[i]);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static unsigned kernel_of(enum sl_dtype dtype)
{
	switch (dtype) {
	case SL_I16:
		return I16;
	case SL_F32:
		return F32;
	case SL_U8:
		return U8;
	case SL_U16:
		return U16;
	default:
		return U32;
	}
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	int err;

	t->device = env->device;
	t->stage = stage->state;
	t->input = stage->input;
	t->pixels = sl_shape_elements(&stage->in);
	t->items = env->items;
	t->use = kernel_of(stage->in.dtype);
	err = sl_device_kernels(t->device, &sl_kernels_veto, names, KERNELS, &t->program,
				t->kernel);
	for (unsigned i = 0; i < env->slots && !err; i++) {
		err = t->device->platform->memory_open(
			t->device, env->batch_frames * sizeof(uint32_t), &t->count[i]);
		if (!err)
			err = t->device->platform->zero(env->queue, &t->count[i], 0,
							t->count[i].bytes);
	}
	if (!err && env->maker && env->maker->count)
		t->counted = !env->maker->count(env->maker_state, t->stage->threshold, t->count);
	return err;
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	const struct sl_platform *p = t->device->platform;
	const struct sl_veto *v = t->stage;
	const struct sl_device_memory *counts = &t->count[b->slot];
	/* Raw pixels are uploaded one frame behind the other, and without gaps. */
	const struct sl_device_memory *image = t->input == SL_STAGE_RAW ? b->raw
									: &b->result[t->input];
	const struct sl_device_argument count[] = {
		SL_ARG_MEMORY(image),
		SL_ARG_MEMORY(b->frame),
		SL_ARG(t->pixels),
		SL_ARG(t->pixels),
		t->use == F32 ? SL_ARG(v->threshold_f32) : SL_ARG(v->threshold),
		SL_ARG_MEMORY(counts),
	};
	const struct sl_device_argument decide[] = {
		SL_ARG_MEMORY(b->frame), SL_ARG_MEMORY(b->verdict), SL_ARG(t->items),
		SL_ARG_MEMORY(counts),	 SL_ARG(v->min_pixels),	    SL_ARG(b->frames),
	};
	struct sl_device_range pixels = {{sl_device_groups(t->pixels, THREADS * RUN), b->frames},
					 THREADS};
	struct sl_device_range frames = {{sl_device_groups(b->frames, THREADS)}, THREADS};
	int err = t->counted ? 0 : p->launch(b->queue, t->kernel[t->use], &pixels, count, 6);

	return err ? err : p->launch(b->queue, t->kernel[DECIDE], &frames, decide, 6);
}

const struct sl_gpu sl_gpu_veto = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
