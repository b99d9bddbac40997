/* bitshuffle.c - blocks of bits back into elements. */
#include <errno.h>
#include <lz4.h>
#include <string.h>

#include "hdf5/bitshuffle.h"

enum { GROUP = 8, TARGET_BYTES = 8192, LEAST_ELEMENTS = 128, ELEMENT_MOST = 64 };

static uint32_t big32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* What bitshuffle takes when it may choose. */
static uint64_t usual_block(uint32_t element)
{
	uint64_t elements = TARGET_BYTES / element / GROUP * GROUP;

	return elements < LEAST_ELEMENTS ? LEAST_ELEMENTS : elements;
}

int sl_packed_look(const uint8_t *in, size_t in_bytes, uint32_t element, struct sl_packed *packed)
{
	struct sl_packed p;

	if (in_bytes < SL_PACKED_HEADER || !element || element > ELEMENT_MOST)
		return -EBADMSG;
	p.bytes = (uint64_t)big32(in) << 32 | big32(in + 4);
	p.block = big32(in + 8);
	if (!p.block)
		p.block = usual_block(element) * element;
	/* More than LZ4 can have packed is a lie, and memory is taken on its word. */
	if (p.bytes % element || p.block % element || p.block > INT32_MAX ||
	    p.bytes / SL_PACKED_RATIO > in_bytes)
		return -EBADMSG;
	if (p.block > p.bytes)
		p.block = p.bytes;
	*packed = p;
	return 0;
}

/* 8 x 8 bits: bit j of byte k becomes bit k of byte j. Warren, Hacker's Delight, 7-3. */
static uint64_t transpose(uint64_t x)
{
	uint64_t t;

	t = (x ^ (x >> 7)) & UINT64_C(0x00aa00aa00aa00aa);
	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & UINT64_C(0x0000cccc0000cccc);
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & UINT64_C(0x00000000f0f0f0f0);
	return x ^ t ^ (t << 28);
}

/* A block of `elements`, a multiple of 8: row b * 8 + k has bit k of byte b of each. */
static void unshuffle(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out)
{
	uint64_t row = elements / GROUP;

	for (uint32_t b = 0; b < element; b++)
		for (uint64_t i = 0; i < row; i++) {
			const uint8_t *from = in + b * GROUP * row + i;
			uint8_t *to = out + i * GROUP * element + b;
			uint64_t bits = 0;

			for (unsigned k = 0; k < GROUP; k++)
				bits |= (uint64_t)from[k * row] << (8 * k);
			bits = transpose(bits);
			for (unsigned k = 0; k < GROUP; k++)
				to[k * element] = (uint8_t)(bits >> (8 * k));
		}
}

/* The packed block at *at, which must become exactly `bytes`. */
static int unpack(const uint8_t **at, const uint8_t *end, uint64_t bytes, uint8_t *out)
{
	uint32_t packed;

	if (end - *at < 4)
		return -EBADMSG;
	packed = big32(*at);
	*at += 4;
	if (packed > (uint64_t)(end - *at) || packed > INT32_MAX ||
	    LZ4_decompress_safe((const char *)*at, (char *)out, (int)packed, (int)bytes) !=
		    (int)bytes)
		return -EBADMSG;
	*at += packed;
	return 0;
}

int sl_bitshuffle_lz4(const uint8_t *in, size_t in_bytes, uint32_t element, uint8_t *out,
		      uint8_t *scratch)
{
	const uint8_t *at = in + SL_PACKED_HEADER, *end = in + in_bytes;
	struct sl_packed packed;
	uint64_t left, block;
	int err = sl_packed_look(in, in_bytes, element, &packed);

	if (err)
		return err;
	left = packed.bytes / element;
	block = packed.block / element;
	if (block % GROUP && block != left) /* the whole chunk may be less than one block */
		return -EBADMSG;
	while (left >= GROUP) {
		uint64_t elements = (left < block ? left : block) / GROUP * GROUP;

		err = unpack(&at, end, elements * element, scratch);
		if (err)
			return err;
		unshuffle(scratch, elements, element, out);
		out += elements * element;
		left -= elements;
	}
	if ((uint64_t)(end - at) < left * element)
		return -EBADMSG;
	memcpy(out, at, left * element);
	return 0;
}

int sl_lz4_blocks(const uint8_t *in, size_t in_bytes, uint8_t *out)
{
	const uint8_t *at = in + SL_PACKED_HEADER, *end = in + in_bytes;
	struct sl_packed packed;
	int err = sl_packed_look(in, in_bytes, 1, &packed);

	for (uint64_t left = err ? 0 : packed.bytes; left && !err;) {
		uint64_t bytes = left < packed.block ? left : packed.block;

		/* A block that does not get smaller is stored as it is. */
		if (end - at >= 4 && big32(at) == bytes) {
			at += 4;
			if ((uint64_t)(end - at) < bytes)
				return -EBADMSG;
			memcpy(out, at, bytes);
			at += bytes;
		} else {
			err = unpack(&at, end, bytes, out);
		}
		out += bytes;
		left -= bytes;
	}
	return err;
}

int sl_bitshuffle_plain(const uint8_t *in, size_t bytes, uint32_t element, uint64_t block_elements,
			uint8_t *out)
{
	uint64_t left, block;

	if (!element || element > ELEMENT_MOST || bytes % element || block_elements % GROUP)
		return -EBADMSG;
	left = bytes / element;
	block = block_elements ? block_elements : usual_block(element);
	while (left >= GROUP) {
		uint64_t elements = (left < block ? left : block) / GROUP * GROUP;

		unshuffle(in, elements, element, out);
		in += elements * element;
		out += elements * element;
		left -= elements;
	}
	memcpy(out, in, left * element);
	return 0;
}

int sl_lzf(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
	const uint8_t *end = in + in_bytes;
	size_t done = 0;

	while (in < end) {
		size_t head = *in++, length = head + 1, back;

		if (head < 32) {
			if (length > (size_t)(end - in) || length > out_bytes - done)
				return -EBADMSG;
			memcpy(out + done, in, length);
			in += length;
			done += length;
			continue;
		}
		length = (head >> 5) + 2;
		if (length == 9 && in < end)
			length += *in++;
		if (in == end)
			return -EBADMSG;
		back = ((head & 31) << 8 | *in++) + 1;
		if (back > done || length > out_bytes - done)
			return -EBADMSG;
		for (; length--; done++) /* they may overlap: what was just written is repeated */
			out[done] = out[done - back];
	}
	return done == out_bytes ? 0 : -EBADMSG;
}
