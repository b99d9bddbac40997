/* integrate_oracle.h - azimuthal integration by the plainest loop in double precision, for tests of
 * the stage on the rig's detector: written from the formulas, not from the code. */
#ifndef INTEGRATE_ORACLE_H
#define INTEGRATE_ORACLE_H

#include <math.h>

#include "lib/stage_rig.h"

enum { ORACLE_CELLS = 600 };

struct oracle {
	/* What is asked for; q in 1/nm. */
	uint32_t bins, sectors; /* sectors 0: a profile */
	double low, high, polarisation;
	bool boxes, at_least_one;
	const float *dark, *flat; /* [RIG_PIXELS] or NULL */
	const uint8_t *mask;

	/* What comes of it, with the error that rounded shares may make. */
	double intensity[ORACLE_CELLS], sigma[ORACLE_CELLS];
	double intensity_error[ORACLE_CELLS], variance_error[ORACLE_CELLS], norm[ORACLE_CELLS];
};

/* The value of a pixel; NaN: not valid. */
static inline double oracle_value(enum sl_dtype dtype, const void *pixels, int i)
{
	switch (dtype) {
	case SL_U8: {
		uint8_t v = ((const uint8_t *)pixels)[i];

		return v == UINT8_MAX ? NAN : v;
	}
	case SL_U16: {
		uint16_t v = ((const uint16_t *)pixels)[i];

		return v == UINT16_MAX ? NAN : v;
	}
	case SL_U32: {
		uint32_t v = ((const uint32_t *)pixels)[i];

		return v == UINT32_MAX ? NAN : v;
	}
	case SL_I16: {
		int16_t v = ((const int16_t *)pixels)[i];

		return v == INT16_MIN || v == INT16_MAX ? NAN : v;
	}
	default: {
		float v = ((const float *)pixels)[i];

		return isfinite(v) ? v : NAN;
	}
	}
}

/* A place of the image, from the beam in pixels, to q in 1/nm. */
static inline double oracle_q(const struct rig *rig, double x, double y)
{
	double lambda = 1.2398419843320026 / rig->geometry.photon_energy_keV;
	double r = hypot(x, y) * rig->geometry.pixel_size_m;

	return 4 * M_PI / lambda * sin(atan(r / rig->geometry.distance_m) / 2);
}

/* The share that a pixel from `from` to `to` (in bins) has of a bin. */
static inline double oracle_share(double from, double to, int bin, int bins, bool folded_low,
				  bool folded_high)
{
	double low = bin == 0 && folded_low ? fmin(from, 0) : bin;
	double high = bin == bins - 1 && folded_high ? fmax(to, bins) : bin + 1;

	if (from == to)
		return floor(from) == bin || (folded_high && bin == bins - 1 && from >= bins);
	return fmax(0, fmin(to, high) - fmax(from, low)) / (to - from);
}

/* One pixel: its middle and half of its extents, in bins. */
struct oracle_box {
	double q, half_q, chi, half_chi;
};

static inline struct oracle_box oracle_box(const struct rig *rig, const struct oracle *o, double x,
					   double y)
{
	struct oracle_box b = {.q = oracle_q(rig, x, y), .chi = atan2(y, x)};
	double per_q = o->bins / (o->high - o->low), per_radian = o->sectors / (2 * M_PI);

	for (int corner = 0; o->boxes && corner < 4; corner++) {
		double cx = x + (corner & 1) - 0.5, cy = y + (corner >> 1) - 0.5;
		double turn = fabs(remainder(atan2(cy, cx) - b.chi, 2 * M_PI));

		b.half_q = fmax(b.half_q, fabs(oracle_q(rig, cx, cy) - b.q));
		b.half_chi = fmax(b.half_chi, turn);
	}
	b.q = (b.q - o->low) * per_q;
	b.half_q *= per_q;
	b.chi = (b.chi + M_PI) * per_radian;
	b.half_chi *= per_radian;
	return b;
}

struct oracle_sums {
	double signal[ORACLE_CELLS], variance[ORACLE_CELLS], norm[ORACLE_CELLS];
	double of_share[ORACLE_CELLS], of_square[ORACLE_CELLS]; /* if each were off by one */
};

