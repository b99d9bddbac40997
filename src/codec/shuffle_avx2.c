/* shuffle_avx2.c - bitshuffle with AVX2: 32 elements at a time.
 *
 * A tile of elements is split into planes, one for each byte of an element, and only planes in use.
 * A row is the mask of the bytes of a plane that have that bit set: shifted up, movemask finds it.
 */
#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#include "codec/shuffle.h"

enum { STEP = 32, TILE = 1024, MANY = 4 /* rows of a plane: then all at once */ };

SL_TARGET_AVX2 SL_FORCE_INLINE __m256i at(const uint8_t *from, unsigned i)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)(from + 32 * i));
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

SL_TARGET_AVX2 static uint64_t used_bits(const uint8_t *in, uint64_t elements, uint32_t element)
{
	uint64_t bytes = elements * element, whole = bytes / 128 * 128;
	__m256i any[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
			  _mm256_setzero_si256()};

	for (uint64_t i = 0; i < whole; i += 128)
		for (unsigned k = 0; k < 4; k++)
			any[k] = _mm256_or_si256(any[k], at(in + i, k));
	any[0] = _mm256_or_si256(_mm256_or_si256(any[0], any[1]), _mm256_or_si256(any[2], any[3]));
	return sl_shuffle_used(
		in + whole, bytes - whole, element,
		(uint64_t)(_mm256_extract_epi64(any[0], 0) | _mm256_extract_epi64(any[0], 1) |
			   _mm256_extract_epi64(any[0], 2) | _mm256_extract_epi64(any[0], 3)));
}

/* Byte b of 32 elements. */
SL_TARGET_AVX2 SL_FORCE_INLINE __m256i split(const uint8_t *from, uint32_t element, __m128i shift)
{
	const __m256i byte = _mm256_set1_epi16(0xff), word = _mm256_set1_epi32(0xff);
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i v[4];

	if (element == 1)
		return at(from, 0);
	if (element == 2) {
		for (unsigned i = 0; i < 2; i++)
			v[i] = _mm256_and_si256(_mm256_srl_epi16(at(from, i), shift), byte);
		return _mm256_permute4x64_epi64(_mm256_packus_epi16(v[0], v[1]), 0xd8);
	}
	for (unsigned i = 0; i < 4; i++)
		v[i] = _mm256_and_si256(_mm256_srl_epi32(at(from, i), shift), word);
	return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(_mm256_packus_epi32(v[0], v[1]),
							       _mm256_packus_epi32(v[2], v[3])),
					   order);
}

/* The rows in use of the plane of a tile. */
SL_TARGET_AVX2 SL_FORCE_INLINE void rows_of(const uint8_t *plane, uint64_t elements, uint32_t used,
					    uint8_t *to, uint64_t row)
{
	if (__builtin_popcount(used) > MANY)
		for (uint64_t i = 0; i < elements; i += STEP)
			for (int k = 0; k < 8; k++) {
				uint32_t mask = (uint32_t)_mm256_movemask_epi8(
					_mm256_slli_epi16(at(plane + i, 0), 7 - k));

				memcpy(to + (unsigned)k * row + i / 8, &mask, sizeof(mask));
			}
	else
		for (; used; used &= used - 1) {
			unsigned k = (unsigned)__builtin_ctz(used);
			const __m128i shift = _mm_cvtsi32_si128(7 - (int)k);

			for (uint64_t i = 0; i < elements; i += STEP) {
				uint32_t mask = (uint32_t)_mm256_movemask_epi8(
					_mm256_sll_epi16(at(plane + i, 0), shift));

				memcpy(to + k * row + i / 8, &mask, sizeof(mask));
			}
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
	_Alignas(32) uint8_t plane[TILE];

	sl_shuffle_clear(elements, element, used, out);
	for (uint64_t i = 0; i < whole; i += TILE) {
		uint64_t now = whole - i < TILE ? whole - i : TILE;

		for (unsigned b = 0; b < element; b++) {
			const __m128i shift = _mm_cvtsi32_si128(8 * (int)b);
			uint32_t bits = used >> (8 * b) & 0xff;

			for (uint64_t j = 0; bits && j < now; j += STEP)
				_mm256_store_si256((__m256i *)(void *)(plane + j),
						   split(in + (i + j) * element, element, shift));
			rows_of(plane, now, bits, out + 8 * b * row + i / 8, row);
		}
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
