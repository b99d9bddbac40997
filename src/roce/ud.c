/* ud.c - datagrams. */
#include "roce/ud.h"
#include "roce/message.h"
#include "roce/psn.h"

#include <string.h>

int sl_roce_ud_encode(const struct sl_roce_ud_message *message, void *headers,
		      struct sl_roce_fragment *fragment)
{
	struct sl_roce_packet packet;

	if (!sl_roce_pmtu_valid(message->pmtu) || message->bytes > message->pmtu)
		return SL_ROCE_EINVAL;
	if ((message->qpn | message->source_qpn) > SL_ROCE_QPN_MASK ||
	    message->psn > SL_ROCE_PSN_MASK)
		return SL_ROCE_EINVAL;
	memset(&packet, 0, sizeof(packet));
	packet.opcode = SL_ROCE_OPCODE(SL_ROCE_UD, message->immediate ? SL_ROCE_SEND_ONLY_IMM
								      : SL_ROCE_SEND_ONLY);
	packet.pad = (uint8_t)(-message->bytes & 3);
	packet.se = message->solicited;
	packet.mig = message->mig;
	packet.pkey = message->pkey;
	packet.qpn = message->qpn;
	packet.psn = message->psn;
	packet.deth.qkey = message->qkey;
	packet.deth.source_qpn = message->source_qpn;
	packet.imm = message->imm;

	fragment->opcode = packet.opcode;
	fragment->pad = packet.pad;
	fragment->last = true;
	fragment->header_bytes = (uint16_t)sl_roce_encode_headers(&packet, headers);
	fragment->psn = message->psn;
	fragment->offset = 0;
	fragment->bytes = message->bytes;
	return SL_ROCE_OK;
}

enum sl_roce_drop sl_roce_ud_receive(struct sl_roce_ud_receiver *receiver,
				     const struct sl_roce_path *path,
				     const struct sl_roce_packet *packet,
				     struct sl_roce_ud_arrival *arrival)
{
	const struct sl_roce_owner owner = {SL_ROCE_UD, receiver->pkey, receiver->qpn,
					    path ? path->source : NULL, receiver->local};
	enum sl_roce_drop drop = sl_roce_check_owner(&owner, path, packet);
	uint32_t bytes;

	if (drop)
		return drop;
	if (packet->deth.qkey != receiver->qkey)
		return SL_ROCE_DROP_QKEY;
	if (packet->payload_bytes > receiver->pmtu)
		return SL_ROCE_DROP_LENGTH;
	bytes = SL_ROCE_UD_HEADER_BYTES + packet->payload_bytes;
	if (receiver->receives == 0 || bytes > receiver->receive_bytes)
		return SL_ROCE_DROP_RECEIVE;
	if (receiver->receives != SL_ROCE_RECEIVES_UNLIMITED)
		receiver->receives--;
	*arrival = (struct sl_roce_ud_arrival){
		.offset = SL_ROCE_UD_HEADER_BYTES,
		.bytes = packet->payload_bytes,
		.receive_bytes = bytes,
		.source_qpn = packet->deth.source_qpn,
		.immediate = packet->has & SL_ROCE_HAS_IMM,
		.solicited = packet->se,
		.imm = packet->imm,
	};
	return SL_ROCE_ACCEPTED;
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Of the 20 bytes of an IPv4 header whose checksum is 0 so far: RFC 791. */
static uint32_t checksum(const uint8_t *p)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

void sl_roce_ud_header(const struct sl_roce_path *path, uint32_t udp_bytes,
		       uint8_t out[SL_ROCE_UD_HEADER_BYTES])
{
	const uint8_t udp = 17;
	uint32_t length = udp_bytes + 8;

	memset(out, 0, SL_ROCE_UD_HEADER_BYTES);
	if (!sl_roce_path_is_ipv4(path)) {
		out[0] = (uint8_t)(0x60 | path->tos >> 4);
		out[1] = (uint8_t)(path->tos << 4);
		put16(out + 4, length);
		out[6] = udp;
		out[7] = path->ttl;
		memcpy(out + 8, path->source, SL_ROCE_GID_BYTES);
		memcpy(out + 24, path->dest, SL_ROCE_GID_BYTES);
		return;
	}
	out += 20;
	out[0] = 0x45;
	out[1] = path->tos;
	put16(out + 2, length + 20);
	put16(out + 4, path->ip_id);
	out[6] = path->dont_fragment ? 0x40 : 0;
	out[8] = path->ttl;
	out[9] = udp;
	memcpy(out + 12, path->source + 12, 4);
	memcpy(out + 16, path->dest + 12, 4);
	put16(out + 10, checksum(out));
}
