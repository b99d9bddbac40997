/* shuffle.c - bitshuffle in plain C, 8 bytes at a time, for any element size. */
#include <string.h>

#include "codec/shuffle.h"

enum { GROUP = SL_SHUFFLE_GROUP };

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

static void shuffle(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out)
{
	uint64_t row = elements / GROUP;

	for (uint32_t b = 0; b < element; b++)
		for (uint64_t i = 0; i < row; i++) {
			const uint8_t *from = in + i * GROUP * element + b;
			uint8_t *to = out + b * GROUP * row + i;
			uint64_t bits = 0;

			for (unsigned k = 0; k < GROUP; k++)
				bits |= (uint64_t)from[k * element] << (8 * k);
			bits = transpose(bits);
			for (unsigned k = 0; k < GROUP; k++)
				to[k * row] = (uint8_t)(bits >> (8 * k));
		}
}

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

const struct sl_shuffle *sl_shuffle_choose(enum sl_vectors vectors)
{
	static const struct sl_shuffle baseline = {.shuffle = shuffle, .unshuffle = unshuffle};

	(void)vectors;
	return &baseline;
}
