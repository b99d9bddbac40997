/* rc.c - codes of the reliable connection, and replies becoming packets. */
#include "roce/rc.h"
#include "roce/psn.h"

#include <string.h>

uint64_t sl_roce_rnr_ns(unsigned code)
{
	/* In units of 10 us. */
	static const uint32_t table[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return (uint64_t)table[code & 31] * 10000;
}

uint64_t sl_roce_timeout_ns(unsigned code)
{
	return code & 31 ? UINT64_C(4096) << (code & 31) : 0;
}

static uint8_t response_opcode(const struct sl_roce_reply *reply, bool last)
{
	bool first = reply->offset == 0;

	if (!reply->read)
		return SL_ROCE_ACKNOWLEDGE;
	if (first)
		return last ? SL_ROCE_READ_RESPONSE_ONLY : SL_ROCE_READ_RESPONSE_FIRST;
	return last ? SL_ROCE_READ_RESPONSE_LAST : SL_ROCE_READ_RESPONSE_MIDDLE;
}

bool sl_roce_reply_next(struct sl_roce_reply *reply, void *headers,
			struct sl_roce_fragment *fragment)
{
	uint32_t left = reply->bytes - reply->offset;
	bool last = left <= reply->pmtu;
	uint32_t bytes = last ? left : reply->pmtu;
	struct sl_roce_packet packet;

	if (!reply->pending)
		return false;
	memset(&packet, 0, sizeof(packet));
	packet.opcode = response_opcode(reply, last);
	packet.mig = reply->mig;
	packet.pad = (uint8_t)(-bytes & 3);
	packet.pkey = reply->pkey;
	packet.qpn = reply->qpn;
	packet.psn = reply->psn;
	packet.aeth.syndrome = reply->syndrome;
	packet.aeth.msn = reply->msn;

	fragment->opcode = packet.opcode;
	fragment->pad = packet.pad;
	fragment->last = last;
	fragment->header_bytes = (uint16_t)sl_roce_encode_headers(&packet, headers);
	fragment->psn = reply->psn;
	fragment->offset = reply->offset;
	fragment->bytes = bytes;

	reply->offset += bytes;
	reply->psn = sl_roce_psn_add(reply->psn, 1);
	reply->pending = !last;
	return true;
}

/* NAKs count: the first tells about the loss, and a later ACK does not. */
bool sl_roce_reply_merge(struct sl_roce_reply *waiting, const struct sl_roce_reply *later)
{
	if (!waiting->pending || !later->pending || waiting->read || later->read)
		return false;
	if ((waiting->syndrome & SL_ROCE_SYNDROME_TYPE) != SL_ROCE_ACK)
		return false;
	if (sl_roce_psn_compare(later->psn, waiting->psn) < 0 || later->qpn != waiting->qpn)
		return false;
	*waiting = *later;
	return true;
}
