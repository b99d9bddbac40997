/* transfer.c - which frames, which bytes: arithmetic that both the emulator and firmware run. */
#include "frontend/transfer.h"

#include <stddef.h>

#include <sluice/record.h>

enum { SEQUENCE_MAX = INT32_MAX }; /* that a plan may begin with */

struct sl_rectangle sl_rectangle_of(uint32_t row, uint32_t column, uint32_t rows, uint32_t columns,
				    uint32_t frame_columns, uint32_t pixel_bytes)
{
	uint64_t pitch = (uint64_t)frame_columns * pixel_bytes;

	return (struct sl_rectangle){
		.first = row * pitch + (uint64_t)column * pixel_bytes,
		.pitch = pitch,
		.lines = rows,
		.line_bytes = columns * pixel_bytes,
	};
}

uint64_t sl_rectangle_end(const struct sl_rectangle *rectangle)
{
	uint64_t pitch = rectangle->pitch ? rectangle->pitch : rectangle->line_bytes;

	return rectangle->first + (rectangle->lines - 1) * pitch + rectangle->line_bytes;
}

bool sl_transfer_valid(const struct sl_transfer *transfer)
{
	const struct sl_rectangle *r = &transfer->rectangle;
	uint32_t part = transfer->part;

	if (!transfer->every || transfer->phase >= transfer->every || !transfer->stack)
		return false;
	if (!part || part & ~(uint32_t)(SL_PART_PIXELS | SL_PART_RECORD))
		return false;
	if (!(part & SL_PART_PIXELS))
		return true;
	if (!r->lines || !r->line_bytes || (r->pitch && r->pitch < r->line_bytes))
		return false;
	/* Step by step, so that nothing overflows. */
	return r->line_bytes < UINT32_C(1) << 31 &&
	       (uint64_t)r->lines * r->line_bytes < UINT32_C(1) << 31 &&
	       (uint64_t)r->lines * r->line_bytes * transfer->stack <
		       (UINT32_C(1) << 31) - SL_RECORD_BYTES;
}

bool sl_transfer_takes(const struct sl_transfer *transfer, uint64_t frame, uint64_t *sequence,
		       uint32_t *index)
{
	uint64_t kept = frame / transfer->every;

	if (frame - kept * transfer->every != transfer->phase)
		return false;
	*sequence = kept / transfer->stack;
	*index = (uint32_t)(kept - *sequence * transfer->stack);
	return true;
}

uint64_t sl_transfer_frame(const struct sl_transfer *transfer, uint64_t sequence, uint32_t index)
{
	return (sequence * transfer->stack + index) * transfer->every + transfer->phase;
}

uint64_t sl_transfer_sequences(const struct sl_transfer *transfer, uint64_t frames)
{
	uint64_t kept = frames / transfer->every +
			(frames % transfer->every > transfer->phase ? 1 : 0);

	return kept / transfer->stack;
}

uint64_t sl_transfer_frames(const struct sl_transfer *transfer, uint64_t sequences)
{
	return sequences ? sl_transfer_frame(transfer, sequences - 1, transfer->stack - 1) + 1 : 0;
}

uint64_t sl_transfer_pixel_bytes(const struct sl_transfer *transfer)
{
	const struct sl_rectangle *r = &transfer->rectangle;

	return transfer->part & SL_PART_PIXELS
		       ? (uint64_t)r->lines * r->line_bytes * transfer->stack
		       : 0;
}

uint64_t sl_transfer_block_bytes(const struct sl_transfer *transfer)
{
	return sl_transfer_pixel_bytes(transfer) +
	       (transfer->part & SL_PART_RECORD ? SL_RECORD_BYTES : 0);
}

void sl_transfer_describe(const struct sl_transfer *transfer, struct sl_offer *offer)
{
	bool pixels = transfer->part & SL_PART_PIXELS;

	offer->block_bytes = sl_transfer_block_bytes(transfer);
	offer->bare = !(transfer->part & SL_PART_RECORD);
	offer->lines = pixels ? transfer->rectangle.lines * transfer->stack : 0;
	offer->line_bytes = pixels ? transfer->rectangle.line_bytes : 0;
}

bool sl_transfer_fits(const struct sl_transfer *transfer, const struct sl_plan *plan)
{
	struct sl_offer offer;

	sl_transfer_describe(transfer, &offer);
	/* Receivers that know nothing of lines leave them out. */
	return plan->block_bytes == offer.block_bytes && plan->bare == offer.bare &&
	       (!plan->lines ||
		(plan->lines == offer.lines && plan->line_bytes == offer.line_bytes)) &&
	       sl_plan_lines_fit(plan);
}

bool sl_transfer_agrees(const struct sl_transfer *transfer, const struct sl_plan *plan)
{
	return plan->version == SL_PLAN_VERSION && plan->pmtu >= 256 && plan->pmtu <= 4096 &&
	       plan->slots && sl_transfer_fits(transfer, plan) &&
	       (plan->service == SL_SERVICE_UC || plan->service == SL_SERVICE_RC) &&
	       (plan->message == SL_MESSAGE_PACKET || plan->message == SL_MESSAGE_MODULE ||
		plan->message == SL_MESSAGE_LINE) &&
	       (plan->operation == SL_OPERATION_WRITE ||
		(plan->operation == SL_OPERATION_SEND && plan->message == SL_MESSAGE_MODULE)) &&
	       plan->first_sequence < SEQUENCE_MAX;
}

void sl_transfer_source(const struct sl_transfer *transfer, const void *const *frame,
			const void **line, const void *record, struct sl_from *source)
{
	const struct sl_rectangle *r = &transfer->rectangle;
	bool pixels = transfer->part & SL_PART_PIXELS;

	*source = (struct sl_from){
		.record = transfer->part & SL_PART_RECORD ? record : NULL,
	};
	if (!pixels)
		return;
	for (uint32_t i = 0; i < transfer->stack; i++)
		line[i] = (const uint8_t *)frame[i] + r->first;
	source->frame = line;
	source->frames = transfer->stack;
	source->pitch = r->pitch;
	source->lines = r->lines;
	source->line_bytes = r->line_bytes;
}
