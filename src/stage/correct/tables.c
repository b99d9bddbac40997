/* tables.c - factors and pedestals from a calibration. */
#include "stage/correct/correct.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/log.h"

enum { PEDESTAL_MAX = 16383, NOISE_SAMPLES = 32 };

/* Beyond these no pixel works, and products would not be finite. */
static const float factor_most = 1e30f, pedestal_least = -1e6f;

static float factor_of(float gain, double scale)
{
	double factor = 1 / (gain * scale);

	return gain == 0 || !isfinite(gain) || !(fabs(factor) <= factor_most) ? NAN : (float)factor;
}

static float pedestal_of(float value)
{
	return value >= pedestal_least && value <= PEDESTAL_MAX ? value : NAN;
}

/* Photons of G0 that 16 bits hold, whatever the pedestal and ADU. */
static const float factor_bounded = 32766.f / PEDESTAL_MAX;

/* Measured pedestals are between 0 and PEDESTAL_MAX; those to start with ought to be. */
static bool is_bounded(const struct sl_correct *c)
{
	for (uint64_t i = 0; i < c->pixels; i++)
		if (fabsf(c->factor[i]) > factor_bounded)
			return false;
	for (uint64_t i = 0; i < c->pixels * c->cells; i++)
		if (c->pedestal_0[i] < 0)
			return false;
	return true;
}

/* A pixel that is bad in one cell's calibration of G1 or G2 is so there alone. */
static void fill_other(struct sl_correct *c, const struct sl_calibration *calibration,
		       uint64_t cell, double scale)
{
	for (uint64_t i = 0; i < c->pixels; i++) {
		bool masked = calibration->mask && calibration->mask[i];
		uint64_t at = cell * c->pixels + i;

		for (int g = 0; g < 2; g++) {
			c->other[at].pedestal[g] =
				masked ? NAN : pedestal_of(calibration->pedestal[g + 1][at]);
			c->other[at].factor[g] =
				masked ? NAN : factor_of(calibration->gain[g + 1][i], scale);
		}
	}
}

void sl_correct_forget(struct sl_correct *c)
{
	const float *start = c->calibration->pedestal[0];
	uint64_t all = c->pixels * c->cells;

	/* A start that is no pedestal makes the pixel bad only until it is measured. */
	for (uint32_t cell = 0; cell < c->cells; cell++)
		for (uint64_t i = 0; i < c->pixels; i++)
			c->pedestal_0[cell * c->pixels + i] =
				pedestal_of(start[cell * c->other_pixels + i]);
	memset(c->sum, 0, all * sizeof(*c->sum));
	memset(c->spread, 0, all * sizeof(*c->spread));
	memset(c->samples, 0, all * sizeof(*c->samples));
	memset(c->wrong, 0, all * sizeof(*c->wrong));
	c->dark_seen = c->calibration->measured ? UINT32_MAX : 0;
}

static void fill_tables(struct sl_correct *c, const struct sl_calibration *calibration,
			uint32_t cells, double scale)
{
	for (uint64_t i = 0; i < c->pixels; i++)
		c->factor[i] = calibration->mask && calibration->mask[i]
				       ? NAN
				       : factor_of(calibration->gain[0][i], scale);
	for (uint32_t cell = 0; cell < cells; cell++)
		fill_other(c, calibration, cell, scale);
	sl_correct_forget(c);
}

/* One region for all tables: its pages are there before the first frame is. */
static int allocate(struct sl_correct *c, uint32_t calibration_cells)
{
	uint64_t in_cells = c->pixels * c->cells, others = c->pixels * calibration_cells;
	uint64_t bytes = others * sizeof(*c->other) + c->pixels * sizeof(float) +
			 in_cells * (3 * sizeof(float) + 2 * sizeof(uint16_t));
	int err = sl_region_open(SL_REGION_HOST, bytes, &c->memory);

	if (err) {
		sl_error("correct: no memory for tables of %llu pixels in %u storage cells",
			 (unsigned long long)c->pixels, c->cells);
		return err;
	}
	c->other = c->memory.base;
	c->factor = (float *)(c->other + others);
	c->pedestal_0 = c->factor + c->pixels;
	c->sum = c->pedestal_0 + in_cells;
	c->spread = c->sum + in_cells;
	c->samples = (uint16_t *)(c->spread + in_cells);
	c->wrong = c->samples + in_cells;
	return 0;
}

static uint32_t calibration_cells(const struct sl_env *env)
{
	return env->calibration->cells ? env->calibration->cells : 1;
}

static uint32_t detector_cells(const struct sl_env *env)
{
	return env->geometry->cells ? env->geometry->cells : 1;
}

static int check(const struct sl_correct *c, const struct sl_env *env, const struct sl_shape *in)
{
	const struct sl_geometry *geometry = env->geometry;

	if (!sl_calibration_has_gains(env->calibration)) {
		sl_error("correct needs a calibration; detector '%s' has none", geometry->detector);
		return -EINVAL;
	}
	if (in->dtype != SL_U16) {
		sl_error("correct reads uint16 with gain bits; detector '%s' sends %s",
			 geometry->detector, sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	if (calibration_cells(env) > 1 && calibration_cells(env) != detector_cells(env)) {
		sl_error("correct: a calibration of %u storage cells for a detector that has %u",
			 calibration_cells(env), detector_cells(env));
		return -EINVAL;
	}
	if (c->output != SL_CORRECT_KEV_F32 && !(geometry->photon_energy_keV > 0)) {
		sl_error("correct: photons need a photon energy; detector '%s' has none",
			 geometry->detector);
		return -EINVAL;
	}
	return 0;
}

int sl_correct_open(struct sl_correct *c, const struct sl_env *env, const struct sl_shape *in)
{
	int err = check(c, env, in);
	uint32_t cells;

	if (err)
		return err;
	c->pixels = sl_shape_elements(in);
	c->cells = detector_cells(env);
	cells = calibration_cells(env);
	err = allocate(c, cells);
	if (err)
		return err;
	c->module_pixels = sl_geometry_pixels(env->geometry);
	c->calibration = env->calibration;
	c->other_pixels = cells > 1 ? c->pixels : 0;
	c->noise_squared = c->noise_max > 0 ? (float)(c->noise_max * c->noise_max) : FLT_MAX;
	c->noise_samples = c->darks < NOISE_SAMPLES ? c->darks : NOISE_SAMPLES;
	fill_tables(c, env->calibration, cells,
		    c->output == SL_CORRECT_KEV_F32 ? 1 : env->geometry->photon_energy_keV);
	c->bounded = is_bounded(c);
	return 0;
}
