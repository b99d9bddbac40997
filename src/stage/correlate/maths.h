/* maths.h - what a pixel counts, as an integer. */
#ifndef SL_STAGE_CORRELATE_MATHS_H
#define SL_STAGE_CORRELATE_MATHS_H

#include "gpu/dialect/language.h"

/* A sample that is missing; and the largest that one of the last level may be, either way: sixteen
 * products of two of them are below 2^62. */
#define SL_CORRELATE_MISSING (-2147483647 - 1)
#define SL_CORRELATE_MOST    (1 << 29)

/* Floats are counted in steps of 1/256: photons, or keV. */
#define SL_CORRELATE_STEPS 256.0f

/* `limit`: of one frame. */
SL_FN sl_i32 sl_correlate_whole(sl_i64 value, sl_i32 limit)
{
	return value > limit || value < -limit ? SL_CORRELATE_MISSING : (sl_i32)value;
}

SL_FN sl_i32 sl_correlate_float(float value, sl_i32 limit)
{
	float steps = value * SL_CORRELATE_STEPS, most = (float)limit;

	if (!(steps <= most && steps >= -most)) /* NaN, too */
		return SL_CORRELATE_MISSING;
	return steps < 0 ? -(sl_i32)(0.5f - steps) : (sl_i32)(steps + 0.5f);
}

#endif
