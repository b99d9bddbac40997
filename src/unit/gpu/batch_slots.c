/* batch_slots.c - the memory, queues and marks of batches on a device, and the GPU sides of stages:
 * opened and closed. */
#include "unit/gpu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpu/table.h"
#include "unit/gpu/batch_sizes.h"

/* What results there are, who makes them, and which the host wants. */
static void note_results(struct sl_batch_slots *l)
{
	l->seen = l->chain->rejected_read;
	l->images_seen = l->chain->rejected_images;
	for (unsigned s = 0; s < l->chain->stages; s++) {
		const struct sl_chain_stage *stage = &l->chain->stage[s];

		for (uint32_t i = 0; i < stage->terms.outputs; i++) {
			unsigned at = (unsigned)stage->terms.result + i;

			l->shape[at] = stage->terms.output[i];
			l->made[at] = stage->ops->gpu;
			l->wanted[at] = !(stage->unread && (int)at == stage->output);
			if (at >= l->results)
				l->results = at + 1;
		}
		if (!stage->ops->gpu && stage->input >= 0)
			l->wanted[stage->input] = true;
		if (!stage->ops->gpu && (stage->ops->frame || stage->ops->finish))
			l->seen = l->images_seen = true;
	}
}

/* All of a batch slot's memory on the device, so that what is too much is said in one number. */
static uint64_t lane_bytes(const struct sl_batch_slots *l)
{
	uint64_t frames = l->chain->batch_frames, bytes = frames * l->modules * l->module_bytes;

	for (unsigned i = 0; i < l->results; i++)
		bytes += l->made[i] ? frames * sl_shape_bytes(&l->shape[i]) : 0;
	return bytes + sl_device_frames_bytes(l) + sl_device_views_bytes(l) +
	       sl_device_verdicts_bytes(l) + sl_device_rows_bytes(l);
}

void sl_batch_slots_log(const struct sl_batch_slots *l, const char *whose, int err)
{
	uint64_t refused = l->device->refused_bytes;
	const char *problem = l->platform->problem(l->device);
	struct sl_device_info info;
	char spare[64] = "";

	if (err != -ENOMEM || !refused) {
		sl_error("%s: %s cannot be opened there: %s", l->platform->name, whose,
			 *problem ? problem : strerror(-err));
		return;
	}
	l->platform->describe(l->device, &info);
	if (info.memory_free_bytes)
		snprintf(spare, sizeof(spare), ", and %.3f GB are free",
			 (double)info.memory_free_bytes * 1e-9);
	sl_error("%s: no memory for %s: %" PRIu64 " more bytes (%.3f GB) were asked for on %s, "
		 "which has %.3f GB; this run has %.3f GB of it%s: %s; lower unit.batch or "
		 "unit.lanes",
		 l->platform->name, whose, refused, (double)refused * 1e-9, info.name,
		 (double)info.memory_bytes * 1e-9, (double)l->device->held_bytes * 1e-9, spare,
		 problem);
}

static int open_slot(struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	const struct sl_platform *p = l->platform;
	uint64_t frames = l->chain->batch_frames;
	struct sl_device_mark **mark[] = {&slot->filled, &slot->worked, &slot->judged, &slot->back};
	const struct {
		struct sl_device_memory *memory;
		uint64_t bytes;
	} want[] = {
		{&slot->raw, frames * l->modules * l->module_bytes},
		{&slot->frame, sl_device_frames_bytes(l)},
		{&slot->view, sl_device_views_bytes(l)},
		{&slot->verdict, sl_device_verdicts_bytes(l)},
		{&slot->rows, sl_device_rows_bytes(l)},
	};
	int err = p->queue_open(l->device, &slot->out);

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) && !err; i++)
		err = p->memory_open(l->device, want[i].bytes, want[i].memory);
	for (unsigned i = 0; i < l->results && !err; i++)
		if (l->made[i])
			err = p->memory_open(l->device, frames * sl_shape_bytes(&l->shape[i]),
					     &slot->result[i]);
	if (!err)
		err = p->pinned_open(l->device,
				     sl_device_frames_bytes(l) + sl_device_views_bytes(l) +
					     sl_device_verdicts_bytes(l) + SL_BATCH_SLOT_LINE,
				     &slot->up);
	if (!err)
		err = p->pinned_open(l->device,
				     sl_device_verdicts_bytes(l) + sl_device_rows_bytes(l),
				     &slot->down);
	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]) && !err; i++)
		err = p->mark_open(l->device, mark[i]);
	return err;
}

static void find_maker(const struct sl_batch_slots *l, unsigned stage, struct sl_gpu_env *env)
{
	env->maker = NULL;
	for (unsigned s = 0; s < stage && l->chain->stage[stage].input >= 0; s++)
		if (l->chain->stage[s].output == l->chain->stage[stage].input && l->gpu[s]) {
			env->maker = l->chain->stage[s].ops->gpu;
			env->maker_state = l->gpu[s];
		}
}

