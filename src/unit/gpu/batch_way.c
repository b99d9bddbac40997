/* batch_way.c - a batch's way through its memory on a device: up, through the kernels, its verdicts
 * back, then the results of frames that are kept. */
#include <errno.h>

#include "base/clock.h"
#include "unit/gpu/batch_sizes.h"
#include "unit/gpu/gpu.h"

/* The parts of `up`, each on a cache line. */
struct up {
	struct sl_kernel_frame *frame;
	struct sl_kernel_view *view;
	struct sl_kernel_verdict *verdict;
};

static struct up parts_of(const struct sl_device_lanes *l, const struct sl_device_lane *lane)
{
	char *base = lane->up.host;

	return (struct up){
		.frame = (void *)base,
		.view = (void *)(base + sl_device_frames_bytes(l)),
		.verdict = (void *)(base + sl_device_frames_bytes(l) + sl_device_views_bytes(l)),
	};
}

uint32_t *sl_device_lane_word(const struct sl_device_lanes *l, struct sl_device_lane *lane)
{
	return (void *)((char *)parts_of(l, lane).verdict + sl_device_verdicts_bytes(l));
}

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
	err = p->write(l->in, &lane->frame, 0, up.frame, sl_device_frames_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &lane->view, 0, up.view, sl_device_views_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &lane->verdict, 0, up.verdict, sl_device_verdicts_bytes(l), 1,
			       0);
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
	struct sl_gpu_batch on_device = {
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
		if (l->gpu[s])
			err = l->chain->stage[s].ops->gpu->enqueue(l->gpu[s], &on_device);
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
		if (l->gpu[s] && l->chain->stage[s].ops->gpu->prepare)
			l->chain->stage[s].ops->gpu->prepare(l->gpu[s], batch);
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
		err = p->read(lane->out, lane->down.host, &lane->verdict, 0,
			      sl_device_verdicts_bytes(l));
	if (!err)
		err = p->read(lane->out, (char *)lane->down.host + sl_device_verdicts_bytes(l),
			      &lane->rows, 0, sl_device_rows_bytes(l));
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
	const uint32_t *rows =
		(const void *)((char *)lane->down.host + sl_device_verdicts_bytes(l));

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
