/* gpu.c - `tracks` on an accelerator.
 *
 * Exact: cells are integers, fits and angles are added in the order of the CPU and nothing is
 * fused: all results are the CPU's to the last bit.
 *
 * Memory: of an event, `sector_tracks` candidates of 56 bytes for each sector, and, between
 * sectors, a bit for each candidate of 15 sectors beside it. */
#include "stage/tracks/stage.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/tracks/kernel.h"

enum { TEAM = 32, THREADS = 256, STATES = 4 };
enum { FIND, FIT, SECTOR_KERNELS };
enum { RELATE, JUDGE, LIST, EVENT_KERNELS };

static const char *const sector_names[SECTOR_KERNELS] = {"tracks_find", "tracks_fit"};
static const char *const event_names[EVENT_KERNELS] = {"tracks_relate", "tracks_judge",
						       "tracks_list"};

struct slot {
	struct sl_device_memory sector; /* struct sl_kernel_sector [events][sectors] */
	struct sl_device_memory track;	/* struct sl_kernel_track [events][sectors][limit] */
	struct sl_device_memory like;	/* uint32_t [events][sectors][limit][15][sets] */
	struct sl_device_memory state;	/* uint32_t [events][sectors][STATES][sets] */
	struct sl_device_memory event;	/* struct sl_kernel_event [events] */
};

struct gpu {
	struct sl_device *device;
	struct sl_device_program *sector_program, *event_program;
	struct sl_device_kernel *sector_kernel[SECTOR_KERNELS], *event_kernel[EVENT_KERNELS];
	struct sl_kernel_tracks rules;
	struct sl_kernel_tracks_plan plan;
	struct sl_device_memory plan_table;
	uint32_t batch_frames;
	int result;
	struct slot slot[SL_GPU_BATCH_SLOTS];
};

static void close_gpu(void *state)
{
	struct gpu *t = state;

	if (!t->device)
		return;
	t->device->platform->memory_close(t->device, &t->plan_table);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++) {
		struct slot *slot = &t->slot[i];
		struct sl_device_memory *memory[] = {&slot->sector, &slot->track, &slot->like,
						     &slot->state, &slot->event};

		for (size_t k = 0; k < sizeof(memory) / sizeof(memory[0]); k++)
			t->device->platform->memory_close(t->device, memory[k]);
	}
	sl_device_kernels_close(t->device, t->sector_program, t->sector_kernel, SECTOR_KERNELS);
	sl_device_kernels_close(t->device, t->event_program, t->event_kernel, EVENT_KERNELS);
}

/* The largest |q/pT| that the trigger counts: the CPU asks in doubles whether the product with
 * trigger_pt_GeV is 1 at most. */
static float fastest(double trigger_pt_GeV)
{
	float x = trigger_pt_GeV > 0 ? (float)(1 / trigger_pt_GeV) : FLT_MAX;

	while ((double)x * trigger_pt_GeV > 1)
		x = nextafterf(x, 0);
	while (x < FLT_MAX && (double)nextafterf(x, FLT_MAX) * trigger_pt_GeV <= 1)
		x = nextafterf(x, FLT_MAX);
	return x;
}

static struct sl_kernel_tracks rules_of(const struct sl_tracks *s)
{
	const struct sl_tracks_plan *p = &s->plan;
	struct sl_kernel_tracks rules = {
		.cells = p->set.cells,
		.columns = p->set.columns,
		.rows = p->set.rows,
		.words = p->words,
		.min_layers = p->set.min_layers,
		.common = p->set.common,
		.between = p->set.between,
		.fit = p->set.fit,
		.limit = p->set.sector_tracks,
		.turn = p->turn,
		.reach = p->reach,
		.reach_at = p->reach_at,
		.fit_limit = p->set.fit_limit,
		.y = {p->y[0], p->y[1]},
		.row = p->row,
		.x_window = p->x_window,
		.y_window = p->y_window,
		.x_fast = fastest(s->trigger_pt_GeV),
		.phi_rad = (float)SL_STUB_PHI_RAD,
		.r_cm = (float)SL_STUB_R_CM,
		.z_cm = (float)SL_STUB_Z_CM,
		.disk_z = SL_TRACKS_DISK_Z,
		.events = s->events,
		.sectors = s->sectors,
		.modules = s->modules,
		.all = s->modules * s->sectors,
		.max_tracks = s->max_tracks,
		.max_stubs = s->max_stubs,
		.min_tracks = s->min_tracks,
		.looks_at_all = s->look == SL_TRACKS_LOOK_AT_ALL,
		.sets = (p->set.sector_tracks + 31) / 32,
	};

	for (int i = 0; i < 3; i++)
		rules.turns[i] = (float)((1 - i) * 2 * SL_PI / SL_TRACKER_PHI_SECTORS);
	return rules;
}

static void copy_plan(const struct sl_tracks_plan *from, struct sl_kernel_tracks_plan *to)
{
	memcpy(to->slope, from->slope, sizeof(to->slope));
	memcpy(to->offset, from->offset, sizeof(to->offset));
	memcpy(to->side, from->side, sizeof(to->side));
	memcpy(to->x, from->x, sizeof(to->x));
	memcpy(to->first, from->first, sizeof(to->first));
	memcpy(to->after, from->after, sizeof(to->after));
}

