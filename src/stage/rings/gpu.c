/* gpu.c - `rings` on an accelerator.
 *
 * Exact: hits are added in the order of the CPU, nothing is fused: all floats are the CPU's. */
#include "stage/rings/rings.h"

#include <errno.h>

#include "core/gpu.h"
#include "gpu/dialect/batch.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/rings/kernel.h"

/* POLL_WORDS: of a buffer of a ring: groups that are through, a note, and the end of a crew, of
 * which there are no more than buffers (device_ring.cl). */
enum { TEAM = 32, THREADS = 256, POLL_WORDS = 4 };
enum { LOOK, FIND, LIST, KERNELS };

static const char *const names[KERNELS] = {"rings_look", "rings_find", "rings_list"};

struct batch_slot {
	struct sl_device_memory look; /* uint32_t [frames]; of a ring [POLL_WORDS][buffers] */
	struct sl_device_memory word; /* uint32_t [frames][items] */
	struct sl_device_memory ring; /* float [frames][items][rings][SL_KERNEL_RINGS_STORED] */
};

struct gpu {
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	struct sl_kernel_rings rules;
	uint32_t items, batch_frames;
	int input, result;
	struct sl_device_memory x, y, triplet;
	struct batch_slot batch_slot[SL_GPU_BATCH_SLOTS];
	struct batch_slot polled;      /* of a ring, [buffers][items] */
	struct sl_device_memory draft; /* answers, before they go out; [buffers] */
	struct sl_kernel_slot slot;
};

static void close_slot(struct gpu *t, struct batch_slot *batch_slot)
{
	t->device->platform->memory_close(t->device, &batch_slot->look);
	t->device->platform->memory_close(t->device, &batch_slot->word);
	t->device->platform->memory_close(t->device, &batch_slot->ring);
}

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->x, &t->y, &t->triplet, &t->draft};

	if (!t->device)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		close_slot(t, &t->batch_slot[i]);
	close_slot(t, &t->polled);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

static struct sl_kernel_rings rules_of(const struct sl_rings *r, uint32_t modules)
{
	const struct sl_rings_settings *s = &r->settings;

	return (struct sl_kernel_rings){
		.limits = {.least = s->radius_min * s->radius_min,
			   .most = s->radius_max * s->radius_max,
			   .reach = s->reach * s->reach,
			   .window = s->window * s->window},
		.rms = s->rms * s->rms,
		.min_hits = s->min_hits,
		.min_own = s->min_own,
		.triplets = (s->triplets + 1) / 2 * 2, /* the CPU tries two at a time */
		.min_rings = r->min_rings,
		.max_rings = r->max_rings,
		.min_matches = r->min_matches,
		.match_least = r->least,
		.match_most = r->most,
		.match_x = r->x,
		.match_y = r->y,
		.match_distance = r->distance,
		.modules = modules,
		.events = r->events,
		.rows = r->rows,
		.is_raw = r->input == SL_STAGE_RAW,
		.looks_at_all = r->look == SL_RINGS_LOOK_AT_ALL,
	};
}

static int open_slot(struct gpu *t, struct batch_slot *batch_slot, uint32_t frames, uint32_t words)
{
	const struct sl_platform *p = t->device->platform;
	uint64_t events = (uint64_t)frames * t->items;
	uint64_t ring = SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED * sizeof(float);
	int err = p->memory_open(t->device, words * sizeof(uint32_t), &batch_slot->look);

	if (!err)
		err = p->memory_open(t->device, events * sizeof(uint32_t), &batch_slot->word);
	return err ? err : p->memory_open(t->device, events * ring, &batch_slot->ring);
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	const struct sl_rings *r = stage->state;
	const struct sl_rings_settings *s = &r->settings;
	int err;

	t->device = env->device;
	t->rules = rules_of(r, env->geometry->modules);
	t->items = env->items;
	t->batch_frames = env->batch_frames;
	t->input = stage->input;
	t->result = r->result;
	err = sl_device_kernels(t->device, &sl_kernels_rings, names, KERNELS, &t->program,
				t->kernel);
	if (!err)
		err = sl_device_table(t->device, env->queue, s->x, sizeof(s->x), &t->x);
	if (!err)
		err = sl_device_table(t->device, env->queue, s->y, sizeof(s->y), &t->y);
	if (!err)
		err = sl_device_table(t->device, env->queue, s->triplet, sizeof(s->triplet),
				      &t->triplet);
	for (unsigned i = 0; i < env->slots && !err; i++)
		err = open_slot(t, &t->batch_slot[i], t->batch_frames, t->batch_frames);
	return err;
}

