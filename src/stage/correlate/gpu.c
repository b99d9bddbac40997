/* gpu.c - `correlate` on an accelerator; histories and sums are kept there.
 *
 * Exact: all sums are integers, and the CPU's to the last bit; g2 of a frame may differ from the
 * CPU's in its last bit, as a number of 128 bits becomes a double. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/correlate/correlate.h"
#include "stage/correlate/kernel.h"

enum { PLAN, STORE, PAIRS, PUBLISH, KERNELS };

/* What the work on one batch needs. */
struct batch_memory {
	struct sl_device_memory plan, rows, partners;
};

struct gpu {
	struct sl_correlate *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	struct sl_kernel_correlate about;
	uint32_t batch_frames, parts, chunks, rows, slots;
	struct sl_kernel_pixel *pixel; /* [pixels], as the device has them */
	struct sl_kernel_chunk *chunk; /* [chunks] */
	struct sl_device_memory pixels, list, first, clock, stamps, history, sums;
	struct batch_memory batch[SL_GPU_BATCH_SLOTS];
	struct sl_correlate noted; /* its figures alone */
};

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->pixels, &t->list,    &t->first, &t->clock,
					    &t->stamps, &t->history, &t->sums};

	free(t->pixel);
	free(t->chunk);
	t->pixel = NULL;
	t->chunk = NULL;
	if (!t->device)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++) {
		t->device->platform->memory_close(t->device, &t->batch[i].plan);
		t->device->platform->memory_close(t->device, &t->batch[i].rows);
		t->device->platform->memory_close(t->device, &t->batch[i].partners);
	}
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

/* ---- tables ---- */

static void fill_in(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_correlate *s = t->stage;
	struct sl_kernel_correlate *c = &t->about;

	*c = (struct sl_kernel_correlate){.module_pixels = s->module_pixels,
					  .every = s->every,
					  .modules = s->modules,
					  .levels = s->levels,
					  .channels = s->channels,
					  .lags = s->lags,
					  .frames = env->batch_frames,
					  .items = env->items,
					  .regions = s->count,
					  .limit = s->limit,
					  .raw = s->input == SL_STAGE_RAW};
	for (uint32_t l = 0; l < s->levels; l++) {
		c->rows[l] = (env->batch_frames >> l) + 1;
		c->slots[l] = s->channels + c->rows[l];
		c->first[l] = t->slots;
		c->first_row[l] = t->rows;
		t->slots += c->slots[l];
		t->rows += c->rows[l];
	}
	t->batch_frames = env->batch_frames;
	t->parts = s->every ? (uint32_t)(env->batch_frames / s->every) + 2 : 1;
	for (uint64_t i = 0; i < s->count; i++)
		c->pixels += s->number[i];
}

/* Pixels region by region, and chunks of them. first: [count + 1], of the chunks of each. */
static int sort_pixels(struct gpu *t, uint32_t *first)
{
	const struct sl_correlate *s = t->stage;
	uint32_t *next = calloc((size_t)s->count + 1, sizeof(*next)), at = 0;

	t->pixel = calloc(t->about.pixels, sizeof(*t->pixel));
	t->chunk = calloc((size_t)s->count + t->about.pixels / SL_CORRELATE_PIXELS_OF_CHUNK + 1,
			  sizeof(*t->chunk));
	if (!next || !t->pixel || !t->chunk) {
		free(next);
		sl_error("correlate: no memory for regions");
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < s->count; at += s->number[r++]) {
		next[r] = at;
		first[r] = t->chunks;
		for (uint32_t k = 0; k < s->number[r]; k += SL_CORRELATE_PIXELS_OF_CHUNK) {
			uint32_t left = s->number[r] - k;

			t->chunk[t->chunks++] = (struct sl_kernel_chunk){
				at + k,
				left < SL_CORRELATE_PIXELS_OF_CHUNK ? left
								    : SL_CORRELATE_PIXELS_OF_CHUNK,
				r};
		}
	}
	first[s->count] = t->chunks;
	for (uint64_t i = 0; i < s->pixels; i++)
		if (s->region[i] != SL_CORRELATE_NONE)
			t->pixel[next[s->region[i]]++] = (struct sl_kernel_pixel){
				(uint32_t)(i / s->module_pixels), (uint32_t)(i % s->module_pixels)};
	free(next);
	return 0;
}

