/* conclude.c - from the sums of all workers to intensity and error. */
#include <math.h>

#include "stage/integrate/integrate.h"
#include "stage/vectors.h"

/* What all workers have of a cell, of every member. */
struct cell {
	double signal[SL_INTEGRATE_MEMBERS], variance[SL_INTEGRATE_MEMBERS];
	int64_t missing[SL_INTEGRATE_MEMBERS];
};

SL_FORCE_INLINE void gather(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			    size_t offset, uint32_t number, const uint32_t members, const bool real,
			    struct cell *cell)
{
	int64_t whole[2 * SL_INTEGRATE_MEMBERS] = {0};
	double sum[2 * SL_INTEGRATE_MEMBERS] = {0};

	for (uint32_t l = 0; l < members; l++)
		cell->missing[l] = 0;
	for (unsigned w = 0; w < workers; w++) {
		void *group = (char *)scratch[w] + offset;
		const union sl_sum *from = sl_integrate_sums(group, number, members);
		const int64_t *missing = sl_integrate_missing(s, group, number, members);

		for (uint32_t l = 0; l < 2 * members; l++)
			if (real)
				sum[l] += from[l].real;
			else
				whole[l] += from[l].whole;
		for (uint32_t l = 0; l < members; l++)
			cell->missing[l] += missing[l];
	}
	for (uint32_t l = 0; l < members; l++) {
		cell->signal[l] = real ? sum[l] : (double)whole[l];
		cell->variance[l] = real ? sum[members + l] : (double)whole[members + l];
	}
}

/* What the dark image has there, less that of bad pixels. */
static void take_dark(const struct sl_integrate *s, void *const *scratch, unsigned workers,
		      size_t offset, uint32_t number, uint32_t members, double whole,
		      struct cell *cell)
{
	for (uint32_t l = 0; l < members; l++) {
		double dark = s->shares.dark_total[number];

		for (unsigned w = 0; w < workers; w++)
			dark -= sl_integrate_darks(s, (char *)scratch[w] + offset, number,
						   members)[l];
		cell->signal[l] -= dark * whole;
	}
}

SL_FORCE_INLINE void conclude(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			      size_t offset, const uint32_t members, const bool real,
			      float *const *intensity, float *const *sigma)
{
	const struct sl_shares *t = &s->shares;
	double whole = (double)(1u << t->bits);

	for (uint32_t b = 0; b < t->cells; b++) {
		struct cell cell;
		double value[SL_INTEGRATE_MEMBERS], error[SL_INTEGRATE_MEMBERS];

		gather(s, scratch, workers, offset, b, members, real, &cell);
		if (t->dark)
			take_dark(s, scratch, workers, offset, b, members, whole, &cell);
		for (uint32_t l = 0; l < members; l++) {
			int64_t left = t->total[b] - cell.missing[l];
			double norm = left > 0 ? (double)left * t->norm_unit : NAN;

			value[l] = cell.signal[l] / whole / norm;
			error[l] = sqrt(fabs(cell.variance[l] / whole) * s->photon) / norm;
		}
		for (uint32_t l = 0; l < members; l++) {
			intensity[l][b] = (float)value[l];
			sigma[l][b] = (float)error[l];
		}
	}
}

SL_FORCE_INLINE void any(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			 size_t offset, uint32_t members, float *const *intensity,
			 float *const *sigma)
{
	if (members == SL_INTEGRATE_MEMBERS && s->real)
		conclude(s, scratch, workers, offset, SL_INTEGRATE_MEMBERS, true, intensity, sigma);
	else if (members == SL_INTEGRATE_MEMBERS)
		conclude(s, scratch, workers, offset, SL_INTEGRATE_MEMBERS, false, intensity,
			 sigma);
	else
		conclude(s, scratch, workers, offset, 1, s->real, intensity, sigma);
}

SL_VECTORS(any,
	   (const struct sl_integrate *s, void *const *scratch, unsigned workers, size_t offset,
	    uint32_t members, float *const *intensity, float *const *sigma),
	   (s, scratch, workers, offset, members, intensity, sigma))

void sl_integrate_conclude(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			   size_t offset, uint32_t members, float *const *intensity,
			   float *const *sigma)
{
	SL_VECTORS_PICK(any, sl_vectors_choose(s->vectors))
	(s, scratch, workers, offset, members, intensity, sigma);
}
