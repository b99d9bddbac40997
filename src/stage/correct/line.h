/* line.h - 32 raw pixels as if all were in G0, by hand for each instruction set.
 *
 * Model:     tables of the line are loaded once, and used for several frames. X_line_Y() computes
 *            (raw - pedestal) * factor and stores it in `out`; or, when pixels have gain bits, in
 *            `spare`, and returns a bit for each of these. Compilers vectorise the plain version
 *            only halfway: rounding and clamping cost them three times the instructions.
 * Exact:     all versions give the same bits; correct_test.c compares them over all raw values.
 *            They assume what the tables promise: products are finite, or NaN; and with `clamp`
 *            false, small enough for 16 bits. */
#ifndef SL_STAGE_CORRECT_LINE_H
#define SL_STAGE_CORRECT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "stage/correct/maths.h"
#include "stage/vectors.h"

enum { SL_LINE = 32 };

/* ---- plain ---- */

struct sl_tables_baseline {
	const float *pedestal, *factor;
};

SL_FORCE_INLINE struct sl_tables_baseline sl_tables_baseline(const float *pedestal,
							     const float *factor)
{
	return (struct sl_tables_baseline){pedestal, factor};
}

SL_FORCE_INLINE uint32_t sl_gains_baseline(const uint16_t *raw)
{
	uint32_t mask = 0;
	uint16_t bits = 0;

	for (int i = 0; i < SL_LINE; i++)
		bits |= raw[i];
	for (int i = 0; (bits & SL_RAW_GAIN) && i < SL_LINE; i++)
		mask |= (uint32_t)((raw[i] & SL_RAW_GAIN) != 0) << i;
	return mask;
}

SL_FORCE_INLINE uint32_t photons_line_baseline(const struct sl_tables_baseline *t,
					       const uint16_t *restrict raw, int16_t *restrict out,
					       int16_t *restrict spare, bool stream, bool clamp)
{
	uint32_t mask = sl_gains_baseline(raw);

	out = mask ? spare : out;
	for (int i = 0; i < SL_LINE; i++)
		out[i] = sl_to_photons(((float)raw[i] - t->pedestal[i]) * t->factor[i]);
	return mask;
}

SL_FORCE_INLINE uint32_t kev_line_baseline(const struct sl_tables_baseline *t,
					   const uint16_t *restrict raw, float *restrict out,
					   float *restrict spare, bool stream, bool clamp)
{
	uint32_t mask = sl_gains_baseline(raw);

	out = mask ? spare : out;
	for (int i = 0; i < SL_LINE; i++)
		out[i] = ((float)raw[i] - t->pedestal[i]) * t->factor[i];
	return mask;
}

#ifdef __x86_64__
#include <immintrin.h>

/* The float below a half, with the sign of the value, is added before the cut: halves go away from
 * zero. min and max give their second operand when one is NaN, which the conversion then makes
 * INT32_MIN of, and packing INT16_MIN. */

/* ---- AVX2 ---- */

struct sl_tables_avx2 {
	__m256 pedestal[4], factor[4];
};

SL_TARGET_AVX2 SL_FORCE_INLINE struct sl_tables_avx2 sl_tables_avx2(const float *pedestal,
								    const float *factor)
{
	struct sl_tables_avx2 t;

	for (int i = 0; i < 4; i++) {
		t.pedestal[i] = _mm256_loadu_ps(pedestal + 8 * i);
		t.factor[i] = _mm256_loadu_ps(factor + 8 * i);
	}
	return t;
}

SL_TARGET_AVX2 SL_FORCE_INLINE __m256 sl_energy_avx2(const struct sl_tables_avx2 *t, int i,
						     __m128i raw)
{
	__m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(raw));

	return _mm256_mul_ps(_mm256_sub_ps(v, t->pedestal[i]), t->factor[i]);
}

SL_TARGET_AVX2 SL_FORCE_INLINE __m256i sl_round_avx2(__m256 v, bool clamp)
{
	__m256 half;

	if (clamp) {
		v = _mm256_min_ps(_mm256_set1_ps(32766), v);
		v = _mm256_max_ps(_mm256_set1_ps(-32767), v);
	}
	half = _mm256_or_ps(_mm256_and_ps(v, _mm256_set1_ps(-0.f)), _mm256_set1_ps(0x1.fffffep-2f));
	return _mm256_cvttps_epi32(_mm256_add_ps(v, half));
}

/* 0 without gain bits. */
SL_TARGET_AVX2 SL_FORCE_INLINE uint32_t sl_gains_avx2(const uint16_t *raw, __m256i low,
						      __m256i high)
{
	return _mm256_testz_si256(_mm256_or_si256(low, high), _mm256_set1_epi16((short)SL_RAW_GAIN))
		       ? 0
		       : sl_gains_baseline(raw);
}

