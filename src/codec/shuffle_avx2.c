/* shuffle_avx2.c - bitshuffle with AVX2: 32 elements at a time.
 *
 * The 32 elements become one vector for each of their bytes, a plane. A row of a plane is the mask of
 * its bytes that have that bit set, which is shifted to where movemask looks. */
#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#include "codec/shuffle.h"

enum { STEP = 32 };

SL_TARGET_AVX2 SL_FORCE_INLINE __m256i at(const uint8_t *from, unsigned i)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * i));
}

/* 4 x 4 words of 8 bytes: word j of vector i becomes word i of vector j. */
SL_TARGET_AVX2 SL_FORCE_INLINE void transpose_words(__m256i v[4])
{
	__m256i a = _mm256_unpacklo_epi64(v[0], v[1]), b = _mm256_unpackhi_epi64(v[0], v[1]);
	__m256i c = _mm256_unpacklo_epi64(v[2], v[3]), d = _mm256_unpackhi_epi64(v[2], v[3]);

	v[0] = _mm256_permute2x128_si256(a, c, 0x20);
	v[1] = _mm256_permute2x128_si256(b, d, 0x20);
	v[2] = _mm256_permute2x128_si256(a, c, 0x31);
	v[3] = _mm256_permute2x128_si256(b, d, 0x31);
}

SL_TARGET_AVX2 SL_FORCE_INLINE void to_planes(const uint8_t *from, uint32_t element, __m256i *plane)
{
	const __m256i byte = _mm256_set1_epi16(0xff);
	const __m256i gather = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	const __m256i words = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);

	if (element == 1) {
		plane[0] = at(from, 0);
	} else if (element == 2) {
		__m256i a = at(from, 0), b = at(from, 1);

		plane[0] = _mm256_permute4x64_epi64(
			_mm256_packus_epi16(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte)),
			0xd8);
		plane[1] = _mm256_permute4x64_epi64(
			_mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8)),
			0xd8);
	} else {
		for (unsigned i = 0; i < 4; i++)
			plane[i] = _mm256_permutevar8x32_epi32(
				_mm256_shuffle_epi8(at(from, i), gather), words);
		transpose_words(plane);
	}
}

SL_TARGET_AVX2 SL_FORCE_INLINE void from_planes(__m256i *plane, uint32_t element, uint8_t *to)
{
	if (element == 2) {
		__m256i a = _mm256_permute4x64_epi64(plane[0], 0xd8);
		__m256i b = _mm256_permute4x64_epi64(plane[1], 0xd8);

		plane[0] = _mm256_unpacklo_epi8(a, b);
		plane[1] = _mm256_unpackhi_epi8(a, b);
	} else if (element == 4) {
		__m256i a = _mm256_unpacklo_epi8(plane[0], plane[1]);
		__m256i b = _mm256_unpackhi_epi8(plane[0], plane[1]);
		__m256i c = _mm256_unpacklo_epi8(plane[2], plane[3]);
		__m256i d = _mm256_unpackhi_epi8(plane[2], plane[3]);
		__m256i e = _mm256_unpacklo_epi16(a, c), f = _mm256_unpackhi_epi16(a, c);
		__m256i g = _mm256_unpacklo_epi16(b, d), h = _mm256_unpackhi_epi16(b, d);

		plane[0] = _mm256_permute2x128_si256(e, f, 0x20);
		plane[1] = _mm256_permute2x128_si256(g, h, 0x20);
		plane[2] = _mm256_permute2x128_si256(e, f, 0x31);
		plane[3] = _mm256_permute2x128_si256(g, h, 0x31);
	}
	for (uint32_t i = 0; i < element; i++)
		_mm256_storeu_si256((__m256i *)(void *)(to + 32 * i), plane[i]);
}

/* Bits that are set in any element. */
SL_TARGET_AVX2 static uint64_t used_bits(const uint8_t *in, uint64_t elements, uint32_t element)
{
	uint64_t bytes = elements * element, whole = bytes / 128 * 128;
	__m256i any[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
			  _mm256_setzero_si256()};
	uint8_t fold[32];

	for (uint64_t i = 0; i < whole; i += 128)
		for (unsigned k = 0; k < 4; k++)
			any[k] = _mm256_or_si256(any[k], at(in + i, k));
	_mm256_storeu_si256(
		(__m256i *)(void *)fold,
		_mm256_or_si256(_mm256_or_si256(any[0], any[1]), _mm256_or_si256(any[2], any[3])));
	return sl_shuffle_used(fold, 32 / element, element) |
	       sl_shuffle_used(in + whole, (bytes - whole) / element, element);
}

/* The rows in use of one plane of 32 elements. */
SL_TARGET_AVX2 SL_FORCE_INLINE void rows_of(__m256i plane, uint32_t used, uint8_t *to, uint64_t row)
{
	for (int k = 0; k < 8; k++)
		if (used >> k & 1) {
			uint32_t mask =
				(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(plane, 7 - k));

			memcpy(to + (unsigned)k * row, &mask, sizeof(mask));
		}
}

SL_TARGET_AVX2 SL_FORCE_INLINE __m256i plane_of(const uint8_t *from, uint64_t row)
{
	const __m256i spread =
		_mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
	const __m256i select = _mm256_set1_epi64x((long long)0x8040201008040201);
	__m256i plane = _mm256_setzero_si256();

	for (unsigned k = 0; k < 8; k++) {
		uint32_t mask;
		__m256i bits;

		memcpy(&mask, from + k * row, sizeof(mask));
		bits = _mm256_shuffle_epi8(_mm256_set1_epi32((int)mask), spread);
		bits = _mm256_cmpeq_epi8(_mm256_and_si256(bits, select), select);
		plane = _mm256_or_si256(plane,
					_mm256_and_si256(bits, _mm256_set1_epi8((char)(1 << k))));
	}
	return plane;
}

SL_TARGET_AVX2 SL_FORCE_INLINE uint64_t shuffle_by(const uint8_t *in, uint64_t elements,
						   uint32_t element, uint8_t *out)
{
	uint64_t row = elements / SL_SHUFFLE_GROUP, whole = elements / STEP * STEP;
	uint64_t used = used_bits(in, elements, element);

	sl_shuffle_clear(elements, element, used, out);
	for (uint64_t i = 0; used && i < whole; i += STEP) {
		__m256i plane[4];

		to_planes(in + i * element, element, plane);
		for (uint32_t b = 0; b < element; b++)
			rows_of(plane[b], used >> (8 * b) & 0xff, out + 8 * b * row + i / 8, row);
	}
	sl_shuffle_rest(in, elements, element, whole, used, out);
	return used;
}

SL_TARGET_AVX2 SL_FORCE_INLINE void unshuffle_by(const uint8_t *in, uint64_t elements,
						 uint32_t element, uint8_t *out)
{
	uint64_t row = elements / SL_SHUFFLE_GROUP, whole = elements / STEP * STEP;

	for (uint64_t i = 0; i < whole; i += STEP) {
		__m256i plane[4];

		for (uint32_t b = 0; b < element; b++)
			plane[b] = plane_of(in + 8 * b * row + i / 8, row);
		from_planes(plane, element, out + i * element);
	}
	sl_unshuffle_rest(in, elements, element, whole, out);
}

SL_TARGET_AVX2 static uint64_t shuffle(const uint8_t *in, uint64_t elements, uint32_t element,
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

SL_TARGET_AVX2 static void unshuffle(const uint8_t *in, uint64_t elements, uint32_t element,
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

const struct sl_shuffle sl_shuffle_avx2 = {.shuffle = shuffle, .unshuffle = unshuffle};

#endif
