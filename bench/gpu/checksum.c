/* checksum.c - a stage of the bench: a checksum of the raw pixels of each module, made
 * where the other stages run, of the memory that they read. So it is known that what was worked on
 * is what the source wrote.
 *
 * Adds "checksum", uint32 [modules]. It comes back for all frames, also for those that are
 * rejected: the GPU side copies it itself. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "bench/gpu/checksum_maths.h"
#include "bench/gpu/ingest.h"
#include "core/gpu.h"
#include "gpu/table.h"
#include "stage/vectors.h"

enum { THREADS = 256, PER_THREAD = 4, FOUR = 16 /* bytes that a thread reads at once */ };

struct checksum {
	uint32_t modules, words; /* words: of a module */
	int result;
};

static const struct sl_option no_options[] = {SL_OPTION_END};

/* ---- the CPU ---- */

SL_FORCE_INLINE void add_words(const uint32_t *word, uint32_t first, uint32_t n, uint32_t *sum)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += sl_checksum_word(word[i], first + i);
	*sum = all;
}
SL_VECTORS(add_words, (const uint32_t *word, uint32_t first, uint32_t n, uint32_t *sum),
	   (word, first, n, sum))

uint32_t sl_ingest_checksum(const void *words, uint32_t first, uint32_t n)
{
	uint32_t sum;

	SL_VECTORS_PICK(add_words, sl_vectors_choose(SL_VECTORS_AUTO))(words, first, n, &sum);
	return sum;
}

static int open_stage(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	const struct sl_geometry *g = env->geometry;
	struct checksum *c = state;
	uint64_t bytes = (uint64_t)g->rows * g->columns * sl_dtype_bytes(g->dtype);

	if (bytes % FOUR || bytes / sizeof(uint32_t) > UINT32_MAX) {
		sl_error("checksum: modules of %llu bytes are not words of %d",
			 (unsigned long long)bytes, FOUR);
		return -EINVAL;
	}
	c->modules = g->modules;
	c->words = (uint32_t)(bytes / sizeof(uint32_t));
	c->result = terms->result;
	terms->outputs = 1;
	terms->output[0] = (struct sl_shape){
		.name = SL_INGEST_CHECKSUM, .dtype = SL_U32, .rank = 1, .dim = {g->modules}};
	return 0;
}

static void sum_frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct checksum *c = state;
	struct sl_frame *frame = batch->frame[f];
	uint32_t *sum = frame->result[c->result].host;

	for (uint32_t m = 0; m < c->modules; m++)
		sum[m] = sl_ingest_checksum(frame->view[m].pixels.host, 0, c->words);
}

/* ---- its GPU side ---- */

struct gpu {
	const struct checksum *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel;
};

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	static const char *const name[] = {"checksum_modules"};
	struct gpu *t = state;

	t->device = env->device;
	t->stage = stage->state;
	return sl_device_kernels(t->device, &sl_kernels_checksum, name, 1, &t->program, &t->kernel);
}

static void close_gpu(void *state)
{
	struct gpu *t = state;

	if (t->device)
		sl_device_kernels_close(t->device, t->program, &t->kernel, 1);
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	const struct checksum *c = t->stage;
	const struct sl_platform *p = t->device->platform;
	const struct sl_device_memory *sums = &b->result[c->result];
	uint64_t bytes = c->modules * sizeof(uint32_t);
	uint32_t fours = c->words / (FOUR / sizeof(uint32_t));
	const struct sl_device_argument argument[] = {SL_ARG_MEMORY(b->raw), SL_ARG_MEMORY(b->view),
						      SL_ARG(fours), SL_ARG_MEMORY(sums)};
	struct sl_device_range range = {
		{sl_device_groups(fours, THREADS * PER_THREAD), c->modules, b->frames}, THREADS};
	int err;

	/* Copies go to the frames of this batch: they cannot be kept for others. */
	if (!b->batch) {
		sl_error("checksum: with it unit.trigger must be launch");
		return -ENOTSUP;
	}
	err = p->zero(b->queue, sums, 0, b->frames * bytes);
	if (!err)
		err = p->launch(b->queue, t->kernel, &range, argument, 4);
	for (uint32_t f = 0; f < b->frames && !err; f++)
		err = p->read(b->queue, b->batch->frame[f]->result[c->result].host, sums, f * bytes,
			      bytes);
	return err;
}

static const struct sl_gpu gpu = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};

const struct sl_stage sl_bench_checksum_stage = {
	.name = SL_INGEST_CHECKSUM,
	.doc = "a checksum of the raw pixels of each module",
	.state_bytes = sizeof(struct checksum),
	.options = no_options,
	.input = "raw",
	.gpu = &gpu,
	.open = open_stage,
	.frame = sum_frame,
};
