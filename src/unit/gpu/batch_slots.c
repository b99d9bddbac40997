/* batch_slots.c - the memory of batches on a device, and a batch's way through it. */
#include "unit/gpu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/dialect/batch.h"
#include "gpu/table.h"

/* The parts of `up`, each on a cache line. */
struct up {
	struct sl_kernel_frame *frame;
	struct sl_kernel_view *view;
	struct sl_kernel_verdict *verdict;
};

static uint64_t lines(uint64_t bytes)
{
	return (bytes + SL_LANE_LINE - 1) / SL_LANE_LINE * SL_LANE_LINE;
}

static uint64_t frames_bytes(const struct sl_device_lanes *l)
{
	return lines(l->chain->batch_frames * sizeof(struct sl_kernel_frame));
}

static uint64_t views_bytes(const struct sl_device_lanes *l)
{
	return lines((uint64_t)l->chain->batch_frames * l->modules * sizeof(struct sl_kernel_view));
}

static uint64_t verdicts_bytes(const struct sl_device_lanes *l)
{
	return lines((uint64_t)l->chain->batch_frames * l->items *
		     sizeof(struct sl_kernel_verdict));
}

static uint64_t rows_bytes(const struct sl_device_lanes *l)
{
	return (uint64_t)SL_RESULTS * l->chain->batch_frames * sizeof(uint32_t);
}

static struct up parts_of(const struct sl_device_lanes *l, const struct sl_device_lane *lane)
{
	char *base = lane->up.host;

	return (struct up){
		.frame = (void *)base,
		.view = (void *)(base + frames_bytes(l)),
		.verdict = (void *)(base + frames_bytes(l) + views_bytes(l)),
	};
}

uint32_t *sl_device_lane_word(const struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	return (void *)((char *)parts_of(l, lane).verdict + verdicts_bytes(l));
}

/* ---- opening ---- */

/* What results there are, who makes them, and which the host wants. */
static void note_results(struct sl_device_lanes *l)
{
	l->seen = l->chain->rejected_read;
	for (unsigned s = 0; s < l->chain->stages; s++) {
		const struct sl_chain_stage *stage = &l->chain->stage[s];

		for (uint32_t i = 0; i < stage->terms.outputs; i++) {
			unsigned at = (unsigned)stage->terms.result + i;

			l->shape[at] = stage->terms.output[i];
			l->made[at] = stage->ops->twin;
			l->wanted[at] = !(stage->unread && (int)at == stage->output);
			if (at >= l->results)
				l->results = at + 1;
		}
		if (!stage->ops->twin && stage->input >= 0)
			l->wanted[stage->input] = true;
		if (!stage->ops->twin && (stage->ops->frame || stage->ops->finish))
			l->seen = true;
	}
}

/* All of a lane's memory on the device, so that what is too much is said in one number. */
static uint64_t lane_bytes(const struct sl_device_lanes *l)
{
	uint64_t frames = l->chain->batch_frames, bytes = frames * l->modules * l->module_bytes;

	for (unsigned i = 0; i < l->results; i++)
		bytes += l->made[i] ? frames * sl_shape_bytes(&l->shape[i]) : 0;
	return bytes + frames_bytes(l) + views_bytes(l) + verdicts_bytes(l) + rows_bytes(l);
}

void sl_device_lanes_tell(const struct sl_device_lanes *l, const char *whose, int err)
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

static int open_lane(struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	const struct sl_platform *p = l->platform;
	uint64_t frames = l->chain->batch_frames;
	struct sl_device_mark **mark[] = {&lane->filled, &lane->worked, &lane->judged, &lane->back};
	const struct {
		struct sl_device_memory *memory;
		uint64_t bytes;
	} want[] = {
		{&lane->raw, frames * l->modules * l->module_bytes},
		{&lane->frame, frames_bytes(l)},
		{&lane->view, views_bytes(l)},
		{&lane->verdict, verdicts_bytes(l)},
		{&lane->rows, rows_bytes(l)},
	};
	int err = p->queue_open(l->device, &lane->out);

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) && !err; i++)
		err = p->memory_open(l->device, want[i].bytes, want[i].memory);
	for (unsigned i = 0; i < l->results && !err; i++)
		if (l->made[i])
			err = p->memory_open(l->device, frames * sl_shape_bytes(&l->shape[i]),
					     &lane->result[i]);
	if (!err)
		err = p->pinned_open(l->device,
				     frames_bytes(l) + views_bytes(l) + verdicts_bytes(l) +
					     SL_LANE_LINE,
				     &lane->up);
	if (!err)
		err = p->pinned_open(l->device, verdicts_bytes(l) + rows_bytes(l), &lane->down);
	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]) && !err; i++)
		err = p->mark_open(l->device, mark[i]);
	return err;
}

