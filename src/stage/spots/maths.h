/* maths.h - when a pixel stands out from the box around it.
 *
 * Model: in a box of (2k+1)^2 pixels, without the one in its middle and those that are not valid,
 * n, S and Q are count, sum and sum of squares. With d = v n - S, how far v is above the mean,
 * times n, a pixel of value v is strong when v is at least the threshold, d > 0 and
 *
 *   d^2 (n - 1) > sigmas^2 n (n Q - S^2)
 *
 * which says that v is more than `sigmas` standard deviations (of the sample) above the mean, but
 * needs no root and no division. Whoever has the sums brings d and n Q - S^2, exact for counts, and
 * these are rounded to floats last. */
#ifndef SL_STAGE_SPOTS_MATHS_H
#define SL_STAGE_SPOTS_MATHS_H

#include "gpu/dialect/language.h"

/* d, and spread = n Q - S^2. */
SL_FN int sl_spots_is_strong(float d, float spread, sl_i32 n, float sigmas)
{
	float count = (float)n;

	return d > 0 && d * d * (count - 1) > sigmas * sigmas * count * spread;
}

/* The same for pixels of at most 16 bits and boxes of at most 2^10 pixels. */
SL_FN int sl_spots_is_strong_whole(sl_i32 value, sl_i32 n, sl_i64 sum, sl_i64 squares, float sigmas)
{
	sl_i64 d = (sl_i64)value * n - sum, spread = (sl_i64)n * squares - sum * sum;

	return sl_spots_is_strong((float)d, (float)spread, n, sigmas);
}

/* How many standard deviations of its box the pixel is above the mean. One that does not vary has a
 * small one. */
SL_FN float sl_spots_strength(float d, float spread, sl_i32 n)
{
	float count = (float)n;
	float variance = n > 1 ? spread / (count * (count - 1)) : 0;

	return d / count / (variance > 0 ? sl_sqrt(variance) : 0.01f);
}

#endif
