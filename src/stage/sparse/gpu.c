/* gpu.c - `sparse` on an accelerator: bits of pixels that are picked, by threshold or
 * (radial_gpu.c) by radius, and lists out of these.
 *
 * Exact: by threshold lists are the CPU's to the last bit. */
#include "stage/sparse/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"

enum { LOOK_SEEN = 2 }; /* in sparse.cl: at all frames that somebody may see */
enum { THREADS = SL_SPARSE_RUN_THREADS, RUN = SL_SPARSE_RUN, EIGHT = 8 };
enum { COUNT, WRITE, KERNELS };

struct gpu {
	const struct sl_sparse *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	uint64_t pixels;
	uint32_t runs, items, batch_frames;
	struct sl_sparse_radial_gpu radial;
	struct sl_device_memory mask[SL_GPU_BATCH_SLOTS];   /* a bit per pixel */
	struct sl_device_memory counts[SL_GPU_BATCH_SLOTS]; /* uint32_t [frames][runs] */
};

static void close_gpu(void *state)
{
	struct gpu *t = state;

	if (!t->device)
		return;
	sl_sparse_radial_gpu_close(&t->radial);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++) {
		t->device->platform->memory_close(t->device, &t->mask[i]);
		t->device->platform->memory_close(t->device, &t->counts[i]);
	}
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static int open_kernels(struct gpu *t)
{
	static const char *const count[SL_DTYPES] = {[SL_U8] = "sparse_count_u8",
						     [SL_U16] = "sparse_count_u16",
						     [SL_U32] = "sparse_count_u32",
						     [SL_I16] = "sparse_count_i16",
						     [SL_F32] = "sparse_count_f32"};
	static const char *const write[] = {
		[1] = "sparse_write_1", [2] = "sparse_write_2", [4] = "sparse_write_4"};
	const char *const names[KERNELS] = {
		[COUNT] = count[t->stage->dtype], [WRITE] = write[sl_dtype_bytes(t->stage->dtype)]};

	return sl_device_kernels(t->device, &sl_kernels_sparse, names, KERNELS, &t->program,
				 t->kernel);
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	const struct sl_platform *p = env->device->platform;
	int err;

	t->device = env->device;
	t->stage = stage->state;
	t->pixels = t->stage->modules * t->stage->module_pixels;
	t->runs = sl_device_groups(t->pixels, RUN);
	t->items = env->items;
	t->batch_frames = env->batch_frames;
	err = open_kernels(t);
	if (!err && t->stage->method == SL_SPARSE_RADIAL)
		err = sl_sparse_radial_gpu_open(&t->radial, t->stage, env);
	for (unsigned i = 0; i < env->slots && !err; i++) {
		uint64_t runs = (uint64_t)env->batch_frames * t->runs;

		err = p->memory_open(t->device, runs * RUN / 8, &t->mask[i]);
		if (!err)
			err = p->memory_open(t->device, runs * sizeof(uint32_t), &t->counts[i]);
	}
	return err;
}

/* Raw pixels are uploaded one frame behind the other, and without gaps. */
static const struct sl_device_memory *image_of(const struct gpu *t, const struct sl_gpu_batch *b)
{
	return t->stage->input == SL_STAGE_RAW ? b->raw : &b->result[t->stage->input];
}

static int count_by_threshold(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_sparse *s = t->stage;
	const uint32_t wide = t->pixels % EIGHT == 0;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(t->pixels),
		SL_ARG(wide),
		s->dtype == SL_F32 ? SL_ARG(s->bounds.real_high) : SL_ARG(s->threshold),
		SL_ARG_MEMORY(&t->mask[b->slot]),
		SL_ARG_MEMORY(&t->counts[b->slot]),
	};
	const struct sl_device_range range = {{t->runs, b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->kernel[COUNT], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int write_lists(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_sparse *s = t->stage;
	const struct sl_device_memory *list = &b->result[s->result];
	const uint32_t look = s->method == SL_SPARSE_RADIAL ? s->rejected : LOOK_SEEN;
	const uint32_t rows_at = (uint32_t)s->result * t->batch_frames;
	const uint32_t columns = s->pointers ? s->columns : 0;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(look),
		SL_ARG(t->pixels),
		SL_ARG_MEMORY(&t->mask[b->slot]),
		SL_ARG_MEMORY(&t->counts[b->slot]),
		SL_ARG(s->room),
		SL_ARG_MEMORY(&list[0]),
		SL_ARG_MEMORY(&list[1]),
		SL_ARG_MEMORY(&list[2]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(rows_at),
		SL_ARG(t->batch_frames),
		SL_ARG_MEMORY(&list[s->pointers]), /* the first when there are none */
		SL_ARG(columns),
	};
	const struct sl_device_range range = {{t->runs, b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->kernel[WRITE], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	int err = t->stage->method == SL_SPARSE_RADIAL
			  ? sl_sparse_radial_gpu_pick(&t->radial, b, image_of(t, b),
						      &t->mask[b->slot], &t->counts[b->slot])
			  : count_by_threshold(t, b);

	return err ? err : write_lists(t, b);
}

const struct sl_gpu sl_gpu_sparse = {
	.state_bytes = sizeof(struct gpu),
	.float_bound = 1e-5, /* of backgrounds */
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
