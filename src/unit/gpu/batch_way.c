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

static struct up parts_of(const struct sl_batch_slots *l, const struct sl_batch_slot *slot)
{
	char *base = slot->up.host;

	return (struct up){
		.frame = (void *)base,
		.view = (void *)(base + sl_device_frames_bytes(l)),
		.verdict = (void *)(base + sl_device_frames_bytes(l) + sl_device_views_bytes(l)),
	};
}

uint32_t *sl_batch_slot_word(const struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	return (void *)((char *)parts_of(l, slot).verdict + sl_device_verdicts_bytes(l));
}

static void fill_frame(const struct sl_batch_slots *l, const struct sl_frame *frame, uint32_t f,
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
			.number = frame->number,
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
static void fill_nothing(const struct sl_batch_slots *l, uint32_t f, const struct up *up)
{
	up->frame[f] = (struct sl_kernel_frame){.missing = UINT64_MAX};
	for (uint32_t m = 0; m < l->modules; m++)
		up->view[f * l->modules + m] = (struct sl_kernel_view){
			.at = ((uint64_t)f * l->modules + m) * l->module_bytes, .missing = 1};
	for (uint32_t i = 0; i < l->items; i++)
		up->verdict[f * l->items + i] = (struct sl_kernel_verdict){0};
}

int sl_batch_slot_describe(struct sl_batch_slots *l, unsigned index, const struct sl_batch *batch)
{
	const struct sl_platform *p = l->platform;
	struct sl_batch_slot *slot = &l->slot[index];
	struct up up = parts_of(l, slot);
	int err;

	for (uint32_t f = 0; f < l->chain->batch_frames; f++)
		if (f < batch->frames)
			fill_frame(l, batch->frame[f], f, &up);
		else if (sl_device_is_ahead(l))
			fill_nothing(l, f, &up);
	err = p->write(l->in, &slot->frame, 0, up.frame, sl_device_frames_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &slot->view, 0, up.view, sl_device_views_bytes(l), 1, 0);
	if (!err)
		err = p->write(l->in, &slot->verdict, 0, up.verdict, sl_device_verdicts_bytes(l), 1,
			       0);
	return err ? err : p->zero(l->in, &slot->rows, 0, slot->rows.bytes);
}

/* Modules that follow each other in the host's memory, as those of a slot of the ring do, are one
 * copy: a large one is faster than some small ones. */
struct piece {
	const char *host;
	uint64_t at, bytes;
};

static int send_piece(struct sl_batch_slots *l, struct sl_batch_slot *slot, struct piece *piece)
{
	int err = piece->bytes ? l->platform->write(l->in, &slot->raw, piece->at, piece->host,
						    piece->bytes, 1, 0)
			       : 0;

	piece->at += piece->bytes;
	piece->bytes = 0;
	return err;
}

static int upload_module(struct sl_batch_slots *l, struct sl_batch_slot *slot,
			 const struct sl_array *pixels, struct piece *piece)
{
	bool has_pitch = pixels->pitch && pixels->pitch != l->row_bytes;
	int err = 0;

	if (has_pitch || !piece->bytes || piece->host + piece->bytes != pixels->host) {
		err = send_piece(l, slot, piece);
		piece->host = pixels->host;
	}
	if (err || !has_pitch) {
		piece->bytes += l->module_bytes;
		return err;
	}
	err = l->platform->write(l->in, &slot->raw, piece->at, pixels->host, l->row_bytes, l->rows,
				 pixels->pitch);
	piece->at += l->module_bytes;
	return err;
}

static int upload(struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	struct piece piece = {NULL, 0, 0};
	int err = 0;

	for (uint32_t f = 0; f < slot->batch->frames; f++)
		for (uint32_t m = 0; m < l->modules && !err; m++)
			err = upload_module(l, slot, &slot->batch->frame[f]->view[m].pixels,
					    &piece);
	return err ? err : send_piece(l, slot, &piece);
}

int sl_batch_slot_run(struct sl_batch_slots *l, unsigned slot, struct sl_device_queue *queue,
		      const struct sl_batch *batch)
{
	struct sl_batch_slot *at = &l->slot[slot];
	struct sl_gpu_batch on_device = {
		.queue = queue,
		.batch = batch,
		.frames = batch ? batch->frames : l->chain->batch_frames,
		.slot = slot,
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

int sl_batch_slot_again(struct sl_batch_slots *l, unsigned slot)
{
	return sl_batch_slot_run(l, slot, l->work[slot % l->works], l->slot[slot].batch);
}

int sl_batch_slot_begin(struct sl_batch_slots *l, unsigned index, struct sl_batch *batch)
{
	struct sl_batch_slot *slot = &l->slot[index];
	const struct sl_platform *p = l->platform;
	int err;

	for (unsigned s = 0; s < l->chain->stages; s++)
		if (l->gpu[s] && l->chain->stage[s].ops->gpu->prepare)
			l->chain->stage[s].ops->gpu->prepare(l->gpu[s], batch);
	slot->batch = batch;
	slot->state = SL_BATCH_SLOT_JUDGING;
	slot->since_ns = sl_clock_ns();
	err = sl_batch_slot_describe(l, index, batch);
	if (!err)
		err = upload(l, slot);
	if (!err)
		err = sl_device_trigger(l, index);
	if (err || l->trigger == SL_BATCH_SLOTS_LOOP)
		return err; /* which brings them itself */
	if (!err)
		err = p->wait(slot->out, slot->worked);
	if (!err)
		err = p->read(slot->out, slot->down.host, &slot->verdict, 0,
			      sl_device_verdicts_bytes(l));
	if (!err)
		err = p->read(slot->out, (char *)slot->down.host + sl_device_verdicts_bytes(l),
			      &slot->rows, 0, sl_device_rows_bytes(l));
	if (!err)
		err = p->mark(slot->out, slot->judged);
	return err ? err : p->flush(slot->out);
}

int sl_batch_slot_reached(struct sl_batch_slots *l, unsigned index)
{
	const struct sl_batch_slot *slot = &l->slot[index];

	return l->trigger == SL_BATCH_SLOTS_LOOP ? sl_device_loop_reached(l, index, slot->since_ns)
						 : l->platform->reached(slot->judged);
}

static void take_verdicts(const struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	const struct sl_kernel_verdict *verdict = slot->down.host;
	const uint32_t *rows =
		(const void *)((char *)slot->down.host + sl_device_verdicts_bytes(l));

	for (uint32_t f = 0; f < slot->batch->frames; f++) {
		struct sl_frame *frame = slot->batch->frame[f];

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
static int fetch(struct sl_batch_slots *l, struct sl_batch_slot *slot, unsigned i, uint32_t f)
{
	struct sl_array *result = &slot->batch->frame[f]->result[i];
	uint64_t all = sl_shape_bytes(&l->shape[i]), bytes = all;

	if (l->shape[i].ragged) {
		if (result->rows > l->shape[i].dim[0])
			return -EPROTO; /* a kernel that wrote nonsense */
		bytes = all / l->shape[i].dim[0] * result->rows;
	}
	return bytes ? l->platform->read(slot->out, result->host, &slot->result[i], f * all, bytes)
		     : 0;
}

int sl_batch_slot_judged(struct sl_batch_slots *l, unsigned index)
{
	struct sl_batch_slot *slot = &l->slot[index];
	int err = 0;

	take_verdicts(l, slot);
	for (uint32_t f = 0; f < slot->batch->frames; f++) {
		struct sl_frame *frame = slot->batch->frame[f];

		if (!sl_device_returns(l, frame)) {
			for (unsigned i = 0; i < l->results; i++)
				frame->result[i].rows = l->made[i] ? 0 : frame->result[i].rows;
			continue;
		}
		for (unsigned i = 0; i < l->results && !err; i++)
			if (sl_device_returns_result(l, frame, i))
				err = fetch(l, slot, i, f);
	}
	if (!err)
		err = l->platform->mark(slot->out, slot->back);
	if (!err)
		err = l->platform->flush(slot->out);
	slot->state = SL_BATCH_SLOT_RETURNING;
	slot->since_ns = sl_clock_ns();
	return err ? err : sl_device_trigger_again(l, index);
}
