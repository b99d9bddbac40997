/* requester.c - the packets of one message, in order. */
#include "roce/requester.h"
#include "roce/psn.h"

#include <string.h>

uint32_t sl_roce_packets(uint32_t bytes, uint32_t pmtu)
{
	return bytes ? (bytes - 1) / pmtu + 1 : 1;
}

int sl_roce_requester_begin(struct sl_roce_requester *requester,
			    const struct sl_roce_message *message)
{
	if (message->transport != SL_ROCE_UC)
		return SL_ROCE_EINVAL;
	if (message->kind != SL_ROCE_KIND_WRITE && message->kind != SL_ROCE_KIND_SEND)
		return SL_ROCE_EINVAL;
	if (!sl_roce_pmtu_valid(message->pmtu) || message->bytes > SL_ROCE_MESSAGE_MAX)
		return SL_ROCE_EINVAL;
	if (message->qpn > SL_ROCE_QPN_MASK || message->psn > SL_ROCE_PSN_MASK)
		return SL_ROCE_EINVAL;
	requester->message = *message;
	requester->offset = 0;
	requester->psn = message->psn;
	requester->done = false;
	return SL_ROCE_OK;
}

/* Offsets from the FIRST of a SEND or WRITE to its other operations are the same for both. */
static uint8_t next_opcode(const struct sl_roce_message *message, bool first, bool last)
{
	uint8_t begin = message->kind == SL_ROCE_KIND_WRITE ? SL_ROCE_WRITE_FIRST
							    : SL_ROCE_SEND_FIRST;
	uint8_t step = SL_ROCE_SEND_MIDDLE;

	if (first && last)
		step = message->immediate ? SL_ROCE_SEND_ONLY_IMM : SL_ROCE_SEND_ONLY;
	else if (first)
		step = SL_ROCE_SEND_FIRST;
	else if (last)
		step = message->immediate ? SL_ROCE_SEND_LAST_IMM : SL_ROCE_SEND_LAST;
	return SL_ROCE_OPCODE(message->transport, begin + step);
}

static void fill_packet(const struct sl_roce_message *message, uint32_t offset,
			struct sl_roce_packet *packet)
{
	uint32_t skipped = message->kind == SL_ROCE_KIND_READ ? offset : 0;

	packet->mig = message->mig;
	packet->pkey = message->pkey;
	packet->qpn = message->qpn;
	packet->reth.va = message->va + skipped;
	packet->reth.rkey = message->rkey;
	packet->reth.length = message->bytes - skipped;
	packet->imm = message->imm;
}

void sl_roce_fragment_at(const struct sl_roce_message *message, uint32_t offset, uint32_t psn,
			 bool ackreq, void *headers, struct sl_roce_fragment *fragment)
{
	bool read = message->kind == SL_ROCE_KIND_READ;
	uint32_t left = read ? 0 : message->bytes - offset;
	bool first = offset == 0, last = left <= message->pmtu;
	uint32_t bytes = last ? left : message->pmtu;
	struct sl_roce_packet packet;

	memset(&packet, 0, sizeof(packet));
	fill_packet(message, offset, &packet);
	packet.opcode = read ? SL_ROCE_OPCODE(message->transport, SL_ROCE_READ_REQUEST)
			     : next_opcode(message, first, last);
	packet.psn = psn;
	packet.ackreq = ackreq;
	packet.pad = (uint8_t)(-bytes & 3);
	packet.se = last && message->solicited;

	fragment->opcode = packet.opcode;
	fragment->pad = packet.pad;
	fragment->last = last;
	fragment->header_bytes = (uint16_t)sl_roce_encode_headers(&packet, headers);
	fragment->psn = psn;
	fragment->offset = offset;
	fragment->bytes = bytes;
}

bool sl_roce_requester_next(struct sl_roce_requester *requester, void *headers,
			    struct sl_roce_fragment *fragment)
{
	if (requester->done)
		return false;
	sl_roce_fragment_at(&requester->message, requester->offset, requester->psn, false, headers,
			    fragment);
	requester->offset += fragment->bytes;
	requester->psn = sl_roce_psn_add(requester->psn, 1);
	requester->done = fragment->last;
	return true;
}
