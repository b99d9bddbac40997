/* roce_frame.h - for tests: hexadecimal text to bytes, captured packets to path and UDP payload. */
#ifndef TESTS_LIB_ROCE_FRAME_H
#define TESTS_LIB_ROCE_FRAME_H

#include "roce/roce.h"

#include <stdlib.h>
#include <string.h>

/* Blanks are skipped. Aborts on anything else that is not hexadecimal, and when out is full. */
static inline size_t hex_bytes(const char *text, uint8_t *out, size_t room)
{
	static const char digits[] = "0123456789abcdef";
	size_t nibbles = 0;

	for (; *text; text++) {
		const char *digit = strchr(digits, *text);

		if (*text == ' ')
			continue;
		if (!digit || nibbles / 2 >= room)
			abort();
		if (nibbles % 2)
			out[nibbles / 2] = (uint8_t)(out[nibbles / 2] << 4 | (digit - digits));
		else
			out[nibbles / 2] = (uint8_t)(digit - digits);
		nibbles++;
	}
	return nibbles / 2;
}

static inline uint16_t frame_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Take an IPv4 or IPv6 packet with UDP inside apart. Its UDP payload, or NULL when it is not one.
 */
static inline const uint8_t *frame_split_l3(const uint8_t *l3, size_t bytes,
					    struct sl_roce_path *path, size_t *udp_bytes)
{
	const uint8_t *udp;

	memset(path, 0, sizeof(*path));
	if (bytes >= 28 && l3[0] == 0x45 && l3[9] == 17) {
		path->source[10] = path->source[11] = path->dest[10] = path->dest[11] = 0xff;
		memcpy(path->source + 12, l3 + 12, 4);
		memcpy(path->dest + 12, l3 + 16, 4);
		path->ip_id = frame_get16(l3 + 4);
		path->dont_fragment = l3[6] & 0x40;
		udp = l3 + 20;
	} else if (bytes >= 48 && l3[0] >> 4 == 6 && l3[6] == 17) {
		memcpy(path->source, l3 + 8, 16);
		memcpy(path->dest, l3 + 24, 16);
		udp = l3 + 40;
	} else {
		return NULL;
	}
	path->source_port = frame_get16(udp);
	path->dest_port = frame_get16(udp + 2);
	if (frame_get16(udp + 4) < 8 || (size_t)(udp - l3) + frame_get16(udp + 4) > bytes)
		return NULL;
	*udp_bytes = frame_get16(udp + 4) - 8u;
	return udp + 8;
}

#endif
