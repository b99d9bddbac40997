/* outside.c - compares of 64 pixels to 64 bits, by instruction set.
 *
 * With AVX-512 a compare makes the bits; with AVX2 they are gathered from vectors of compares. The
 * plain loop first looks whether there is any, which compilers make vectors of, and hardly ever
 * goes through the block again. */
#include "stage/outside.h"
#include "stage/vectors.h"

enum { BLOCK = SL_OUTSIDE_BLOCK };

#define PLAIN(TYPE, NAME, LOW, HIGH)                                                        \
	static uint64_t part_##NAME(const TYPE *pixel, uint32_t count, TYPE low, TYPE high) \
	{                                                                                   \
		uint64_t mask = 0;                                                          \
                                                                                            \
		for (uint32_t i = 0; i < count; i++)                                        \
			mask |= (uint64_t)((pixel[i] > high) | (pixel[i] < low)) << i;      \
		return mask;                                                                \
	}                                                                                   \
	static void plain_##NAME(const void *pixels, uint32_t blocks,                       \
				 const struct sl_outside_bounds *bounds, uint32_t step,     \
				 uint64_t *mask)                                            \
	{                                                                                   \
		const TYPE *pixel = pixels;                                                 \
                                                                                            \
		for (uint32_t b = 0; b < blocks; b++, pixel += BLOCK, bounds += step) {     \
			TYPE low = (TYPE)bounds->LOW, high = (TYPE)bounds->HIGH;            \
			TYPE any = 0;                                                       \
                                                                                            \
			for (uint32_t i = 0; i < BLOCK; i++)                                \
				any = (pixel[i] > high) | (pixel[i] < low) ? 1 : any;       \
			mask[b] = any != 0 ? part_##NAME(pixel, BLOCK, low, high) : 0;      \
		}                                                                           \
	}

PLAIN(uint8_t, u8, low, high)
PLAIN(uint16_t, u16, low, high)
PLAIN(uint32_t, u32, low, high)
PLAIN(int16_t, i16, low, high)
PLAIN(float, f32, real_low, real_high)

#ifdef __x86_64__
#include <immintrin.h>

/* PIXELS of a vector at a time; SET broadcasts a bound, OUT(v) is the mask of a vector. */
#define WIDE(TYPE, NAME, PIXELS, VECTOR, SET, LOAD, OUT, LOW, HIGH)                      \
	SL_TARGET_AVX512 static void wide_##NAME(const void *pixels, uint32_t blocks,    \
						 const struct sl_outside_bounds *bounds, \
						 uint32_t step, uint64_t *mask)          \
	{                                                                                \
		const TYPE *pixel = pixels;                                              \
                                                                                         \
		for (uint32_t b = 0; b < blocks; b++, pixel += BLOCK, bounds += step) {  \
			VECTOR low = SET(bounds->LOW), high = SET(bounds->HIGH);         \
			uint64_t bits = 0;                                               \
                                                                                         \
			for (uint32_t i = 0; i < BLOCK; i += (PIXELS)) {                 \
				VECTOR v = LOAD(pixel + i);                              \
                                                                                         \
				bits |= (uint64_t)(OUT) << i;                            \
			}                                                                \
			mask[b] = bits;                                                  \
		}                                                                        \
	}

#define SET_8(x)  _mm512_set1_epi8((char)(x))
#define SET_16(x) _mm512_set1_epi16((short)(x))
#define SET_32(x) _mm512_set1_epi32((int)(x))

WIDE(uint8_t, u8, 64, __m512i, SET_8, _mm512_loadu_si512,
     _mm512_cmpgt_epu8_mask(v, high) | _mm512_cmplt_epu8_mask(v, low), low, high)
WIDE(uint16_t, u16, 32, __m512i, SET_16, _mm512_loadu_si512,
     _mm512_cmpgt_epu16_mask(v, high) | _mm512_cmplt_epu16_mask(v, low), low, high)
