/* plan.c - where a byte of a module-frame goes: the one function that both ends share. */
#include <sluice/record.h>

#include "core/plan.h"

uint64_t sl_plan_pixel_bytes(const struct sl_plan *plan)
{
	if (plan->lines)
		return (uint64_t)plan->lines * plan->line_bytes;
	return plan->bare ? plan->block_bytes : plan->block_bytes - SL_RECORD_BYTES;
}

static uint32_t packets_of(uint64_t bytes, uint32_t pmtu)
{
	return (uint32_t)((bytes + pmtu - 1) / pmtu);
}

uint32_t sl_plan_packets(const struct sl_plan *plan)
{
	uint64_t record = plan->block_bytes - sl_plan_pixel_bytes(plan);

	if (!sl_plan_cuts(plan))
		return packets_of(plan->block_bytes, plan->pmtu);
	return plan->lines * packets_of(plan->line_bytes, plan->pmtu) +
	       packets_of(record, plan->pmtu);
}

uint32_t sl_plan_packet_of(const struct sl_plan *plan, uint64_t offset)
{
	uint64_t pixels = sl_plan_pixel_bytes(plan);
	uint32_t each;

	if (!sl_plan_cuts(plan))
		return (uint32_t)(offset / plan->pmtu);
	each = packets_of(plan->line_bytes, plan->pmtu);
	if (offset < pixels)
		return (uint32_t)(offset / plan->line_bytes) * each +
		       (uint32_t)(offset % plan->line_bytes) / plan->pmtu;
	return plan->lines * each + (uint32_t)(offset - pixels) / plan->pmtu;
}

static uint64_t place_of(const struct sl_plan *plan, uint64_t offset)
{
	uint64_t pixels;

	if (!plan->line_pitch)
		return offset;
	pixels = sl_plan_pixel_bytes(plan);
	if (offset < pixels)
		return offset / plan->line_bytes * plan->line_pitch + offset % plan->line_bytes;
	return plan->record_at + (offset - pixels);
}

/* Packets that end with lines; the record is one more line, of its own length. */
static void line_packet(const struct sl_plan *plan, uint32_t index, struct sl_plan_packet *packet)
{
	uint32_t each = packets_of(plan->line_bytes, plan->pmtu), line = index / each;
	uint64_t length = plan->line_bytes, start, at;

	if (line >= plan->lines) {
		line = plan->lines;
		length = plan->block_bytes - sl_plan_pixel_bytes(plan);
	}
	at = (uint64_t)(index - line * each) * plan->pmtu;
	start = (uint64_t)line * plan->line_bytes;
	packet->offset = start + at;
	packet->place = (!plan->line_pitch     ? start
			 : line == plan->lines ? plan->record_at
					       : line * plan->line_pitch) +
			at;
	packet->bytes = length - at < plan->pmtu ? (uint32_t)(length - at) : plan->pmtu;
	packet->first = plan->message == SL_MESSAGE_PACKET || at == 0;
}

void sl_plan_packet(const struct sl_plan *plan, uint32_t index, struct sl_plan_packet *packet)
{
	uint64_t offset = (uint64_t)index * plan->pmtu, rest = plan->block_bytes - offset;

	if (sl_plan_cuts(plan)) {
		line_packet(plan, index, packet);
		return;
	}
	packet->offset = packet->place = offset;
	packet->bytes = rest < plan->pmtu ? (uint32_t)rest : plan->pmtu;
	packet->first = plan->message == SL_MESSAGE_PACKET || index == 0;
}

uint64_t sl_plan_message_bytes(const struct sl_plan *plan)
{
	uint64_t record = plan->block_bytes - sl_plan_pixel_bytes(plan);

	if (plan->message == SL_MESSAGE_MODULE)
		return plan->block_bytes;
	if (plan->message == SL_MESSAGE_LINE)
		return plan->line_bytes > record ? plan->line_bytes : record;
	return plan->pmtu < plan->block_bytes ? plan->pmtu : plan->block_bytes;
}

uint64_t sl_plan_event_bytes(const struct sl_plan *plan)
{
	uint64_t record = plan->block_bytes - sl_plan_pixel_bytes(plan);
	struct sl_plan_packet last;

	if (plan->message == SL_MESSAGE_MODULE)
		return plan->block_bytes;
	if (plan->message == SL_MESSAGE_LINE)
		return record ? record : plan->line_bytes;
	sl_plan_packet(plan, plan->packets - 1, &last);
	return last.bytes;
}

bool sl_plan_lines_fit(const struct sl_plan *plan)
{
	uint64_t pixels = (uint64_t)plan->lines * plan->line_bytes, record, last;

	if (!plan->pmtu || !plan->block_bytes || plan->block_bytes >= UINT32_C(1) << 31)
		return false;
	if (plan->lines) {
		record = plan->block_bytes - pixels;
		if (!plan->line_bytes || pixels > plan->block_bytes ||
		    (record && record != SL_RECORD_BYTES))
			return false;
	} else if (sl_plan_cuts(plan) || (!plan->bare && plan->block_bytes < SL_RECORD_BYTES)) {
		return false;
	}
	/* A message is one piece of memory, and so is what a receive is posted for. */
	if (sl_plan_cuts(plan) &&
	    (plan->message == SL_MESSAGE_MODULE || plan->operation == SL_OPERATION_SEND))
		return false;
	if (plan->line_pitch) {
		if (plan->line_pitch < plan->line_bytes || plan->line_pitch >> 32)
			return false;
		last = (plan->lines - 1) * plan->line_pitch + plan->line_bytes;
		if (plan->record_at < last)
			return false;
	}
	return plan->packets == sl_plan_packets(plan);
}

uint64_t sl_plan_address(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	return plan->base + sequence % plan->slots * plan->stride + plan->block_at +
	       place_of(plan, offset);
}

uint32_t sl_plan_psn(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	uint64_t packet = (sequence - plan->first_sequence) * plan->packets +
			  sl_plan_packet_of(plan, offset);

	return (uint32_t)((plan->first_psn + packet) & 0xffffff);
}

uint64_t sl_plan_position(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	return (sequence - plan->first_sequence) * plan->block_bytes + offset;
}
