/* wire.c - packets to and from bytes. The order of extension headers is that of the bits of enum
 * sl_roce_header; which ones an opcode has is in the opcode table. */
#include "roce/icrc.h"
#include "roce/opcode.h"
#include "roce/roce.h"

#include <string.h>

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put24(uint8_t *p, uint32_t v)
{
	*p = (uint8_t)(v >> 16);
	return put16(p + 1, v);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static void parse_bth(const uint8_t *p, struct sl_roce_packet *packet)
{
	packet->opcode = p[0];
	packet->se = p[1] & 0x80;
	packet->mig = p[1] & 0x40;
	packet->pad = p[1] >> 4 & 3;
	packet->pkey = (uint16_t)get16(p + 2);
	packet->byte4 = p[4];
	packet->qpn = get24(p + 5);
	packet->ackreq = p[8] & 0x80;
	packet->reserved7 = p[8] & 0x7f;
	packet->psn = get24(p + 9);
}

static void parse_extensions(const uint8_t *p, struct sl_roce_packet *packet)
{
	if (packet->has & SL_ROCE_HAS_DETH) {
		packet->deth.qkey = get32(p);
		packet->deth.source_qpn = get24(p + 5);
		p += 8;
	}
	if (packet->has & SL_ROCE_HAS_FETH) {
		packet->feth = get32(p);
		p += 4;
	}
	if (packet->has & SL_ROCE_HAS_RETH) {
		packet->reth.va = get64(p);
		packet->reth.rkey = get32(p + 8);
		packet->reth.length = get32(p + 12);
		p += 16;
	}
	if (packet->has & SL_ROCE_HAS_ATOMIC) {
		packet->atomic.va = get64(p);
		packet->atomic.rkey = get32(p + 8);
		packet->atomic.swap_or_add = get64(p + 12);
		packet->atomic.compare = get64(p + 20);
		p += 28;
	}
	if (packet->has & SL_ROCE_HAS_AETH) {
		packet->aeth.syndrome = p[0];
		packet->aeth.msn = get24(p + 1);
		p += 4;
	}
	if (packet->has & SL_ROCE_HAS_ATOMIC_ACK) {
		packet->atomic_ack = get64(p);
		p += 8;
	}
	if (packet->has & SL_ROCE_HAS_IMM) {
		packet->imm = get32(p);
		p += 4;
	}
	if (packet->has & SL_ROCE_HAS_IETH)
		packet->ieth = get32(p);
}

/* What can be said about lengths without knowing the path MTU. All headers are multiples of four,
 * so the padding is right when the whole is one too. */
static int check_lengths(const struct sl_roce_opcode *opcode, unsigned pad, size_t udp_bytes,
			 uint32_t *payload_bytes)
{
	size_t fixed = (size_t)opcode->header_bytes + SL_ROCE_ICRC_BYTES, padded;

	if (udp_bytes < fixed)
		return SL_ROCE_ESHORT;
	padded = udp_bytes - fixed;
	if (padded % 4 || padded < pad)
		return SL_ROCE_EPAD;
	if (padded > SL_ROCE_PMTU_MAX)
		return SL_ROCE_ELENGTH;
	if (pad && opcode->payload == SL_ROCE_PAYLOAD_PMTU)
		return SL_ROCE_EPAD;
	if (!sl_roce_payload_fits(opcode, (uint32_t)(padded - pad), 0))
		return SL_ROCE_ELENGTH;
	*payload_bytes = (uint32_t)(padded - pad);
	return SL_ROCE_OK;
}

int sl_roce_parse_headers(const void *head, size_t head_bytes, size_t udp_bytes,
			  struct sl_roce_packet *packet)
{
	const uint8_t *p = head;
	const struct sl_roce_opcode *opcode;
	uint32_t payload_bytes;
	int rc;

	if (head_bytes < SL_ROCE_BTH_BYTES)
		return SL_ROCE_ESHORT;
	if (p[1] & 0x0f)
		return SL_ROCE_EVERSION;
	opcode = sl_roce_opcode(p[0]);
	if (!opcode)
		return SL_ROCE_EOPCODE;
	if (head_bytes < opcode->header_bytes)
		return SL_ROCE_ESHORT;
	rc = check_lengths(opcode, p[1] >> 4 & 3, udp_bytes, &payload_bytes);
	if (rc)
		return rc;

	memset(packet, 0, sizeof(*packet));
	parse_bth(p, packet);
	packet->has = opcode->headers;
	packet->header_bytes = opcode->header_bytes;
	packet->payload_bytes = payload_bytes;
	parse_extensions(p + SL_ROCE_BTH_BYTES, packet);
	return SL_ROCE_OK;
}

int sl_roce_parse(const void *udp_payload, size_t bytes, struct sl_roce_packet *packet)
{
	const uint8_t *p = udp_payload;
	int rc = sl_roce_parse_headers(udp_payload, bytes, bytes, packet);

	if (rc)
		return rc;
	packet->payload = p + packet->header_bytes;
	packet->icrc = sl_roce_icrc_get(p + bytes - SL_ROCE_ICRC_BYTES);
	return SL_ROCE_OK;
}

static uint8_t *encode_extensions(const struct sl_roce_packet *packet, uint16_t has, uint8_t *p)
{
	if (has & SL_ROCE_HAS_DETH)
		p = put32(put32(p, packet->deth.qkey), packet->deth.source_qpn & SL_ROCE_QPN_MASK);
	if (has & SL_ROCE_HAS_FETH)
		p = put32(p, packet->feth);
	if (has & SL_ROCE_HAS_RETH) {
		p = put64(p, packet->reth.va);
		p = put32(put32(p, packet->reth.rkey), packet->reth.length);
	}
	if (has & SL_ROCE_HAS_ATOMIC) {
		p = put32(put64(p, packet->atomic.va), packet->atomic.rkey);
		p = put64(put64(p, packet->atomic.swap_or_add), packet->atomic.compare);
	}
	if (has & SL_ROCE_HAS_AETH) {
		*p = packet->aeth.syndrome;
		p = put24(p + 1, packet->aeth.msn);
	}
	if (has & SL_ROCE_HAS_ATOMIC_ACK)
		p = put64(p, packet->atomic_ack);
	if (has & SL_ROCE_HAS_IMM)
		p = put32(p, packet->imm);
	if (has & SL_ROCE_HAS_IETH)
		p = put32(p, packet->ieth);
	if (has & SL_ROCE_HAS_CNP) {
		memset(p, 0, 16);
		p += 16;
	}
	return p;
}

int sl_roce_encode_headers(const struct sl_roce_packet *packet, void *out)
{
	const struct sl_roce_opcode *opcode = sl_roce_opcode(packet->opcode);
	uint8_t *p = out;

	if (!opcode)
		return SL_ROCE_EOPCODE;
	*p++ = packet->opcode;
	*p++ = (uint8_t)((packet->se ? 0x80 : 0) | (packet->mig ? 0x40 : 0) |
			 (packet->pad & 3) << 4);
	p = put16(p, packet->pkey);
	*p++ = packet->byte4;
	p = put24(p, packet->qpn);
	*p++ = (uint8_t)((packet->ackreq ? 0x80 : 0) | (packet->reserved7 & 0x7f));
	p = put24(p, packet->psn);
	p = encode_extensions(packet, opcode->headers, p);
	return (int)(p - (uint8_t *)out);
}

bool sl_roce_path_is_ipv4(const struct sl_roce_path *path)
{
	/* The first 12 bytes of ::ffff:a.b.c.d, compared without memcmp (not ours to use). */
	for (int i = 0; i < 10; i++) {
		if (path->source[i] || path->dest[i])
			return false;
	}
	return (path->source[10] & path->source[11] & path->dest[10] & path->dest[11]) == 0xff;
}

bool sl_roce_pmtu_valid(uint32_t pmtu)
{
	return pmtu >= 256 && pmtu <= SL_ROCE_PMTU_MAX && !(pmtu & (pmtu - 1));
}
