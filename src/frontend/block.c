/* block.c - a block's pixels where they lie, and its record. */
#include "frontend/block.h"

#include <stddef.h>

static uint32_t pixels_crc(const struct sl_from *source, uint32_t left, sl_roce_crc32 *crc32c)
{
	struct sl_from_cursor cursor;
	uint32_t crc = 0;

	sl_from_seek(source, 0, &cursor);
	while (left) {
		struct sl_part part = sl_from_next(&cursor, left);

		crc = crc32c(crc, part.data, part.bytes);
		left -= part.bytes;
	}
	return crc;
}

void sl_block_make(struct sl_block *block, const struct sl_transfer *transfer,
		   const struct sl_plan *plan, uint64_t sequence,
		   const struct sl_frame_stamp *stamp, const void *const *frame, const void **line,
		   sl_roce_crc32 *crc32c)
{
	struct sl_record *r = &block->record;

	sl_transfer_source(transfer, frame, line, r, &block->source);
	*r = (struct sl_record){
		.sequence = sequence,
		.frame = stamp->number,
		.timestamp = stamp->timestamp,
		.emit_ns = stamp->emit_ns,
		.bytes = (uint32_t)sl_transfer_pixel_bytes(transfer),
		.items = stamp->items * transfer->stack,
		.packets = plan->packets,
		.module = plan->module,
		.flags = stamp->flags,
		.first_psn = sl_plan_psn(plan, sequence, 0),
		.version = SL_RECORD_VERSION,
		.cell = stamp->cell,
	};
	if (!(transfer->part & SL_PART_RECORD))
		return;
	if (plan->crc) {
		r->flags |= SL_RECORD_CRC;
		r->crc32c = pixels_crc(&block->source, r->bytes, crc32c);
	}
	r->self_crc = crc32c(0, r, offsetof(struct sl_record, self_crc));
}
