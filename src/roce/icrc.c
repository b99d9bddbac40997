/* icrc.c - the ICRC: network headers as they would be with their changing fields set to ones, then
 * BTH, extensions, payload. */
#include "roce/icrc.h"

#include <string.h>

enum {
	MARK_BYTES = 8, /* of ones, where InfiniBand has its local route header */
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	IPV4_ID_AT = 4, /* in the IPv4 header */
	PROTOCOL_UDP = 17,
	BTH_MASKED_BYTE = 4, /* FECN, BECN, reserved */
};

static uint8_t *put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put_ipv4(const struct sl_roce_path *path, size_t udp_length, uint8_t *p)
{
	*p++ = 0x45;
	*p++ = 0xff; /* type of service: masked */
	p = put16(p, IPV4_BYTES + udp_length);
	p = put16(p, path->ip_id);
	p = put16(p, path->dont_fragment ? 0x4000 : 0);
	*p++ = 0xff; /* time to live: masked */
	*p++ = PROTOCOL_UDP;
	p = put16(p, 0xffff); /* header checksum: masked */
	memcpy(p, path->source + 12, 4);
	memcpy(p + 4, path->dest + 12, 4);
	return p + 8;
}

static uint8_t *put_ipv6(const struct sl_roce_path *path, size_t udp_length, uint8_t *p)
{
	memset(p, 0xff, 4); /* traffic class and flow label: masked */
	p[0] = 0x6f;
	p = put16(p + 4, udp_length);
	*p++ = PROTOCOL_UDP;
	*p++ = 0xff; /* hop limit: masked */
	memcpy(p, path->source, 16);
	memcpy(p + 16, path->dest, 16);
	return p + 32;
}

static uint8_t *put_udp(const struct sl_roce_path *path, size_t udp_length, uint8_t *p)
{
	p = put16(p, path->source_port);
	p = put16(p, path->dest_port);
	p = put16(p, udp_length);
	return put16(p, 0xffff); /* checksum: masked */
}

uint32_t sl_roce_icrc(const struct sl_roce_path *path, const void *headers, size_t header_bytes,
		      const struct sl_roce_piece *pieces, size_t count, unsigned pad,
		      sl_roce_crc32 *crc32)
{
	uint8_t pseudo[MARK_BYTES + IPV6_BYTES + UDP_BYTES + SL_ROCE_HEADERS_MAX], *p = pseudo;
	size_t copied = header_bytes < SL_ROCE_HEADERS_MAX ? header_bytes : SL_ROCE_HEADERS_MAX;
	size_t udp_length = UDP_BYTES + header_bytes + (pad & 3) + SL_ROCE_ICRC_BYTES;
	uint32_t crc;

	if (!crc32)
		crc32 = sl_roce_crc32_portable;
	for (size_t i = 0; i < count; i++)
		udp_length += pieces[i].bytes;

	memset(p, 0xff, MARK_BYTES);
	p += MARK_BYTES;
	p = sl_roce_path_is_ipv4(path) ? put_ipv4(path, udp_length, p)
				       : put_ipv6(path, udp_length, p);
	p = put_udp(path, udp_length, p);
	memcpy(p, headers, copied);
	p[BTH_MASKED_BYTE] = 0xff;
	crc = crc32(0, pseudo, (size_t)(p - pseudo) + copied);

	if (header_bytes > copied)
		crc = crc32(crc, (const uint8_t *)headers + copied, header_bytes - copied);
	for (size_t i = 0; i < count; i++) {
		if (pieces[i].bytes)
			crc = crc32(crc, pieces[i].data, pieces[i].bytes);
	}
	if (pad & 3)
		crc = crc32(crc, (const uint8_t[3]){0, 0, 0}, pad & 3);
	return crc;
}

void sl_roce_icrc_put(uint32_t icrc, void *wire)
{
	uint8_t *p = wire;

	p[0] = (uint8_t)icrc;
	p[1] = (uint8_t)(icrc >> 8);
	p[2] = (uint8_t)(icrc >> 16);
	p[3] = (uint8_t)(icrc >> 24);
}

