/* vector.h - vectors of LANES floats, for stage/rings/maths.h. Define LANES and LANES_TARGET, the
 * attribute of every function that uses them, before.
 *
 * Model: GCC's vectors. A vector that the target has no register for would live in memory: hence
 * one file per width. LANES 1, when nothing is defined, is plain C without any. */
#ifndef SL_STAGE_RINGS_VECTOR_H
#define SL_STAGE_RINGS_VECTOR_H

#include <stdint.h>

#include "gpu/dialect/language.h"

#ifndef LANES
#define LANES 1
#define LANES_TARGET
#endif

#undef SL_FN
#define SL_FN static inline __attribute__((always_inline, unused)) LANES_TARGET

#if LANES > 1
#define SL_INTEGRATE_MEMBERS LANES
typedef float sl_lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t sl_lanes_mask __attribute__((vector_size(4 * LANES)));

SL_FN sl_lanes sl_lanes_all(float value)
{
	return value - (sl_lanes){0};
}

SL_FN sl_lanes sl_lanes_pick(sl_lanes_mask yes, sl_lanes a, sl_lanes b)
{
	return (sl_lanes)((yes & (sl_lanes_mask)a) | (~yes & (sl_lanes_mask)b));
}

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Zero, too, where it is no number. */
SL_FN sl_lanes sl_lanes_above_zero(sl_lanes a)
{
#if defined(__x86_64__) && LANES == 16
	return (sl_lanes)_mm512_max_ps((__m512)a, _mm512_setzero_ps());
#elif defined(__x86_64__) && LANES == 8
	return (sl_lanes)_mm256_max_ps((__m256)a, _mm256_setzero_ps());
#elif defined(__x86_64__) && LANES == 4
	return (sl_lanes)_mm_max_ps((__m128)a, _mm_setzero_ps());
#else
	return (sl_lanes)((sl_lanes_mask)a & (a > 0));
#endif
}
#endif

#include "stage/rings/maths.h"

#if LANES > 1
SL_FN sl_lanes_mask sl_lanes_whole(sl_lanes a)
{
	return __builtin_convertvector(a, sl_lanes_mask);
}

SL_FN sl_lanes_mask sl_lanes_all_whole(int32_t value)
{
	return value - (sl_lanes_mask){0};
}

SL_FN sl_lanes_mask sl_lanes_choose(sl_lanes_mask yes, sl_lanes_mask a, sl_lanes_mask b)
{
	return (yes & a) | (~yes & b);
}
#else
SL_FN sl_lanes_mask sl_lanes_whole(sl_lanes a)
{
	return (int32_t)a;
}

SL_FN sl_lanes_mask sl_lanes_all_whole(int32_t value)
{
	return value;
}

SL_FN sl_lanes_mask sl_lanes_choose(sl_lanes_mask yes, sl_lanes_mask a, sl_lanes_mask b)
{
	return yes ? a : b;
}
#endif

#endif
