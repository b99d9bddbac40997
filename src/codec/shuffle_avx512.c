/* shuffle_avx512.c - bitshuffle with AVX-512: 64 elements at a time.
 *
 * A tile of elements is split into planes, one for each byte of an element, and only planes in use.
 * A row is the mask of the bytes of a plane that have that bit set; unshuffling adds a bit to the
 * bytes that a mask names. */
#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#include "codec/shuffle.h"

enum { STEP = 64, TILE = 1024, MANY = 4 /* rows of a plane: then all at once */ };

SL_TARGET_AVX512 SL_FORCE_INLINE __m512i at(const uint8_t *from, unsigned i)
{
	return _mm512_loadu_si512(from + 64 * i);
}

/* 4 x 4 lanes of 16 bytes: lane j of vector i becomes lane i of vector j. */
SL_TARGET_AVX512 SL_FORCE_INLINE void transpose_lanes(__m512i v[4])
{
	__m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
	__m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
	__m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xee);
	__m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xee);

	v[0] = _mm512_shuffle_i32x4(a, b, 0x88);
	v[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
	v[2] = _mm512_shuffle_i32x4(c, d, 0x88);
	v[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

SL_TARGET_AVX512 SL_FORCE_INLINE void from_planes(__m512i *plane, uint32_t element, uint8_t *to)
{
	const __m512i spread = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);

	if (element == 2) {
		__m512i a = _mm512_permutexvar_epi64(spread, plane[0]);
		__m512i b = _mm512_permutexvar_epi64(spread, plane[1]);

		plane[0] = _mm512_unpacklo_epi8(a, b);
		plane[1] = _mm512_unpackhi_epi8(a, b);
	} else if (element == 4) {
		__m512i a = _mm512_unpacklo_epi8(plane[0], plane[1]);
		__m512i b = _mm512_unpackhi_epi8(plane[0], plane[1]);
		__m512i c = _mm512_unpacklo_epi8(plane[2], plane[3]);
		__m512i d = _mm512_unpackhi_epi8(plane[2], plane[3]);

		plane[0] = _mm512_unpacklo_epi16(a, c);
		plane[1] = _mm512_unpackhi_epi16(a, c);
		plane[2] = _mm512_unpacklo_epi16(b, d);
		plane[3] = _mm512_unpackhi_epi16(b, d);
		transpose_lanes(plane);
	}
	for (uint32_t i = 0; i < element; i++)
		_mm512_storeu_si512(to + 64 * i, plane[i]);
}

SL_TARGET_AVX512 static uint64_t used_bits(const uint8_t *in, uint64_t elements, uint32_t element)
{
	uint64_t bytes = elements * element, whole = bytes / 256 * 256;
	__m512i any[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
			  _mm512_setzero_si512()};

	for (uint64_t i = 0; i < whole; i += 256)
		for (unsigned k = 0; k < 4; k++)
			any[k] = _mm512_or_si512(any[k], at(in + i, k));
	any[0] = _mm512_or_si512(_mm512_or_si512(any[0], any[1]), _mm512_or_si512(any[2], any[3]));
	return sl_shuffle_used(in + whole, bytes - whole, element,
			       (uint64_t)_mm512_reduce_or_epi64(any[0]));
}

/* A byte of 64 elements, which `shift` makes their lowest. */
SL_TARGET_AVX512 SL_FORCE_INLINE __m512i split(const uint8_t *from, uint32_t element, __m128i shift)
{
	const __m512i byte = _mm512_set1_epi16(0xff), word = _mm512_set1_epi32(0xff);
	const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	const __m512i order =
		_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	__m512i v[4];

	if (element == 2) {
		for (unsigned i = 0; i < 2; i++)
			v[i] = _mm512_and_si512(_mm512_srl_epi16(at(from, i), shift), byte);
		return _mm512_permutexvar_epi64(even, _mm512_packus_epi16(v[0], v[1]));
	}
	for (unsigned i = 0; i < 4; i++)
		v[i] = _mm512_and_si512(_mm512_srl_epi32(at(from, i), shift), word);
	return _mm512_permutexvar_epi32(order,
					_mm512_packus_epi16(_mm512_packus_epi32(v[0], v[1]),
							    _mm512_packus_epi32(v[2], v[3])));
}

/* The rows in use of the plane of a tile. */
SL_TARGET_AVX512 SL_FORCE_INLINE void rows_of(const uint8_t *plane, uint64_t elements,
					      uint32_t used, uint8_t *to, uint64_t row)
{
	if (__builtin_popcount(used) > MANY)
		for (uint64_t i = 0; i < elements; i += STEP)
			for (unsigned k = 0; k < 8; k++) {
				uint64_t mask = _mm512_test_epi8_mask(
					at(plane + i, 0), _mm512_set1_epi8((char)(1 << k)));

				memcpy(to + k * row + i / 8, &mask, sizeof(mask));
			}
	else
		for (; used; used &= used - 1) {
			unsigned k = (unsigned)__builtin_ctz(used);
			const __m512i bit = _mm512_set1_epi8((char)(1 << k));

			for (uint64_t i = 0; i < elements; i += STEP) {
				uint64_t mask = _mm512_test_epi8_mask(at(plane + i, 0), bit);

				memcpy(to + k * row + i / 8, &mask, sizeof(mask));
			}
		}
}

SL_TARGET_AVX512 SL_FORCE_INLINE __m512i plane_of(const uint8_t *from, uint64_t row)
{
	__m512i plane = _mm512_setzero_si512();

	for (unsigned k = 0; k < 8; k++) {
		uint64_t mask;

		memcpy(&mask, from + k * row, sizeof(mask));
		plane = _mm512_mask_add_epi8(plane, mask, plane, _mm512_set1_epi8((char)(1 << k)));
	}
	return plane;
}

SL_TARGET_AVX512 SL_FORCE_INLINE uint64_t shuffle_by(const uint8_t *in, uint64_t elements,
						     uint32_t element, uint8_t *out)
{
	uint64_t row = elements / SL_SHUFFLE_GROUP, whole = elements / STEP * STEP;
	uint64_t used = used_bits(in, elements, element);
	_Alignas(64) uint8_t plane[TILE];

	sl_shuffle_clear(elements, element, used, out);
	for (uint64_t i = 0; i < whole; i += TILE) {
		uint64_t now = whole - i < TILE ? whole - i : TILE;

		for (unsigned b = 0; b < element; b++) {
			const __m128i shift = _mm_cvtsi32_si128(8 * (int)b);
			uint32_t bits = used >> (8 * b) & 0xff;
			uint8_t *to = out + 8 * b * row + i / 8;

			for (uint64_t j = 0; bits && element > 1 && j < now; j += STEP)
				_mm512_store_si512(plane + j,
						   split(in + (i + j) * element, element, shift));
			if (bits)
				rows_of(element > 1 ? plane : in + i, now, bits, to, row);
		}
	}
	sl_shuffle_rest(in, elements, element, whole, used, out);
	return used;
}

SL_TARGET_AVX512 SL_FORCE_INLINE void unshuffle_by(const uint8_t *in, uint64_t elements,
						   uint32_t element, uint8_t *out)
{
	uint64_t row = elements / SL_SHUFFLE_GROUP, whole = elements / STEP * STEP;

	for (uint64_t i = 0; i < whole; i += STEP) {
		__m512i plane[4];

		for (uint32_t b = 0; b < element; b++)
			plane[b] = plane_of(in + 8 * b * row + i / 8, row);
		from_planes(plane, element, out + i * element);
	}
	sl_unshuffle_rest(in, elements, element, whole, out);
}

SL_TARGET_AVX512 static uint64_t shuffle(const uint8_t *in, uint64_t elements, uint32_t element,
					 uint8_t *out)
{
	switch (element) {
	case 1:
		return shuffle_by(in, elements, 1, out);
	case 2:
		return shuffle_by(in, elements, 2, out);
	case 4:
		return shuffle_by(in, elements, 4, out);
	default:
		return sl_shuffle_choose(SL_VECTORS_BASELINE)->shuffle(in, elements, element, out);
	}
}

SL_TARGET_AVX512 static void unshuffle(const uint8_t *in, uint64_t elements, uint32_t element,
				       uint8_t *out)
{
	switch (element) {
	case 1:
		unshuffle_by(in, elements, 1, out);
		break;
	case 2:
		unshuffle_by(in, elements, 2, out);
		break;
	case 4:
		unshuffle_by(in, elements, 4, out);
		break;
	default:
		sl_unshuffle_rest(in, elements, element, 0, out);
	}
}

const struct sl_shuffle sl_shuffle_avx512 = {.shuffle = shuffle, .unshuffle = unshuffle};

#endif