static int send_tables(struct gpu *t, struct sl_device_queue *queue, const uint32_t *first)
{
	int err = sl_device_table(t->device, queue, t->pixel, t->about.pixels * sizeof(*t->pixel),
				  &t->pixels);

	if (!err)
		err = sl_device_table(t->device, queue, t->chunk, t->chunks * sizeof(*t->chunk),
				      &t->list);
	if (!err)
		err = sl_device_table(t->device, queue, first,
				      (t->stage->count + 1) * sizeof(*first), &t->first);
	return err;
}

/* Zeros. */
static int open_memory(struct gpu *t, struct sl_device_queue *queue, uint64_t bytes,
		       struct sl_device_memory *m)
{
	const struct sl_platform *p = t->device->platform;
	int err = p->memory_open(t->device, bytes, m);

	if (err)
		sl_error("%s: correlate: no memory on the device for %llu MB of samples and sums: "
			 "%s",
			 p->name, (unsigned long long)(bytes >> 20), p->problem(t->device));
	return err ? err : p->zero(queue, m, 0, bytes);
}

static int open_all_memory(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_correlate *s = t->stage;
	int err = open_memory(t, env->queue, (uint64_t)t->slots * t->about.pixels * 4, &t->history);

	if (!err)
		err = open_memory(t, env->queue, sizeof(struct sl_kernel_clock), &t->clock);
	if (!err)
		err = open_memory(t, env->queue, t->slots * 8ull, &t->stamps);
	if (!err)
		err = open_memory(t, env->queue,
				  (uint64_t)t->chunks * s->lags *
					  sizeof(struct sl_kernel_correlation),
				  &t->sums);
	for (unsigned i = 0; i < env->slots && !err; i++) {
		struct batch_memory *b = &t->batch[i];

		err = open_memory(t, env->queue, sizeof(struct sl_kernel_plan), &b->plan);
		if (!err)
			err = open_memory(t, env->queue, t->rows * sizeof(struct sl_kernel_row),
					  &b->rows);
		if (!err)
			err = open_memory(t, env->queue, t->rows * s->channels * 4ull,
					  &b->partners);
	}
	return err;
}

static int open_tables(struct gpu *t, const struct sl_gpu_env *env)
{
	uint32_t *first = calloc((size_t)t->stage->count + 1, sizeof(*first));
	int done, err = first ? sort_pixels(t, first) : -ENOMEM;

	if (!err)
		err = send_tables(t, env->queue, first);
	if (!err)
		err = open_all_memory(t, env);
	done = sl_device_finish(t->device, env->queue); /* `first` is freed below, in any case */
	free(first);
	return err ? err : done;
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	static const char *const stores[SL_DTYPES] = {[SL_U8] = "correlate_store_u8",
						      [SL_U16] = "correlate_store_u16",
						      [SL_U32] = "correlate_store_u32",
						      [SL_I16] = "correlate_store_i16",
						      [SL_F32] = "correlate_store_f32"};
	struct gpu *t = state;
	const char *name[KERNELS] = {[PLAN] = "correlate_plan", [PUBLISH] = "correlate_publish"};
	int err;

	t->device = env->device;
	t->stage = stage->state;
	fill_in(t, env);
	if (t->parts > SL_CORRELATE_PARTS_MOST) {
		sl_error("correlate: every: %llu makes more than %d rows of a batch of %u frames: "
			 "on a device, take a larger number or smaller batches (unit.batch)",
			 (unsigned long long)t->stage->every, SL_CORRELATE_PARTS_MOST - 2,
			 env->batch_frames);
		return -EINVAL;
	}
	name[STORE] = stores[t->stage->dtype];
	name[PAIRS] = t->stage->regions == SL_CORRELATE_PIXELS ? "correlate_pairs_alone"
							       : "correlate_pairs";
	err = sl_device_kernels(t->device, &sl_kernels_correlate, name, KERNELS, &t->program,
				t->kernel);
	return err ? err : open_tables(t, env);
}