void sl_tracks_for_kernels(const struct sl_tracks *stage, struct sl_kernel_tracks *rules,
			   struct sl_kernel_tracks_plan *plan)
{
	*rules = rules_of(stage);
	copy_plan(&stage->plan, plan);
}

static int open_slot(struct gpu *t, struct slot *slot)
{
	const struct sl_kernel_tracks *r = &t->rules;
	uint64_t events = (uint64_t)t->batch_frames * r->events, sectors = events * r->all;
	const struct {
		struct sl_device_memory *memory;
		uint64_t bytes;
	} want[] = {
		{&slot->sector, sectors * sizeof(struct sl_kernel_sector)},
		{&slot->track, sectors * r->limit * sizeof(struct sl_kernel_track)},
		{&slot->like,
		 r->between ? sectors * r->limit * SL_KERNEL_NEIGHBOURS * r->sets * sizeof(uint32_t)
			    : sizeof(uint32_t)},
		{&slot->state, sectors * STATES * r->sets * sizeof(uint32_t)},
		{&slot->event, events * sizeof(struct sl_kernel_event)},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) && !err; i++)
		err = t->device->platform->memory_open(t->device, want[i].bytes, want[i].memory);
	return err;
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	struct gpu *t = state;
	const struct sl_tracks *s = stage->state;
	int err;

	t->device = env->device;
	t->batch_frames = env->batch_frames;
	t->result = s->result;
	sl_tracks_for_kernels(s, &t->rules, &t->plan);
	err = sl_device_kernels(t->device, &sl_kernels_tracks, sector_names, SECTOR_KERNELS,
				&t->sector_program, t->sector_kernel);
	if (!err)
		err = sl_device_kernels(t->device, &sl_kernels_tracks_event, event_names,
					EVENT_KERNELS, &t->event_program, t->event_kernel);
	if (!err)
		err = sl_device_table(t->device, env->queue, &t->plan, sizeof(t->plan),
				      &t->plan_table);
	for (unsigned i = 0; i < env->slots && !err; i++)
		err = open_slot(t, &t->slot[i]);
	return err;
}

static int find(struct gpu *t, const struct sl_gpu_batch *b, const struct slot *slot)
{
	const struct sl_kernel_tracks *r = &t->rules;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->raw),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&t->plan_table),
		SL_ARG_MEMORY(&slot->sector),
		SL_ARG_MEMORY(&slot->track),
	};
	struct sl_device_range range = {{r->all, r->events, b->frames}, SL_STUBS};

	return t->device->platform->launch(b->queue, t->sector_kernel[r->fit ? FIT : FIND], &range,
					   argument, sizeof(argument) / sizeof(argument[0]));
}

static int relate(struct gpu *t, const struct sl_gpu_batch *b, const struct slot *slot)
{
	const struct sl_kernel_tracks *r = &t->rules;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->raw),
		SL_ARG_MEMORY(b->view),
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&slot->sector),
		SL_ARG_MEMORY(&slot->track),
		SL_ARG_MEMORY(&slot->like),
	};
	struct sl_device_range range = {{r->all, r->events, b->frames}, TEAM};

	if (!r->between)
		return 0;
	return t->device->platform->launch(b->queue, t->event_kernel[RELATE], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int judge(struct gpu *t, const struct sl_gpu_batch *b, const struct slot *slot)
{
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&slot->sector),
		SL_ARG_MEMORY(&slot->track),
		SL_ARG_MEMORY(&slot->like),
		SL_ARG_MEMORY(&slot->state),
		SL_ARG_MEMORY(&slot->event),
		SL_ARG_MEMORY(&b->result[t->result + 2]),
	};
	struct sl_device_range range = {{t->rules.events, b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->event_kernel[JUDGE], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int list(struct gpu *t, const struct sl_gpu_batch *b, const struct slot *slot)
{
	uint64_t rows_at = (uint64_t)t->result * t->batch_frames;
	uint64_t stubs_at = rows_at + t->batch_frames;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->rules),
		SL_ARG_MEMORY(&slot->sector),
		SL_ARG_MEMORY(&slot->track),
		SL_ARG_MEMORY(&slot->state),
		SL_ARG_MEMORY(&slot->event),
		SL_ARG_MEMORY(&b->result[t->result]),
		SL_ARG_MEMORY(&b->result[t->result + 1]),
		SL_ARG_MEMORY(&b->result[t->result + 2]),
		SL_ARG_MEMORY(b->rows),
		SL_ARG(rows_at),
		SL_ARG(stubs_at),
	};
	struct sl_device_range range = {{t->rules.events, b->frames}, THREADS};

	return t->device->platform->launch(b->queue, t->event_kernel[LIST], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	const struct slot *slot = &t->slot[b->slot];
	int err = find(t, b, slot);

	if (!err)
		err = relate(t, b, slot);
	if (!err)
		err = judge(t, b, slot);
	return err ? err : list(t, b, slot);
}

const struct sl_gpu sl_gpu_tracks = {
	.state_bytes = sizeof(struct gpu),
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
};