WIDE(uint32_t, u32, 16, __m512i, SET_32, _mm512_loadu_si512,
     _mm512_cmpgt_epu32_mask(v, high) | _mm512_cmplt_epu32_mask(v, low), low, high)
WIDE(int16_t, i16, 32, __m512i, SET_16, _mm512_loadu_si512,
     _mm512_cmpgt_epi16_mask(v, high) | _mm512_cmplt_epi16_mask(v, low), low, high)
WIDE(float, f32, 16, __m512, _mm512_set1_ps, _mm512_loadu_ps,
     _mm512_cmp_ps_mask(v, high, _CMP_GT_OQ) | _mm512_cmp_ps_mask(v, low, _CMP_LT_OQ), real_low,
     real_high)

/* AVX2 compares signed numbers only: the sign bit of unsigned ones is turned over. */
SL_TARGET_AVX2 static inline __m256i load_256(const void *p, __m256i flip)
{
	return _mm256_xor_si256(_mm256_loadu_si256(p), flip);
}

SL_TARGET_AVX2 static inline __m256i out_16(const void *p, __m256i flip, __m256i low, __m256i high)
{
	__m256i v = load_256(p, flip);

	return _mm256_or_si256(_mm256_cmpgt_epi16(v, high), _mm256_cmpgt_epi16(low, v));
}

/* Packing two vectors takes halves in turn: put in order again, one byte per pixel. */
SL_TARGET_AVX2 static inline uint64_t bits_16(const uint8_t *p, __m256i flip, __m256i low,
					      __m256i high)
{
	__m256i pair =
		_mm256_packs_epi16(out_16(p, flip, low, high), out_16(p + 32, flip, low, high));

	return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(pair, 0xd8));
}

SL_TARGET_AVX2 static inline void half_16(const void *pixels, uint32_t blocks,
					  const struct sl_outside_bounds *bounds, uint32_t step,
					  uint64_t *mask, short sign)
{
	const uint8_t *p = pixels;
	__m256i flip = _mm256_set1_epi16(sign);

	for (uint32_t b = 0; b < blocks; b++, p += 2 * BLOCK, bounds += step) {
		__m256i low = _mm256_set1_epi16((short)((short)bounds->low ^ sign));
		__m256i high = _mm256_set1_epi16((short)((short)bounds->high ^ sign));

		mask[b] = bits_16(p, flip, low, high) | bits_16(p + BLOCK, flip, low, high) << 32;
	}
}

SL_TARGET_AVX2 static void half_i16(const void *pixels, uint32_t blocks,
				    const struct sl_outside_bounds *bounds, uint32_t step,
				    uint64_t *mask)
{
	half_16(pixels, blocks, bounds, step, mask, 0);
}

SL_TARGET_AVX2 static void half_u16(const void *pixels, uint32_t blocks,
				    const struct sl_outside_bounds *bounds, uint32_t step,
				    uint64_t *mask)
{
	half_16(pixels, blocks, bounds, step, mask, INT16_MIN);
}

SL_TARGET_AVX2 static void half_u8(const void *pixels, uint32_t blocks,
				   const struct sl_outside_bounds *bounds, uint32_t step,
				   uint64_t *mask)
{
	const uint8_t *p = pixels;
	__m256i flip = _mm256_set1_epi8(INT8_MIN);

	for (uint32_t b = 0; b < blocks; b++, p += BLOCK, bounds += step) {
		__m256i low = _mm256_set1_epi8((char)(bounds->low ^ 0x80));
		__m256i high = _mm256_set1_epi8((char)(bounds->high ^ 0x80));
		uint64_t bits = 0;

		for (int i = 0; i < BLOCK; i += 32) {
			__m256i v = load_256(p + i, flip);
			__m256i out = _mm256_or_si256(_mm256_cmpgt_epi8(v, high),
						      _mm256_cmpgt_epi8(low, v));

			bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(out) << i;
		}
		mask[b] = bits;
	}
}

