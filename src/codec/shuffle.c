/* shuffle.c - bitshuffle in plain C, 8 bytes at a time, for any element size. */
#include <endian.h>
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

void sl_shuffle_rest(const uint8_t *in, uint64_t elements, uint32_t element, uint64_t first,
		     uint64_t used, uint8_t *out)
{
	uint64_t row = elements / GROUP;

	for (uint32_t b = 0; b < element; b++)
		for (uint64_t i = used >> (8 * b) & 0xff ? first / GROUP : row; i < row; i++) {
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

void sl_unshuffle_rest(const uint8_t *in, uint64_t elements, uint32_t element, uint64_t first,
		       uint8_t *out)
{
	uint64_t row = elements / GROUP;

	for (uint32_t b = 0; b < element; b++)
		for (uint64_t i = first / GROUP; i < row; i++) {
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

uint64_t sl_shuffle_used(const uint8_t *in, uint64_t bytes, uint32_t element, uint64_t any)
{
	for (uint64_t i = 0, word; i < bytes; i += sizeof(word)) {
		memcpy(&word, in + i, sizeof(word));
		any |= le64toh(word);
	}
	for (uint32_t bits = 32; bits >= 8 * element; bits /= 2)
		any |= any >> bits;
	return element < 8 ? any & ((UINT64_C(1) << 8 * element) - 1) : any;
}

void sl_shuffle_clear(uint64_t elements, uint32_t element, uint64_t used, uint8_t *out)
{
	uint64_t row = elements / GROUP;

	for (unsigned r = 0, n; r < 8 * element; r += n) {
		uint64_t rest = used >> r;

		n = rest & 1 ? 1 : rest ? (unsigned)__builtin_ctzll(rest) : 8 * element - r;
		if (!(rest & 1))
			memset(out + r * row, 0, n * row);
	}
}

static uint64_t shuffle(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out)
{
	uint64_t used = sl_shuffle_used(in, elements * element, element, 0);

	sl_shuffle_clear(elements, element, used, out);
	sl_shuffle_rest(in, elements, element, 0, used, out);
	return used;
}

static void unshuffle(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out)
{
	sl_unshuffle_rest(in, elements, element, 0, out);
}

const struct sl_shuffle *sl_shuffle_choose(enum sl_vectors vectors)
{
	static const struct sl_shuffle baseline = {.shuffle = shuffle, .unshuffle = unshuffle};

#ifdef __x86_64__
	enum sl_vectors best = sl_vectors_choose(vectors);

	if (best == SL_VECTORS_AVX512)
		return &sl_shuffle_avx512;
	if (best == SL_VECTORS_AVX2)
		return &sl_shuffle_avx2;
#endif
	(void)vectors;
	return &baseline;
}
