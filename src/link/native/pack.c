/* pack.c - 4 and 12 bits of a pixel in packets, to and from bytes of the block. */
#include "link/native/pack.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words of eight bytes are taken as little-endian"
#endif

/* Bytes of a pair of pixels. */
static uint32_t pair_packed(const struct sl_native_shape *s)
{
	return s->packed == 4 ? 1 : 3;
}

static uint32_t pair_bytes(const struct sl_native_shape *s)
{
	return s->packed == 4 ? 2 : 4;
}

bool sl_native_next_span(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
			 struct sl_native_span *span)
{
	const struct sl_native_shape *s = shape;
	uint64_t from = (uint64_t)packet * s->payload + span->done;
	uint32_t byte = (uint32_t)(from % s->wire_line), left = s->payload - span->done;
	uint32_t packed = pair_packed(s), first = byte / packed, end;

	if (!left)
		return false;
	span->wire_bytes = s->wire_line - byte < left ? s->wire_line - byte : left;
	end = (byte + span->wire_bytes + packed - 1) / packed;
	span->at = sl_native_line_at(s, port, from / s->wire_line) + first * pair_bytes(s);
	span->bytes = (end - first) * pair_bytes(s);
	span->skip = byte % packed;
	span->done += span->wire_bytes;
	return true;
}

/* ---- 4 bits ---- */

static uint8_t swapped(uint8_t byte)
{
	return (uint8_t)(byte << 4 | byte >> 4);
}

static void unpack_4(const uint8_t *from, uint32_t bytes, bool high_first, uint8_t *to)
{
	uint32_t i = 0;

	for (; i + 4 <= bytes; i += 4) {
		uint32_t word;
		uint64_t x;

		memcpy(&word, from + i, sizeof(word));
		if (high_first)
			word = (word & 0x0f0f0f0f) << 4 | (word >> 4 & 0x0f0f0f0f);
		x = word;
		x = (x | x << 16) & 0x0000ffff0000ffff;
		x = (x | x << 8) & 0x00ff00ff00ff00ff;
		x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
		memcpy(to + 2 * (uint64_t)i, &x, sizeof(x));
	}
	for (; i < bytes; i++) {
		uint8_t byte = high_first ? swapped(from[i]) : from[i];

		to[2 * (uint64_t)i] = byte & 15;
		to[2 * (uint64_t)i + 1] = byte >> 4;
	}
}

static void pack_4(const uint8_t *pixels, uint32_t bytes, bool high_first, uint8_t *to)
{
	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t byte = (uint8_t)((pixels[2 * (uint64_t)i] & 15) |
					 pixels[2 * (uint64_t)i + 1] << 4);

		to[i] = high_first ? swapped(byte) : byte;
	}
}

/* ---- 12 bits ---- */

/* One packed byte of a pair, the other two of which may be in another packet. */
static void unpack_byte(uint32_t which, uint8_t byte, uint8_t pair[4])
{
	if (which == 0) {
		pair[0] = byte;
	} else if (which == 1) {
		pair[1] = byte & 15;
		pair[2] = (uint8_t)((pair[2] & 0xf0) | byte >> 4);
	} else {
		pair[2] = (uint8_t)((pair[2] & 15) | byte << 4);
		pair[3] = byte >> 4;
	}
}

static uint8_t pack_byte(uint32_t which, const uint8_t pair[4])
{
	if (which == 0)
		return pair[0];
	if (which == 1)
		return (uint8_t)((pair[1] & 15) | pair[2] << 4);
	return (uint8_t)(pair[2] >> 4 | pair[3] << 4);
}

static void unpack_12(const uint8_t *from, uint32_t skip, uint32_t bytes, uint8_t *to)
{
	uint32_t i = 0;

	for (; skip && skip < 3 && i < bytes; skip++)
		unpack_byte(skip, from[i++], to);
	if (i)
		to += 4;
	/* Two pairs at a time; eight bytes are read. */
	for (; i + 8 <= bytes; i += 6, to += 8) {
		uint64_t x;

		memcpy(&x, from + i, sizeof(x));
		x = (x & 0xffffff) | (x & 0xffffff000000) << 8;
		x = (x & 0x00000fff00000fff) | (x & 0x00fff00000fff000) << 4;
		memcpy(to, &x, sizeof(x));
	}
	for (uint32_t which = 0; i < bytes; i++) {
		unpack_byte(which, from[i], to);
		which = which == 2 ? 0 : which + 1;
		to += which ? 0 : 4;
	}
}

static void pack_12(const uint8_t *pixels, uint32_t skip, uint32_t bytes, uint8_t *to)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = pack_byte((skip + i) % 3, pixels + (skip + i) / 3 * 4);
}

void sl_native_pack(const struct sl_native_shape *shape, const uint8_t *pixels, uint32_t skip,
		    uint32_t bytes, uint8_t *to)
{
	if (shape->packed == 4)
		pack_4(pixels, bytes, shape->high_first, to);
	else
		pack_12(pixels, skip, bytes, to);
}

void sl_native_unpack(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
		      const uint8_t *payload, uint8_t *block)
{
	struct sl_native_span span = {0};

	while (sl_native_next_span(shape, port, packet, &span)) {
		if (shape->packed == 4)
			unpack_4(payload, span.wire_bytes, shape->high_first, block + span.at);
		else
			unpack_12(payload, span.skip, span.wire_bytes, block + span.at);
		payload += span.wire_bytes;
	}
}