uint32_t sl_roce_icrc_get(const void *wire)
{
	const uint8_t *p = wire;

	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

size_t sl_roce_seal(const struct sl_roce_path *path, const void *headers, size_t header_bytes,
		    const struct sl_roce_piece *pieces, size_t count, sl_roce_crc32 *crc32,
		    void *trailer)
{
	size_t bytes = 0;
	unsigned pad;

	for (size_t i = 0; i < count; i++)
		bytes += pieces[i].bytes;
	pad = (unsigned)(-bytes & 3);
	memset(trailer, 0, pad);
	sl_roce_icrc_put(sl_roce_icrc(path, headers, header_bytes, pieces, count, pad, crc32),
			 (uint8_t *)trailer + pad);
	return pad + SL_ROCE_ICRC_BYTES;
}

/* Computed XOR received: 0 for a good packet. */
static uint32_t difference(const struct sl_roce_path *path, const uint8_t *udp_payload,
			   size_t bytes, sl_roce_crc32 *crc32)
{
	size_t body = bytes - SL_ROCE_ICRC_BYTES;
	struct sl_roce_piece rest = {udp_payload + SL_ROCE_BTH_BYTES, body - SL_ROCE_BTH_BYTES};

	return sl_roce_icrc(path, udp_payload, SL_ROCE_BTH_BYTES, &rest, 1, 0, crc32) ^
	       sl_roce_icrc_get(udp_payload + body);
}

bool sl_roce_icrc_check(const struct sl_roce_path *path, const void *udp_payload, size_t bytes,
			sl_roce_crc32 *crc32)
{
	if (bytes < SL_ROCE_BTH_BYTES + SL_ROCE_ICRC_BYTES)
		return false;
	return difference(path, udp_payload, bytes, crc32) == 0;
}

bool sl_roce_icrc_check_any_id(const struct sl_roce_path *path, const void *udp_payload,
			       size_t bytes, sl_roce_crc32 *crc32, uint16_t *ip_id)
{
	struct sl_roce_path zero = *path;

	if (bytes < SL_ROCE_BTH_BYTES + SL_ROCE_ICRC_BYTES)
		return false;
	if (!sl_roce_path_is_ipv4(path)) {
		if (difference(path, udp_payload, bytes, crc32))
			return false;
		*ip_id = 0;
		return true;
	}
	zero.ip_id = 0;
	return sl_roce_icrc_recover_id(difference(&zero, udp_payload, bytes, crc32), bytes, ip_id);
}

/* a * b modulo the CRC polynomial; in this bit order the highest bit is the constant term. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		product ^= b & -(a >> 31);
		b = b >> 1 ^ (UINT32_C(0xedb88320) & -(b & 1));
	}
	return product;
}

/* The CRC is linear: two packets that differ in the id alone have checksums that differ by the id,
 * fed into an empty register and followed by as many zero bytes as the packet had after it. Wind
 * the difference back over those bytes and over the two of the id itself: what is left is the
 * register into which the id was fed, so its low 16 bits are the id and the others must be 0. */
bool sl_roce_icrc_recover_id(uint32_t difference, size_t udp_bytes, uint16_t *ip_id)
{
	/* x^(-8 * 2^k): one step back over 2^k zero bytes */
	static const uint32_t back[16] = {
		0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
		0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
		0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5,
	};
	size_t bytes = IPV4_BYTES - IPV4_ID_AT + UDP_BYTES + udp_bytes - SL_ROCE_ICRC_BYTES;

	if (bytes >> 16) /* more than a UDP datagram can hold */
		return false;
	for (size_t k = 0; k < 16; k++) {
		if (bytes >> k & 1)
			difference = multiply(back[k], difference);
	}
	if (difference >> 16)
		return false;
	*ip_id = (uint16_t)((difference & 0xff) << 8 | difference >> 8);
	return true;
}