static void find_maker(const struct sl_device_lanes *l, unsigned stage, struct sl_twin_env *env)
{
	env->maker = NULL;
	for (unsigned s = 0; s < stage && l->chain->stage[stage].input >= 0; s++)
		if (l->chain->stage[s].output == l->chain->stage[stage].input && l->twin[s]) {
			env->maker = l->chain->stage[s].ops->twin;
			env->maker_state = l->twin[s];
		}
}

static int open_twins(struct sl_device_lanes *l, unsigned lanes)
{
	struct sl_twin_env env = {
		.device = l->device,
		.queue = l->in,
		.geometry = l->chain->geometry,
		.batch_frames = l->chain->batch_frames,
		.items = l->items,
		.lanes = lanes,
	};

	for (unsigned s = 0; s < l->chain->stages; s++) {
		const struct sl_twin *twin = l->chain->stage[s].ops->twin;
		int err;

		if (!twin)
			continue;
		find_maker(l, s, &env);
		l->twin[s] = calloc(1, twin->state_bytes);
		err = l->twin[s] ? twin->open(l->twin[s], &env, &l->chain->stage[s]) : -ENOMEM;
		if (err) {
			char whose[64];

			snprintf(whose, sizeof(whose), "stage '%s'", l->chain->stage[s].ops->name);
			sl_device_lanes_tell(l, whose, err);
			/* Tables on their way are the stages', and go when these are closed. */
			sl_device_finish(l->device, l->in);
			return err;
		}
	}
	/* Tables are there before the first batch is. */
	return sl_device_finish(l->device, l->in);
}

static int open_queues(struct sl_device_lanes *l, unsigned works)
{
	int err = l->platform->queue_open(l->device, &l->in);

	for (; l->works < works && !err; l->works += !err)
		err = l->platform->queue_open(l->device, &l->work[l->works]);
	return err;
}

int sl_device_lanes_open(struct sl_device_lanes *l, unsigned n, bool any_order)
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
		err = open_twins(l, n);
	if (err)
		return err;
	for (; l->n < n && !err; l->n++)
		err = open_lane(l, &l->lane[l->n]);
	if (!err) {
		err = sl_device_triggers_open(l);
		if (err && err != -ENOTSUP) /* which is said already */
			sl_device_lanes_tell(l, "kernels that wait", err);
		return err;
	}
	snprintf(whose, sizeof(whose), "%u batches of %.3f GB", n, (double)lane_bytes(l) * 1e-9);
	sl_device_lanes_tell(l, whose, err);
	return err;
}

static void close_lane(struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	struct sl_device_memory *memory[] = {&lane->raw,  &lane->frame, &lane->view, &lane->verdict,
					     &lane->rows, &lane->up,	&lane->down};
	struct sl_device_mark *mark[] = {lane->filled, lane->worked, lane->judged, lane->back};

	sl_device_triggers_close(l, lane);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		l->platform->memory_close(l->device, memory[i]);
	for (unsigned i = 0; i < l->results; i++)
		l->platform->memory_close(l->device, &lane->result[i]);
	if (lane->out)
		l->platform->queue_close(lane->out);
	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]); i++)
		if (mark[i])
			l->platform->mark_close(mark[i]);
}

void sl_device_lanes_close(struct sl_device_lanes *l)
{
	if (!l->platform)
		return;
	sl_device_loop_close(l);
	for (unsigned i = 0; i < l->n; i++)
		close_lane(l, &l->lane[i]);
	for (unsigned s = 0; s < l->chain->stages; s++)
		if (l->twin[s]) {
			l->chain->stage[s].ops->twin->close(l->twin[s]);
			free(l->twin[s]);
		}
	for (unsigned i = 0; i < l->works; i++)
		l->platform->queue_close(l->work[i]);
	if (l->in)
		l->platform->queue_close(l->in);
	*l = (struct sl_device_lanes){0};
}

/* Where kernels are queued ahead, their queue ends with those that still wait. What has begun is
 * over when the queues behind it are. */
static int come_to_rest(struct sl_device_lanes *l)
{
	int err = 0;

	if (l->trigger == SL_LANES_LOOP)
		return sl_device_loop_rest(l);
	for (unsigned i = 0; i < l->n && !err; i++)
		if (l->lane[i].state == SL_LANE_JUDGING)
			err = sl_device_finish(l->device, l->lane[i].out);
	return err;
}

int sl_device_lanes_give_back(struct sl_device_lanes *l)
{
	bool ahead = sl_device_is_ahead(l);
	int err = 0;

	for (unsigned s = 0; s < l->chain->stages && !err; s++) {
		const struct sl_twin *twin = l->twin[s] ? l->chain->stage[s].ops->twin : NULL;

		if (!twin || !twin->give_back)
			continue;
		err = l->loop.is_spoilt ? -EIO : ahead ? come_to_rest(l) : 0;
		if (!err)
			err = twin->give_back(l->twin[s], ahead ? l->in : l->work[0]);
	}
	return err;
}