SL_TARGET_AVX2 SL_FORCE_INLINE uint32_t photons_line_avx2(const struct sl_tables_avx2 *t,
							  const uint16_t *raw, int16_t *out,
							  int16_t *spare, bool stream, bool clamp)
{
	__m256i in[2] = {_mm256_loadu_si256((const void *)raw),
			 _mm256_loadu_si256((const void *)(raw + 16))};
	uint32_t mask = sl_gains_avx2(raw, in[0], in[1]);

	out = mask ? spare : out;
	for (int i = 0; i < 2; i++) {
		__m128i first = _mm256_castsi256_si128(in[i]);
		__m128i second = _mm256_extracti128_si256(in[i], 1);
		__m256i both = _mm256_packs_epi32(
			sl_round_avx2(sl_energy_avx2(t, 2 * i, first), clamp),
			sl_round_avx2(sl_energy_avx2(t, 2 * i + 1, second), clamp));

		both = _mm256_permute4x64_epi64(both, 0xd8);
		if (stream && !mask)
			_mm256_stream_si256((void *)(out + 16 * i), both);
		else
			_mm256_storeu_si256((void *)(out + 16 * i), both);
	}
	return mask;
}

SL_TARGET_AVX2 SL_FORCE_INLINE uint32_t kev_line_avx2(const struct sl_tables_avx2 *t,
						      const uint16_t *raw, float *out, float *spare,
						      bool stream, bool clamp)
{
	uint32_t mask = sl_gains_avx2(raw, _mm256_loadu_si256((const void *)raw),
				      _mm256_loadu_si256((const void *)(raw + 16)));

	out = mask ? spare : out;
	for (int i = 0; i < 4; i++) {
		__m256 v = sl_energy_avx2(t, i, _mm_loadu_si128((const void *)(raw + 8 * i)));

		if (stream && !mask)
			_mm256_stream_ps(out + 8 * i, v);
		else
			_mm256_storeu_ps(out + 8 * i, v);
	}
	return mask;
}

/* ---- AVX-512 ---- */

struct sl_tables_avx512 {
	__m512 pedestal[2], factor[2];
};

SL_TARGET_AVX512 SL_FORCE_INLINE struct sl_tables_avx512 sl_tables_avx512(const float *pedestal,
									  const float *factor)
{
	struct sl_tables_avx512 t;

	for (int i = 0; i < 2; i++) {
		t.pedestal[i] = _mm512_loadu_ps(pedestal + 16 * i);
		t.factor[i] = _mm512_loadu_ps(factor + 16 * i);
	}
	return t;
}

SL_TARGET_AVX512 SL_FORCE_INLINE __m512 sl_energy_avx512(const struct sl_tables_avx512 *t, int i,
							 __m256i raw)
{
	__m512 v = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(raw));

	return _mm512_mul_ps(_mm512_sub_ps(v, t->pedestal[i]), t->factor[i]);
}

SL_TARGET_AVX512 SL_FORCE_INLINE __m512i sl_round_avx512(__m512 v, bool clamp)
{
	__m512i half;

	if (clamp) {
		v = _mm512_min_ps(_mm512_set1_ps(32766), v);
		v = _mm512_max_ps(_mm512_set1_ps(-32767), v);
	}
	/* (v & sign) | half */
	half = _mm512_ternarylogic_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN),
					 _mm512_castps_si512(_mm512_set1_ps(0x1.fffffep-2f)), 0xea);
	return _mm512_cvttps_epi32(_mm512_add_ps(v, _mm512_castsi512_ps(half)));
}

SL_TARGET_AVX512 SL_FORCE_INLINE uint32_t photons_line_avx512(const struct sl_tables_avx512 *t,
							      const uint16_t *raw, int16_t *out,
							      int16_t *spare, bool stream,
							      bool clamp)
{
	const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	__m512i in = _mm512_loadu_si512(raw);
	uint32_t mask = _mm512_test_epi16_mask(in, _mm512_set1_epi16((short)SL_RAW_GAIN));
	__m512i low = sl_round_avx512(sl_energy_avx512(t, 0, _mm512_castsi512_si256(in)), clamp);
	__m512i high =
		sl_round_avx512(sl_energy_avx512(t, 1, _mm512_extracti64x4_epi64(in, 1)), clamp);
	__m512i both = _mm512_permutexvar_epi64(order, _mm512_packs_epi32(low, high));

	if (stream && !mask)
		_mm512_stream_si512((void *)out, both);
	else
		_mm512_storeu_si512(mask ? spare : out, both);
	return mask;
}

SL_TARGET_AVX512 SL_FORCE_INLINE uint32_t kev_line_avx512(const struct sl_tables_avx512 *t,
							  const uint16_t *raw, float *out,
							  float *spare, bool stream, bool clamp)
{
	__m512i in = _mm512_loadu_si512(raw);
	uint32_t mask = _mm512_test_epi16_mask(in, _mm512_set1_epi16((short)SL_RAW_GAIN));
	__m512 low = sl_energy_avx512(t, 0, _mm512_castsi512_si256(in));
	__m512 high = sl_energy_avx512(t, 1, _mm512_extracti64x4_epi64(in, 1));

	out = mask ? spare : out;
	if (stream && !mask) {
		_mm512_stream_ps(out, low);
		_mm512_stream_ps(out + 16, high);
	} else {
		_mm512_storeu_ps(out, low);
		_mm512_storeu_ps(out + 16, high);
	}
	return mask;
}
#endif

#endif