/* ---- a batch ---- */

static void copy_figures(struct sl_correlate *to, const struct sl_correlate *from)
{
	to->frames = from->frames;
	to->skipped = from->skipped;
	to->restarts = from->restarts;
	to->rows = from->rows;
	to->expected = from->expected;
}

/* The CPU may do some of the batches once more, to compare: its figures do not count. */
static void prepare(void *state, struct sl_batch *batch)
{
	struct gpu *t = state;

	t->noted.every = t->stage->every;
	for (uint32_t f = 0; f < batch->frames; f++)
		sl_correlate_note(&t->noted, batch->frame[f]);
	copy_figures(t->stage, &t->noted);
}

static int plan(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_memory *m)
{
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),	   SL_ARG_MEMORY(b->frame),	SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(&t->clock),  SL_ARG_MEMORY(&m->plan),	SL_ARG_MEMORY(&m->rows),
		SL_ARG_MEMORY(&t->stamps), SL_ARG_MEMORY(&m->partners), SL_ARG(b->frames),
	};
	struct sl_device_range one = {{1}, SL_CORRELATE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[PLAN], &one, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int store(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_memory *m)
{
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),
		SL_ARG_MEMORY(t->about.raw ? b->raw : &b->result[t->stage->input]),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(&m->plan),
		SL_ARG_MEMORY(&m->rows),
		SL_ARG_MEMORY(&t->pixels),
		SL_ARG_MEMORY(&t->history),
	};
	struct sl_device_range range = {{sl_device_groups(t->about.pixels, SL_CORRELATE_THREADS)},
					SL_CORRELATE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[STORE], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int pairs(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_memory *m,
		 const uint32_t *part)
{
	bool alone = t->stage->regions == SL_CORRELATE_PIXELS;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),
		SL_ARG_MEMORY(&m->plan),
		SL_ARG_MEMORY(&m->rows),
		SL_ARG_MEMORY(&m->partners),
		SL_ARG_MEMORY(&t->history),
		SL_ARG_MEMORY(&t->list),
		SL_ARG(*part),
		SL_ARG_MEMORY(&t->sums),
	};
	struct sl_device_range range = {{t->chunks}, SL_CORRELATE_THREADS};

	if (alone)
		range = (struct sl_device_range){
			{sl_device_groups(t->about.pixels, SL_CORRELATE_THREADS), t->stage->lags},
			SL_CORRELATE_THREADS};
	return t->device->platform->launch(b->queue, t->kernel[PAIRS], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int publish(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_memory *m,
		   const uint32_t *part)
{
	uint32_t rows_at = (uint32_t)t->stage->result * t->batch_frames;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),
		SL_ARG_MEMORY(&m->plan),
		SL_ARG_MEMORY(&t->first),
		SL_ARG_MEMORY(&t->sums),
		SL_ARG(*part),
		SL_ARG(b->frames),
		SL_ARG_MEMORY(&b->result[t->stage->result]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(rows_at),
	};
	struct sl_device_range range = {
		{sl_device_groups((uint64_t)t->stage->count * t->stage->lags,
				  SL_CORRELATE_THREADS)},
		SL_CORRELATE_THREADS};

	return t->device->platform->launch(b->queue, t->kernel[PUBLISH], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	const struct batch_memory *m = &t->batch[b->slot];
	int err = plan(t, b, m);

	if (!err)
		err = store(t, b, m);
	for (uint32_t part = 0; part < t->parts && !err; part++) {
		err = pairs(t, b, m, &part);
		if (!err && t->stage->every)
			err = publish(t, b, m, &part);
	}
	return err;
}

/* ---- back to the CPU ---- */

static int take_sums(struct gpu *t, struct sl_device_queue *queue)
{
	struct sl_correlate *s = t->stage;
	struct sl_correlate_sum *sums = malloc(t->sums.bytes);
	int err = sums ? t->device->platform->read(queue, sums, &t->sums, 0, t->sums.bytes)
		       : -ENOMEM;

	_Static_assert(sizeof(*sums) == sizeof(struct sl_kernel_correlation), "the same");
	if (!err)
		err = sl_device_finish(t->device, queue);
	if (!err)
		memset(s->total, 0, (size_t)s->count * s->lags * sizeof(*s->total));
	for (uint64_t i = 0; i < (uint64_t)t->chunks * s->lags && !err; i++)
		sl_correlate_add(
			&s->total[(uint64_t)t->chunk[i / s->lags].region * s->lags + i % s->lags],
			&sums[i]);
	free(sums);
	return err;
}

static int32_t *host_row(struct sl_correlate *s, uint32_t level, uint64_t sample)
{
	return s->history + ((uint64_t)level * s->channels + sample % s->channels) * s->pixels;
}

static int take_row(struct gpu *t, struct sl_device_queue *queue, uint32_t slot, int32_t *to,
		    int32_t *buffer)
{
	uint64_t bytes = t->about.pixels * 4ull;
	int err = t->device->platform->read(queue, buffer, &t->history, slot * bytes, bytes);

	if (!err)
		err = sl_device_finish(t->device, queue);
	for (uint32_t i = 0; i < t->about.pixels && !err; i++)
		to[t->pixel[i].module * t->stage->module_pixels + t->pixel[i].pixel] = buffer[i];
	return err;
}

/* The CPU counts time by frame numbers, and keeps the last samples of each level by theirs. */
static int take_history(struct gpu *t, struct sl_device_queue *queue,
			const struct sl_kernel_clock *clock, const uint64_t *stamps)
{
	struct sl_correlate *s = t->stage;
	int32_t *buffer = malloc(t->about.pixels * sizeof(*buffer));
	int err = buffer ? 0 : -ENOMEM;

	for (uint64_t k = 0; k < (uint64_t)s->levels * s->channels; k++)
		for (uint64_t i = 0; i < s->pixels; i++)
			s->history[k * s->pixels + i] =
				s->region[i] == SL_CORRELATE_NONE ? 0 : SL_CORRELATE_MISSING;
	for (uint32_t l = 0; l < s->levels; l++)
		for (uint64_t k = 0; k < t->about.slots[l] && k < clock->made[l] && !err; k++) {
			uint32_t at = t->about.first[l] +
				      (uint32_t)((clock->made[l] - 1 - k) % t->about.slots[l]);
			uint64_t sample = stamps[at] - (clock->ahead >> l);

			if (stamps[at] < clock->ahead >> l ||
			    sample + s->channels < clock->expected >> l)
				break;
			err = take_row(t, queue, at, host_row(s, l, sample), buffer);
		}
	for (uint64_t i = 0; i < s->pixels; i++)
		s->next[i] = clock->expected;
	free(buffer);
	return err;
}

static int give_back(void *state, struct sl_device_queue *queue)
{
	struct gpu *t = state;
	const struct sl_platform *p = t->device->platform;
	struct sl_kernel_clock clock;
	uint64_t *stamps = malloc(t->stamps.bytes);
	int err = stamps ? p->read(queue, &clock, &t->clock, 0, sizeof(clock)) : -ENOMEM;

	if (!err)
		err = p->read(queue, stamps, &t->stamps, 0, t->stamps.bytes);
	if (!err)
		err = sl_device_finish(t->device, queue);
	if (!err)
		err = take_history(t, queue, &clock, stamps);
	if (!err)
		err = take_sums(t, queue);
	copy_figures(t->stage, &t->noted);
	free(stamps);
	return err;
}

const struct sl_gpu sl_gpu_correlate = {
	.state_bytes = sizeof(struct gpu),
	.float_bound = 1e-14,
	.open = open_gpu,
	.close = close_gpu,
	.prepare = prepare,
	.enqueue = enqueue,
	.give_back = give_back,
};
