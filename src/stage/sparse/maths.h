/* maths.h - whether a pixel stands out of the background that was measured at its distance from
 * the beam.
 *
 * Model: background and sigma are interpolated between the middles of two bins; what a pixel must
 * be above is the noise, or as many deviations as wanted, of sigma and noise together. */
#ifndef SL_STAGE_SPARSE_MATHS_H
#define SL_STAGE_SPARSE_MATHS_H

#include "gpu/dialect/language.h"

/* part: 0 is all left, 1 all right. */
SL_FN float sl_sparse_between(float left, float right, float part)
{
	return left * (1.0f - part) + right * part;
}

/* By how much a pixel must be above the background. */
SL_FN float sl_sparse_margin(float sigma, float noise, float cutoff)
{
	float deviations = cutoff * sl_sqrt(sigma * sigma + noise * noise);

	return deviations > noise ? deviations : noise;
}

SL_FN int sl_sparse_picks(float pixel, float background, float sigma, float noise, float cutoff)
{
	return pixel - background > sl_sparse_margin(sigma, noise, cutoff);
}

/* A pixel that is outside of this is left out of the sums for good. */
SL_FN int sl_sparse_clips(float pixel, float average, float cut)
{
	return sl_fabs(pixel - average) > cut;
}

#endif
