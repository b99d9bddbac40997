/* descriptor.c - where each piece of a module-frame goes. */
#include "frontend/descriptor.h"

uint32_t sl_descriptor_count(const struct sl_plan *plan)
{
	return plan->message == SL_MESSAGE_MODULE ? 1 : plan->packets;
}

/* Bytes offset..offset+bytes of the block: pixels first, then the record. */
static void parts(uint64_t pixel_bytes, const void *pixels, const struct sl_record *record,
		  uint64_t offset, uint32_t bytes, struct sl_part part[2])
{
	uint32_t from_pixels = 0;

	if (offset < pixel_bytes)
		from_pixels = pixel_bytes - offset < bytes ? (uint32_t)(pixel_bytes - offset)
							   : bytes;
	part[0] =
		(struct sl_part){(const uint8_t *)pixels + (from_pixels ? offset : 0), from_pixels};
	part[1] = (struct sl_part){(const uint8_t *)record +
					   (offset > pixel_bytes ? offset - pixel_bytes : 0),
				   bytes - from_pixels};
}

void sl_descriptor_fill(const struct sl_plan *plan, uint64_t sequence, const void *pixels,
			const struct sl_record *record, struct sl_write *write)
{
	uint32_t count = sl_descriptor_count(plan);
	uint64_t step = count == 1 ? plan->block_bytes : plan->pmtu;
	uint32_t send = plan->operation == SL_OPERATION_SEND ? SL_WRITE_SEND : 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = i * step, rest = plan->block_bytes - offset;
		uint32_t bytes = (uint32_t)(rest < step ? rest : step);

		write[i] = (struct sl_write){
			.va = sl_plan_address(plan, sequence, offset),
			.position = sl_plan_position(plan, sequence, offset + bytes),
			.sequence = sequence,
			.rkey = plan->rkey,
			.psn = sl_plan_psn(plan, sequence, offset),
			.imm = (uint32_t)sequence,
			.bytes = bytes,
			.flags = (i == count - 1 ? SL_WRITE_IMM : 0) | send,
		};
		parts(plan->block_bytes - SL_RECORD_BYTES, pixels, record, offset, bytes,
		      write[i].part);
	}
}
