/* icrc.h - the checksum at the end of every RoCEv2 packet.
 *
 * Model:     CRC-32 over eight 0xff bytes, the IP and UDP headers, BTH, extensions, payload and
 *            padding, with those fields set to ones that switches and routers may change. On the
 *            wire it is stored least significant byte first.
 * Cost:      one CRC call over 60..100 bytes of headers and one per piece of payload; the payload
 *            is not copied. A faster CRC than the portable one is passed in. */
#ifndef SL_ROCE_ICRC_H
#define SL_ROCE_ICRC_H

#include "roce/roce.h"

/* IEEE 802.3 CRC-32 as zlib's crc32(): start with 0, chain with the previous result. */
typedef uint32_t sl_roce_crc32(uint32_t crc, const void *data, size_t bytes);

/* The one inside: tables, no special instructions. Where a sl_roce_crc32 * is NULL, this is it. */
uint32_t sl_roce_crc32_portable(uint32_t crc, const void *data, size_t bytes);

struct sl_roce_piece {
	const void *data;
	size_t bytes;
};

/* The ICRC of a packet: headers is BTH and extensions as on the wire (at least SL_ROCE_BTH_BYTES),
 * the payload is gathered from `count` pieces, `pad` zero bytes follow it. */
uint32_t sl_roce_icrc(const struct sl_roce_path *path, const void *headers, size_t header_bytes,
		      const struct sl_roce_piece *pieces, size_t count, unsigned pad,
		      sl_roce_crc32 *crc32);

void sl_roce_icrc_put(uint32_t icrc, void *wire);
uint32_t sl_roce_icrc_get(const void *wire);

/* Sending: what follows the payload, its padding (the payload rounded up to 4) and the ICRC, into
 * SL_ROCE_TRAILER_MAX bytes of trailer. Returns its length, 4..7. */
size_t sl_roce_seal(const struct sl_roce_path *path, const void *headers, size_t header_bytes,
		    const struct sl_roce_piece *pieces, size_t count, sl_roce_crc32 *crc32,
		    void *trailer);

/* Receiving: does the datagram carry the ICRC it should? false also for what is too short. */
bool sl_roce_icrc_check(const struct sl_roce_path *path, const void *udp_payload, size_t bytes,
			sl_roce_crc32 *crc32);

/* The same where the IPv4 identification is unknown, as it is behind a UDP socket: the CRC is
 * linear in it, so a good packet yields its id, and a bad one passes with a probability of 2^-16
 * only. path->ip_id is not read. Over IPv6 this is the full check and the id is 0. */
bool sl_roce_icrc_check_any_id(const struct sl_roce_path *path, const void *udp_payload,
			       size_t bytes, sl_roce_crc32 *crc32, uint16_t *ip_id);

/* Its second half, for scattered datagrams: difference is the ICRC computed with id 0 XOR the one
 * received, udp_bytes the length of the whole UDP payload, ICRC included. */
bool sl_roce_icrc_recover_id(uint32_t difference, size_t udp_bytes, uint16_t *ip_id);

#endif
