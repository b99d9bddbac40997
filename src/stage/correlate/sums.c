/* sums.c - sums of pairs, and what comes of them:
 *
 *   g2(region, lag) = <I(t) I(t + lag)> / (<I(t)> <I(t + lag)>)
 *
 * each mean over all pairs of the region's pixels: symmetric, as each of the two factors has the
 * samples that are in the pairs. That is the normalisation of multi_tau_auto_corr() of scikit-beam.
 */
#include <math.h>

#include "stage/correlate/correlate.h"

void sl_correlate_add(struct sl_correlate_sum *to, const struct sl_correlate_sum *from)
{
	uint64_t low = to->low + from->low;

	to->high += from->high + (low < from->low);
	to->low = low;
	to->left += from->left;
	to->right += from->right;
	to->pairs += from->pairs;
}

/* Rounded once. */
static double products_of(const struct sl_correlate_sum *sum)
{
	/* A shift of a negative number is undefined in C. */
	return (double)(__int128)((unsigned __int128)sum->high << 64 | sum->low);
}

double sl_correlate_g2(const struct sl_correlate_sum *sum)
{
	double product = (double)sum->left * (double)sum->right;

	return product != 0 ? products_of(sum) * (double)sum->pairs / product : (double)NAN;
}

/* A sample of level l is a sum of 2^l frames, in units of the image. */
static void conclude_one(struct sl_correlate *s, uint64_t i, uint32_t level)
{
	const struct sl_correlate_sum *sum = &s->total[i];
	double frames = (double)(UINT64_C(1) << level), pairs = (double)sum->pairs;
	double unit = s->dtype == SL_F32 ? (double)SL_CORRELATE_STEPS : 1;
	double whole = frames * unit;

	s->g2[i] = sl_correlate_g2(sum);
	s->numerator[i] = sum->pairs ? products_of(sum) / pairs / (whole * whole) : (double)NAN;
	s->left[i] = sum->pairs ? (double)sum->left / pairs / whole : (double)NAN;
	s->right[i] = sum->pairs ? (double)sum->right / pairs / whole : (double)NAN;
	s->pairs[i] = (int64_t)sum->pairs;
}

void sl_correlate_conclude(struct sl_correlate *s)
{
	for (uint32_t region = 0; region < s->count; region++)
		for (uint32_t lag = 0; lag < s->lags; lag++) {
			uint32_t level =
				lag < s->channels ? 0 : 1 + (lag - s->channels) / (s->channels / 2);

			conclude_one(s, (uint64_t)region * s->lags + lag, level);
		}
}