static int open_gpu_stages(struct sl_batch_slots *l, unsigned slots)
{
	struct sl_gpu_env env = {
		.device = l->device,
		.queue = l->in,
		.geometry = l->chain->geometry,
		.batch_frames = l->chain->batch_frames,
		.items = l->items,
		.slots = slots,
	};

	for (unsigned s = 0; s < l->chain->stages; s++) {
		const struct sl_gpu *gpu = l->chain->stage[s].ops->gpu;
		int err;

		if (!gpu)
			continue;
		find_maker(l, s, &env);
		l->gpu[s] = calloc(1, gpu->state_bytes);
		err = l->gpu[s] ? gpu->open(l->gpu[s], &env, &l->chain->stage[s]) : -ENOMEM;
		if (err) {
			char whose[64];

			snprintf(whose, sizeof(whose), "stage '%s'", l->chain->stage[s].ops->name);
			sl_batch_slots_log(l, whose, err);
			/* Tables on their way are the stages', and go when these are closed. */
			sl_device_finish(l->device, l->in);
			return err;
		}
	}
	/* Tables are there before the first batch is. */
	return sl_device_finish(l->device, l->in);
}

static int open_queues(struct sl_batch_slots *l, unsigned works)
{
	int err = l->platform->queue_open(l->device, &l->in);

	for (; l->works < works && !err; l->works += !err)
		err = l->platform->queue_open(l->device, &l->work[l->works]);
	return err;
}

int sl_batch_slots_open(struct sl_batch_slots *l, unsigned n, bool any_order)
{
	const struct sl_geometry *geometry = l->chain->geometry;
	char whose[64];
	int err;

	l->platform = l->device->platform;
	l->items = sl_geometry_frame_items(geometry);
	l->modules = geometry->modules;
	l->rows = geometry->rows;
	l->row_bytes = (uint64_t)geometry->columns * sl_dtype_bytes(geometry->dtype);
	l->module_bytes = l->rows * l->row_bytes;
	note_results(l);
	err = open_queues(l, any_order ? n : 1);
	if (!err)
		err = open_gpu_stages(l, n);
	if (err)
		return err;
	for (; l->n < n && !err; l->n++)
		err = open_slot(l, &l->slot[l->n]);
	if (!err) {
		err = sl_device_triggers_open(l);
		if (err && err != -ENOTSUP) /* which is said already */
			sl_batch_slots_log(l, "kernels that wait", err);
		return err;
	}
	snprintf(whose, sizeof(whose), "%u batches of %.3f GB", n, (double)lane_bytes(l) * 1e-9);
	sl_batch_slots_log(l, whose, err);
	return err;
}

static void close_slot(struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	struct sl_device_memory *memory[] = {&slot->raw,  &slot->frame, &slot->view, &slot->verdict,
					     &slot->rows, &slot->up,	&slot->down};
	struct sl_device_mark *mark[] = {slot->filled, slot->worked, slot->judged, slot->back};

	sl_device_triggers_close(l, slot);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		l->platform->memory_close(l->device, memory[i]);
	for (unsigned i = 0; i < l->results; i++)
		l->platform->memory_close(l->device, &slot->result[i]);
	if (slot->out)
		l->platform->queue_close(slot->out);
	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]); i++)
		if (mark[i])
			l->platform->mark_close(mark[i]);
}

void sl_batch_slots_close(struct sl_batch_slots *l)
{
	if (!l->platform)
		return;
	sl_device_loop_close(l);
	for (unsigned i = 0; i < l->n; i++)
		close_slot(l, &l->slot[i]);
	for (unsigned s = 0; s < l->chain->stages; s++)
		if (l->gpu[s]) {
			l->chain->stage[s].ops->gpu->close(l->gpu[s]);
			free(l->gpu[s]);
		}
	for (unsigned i = 0; i < l->works; i++)
		l->platform->queue_close(l->work[i]);
	if (l->in)
		l->platform->queue_close(l->in);
	*l = (struct sl_batch_slots){0};
}

/* Where kernels are queued ahead, their queue ends with those that still wait. What has begun is
 * over when the queues behind it are. */
static int come_to_rest(struct sl_batch_slots *l)
{
	int err = 0;

	if (l->trigger == SL_BATCH_SLOTS_LOOP)
		return sl_device_loop_rest(l);
	for (unsigned i = 0; i < l->n && !err; i++)
		if (l->slot[i].state == SL_BATCH_SLOT_JUDGING)
			err = sl_device_finish(l->device, l->slot[i].out);
	return err;
}

int sl_batch_slots_give_back(struct sl_batch_slots *l)
{
	bool ahead = sl_device_is_ahead(l);
	int err = 0;

	for (unsigned s = 0; s < l->chain->stages && !err; s++) {
		const struct sl_gpu *gpu = l->gpu[s] ? l->chain->stage[s].ops->gpu : NULL;

		if (!gpu || !gpu->give_back)
			continue;
		err = l->loop.is_spoilt ? -EIO : ahead ? come_to_rest(l) : 0;
		if (!err)
			err = gpu->give_back(l->gpu[s], ahead ? l->in : l->work[0]);
	}
	return err;
}
