/* correct_tables.c - factors and pedestals from a calibration. */
#include "stage/correct.h"

#include <errno.h>
#include <math.h>

#include "base/log.h"

enum { GAINS = SL_CORRECT_GAINS, PEDESTAL_MAX = 16383 };

static float factor_of(float gain, double scale)
{
	return gain == 0 || !isfinite(gain) ? NAN : (float)(1 / (gain * scale));
}

/* A pedestal of G1 or G2 that is none makes the pixel bad in that gain, whatever the cell. */
static bool has_pedestals(const struct sl_correct *c, int g, uint64_t pixel)
{
	for (uint32_t cell = 0; cell < c->cells; cell++)
		if (!(c->pedestal[g][cell * c->cell_pixels[g] + pixel] <= PEDESTAL_MAX))
			return false;
	return true;
}

static void fill_tables(struct sl_correct *c, const struct sl_calibration *calibration,
			double scale)
{
	for (uint64_t i = 0; i < c->pixels; i++) {
		bool masked = calibration->mask && calibration->mask[i];

		for (int g = 0; g < GAINS; g++)
			c->factor[g][i] = masked || (g && !has_pedestals(c, g, i))
						  ? NAN
						  : factor_of(calibration->gain[g][i], scale);
	}
	for (uint32_t cell = 0; cell < c->cells; cell++)
		for (uint64_t i = 0; i < c->pixels; i++) {
			float start = calibration->pedestal[0][cell * c->cell_pixels[1] + i];

			/* A start that is no pedestal makes the pixel bad only until it is
			 * measured. */
			c->pedestal_0[cell * c->pixels + i] = start <= PEDESTAL_MAX ? start : NAN;
		}
}

/* One region for all tables: its pages are there before the first frame is. */
static int allocate(struct sl_correct *c)
{
	uint64_t in_cells = c->pixels * c->cells;
	uint64_t bytes = c->pixels * GAINS * sizeof(float) +
			 in_cells * (2 * sizeof(float) + 2 * sizeof(uint16_t));
	float *at;
	int err = sl_region_open(SL_REGION_HOST, bytes, &c->memory);

	if (err) {
		sl_error("correct: no memory for tables of %llu pixels in %u storage cells",
			 (unsigned long long)c->pixels, c->cells);
		return err;
	}
	at = c->memory.base;
	for (int g = 0; g < GAINS; g++, at += c->pixels)
		c->factor[g] = at;
	c->pedestal_0 = at;
	c->sum = at + in_cells;
	c->samples = (uint16_t *)(at + 2 * in_cells);
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

	if (!env->calibration) {
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
	if (c->output == SL_CORRECT_PHOTONS_I16 && !(geometry->photon_energy_keV > 0)) {
		sl_error("correct: photons_i16 needs a photon energy; detector '%s' has none",
			 geometry->detector);
		return -EINVAL;
	}
	return 0;
}

int sl_correct_open(struct sl_correct *c, const struct sl_env *env, const struct sl_shape *in)
{
	int err = check(c, env, in);

	if (err)
		return err;
	c->pixels = sl_shape_elements(in);
	c->cells = detector_cells(env);
	err = allocate(c);
	if (err)
		return err;
	c->module_pixels = sl_geometry_pixels(env->geometry);
	c->dark_seen = env->calibration->measured ? UINT32_MAX : 0;
	c->pedestal[0] = c->pedestal_0;
	c->cell_pixels[0] = c->pixels;
	for (int g = 1; g < GAINS; g++) {
		c->pedestal[g] = env->calibration->pedestal[g];
		c->cell_pixels[g] = calibration_cells(env) > 1 ? c->pixels : 0;
	}
	fill_tables(c, env->calibration,
		    c->output == SL_CORRECT_PHOTONS_I16 ? env->geometry->photon_energy_keV : 1);
	return 0;
}