static int look(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_slot *batch_slot)
{
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->frame),       SL_ARG_MEMORY(b->verdict),	 SL_ARG(t->items),
		SL_ARG(t->rules.looks_at_all), SL_ARG_MEMORY(&batch_slot->look),
	};
	struct sl_device_range range = {{b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->kernel[LOOK], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int find(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_slot *batch_slot)
{
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(t->input == SL_STAGE_RAW ? b->raw : &b->result[t->input]),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG_MEMORY(&batch_slot->look),
		SL_ARG_MEMORY(&t->x),
		SL_ARG_MEMORY(&t->y),
		SL_ARG_MEMORY(&t->triplet),
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&batch_slot->word),
		SL_ARG_MEMORY(&batch_slot->ring),
	};
	struct sl_device_range range = {{t->items, b->frames}, TEAM};

	return t->device->platform->launch(b->queue, t->kernel[FIND], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int list(struct gpu *t, const struct sl_gpu_batch *b, const struct batch_slot *batch_slot)
{
	uint64_t skip = (uint64_t)t->result * t->batch_frames;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&batch_slot->word),
		SL_ARG_MEMORY(&batch_slot->ring),
		SL_ARG_MEMORY(&b->result[t->result]),
		SL_ARG_MEMORY(&b->result[t->result + 1]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(skip),
	};
	struct sl_device_range range = {
		{sl_device_groups(t->items, THREADS * SL_KERNEL_RINGS_RUN), b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->kernel[LIST], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	const struct batch_slot *batch_slot = &t->batch_slot[b->slot];
	int err = look(t, b, batch_slot);

	if (!err)
		err = find(t, b, batch_slot);
	return err ? err : list(t, b, batch_slot);
}

static int poll(void *state, struct sl_gpu_poll *poll)
{
	struct gpu *t = state;
	struct sl_device_info info;
	uint32_t half = poll->groups > 1 ? poll->groups / 2 : 1;
	int err = open_slot(t, &t->polled, poll->buffers, POLL_WORDS * poll->buffers);

	if (!err)
		err = t->device->platform->memory_open(
			t->device, (uint64_t)poll->buffers * poll->answer_bytes, &t->draft);
	if (!err)
		err = t->device->platform->zero(poll->queue, &t->polled.look, 0,
						t->polled.look.bytes);
	t->device->platform->describe(t->device, &info);
	poll->threads = TEAM * (info.is_host ? 1 : SL_KERNEL_RINGS_TEAMS);
	t->slot = (struct sl_kernel_slot){.rows = poll->rows_at};
	for (int i = 0; i < SL_KERNEL_POLL_RESULTS; i++)
		t->slot.result[i] = poll->result_at[i];
	/* As many groups for a block as it has work for, but two crews at least: while one puts its
	 * answer together, the other is at work. */
	t->slot.share = sl_device_groups(t->items, poll->threads / TEAM);
	if (t->slot.share > half)
		t->slot.share = half;
	poll->groups -= poll->groups % t->slot.share;
	poll->kernels = &sl_kernels_rings_ring;
	poll->kernel = "rings_ring_forever";
	poll->arguments = 9;
	poll->argument[0] = SL_ARG_MEMORY(&t->x);
	poll->argument[1] = SL_ARG_MEMORY(&t->y);
	poll->argument[2] = SL_ARG_MEMORY(&t->triplet);
	poll->argument[3] = SL_ARG(t->rules);
	poll->argument[4] = SL_ARG_MEMORY(&t->polled.word);
	poll->argument[5] = SL_ARG_MEMORY(&t->polled.ring);
	poll->argument[6] = SL_ARG_MEMORY(&t->polled.look); /* groups that are through; notes */
	poll->argument[7] = SL_ARG_MEMORY(&t->draft);
	poll->argument[8] = SL_ARG(t->slot);
	return err;
}

const struct sl_gpu sl_gpu_rings = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
	.poll = poll,
};