SL_TARGET_AVX2 static void half_u32(const void *pixels, uint32_t blocks,
				    const struct sl_outside_bounds *bounds, uint32_t step,
				    uint64_t *mask)
{
	const uint32_t *p = pixels;
	__m256i flip = _mm256_set1_epi32(INT32_MIN);

	for (uint32_t b = 0; b < blocks; b++, p += BLOCK, bounds += step) {
		__m256i low = _mm256_set1_epi32((int)((uint32_t)bounds->low ^ 0x80000000u));
		__m256i high = _mm256_set1_epi32((int)((uint32_t)bounds->high ^ 0x80000000u));
		uint64_t bits = 0;

		for (int i = 0; i < BLOCK; i += 8) {
			__m256i v = load_256(p + i, flip);
			__m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(v, high),
						      _mm256_cmpgt_epi32(low, v));

			bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(out))
				<< i;
		}
		mask[b] = bits;
	}
}

SL_TARGET_AVX2 static void half_f32(const void *pixels, uint32_t blocks,
				    const struct sl_outside_bounds *bounds, uint32_t step,
				    uint64_t *mask)
{
	const float *p = pixels;

	for (uint32_t b = 0; b < blocks; b++, p += BLOCK, bounds += step) {
		__m256 low = _mm256_set1_ps(bounds->real_low);
		__m256 high = _mm256_set1_ps(bounds->real_high);
		uint64_t bits = 0;

		for (int i = 0; i < BLOCK; i += 8) {
			__m256 v = _mm256_loadu_ps(p + i);
			__m256 out = _mm256_or_ps(_mm256_cmp_ps(v, high, _CMP_GT_OQ),
						  _mm256_cmp_ps(v, low, _CMP_LT_OQ));

			bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(out) << i;
		}
		mask[b] = bits;
	}
}

static sl_outside *const wide[SL_DTYPES] = {[SL_U8] = wide_u8,
					    [SL_U16] = wide_u16,
					    [SL_U32] = wide_u32,
					    [SL_I16] = wide_i16,
					    [SL_F32] = wide_f32};
static sl_outside *const half[SL_DTYPES] = {[SL_U8] = half_u8,
					    [SL_U16] = half_u16,
					    [SL_U32] = half_u32,
					    [SL_I16] = half_i16,
					    [SL_F32] = half_f32};

static sl_outside *vectors_of(enum sl_dtype dtype, uint32_t vectors)
{
	switch (sl_vectors_choose(vectors)) {
	case SL_VECTORS_AVX512:
		return wide[dtype];
	case SL_VECTORS_AVX2:
		return half[dtype];
	default:
		return NULL;
	}
}
#else
static sl_outside *vectors_of(enum sl_dtype dtype, uint32_t vectors)
{
	return NULL;
}
#endif

sl_outside *sl_outside_choose(enum sl_dtype dtype, uint32_t vectors)
{
	static sl_outside *const plain[SL_DTYPES] = {[SL_U8] = plain_u8,
						     [SL_U16] = plain_u16,
						     [SL_U32] = plain_u32,
						     [SL_I16] = plain_i16,
						     [SL_F32] = plain_f32};
	sl_outside *best = vectors_of(dtype, vectors);

	return best ? best : plain[dtype];
}

uint64_t sl_outside_part(enum sl_dtype dtype, const void *pixel, uint32_t count,
			 const struct sl_outside_bounds *bounds)
{
	switch (dtype) {
	case SL_U8:
		return part_u8(pixel, count, (uint8_t)bounds->low, (uint8_t)bounds->high);
	case SL_U16:
		return part_u16(pixel, count, (uint16_t)bounds->low, (uint16_t)bounds->high);
	case SL_U32:
		return part_u32(pixel, count, (uint32_t)bounds->low, (uint32_t)bounds->high);
	case SL_I16:
		return part_i16(pixel, count, (int16_t)bounds->low, (int16_t)bounds->high);
	default:
		return part_f32(pixel, count, bounds->real_low, bounds->real_high);
	}
}
