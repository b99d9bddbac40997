/* blobs_gpu.c - the steps from marked pixels to candidates, for a device. */
#include "stage/blobs_gpu.h"
#include "base/log.h"
#include "gpu/table.h"

enum { THREADS = SL_BLOBS_THREADS, SPAN = 32 * THREADS }; /* as in gpu/dialect/picked.clh */
enum { SPREAD = 64 }; /* groups of a frame that go through what is marked */
enum { COUNT, LIST, JOIN, SIZE, CHOOSE };

static const char *const names[SL_BLOBS_STEPS] = {"blobs_count", "blobs_list", "blobs_join",
						  "blobs_size", "blobs_choose"};

static int open_slot(struct sl_blobs_gpu *t, struct sl_blobs_batch_slot *l, uint64_t frames)
{
	const uint64_t word = sizeof(uint32_t);
	const struct {
		struct sl_device_memory *memory;
		uint64_t elements;
	} want[] = {
		{&l->marked, t->words},
		{&l->before, t->words},
		{&l->counts, t->spans},
		{&l->at, t->most},
		{&l->parent, t->most},
		{&l->size, t->most},
		{&l->first, t->most},
		{&l->total, 1},
		{&l->blob, 3ull * t->room},
		{&l->blobs, 1},
		{&l->good, t->judged ? t->room : 0},
		{&l->row, t->judged ? (uint64_t)SL_BLOBS_COLUMNS * t->room : 0},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) && !err; i++)
		err = t->device->platform->memory_open(t->device, frames * want[i].elements * word,
						       want[i].memory);
	if (err)
		sl_error("%s: no memory for up to %u marked pixels in each of %llu frames",
			 t->device->platform->name, t->most, (unsigned long long)frames);
	return err;
}

static void close_slot(struct sl_blobs_gpu *t, struct sl_blobs_batch_slot *l)
{
	struct sl_device_memory *memory[] = {&l->marked, &l->before, &l->counts, &l->at,
					     &l->parent, &l->size,   &l->first,	 &l->total,
					     &l->blob,	 &l->blobs,  &l->good,	 &l->row};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		t->device->platform->memory_close(t->device, memory[i]);
}

int sl_blobs_gpu_open(struct sl_blobs_gpu *t, const struct sl_gpu_env *env,
		      struct sl_device_program *program)
{
	int err = 0;

	t->spans = sl_device_groups(t->pixels, SPAN);
	t->words = t->spans * THREADS;
	t->room = t->most / t->least + 1;
	for (unsigned i = 0; i < SL_BLOBS_STEPS && !err; i++)
		err = t->device->platform->kernel_open(program, names[i], &t->kernel[i]);
	for (unsigned i = 0; i < env->slots && !err; i++)
		err = open_slot(t, &t->slot[i], env->batch_frames);
	return err;
}

void sl_blobs_gpu_close(struct sl_blobs_gpu *t)
{
	if (!t->device)
		return;
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		close_slot(t, &t->slot[i]);
	for (unsigned i = 0; i < SL_BLOBS_STEPS; i++)
		if (t->kernel[i])
			t->device->platform->kernel_close(t->kernel[i]);
}

int sl_blobs_gpu_clear(struct sl_blobs_gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_device_memory *marked = &t->slot[b->slot].marked;

	return t->device->platform->zero(b->queue, marked, 0,
					 (uint64_t)b->frames * t->words * sizeof(uint32_t));
}

#define LAUNCH(STEP, RANGE, ARGUMENT)                                                \
	t->device->platform->launch(b->queue, t->kernel[STEP], &(RANGE), (ARGUMENT), \
				    sizeof(ARGUMENT) / sizeof((ARGUMENT)[0]))

/* Bits become numbers. */
static int number(struct sl_blobs_gpu *t, const struct sl_gpu_batch *b)
{
	struct sl_blobs_batch_slot *l = &t->slot[b->slot];
	const struct sl_device_argument count[] = {
		SL_ARG_MEMORY(b->frame), SL_ARG_MEMORY(b->verdict), SL_ARG(t->items),
		SL_ARG(t->all),		 SL_ARG_MEMORY(&l->marked), SL_ARG_MEMORY(&l->counts)};
	const struct sl_device_argument list[] = {
		SL_ARG_MEMORY(b->frame),   SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),	   SL_ARG(t->all),
		SL_ARG_MEMORY(&l->marked), SL_ARG_MEMORY(&l->counts),
		SL_ARG(t->most),	   SL_ARG_MEMORY(&l->before),
		SL_ARG_MEMORY(&l->at),	   SL_ARG_MEMORY(&l->parent),
		SL_ARG_MEMORY(&l->size),   SL_ARG_MEMORY(&l->first),
		SL_ARG_MEMORY(&l->total)};
	const struct sl_device_range spans = {{t->spans, b->frames}, THREADS};
	int err = LAUNCH(COUNT, spans, count);

	return err ? err : LAUNCH(LIST, spans, list);
}

/* Numbers become blobs. */
static int join(struct sl_blobs_gpu *t, const struct sl_gpu_batch *b)
{
	struct sl_blobs_batch_slot *l = &t->slot[b->slot];
	const struct sl_device_argument join[] = {
		SL_ARG_MEMORY(&l->marked), SL_ARG_MEMORY(&l->before), SL_ARG(t->words),
		SL_ARG(t->rows),	   SL_ARG(t->columns),	      SL_ARG(t->most),
		SL_ARG_MEMORY(&l->at),	   SL_ARG_MEMORY(&l->parent), SL_ARG_MEMORY(&l->total)};
	const struct sl_device_argument size[] = {
		SL_ARG(t->rows),	 SL_ARG(t->columns),	   SL_ARG(t->inside),
		SL_ARG(t->most),	 SL_ARG_MEMORY(&l->at),	   SL_ARG_MEMORY(&l->parent),
		SL_ARG_MEMORY(&l->size), SL_ARG_MEMORY(&l->first), SL_ARG_MEMORY(&l->total)};
	const struct sl_device_range spread = {{SPREAD, b->frames}, THREADS};
	int err = LAUNCH(JOIN, spread, join);

	return err ? err : LAUNCH(SIZE, spread, size);
}

int sl_blobs_gpu_choose(struct sl_blobs_gpu *t, const struct sl_gpu_batch *b)
{
	struct sl_blobs_batch_slot *l = &t->slot[b->slot];
	const struct sl_device_argument choose[] = {
		SL_ARG(t->least),	   SL_ARG(t->largest),	    SL_ARG(t->most),
		SL_ARG_MEMORY(&l->parent), SL_ARG_MEMORY(&l->size), SL_ARG_MEMORY(&l->first),
		SL_ARG_MEMORY(&l->total),  SL_ARG(t->room),	    SL_ARG_MEMORY(&l->blob),
		SL_ARG_MEMORY(&l->blobs)};
	const struct sl_device_range frames = {{b->frames}, THREADS};
	int err = number(t, b);

	if (!err)
		err = join(t, b);
	return err ? err : LAUNCH(CHOOSE, frames, choose);
}