static inline void oracle_pixel(const struct rig *rig, const struct oracle *o, int i, double v,
				struct oracle_sums *sums)
{
	/* Modules one below the other, the beam where the layout says. */
	double y = i / RIG_COLUMNS + 0.5 - rig->geometry.layout.beam_row;
	double x = i % RIG_COLUMNS + 0.5 - rig->geometry.layout.beam_column;
	double c = cos(atan(hypot(x, y) * rig->geometry.pixel_size_m / rig->geometry.distance_m));
	double photon = rig->in.dtype == SL_F32 ? rig->geometry.photon_energy_keV : 1;
	double dark = o->dark ? o->dark[i] : 0, flat = o->flat ? o->flat[i] : 1;
	double norm = flat * c * c * c * 0.5 *
		      (1 + c * c - o->polarisation * cos(2 * atan2(y, x)) * (1 - c * c));
	double variance = (o->at_least_one ? fmax(v, photon) : v) * photon;
	struct oracle_box b = oracle_box(rig, o, x, y);

	for (int s = 0; s < (o->sectors ? (int)o->sectors : 1); s++)
		for (int k = 0; k < (int)o->bins; k++) {
			double share = oracle_share(b.q - b.half_q, b.q + b.half_q, k, (int)o->bins,
						    o->low == 0, false);
			int cell = s * (int)o->bins + k;

			if (o->sectors)
				share *= oracle_share(b.chi - b.half_chi, b.chi + b.half_chi, s,
						      (int)o->sectors, true, true);
			sums->signal[cell] += share * (v - dark);
			sums->variance[cell] += share * share * variance;
			sums->norm[cell] += share * norm;
			sums->of_share[cell] += share > 0 ? fabs(v - dark) + norm : 0;
			sums->of_square[cell] += share > 0 ? fabs(variance) : 0;
		}
}

static inline void oracle_run(const struct rig *rig, struct oracle *o, const void *pixels)
{
	const double unit = o->boxes ? 0x1p-29 : 0;
	struct oracle_sums sums = {0};

	for (int i = 0; i < RIG_PIXELS; i++) {
		double v = oracle_value(rig->in.dtype, pixels, i);
		bool good = !isnan(v) && !(o->mask && o->mask[i]) &&
			    !(o->flat && !(isfinite(o->flat[i]) && o->flat[i] > 0)) &&
			    !(o->dark && !isfinite(o->dark[i]));

		if (good)
			oracle_pixel(rig, o, i, v, &sums);
	}
	for (uint32_t k = 0; k < o->bins * (o->sectors ? o->sectors : 1); k++) {
		o->norm[k] = sums.norm[k];
		o->intensity[k] = sums.signal[k] / sums.norm[k];
		o->sigma[k] = sqrt(fabs(sums.variance[k])) / sums.norm[k];
		o->intensity_error[k] = unit * sums.of_share[k] * (1 + fabs(o->intensity[k])) /
					sums.norm[k];
		o->variance_error[k] = unit * sums.of_square[k] / (sums.norm[k] * sums.norm[k]);
	}
}

/* Every cell of a result is that of the oracle, to 1e-6 and what rounded shares may make; cells in
 * which there is less than a thousandth of a pixel are left out: their shares are all rounding. */
static inline int oracle_check(const struct oracle *o, const float *intensity, const float *sigma)
{
	int compared = 0;

	for (uint32_t k = 0; k < o->bins * (o->sectors ? o->sectors : 1); k++) {
		double i = intensity[k], s = sigma[k], want = o->sigma[k];

		if (o->norm[k] == 0) {
			assert_true(isnan(i) && isnan(s));
			continue;
		}
		if (o->norm[k] < 1e-3)
			continue;
		compared++;
		assert_true(fabs(i - o->intensity[k]) <=
			    1e-6 * fabs(o->intensity[k]) + o->intensity_error[k]);
		assert_true(fabs(s * s - want * want) <=
			    2e-6 * want * want + o->variance_error[k] + 1e-30);
	}
	return compared;
}

#endif
