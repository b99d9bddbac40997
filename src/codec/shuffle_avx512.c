/* shuffle_avx512.c - bitshuffle with AVX-512: 64 elements at a time.
 *
 * The 64 elements become one vector for each of their bytes, a plane. A row of a plane is the mask of
 * its bytes that have that bit set; unshuffling adds a bit to the bytes that a mask names. */
#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#include "codec/shuffle.h"

enum { STEP = 64 };

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

SL_TARGET_AVX512 SL_FORCE_INLINE void to_planes(const uint8_t *from, uint32_t element,
						__m512i *plane)
{
	const __m512i byte = _mm512_set1_epi16(0xff);
	const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	const __m512i gather = _mm512_broadcast_i32x4(
		_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	const __m512i words =
		_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

	if (element == 1) {
		plane[0] = at(from, 0);
	} else if (element == 2) {
		__m512i a = at(from, 0), b = at(from, 1);

		plane[0] = _mm512_permutexvar_epi64(
			even,
			_mm512_packus_epi16(_mm512_and_si512(a, byte), _mm512_and_si512(b, byte)));
		plane[1] = _mm512_permutexvar_epi64(
			even,
			_mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)));
	} else {
		for (unsigned i = 0; i < 4; i++)
			plane[i] = _mm512_permutexvar_epi32(
				words, _mm512_shuffle_epi8(at(from, i), gather));
		transpose_lanes(plane);
	}
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

/* Bits that are set in any element. */
SL_TARGET_AVX512 static uint64_t used_bits(const uint8_t *in, uint64_t elements, uint32_t element)
{
	uint64_t bytes = elements * element, whole = bytes / 256 * 256;
	__m512i any[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
			  _mm512_setzero_si512()};
	uint8_t fold[64];

	for (uint64_t i = 0; i < whole; i += 256)
		for (unsigned k = 0; k < 4; k++)
			any[k] = _mm512_or_si512(any[k], at(in + i, k));
	_mm512_storeu_si512(fold, _mm512_or_si512(_mm512_or_si512(any[0], any[1]),
						  _mm512_or_si512(any[2], any[3])));
	return sl_shuffle_used(fold, 64 / element, element) |
	       sl_shuffle_used(in + whole, (bytes - whole) / element, element);
}

/* The rows in use of one plane of 64 elements. */
SL_TARGET_AVX512 SL_FORCE_INLINE void rows_of(__m512i plane, uint32_t used, uint8_t *to,
					      uint64_t row)
{
	for (unsigned k = 0; k < 8; k++)
		if (used >> k & 1) {
			uint64_t mask =
				_mm512_test_epi8_mask(plane, _mm512_set1_epi8((char)(1 << k)));

			memcpy(to + k * row, &mask, sizeof(mask));
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

	sl_shuffle_clear(elements, element, used, out);
	for (uint64_t i = 0; used && i < whole; i += STEP) {
		__m512i plane[4];

		to_planes(in + i * element, element, plane);
		for (uint32_t b = 0; b < element; b++)
			rows_of(plane[b], used >> (8 * b) & 0xff, out + 8 * b * row + i / 8, row);
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