/* ---- a batch ---- */

static void fill_frame(const struct sl_device_lanes *l, const struct sl_frame *frame, uint32_t f,
		       const struct up *up)
{
	up->frame[f] = (struct sl_kernel_frame){
		.missing = frame->missing,
		.flags = frame->flags | (l->seen ? SL_KERNEL_SEEN : 0),
		.items = frame->items,
	};
	for (uint32_t m = 0; m < l->modules; m++)
		up->view[f * l->modules + m] = (struct sl_kernel_view){
			.at = ((uint64_t)f * l->modules + m) * l->module_bytes,
			.cell = frame->view[m].record.cell,
			.missing = (uint32_t)sl_frame_misses(frame, m),
		};
	for (uint32_t i = 0; i < frame->items; i++)
		up->verdict[f * l->items + i] = (struct sl_kernel_verdict){
			.score = frame->verdict[i].score,
			.keep = frame->verdict[i].keep,
			.reason = frame->verdict[i].reason,
		};
}

/* One that is not there. */
static void fill_nothing(const struct sl_device_lanes *l, uint32_t f, const struct up *up)
{
	up->frame[f] = (struct sl_kernel_frame){.missing = UINT64_MAX};
	for (uint32_t m = 0; m < l->modules; m++)
		up->view[f * l->modules + m] = (struct sl_kernel_view){
			.at = ((uint64_t)f * l->modules + m) * l->module_bytes, .missing = 1};
	for (uint32_t i = 0; i < l->items; i++)
		up->verdict[f * l->items + i] = (struct sl_kernel_verdict){0};
}

int sl_device_lane_describe(struct sl_device_lanes *l, unsigned index, const struct sl_batch *batch)
{
	const struct sl_platform *p = l->platform;
	struct sl_device_lane *lane = &l->lane[index];
	struct up up = parts_of(l, lane);
	int err;

	for (uint32_t f = 0; f < l->chain->batch_frames; f++)
		if (f < batch->frames)
			fill_frame(l, batch->frame[f], f, &up);
		else if (sl_device_is_ahead(l))
			fill_nothing(l, f, &up);
	err = p->write(l->in, &lane->frame, 0, up.frame, frames_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &lane->view, 0, up.view, views_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &lane->verdict, 0, up.verdict, verdicts_bytes(l), 1, 0);
	return err ? err : p->zero(l->in, &lane->rows, 0, lane->rows.bytes);
}

/* Modules that follow each other in the host's memory, as those of a slot of the ring do, are one
 * copy: a large one is faster than some small ones. */
struct piece {
	const char *host;
	uint64_t at, bytes;
};

static int send_piece(struct sl_device_lanes *l, struct sl_device_lane *lane, struct piece *piece)
{
	int err = piece->bytes ? l->platform->write(l->in, &lane->raw, piece->at, piece->host,
						    piece->bytes, 1, 0)
			       : 0;

	piece->at += piece->bytes;
	piece->bytes = 0;
	return err;
}

static int upload_module(struct sl_device_lanes *l, struct sl_device_lane *lane,
			 const struct sl_array *pixels, struct piece *piece)
{
	bool has_pitch = pixels->pitch && pixels->pitch != l->row_bytes;
	int err = 0;

	if (has_pitch || piece->host + piece->bytes != pixels->host || !piece->bytes) {
		err = send_piece(l, lane, piece);
		piece->host = pixels->host;
	}
	if (err || !has_pitch) {
		piece->bytes += l->module_bytes;
		return err;
	}
	err = l->platform->write(l->in, &lane->raw, piece->at, pixels->host, l->row_bytes, l->rows,
				 pixels->pitch);
	piece->at += l->module_bytes;
	return err;
}

static int upload(struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	struct piece piece = {NULL, 0, 0};
	int err = 0;

	for (uint32_t f = 0; f < lane->batch->frames; f++)
		for (uint32_t m = 0; m < l->modules && !err; m++)
			err = upload_module(l, lane, &lane->batch->frame[f]->view[m].pixels,
					    &piece);
	return err ? err : send_piece(l, lane, &piece);
}

