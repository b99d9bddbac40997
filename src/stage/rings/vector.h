/* vector.h - vectors of VECTOR_WIDTH floats, for stage/rings/maths.h. Define VECTOR_WIDTH and
 * VECTOR_TARGET, the attribute of every function that uses them, before.
 *
 * Model: GCC's vectors. A vector that the target has no register for would live in memory: hence
 * one file per width. VECTOR_WIDTH 1, when nothing is defined, is plain C without any. */
#ifndef SL_STAGE_RINGS_VECTOR_H
#define SL_STAGE_RINGS_VECTOR_H

#include <stdint.h>

#include "gpu/dialect/language.h"

#ifndef VECTOR_WIDTH
#define VECTOR_WIDTH 1
#define VECTOR_TARGET
#endif

#undef SL_FN
#define SL_FN static inline __attribute__((always_inline, unused)) VECTOR_TARGET

#if VECTOR_WIDTH > 1
#define SL_RINGS_VECTOR VECTOR_WIDTH
typedef float sl_vector __attribute__((vector_size(4 * VECTOR_WIDTH)));
typedef int32_t sl_vector_mask __attribute__((vector_size(4 * VECTOR_WIDTH)));

SL_FN sl_vector sl_vector_all(float value)
{
	return value - (sl_vector){0};
}

SL_FN sl_vector sl_vector_pick(sl_vector_mask yes, sl_vector a, sl_vector b)
{
	return (sl_vector)((yes & (sl_vector_mask)a) | (~yes & (sl_vector_mask)b));
}

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Zero, too, where it is no number. */
SL_FN sl_vector sl_vector_above_zero(sl_vector a)
{
#if defined(__x86_64__) && VECTOR_WIDTH == 16
	return (sl_vector)_mm512_max_ps((__m512)a, _mm512_setzero_ps());
#elif defined(__x86_64__) && VECTOR_WIDTH == 8
	return (sl_vector)_mm256_max_ps((__m256)a, _mm256_setzero_ps());
#elif defined(__x86_64__) && VECTOR_WIDTH == 4
	return (sl_vector)_mm_max_ps((__m128)a, _mm_setzero_ps());
#else
	return (sl_vector)((sl_vector_mask)a & (a > 0));
#endif
}
#endif

#include "stage/rings/maths.h"

#if VECTOR_WIDTH > 1
SL_FN sl_vector_mask sl_vector_whole(sl_vector a)
{
	return __builtin_convertvector(a, sl_vector_mask);
}

SL_FN sl_vector_mask sl_vector_all_whole(int32_t value)
{
	return value - (sl_vector_mask){0};
}

SL_FN sl_vector_mask sl_vector_choose(sl_vector_mask yes, sl_vector_mask a, sl_vector_mask b)
{
	return (yes & a) | (~yes & b);
}
#else
SL_FN sl_vector_mask sl_vector_whole(sl_vector a)
{
	return (int32_t)a;
}

SL_FN sl_vector_mask sl_vector_all_whole(int32_t value)
{
	return value;
}

SL_FN sl_vector_mask sl_vector_choose(sl_vector_mask yes, sl_vector_mask a, sl_vector_mask b)
{
	return yes ? a : b;
}
#endif

#endif
