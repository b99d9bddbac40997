/* roce_capture.h - for tests: RoCEv2 packets as Ethernet frames in a capture file, over IPv4 or
 * IPv6, with all checksums as they should be. Ends the program when something cannot be written. */
#ifndef TESTS_LIB_ROCE_CAPTURE_H
#define TESTS_LIB_ROCE_CAPTURE_H

#include "roce/icrc.h"
#include "roce/requester.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 8192 };

static FILE *capture;
static bool ipv6;	/* what the next packets travel over */
static uint32_t frames; /* written so far */

static inline void require(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s\n", what);
		exit(1);
	}
}

/* In the byte order of this machine, version 2.4, Ethernet. */
static inline void capture_open(const char *name)
{
	const uint32_t magic = 0xa1b2c3d4, rest[4] = {0, 0, 65535, 1};
	const uint16_t version[2] = {2, 4};

	capture = fopen(name, "wb");
	require(capture && fwrite(&magic, 4, 1, capture) == 1 &&
			fwrite(version, 4, 1, capture) == 1 && fwrite(rest, 16, 1, capture) == 1,
		"cannot write the capture");
}

static inline void capture_close(void)
{
	require(!fclose(capture), "cannot write the capture");
}

static inline uint8_t *put(uint8_t *p, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		*p++ = (uint8_t)(value >> 8 * i);
	return p;
}

/* The Internet checksum, not yet complemented. */
static inline uint32_t sum(uint32_t start, const uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		start += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

static inline struct sl_roce_path path_of(bool back)
{
	static const uint8_t v4[2][16] = {{[10] = 0xff, 0xff, 192, 0, 2, 1},
					  {[10] = 0xff, 0xff, 192, 0, 2, 2}};
	static const uint8_t v6[2][16] = {{0x20, 1, 0xd, 0xb8, [15] = 1},
					  {0x20, 1, 0xd, 0xb8, [15] = 2}};
	struct sl_roce_path path = {.source_port = (uint16_t)(0xc000 + frames % 64),
				    .dest_port = SL_ROCE_UDP_PORT,
				    .ip_id = (uint16_t)(ipv6 ? 0 : frames * 77),
				    .dont_fragment = true,
				    .tos = (uint8_t)(frames % 3),
				    .ttl = 64};

	memcpy(path.source, ipv6 ? v6[back] : v4[back], 16);
	memcpy(path.dest, ipv6 ? v6[!back] : v4[!back], 16);
	return path;
}

static inline uint8_t *put_ip(uint8_t *p, const struct sl_roce_path *path, size_t udp_length)
{
	uint8_t *start = p;

	if (ipv6) {
		p = put(p, UINT64_C(6) << 28 | (uint32_t)path->tos << 20 | frames % 1000, 4);
		p = put(put(put(p, udp_length, 2), 17, 1), path->ttl, 1);
		memcpy(p, path->source, 16);
		memcpy(p + 16, path->dest, 16);
		return p + 32;
	}
	p = put(put(put(p, 0x45, 1), path->tos, 1), 20 + udp_length, 2);
	p = put(put(p, path->ip_id, 2), path->dont_fragment ? 0x4000 : 0, 2);
	p = put(put(put(p, path->ttl, 1), 17, 1), 0, 2);
	memcpy(p, path->source + 12, 4);
	memcpy(p + 4, path->dest + 12, 4);
	put(start + 10, ~sum(0, start, 20) & 0xffff, 2);
	return p + 8;
}

/* Devices send 0, sockets a real one; over IPv6 it must be there. */
static inline void put_udp_checksum(uint8_t *udp, const struct sl_roce_path *path,
				    size_t udp_length)
{
	uint32_t total =
		sum((uint32_t)(17 + udp_length), path->source + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);

	if (!ipv6 && frames % 2)
		return;
	total = sum(total, path->dest + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);
	total = ~sum(total, udp, udp_length) & 0xffff;
	put(udp + 6, total ? total : 0xffff, 2);
}

static inline void put_record(const uint8_t *frame, size_t bytes)
{
	const uint32_t header[4] = {1700000000, frames, (uint32_t)bytes, (uint32_t)bytes};

	require(fwrite(header, sizeof(header), 1, capture) == 1, "cannot write the capture");
	require(fwrite(frame, bytes, 1, capture) == 1, "cannot write the capture");
	frames++;
}

/* back: from the responder. */
static inline void emit(bool back, const uint8_t *headers, const struct sl_roce_fragment *fragment,
			const uint8_t *payload)
{
	uint8_t frame[FRAME_MAX], trailer[SL_ROCE_TRAILER_MAX], *p = frame, *udp;
	struct sl_roce_path path = path_of(back);
	struct sl_roce_piece piece = {payload, fragment->bytes};
	size_t trailer_bytes =
		sl_roce_seal(&path, headers, fragment->header_bytes, &piece, 1, NULL, trailer);
	size_t udp_length = 8 + fragment->header_bytes + fragment->bytes + trailer_bytes;

	p = put(put(p, UINT64_C(0x020000000001), 6), UINT64_C(0x020000000002), 6);
	p = put(p, ipv6 ? 0x86dd : 0x0800, 2);
	udp = put_ip(p, &path, udp_length);
	p = put(put(put(put(udp, path.source_port, 2), path.dest_port, 2), udp_length, 2), 0, 2);
	memcpy(p, headers, fragment->header_bytes);
	p += fragment->header_bytes;
	if (fragment->bytes)
		memcpy(p, payload, fragment->bytes);
	memcpy(p + fragment->bytes, trailer, trailer_bytes);
	put_udp_checksum(udp, &path, udp_length);
	put_record(frame, (size_t)(udp - frame) + udp_length);
}

#endif
