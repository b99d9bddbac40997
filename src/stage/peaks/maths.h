/* maths.h - when a pixel belongs to a peak, and what makes a peak of pixels (as peakfinder8 does).
 *
 * Model: pixels at the same distance from the beam, a ring, have a mean and a standard deviation.
 * Both are found again, a few times, from those pixels alone that lie strictly between the limits
 * of the time before. A pixel above the last upper limit is strong; touching strong pixels are a
 * peak if they stand out from the pixels around them. Values are floats: counts are exact up to
 * 2^24. */
#ifndef SL_STAGE_PEAKS_MATHS_H
#define SL_STAGE_PEAKS_MATHS_H

#include "gpu/dialect/language.h"

enum { SL_PEAKS_ITERATIONS = 5 };

#define SL_PEAKS_FIRST_LIMIT 1e9f /* of the first time: lower is -this */
#define SL_PEAKS_LEAST_SIGMA 0.01f

struct sl_peaks_limits {
	float lower, upper;
};

SL_FN struct sl_peaks_limits sl_peaks_limits(float mean, float sigma, float snr, float threshold)
{
	struct sl_peaks_limits limits;
	float reach = snr * sigma;

	limits.lower = mean - reach;
	limits.upper = mean + reach > threshold ? mean + reach : threshold;
	return limits;
}

/* Counts for the mean and the deviation of its ring. */
SL_FN int sl_peaks_is_usual(float value, float lower, float upper)
{
	return value > lower && value < upper;
}

SL_FN int sl_peaks_is_strong(float value, float upper)
{
	return value > upper;
}

/* Counts for the background of a peak near by. */
SL_FN int sl_peaks_is_background(float value, float upper)
{
	return value < upper;
}

/* Of the background around a peak. Where it does not vary, or rounding made its variance negative,
 * a small number takes its place. */
SL_FN float sl_peaks_sigma(float variance)
{
	return variance > 0 ? sl_sqrt(variance) : SL_PEAKS_LEAST_SIGMA;
}

/* net: what the pixels have above the background, together. */
SL_FN float sl_peaks_snr(float net, float sigma)
{
	return net / sigma;
}

/* maximum: of the peak's pixels; brightest: of the background's. */
SL_FN int sl_peaks_stands_out(float snr, float least_snr, float maximum, float brightest)
{
	return snr >= least_snr && maximum >= brightest;
}

#endif