int sl_device_lane_run(struct sl_device_lanes *l, unsigned lane, struct sl_device_queue *queue,
		       const struct sl_batch *batch)
{
	struct sl_device_lane *at = &l->lane[lane];
	struct sl_twin_batch on_device = {
		.queue = queue,
		.batch = batch,
		.frames = batch ? batch->frames : l->chain->batch_frames,
		.lane = lane,
		.raw = &at->raw,
		.frame = &at->frame,
		.view = &at->view,
		.verdict = &at->verdict,
		.rows = &at->rows,
		.result = at->result,
	};
	int err = 0;

	for (unsigned s = 0; s < l->chain->stages && !err; s++)
		if (l->twin[s])
			err = l->chain->stage[s].ops->twin->enqueue(l->twin[s], &on_device);
	return err;
}

int sl_device_lane_again(struct sl_device_lanes *l, unsigned lane)
{
	return sl_device_lane_run(l, lane, l->work[lane % l->works], l->lane[lane].batch);
}

int sl_device_lane_begin(struct sl_device_lanes *l, unsigned index, struct sl_batch *batch)
{
	struct sl_device_lane *lane = &l->lane[index];
	const struct sl_platform *p = l->platform;
	int err;

	for (unsigned s = 0; s < l->chain->stages; s++)
		if (l->twin[s] && l->chain->stage[s].ops->twin->prepare)
			l->chain->stage[s].ops->twin->prepare(l->twin[s], batch);
	lane->batch = batch;
	lane->state = SL_LANE_JUDGING;
	lane->since_ns = sl_clock_ns();
	err = sl_device_lane_describe(l, index, batch);
	if (!err)
		err = upload(l, lane);
	if (!err)
		err = sl_device_trigger(l, index);
	if (err || l->trigger == SL_LANES_LOOP)
		return err; /* which brings them itself */
	if (!err)
		err = p->wait(lane->out, lane->worked);
	if (!err)
		err = p->read(lane->out, lane->down.host, &lane->verdict, 0, verdicts_bytes(l));
	if (!err)
		err = p->read(lane->out, (char *)lane->down.host + verdicts_bytes(l), &lane->rows,
			      0, rows_bytes(l));
	if (!err)
		err = p->mark(lane->out, lane->judged);
	return err ? err : p->flush(lane->out);
}

int sl_device_lane_reached(struct sl_device_lanes *l, unsigned index)
{
	const struct sl_device_lane *lane = &l->lane[index];

	return l->trigger == SL_LANES_LOOP ? sl_device_loop_reached(l, index, lane->since_ns)
					   : l->platform->reached(lane->judged);
}

static void take_verdicts(const struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	const struct sl_kernel_verdict *verdict = lane->down.host;
	const uint32_t *rows = (const void *)((char *)lane->down.host + verdicts_bytes(l));

	for (uint32_t f = 0; f < lane->batch->frames; f++) {
		struct sl_frame *frame = lane->batch->frame[f];

		for (uint32_t i = 0; i < frame->items; i++) {
			const struct sl_kernel_verdict *v = &verdict[f * l->items + i];

			frame->verdict[i].score = v->score;
			frame->verdict[i].keep = v->keep;
			frame->verdict[i].reason = v->reason;
		}
		for (unsigned i = 0; i < l->results; i++)
			if (l->made[i])
				frame->result[i].rows = rows[i * l->chain->batch_frames + f];
	}
}

/* One result of one frame: of a ragged one, the rows that there are. */
static int fetch(struct sl_device_lanes *l, struct sl_device_lane *lane, unsigned i, uint32_t f)
{
	struct sl_array *result = &lane->batch->frame[f]->result[i];
	uint64_t all = sl_shape_bytes(&l->shape[i]), bytes = all;

	if (l->shape[i].ragged) {
		if (result->rows > l->shape[i].dim[0])
			return -EPROTO; /* a kernel that wrote nonsense */
		bytes = all / l->shape[i].dim[0] * result->rows;
	}
	return bytes ? l->platform->read(lane->out, result->host, &lane->result[i], f * all, bytes)
		     : 0;
}

int sl_device_lane_judged(struct sl_device_lanes *l, unsigned index)
{
	struct sl_device_lane *lane = &l->lane[index];
	int err = 0;

	take_verdicts(l, lane);
	for (uint32_t f = 0; f < lane->batch->frames; f++) {
		struct sl_frame *frame = lane->batch->frame[f];

		if (!sl_device_returns(l, frame)) {
			for (unsigned i = 0; i < l->results; i++)
				frame->result[i].rows = l->made[i] ? 0 : frame->result[i].rows;
			continue;
		}
		for (unsigned i = 0; i < l->results && !err; i++)
			if (l->made[i] && l->wanted[i])
				err = fetch(l, lane, i, f);
	}
	if (!err)
		err = l->platform->mark(lane->out, lane->back);
	if (!err)
		err = l->platform->flush(lane->out);
	lane->state = SL_LANE_RETURNING;
	lane->since_ns = sl_clock_ns();
	return err ? err : sl_device_trigger_again(l, index);
}
