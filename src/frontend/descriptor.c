/* descriptor.c - where each piece of a block goes. */
#include "frontend/descriptor.h"

#include <stddef.h>

uint32_t sl_descriptor_count(const struct sl_plan *plan)
{
	if (plan->message == SL_MESSAGE_MODULE)
		return 1;
	if (plan->message == SL_MESSAGE_LINE)
		return plan->lines + (sl_plan_pixel_bytes(plan) < plan->block_bytes);
	return plan->packets;
}

void sl_descriptors_begin(struct sl_descriptors *descriptors, const struct sl_plan *plan,
			  uint64_t sequence, const struct sl_from *source)
{
	*descriptors = (struct sl_descriptors){
		.plan = plan,
		.sequence = sequence,
		.block = sl_plan_address(plan, sequence, 0),
		.position = sl_plan_position(plan, sequence, 0),
		.psn = sl_plan_psn(plan, sequence, 0),
		.step = plan->message == SL_MESSAGE_PACKET ? plan->pmtu : UINT32_MAX,
		.cuts = sl_plan_cuts(plan),
		.line_packets = 1,
	};
	descriptors->left = descriptors->cuts ? plan->line_bytes : (uint32_t)plan->block_bytes;
	if (plan->message == SL_MESSAGE_LINE)
		descriptors->line_packets = (plan->line_bytes + plan->pmtu - 1) / plan->pmtu;
	sl_from_seek(source, 0, &descriptors->cursor);
}

/* Bytes of the source from here on, in the write itself when two pieces are enough. */
static void take(struct sl_descriptors *d, struct sl_write *write)
{
	struct sl_from_cursor start = d->cursor;
	uint32_t rest = write->bytes;

	write->from = NULL;
	write->at = d->offset;
	write->part[0] = sl_from_next(&d->cursor, rest);
	rest -= write->part[0].bytes;
	write->part[1] = rest ? sl_from_next(&d->cursor, rest) : (struct sl_part){NULL, 0};
	rest -= write->part[1].bytes;
	if (!rest)
		return;
	write->from = start.from;
	while (rest) {
		struct sl_part part = sl_from_next(&d->cursor, rest);

		if (!part.bytes)
			return;
		rest -= part.bytes;
	}
}

/* Past a message of so many bytes: to the next line where lines end messages, at last to the
 * record. */
static void advance(struct sl_descriptors *d, uint32_t bytes)
{
	const struct sl_plan *plan = d->plan;

	d->offset += bytes;
	d->place += bytes;
	d->left -= bytes;
	d->psn = (d->psn + d->line_packets) & 0xffffff;
	if (d->left || !d->cuts)
		return;
	d->line++;
	if (d->line < plan->lines) {
		d->left = plan->line_bytes;
		if (plan->line_pitch)
			d->place = d->line * plan->line_pitch;
	} else {
		d->left = (uint32_t)plan->block_bytes - d->offset;
		if (plan->line_pitch)
			d->place = plan->record_at;
	}
}

bool sl_descriptors_next(struct sl_descriptors *descriptors, struct sl_write *write)
{
	struct sl_descriptors *d = descriptors;
	uint32_t bytes = d->left < d->step ? d->left : d->step;

	if (!bytes)
		return false;
	write->va = d->block + d->place;
	write->position = d->position + d->offset + bytes;
	write->sequence = d->sequence;
	write->rkey = d->plan->rkey;
	write->psn = d->psn;
	write->imm = (uint32_t)d->sequence;
	write->bytes = bytes;
	write->flags = (d->offset + bytes == d->plan->block_bytes ? SL_WRITE_IMM : 0) |
		       (d->plan->operation == SL_OPERATION_SEND ? SL_WRITE_SEND : 0);
	take(d, write);
	advance(d, bytes);
	return true;
}

void sl_descriptor_fill(const struct sl_plan *plan, uint64_t sequence, const struct sl_from *source,
			struct sl_write *write)
{
	struct sl_descriptors descriptors;

	sl_descriptors_begin(&descriptors, plan, sequence, source);
	while (sl_descriptors_next(&descriptors, write))
		write++;
}
