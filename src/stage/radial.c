/* radial.c - bins and norms of pixels, by the layout. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/radial.h"

static const double hc_keV_A = 12.398419843320026;

struct place {		    /* of a pixel */
	double x;	    /* in the unit */
	double cosine, chi; /* of 2 theta; about the beam, 0 along the rows */
};

/* The geometry with its layout resolved, and what follows from it. */
struct view {
	struct sl_geometry geometry;
	double wavelength_nm;
	enum sl_radial_unit unit;
};

static struct place place_of(const struct view *v, uint32_t module, uint32_t pixel)
{
	const struct sl_geometry *g = &v->geometry;
	double row, column, r, distance, tth;
	struct place place;

	sl_layout_centre(g, module, pixel, &row, &column);
	row -= g->layout.beam_row;
	column -= g->layout.beam_column;
	r = hypot(row, column);
	distance = r * g->pixel_size_m;
	tth = g->distance_m > 0 ? atan2(distance, g->distance_m) : 0;
	place = (struct place){.cosine = cos(tth), .chi = atan2(row, column)};
	switch (v->unit) {
	case SL_RADIAL_Q_NM:
		place.x = 4 * M_PI * sin(tth / 2) / v->wavelength_nm;
		break;
	case SL_RADIAL_TTH_DEG:
		place.x = tth * 180 / M_PI;
		break;
	case SL_RADIAL_R_MM:
		place.x = distance * 1e3;
		break;
	default:
		place.x = r;
	}
	return place;
}

static double norm_of(const struct sl_radial_options *o, const struct view *v,
		      const struct place *place, uint32_t pixel)
{
	double c2 = place->cosine * place->cosine;
	double norm = sl_layout_share(&v->geometry, pixel);

	if (o->solid_angle)
		norm *= c2 * place->cosine;
	if (o->polarisation != 0)
		norm *= 0.5 * (1 + c2 - o->polarisation * cos(2 * place->chi) * (1 - c2));
	return norm;
}

static int refuse(const char *who, const char *why)
{
	sl_error("%s: %s", who, why);
	return -EINVAL;
}

static int look(struct view *v, const struct sl_radial_options *o, const struct sl_env *env,
		const char *who)
{
	const struct sl_geometry *g = env->geometry;
	char why[160];

	v->geometry = *g;
	sl_layout_resolve(g, &v->geometry.layout);
	v->unit = (enum sl_radial_unit)o->unit;
	if (sl_layout_check(&v->geometry, why, sizeof(why)))
		return refuse(who, why);
	if (v->unit != SL_RADIAL_R_PIXELS && !(g->pixel_size_m > 0))
		return refuse(who, "the detector has no pixel size; unit r_pixels needs none");
	if (!(g->distance_m > 0) && (v->unit == SL_RADIAL_Q_NM || v->unit == SL_RADIAL_TTH_DEG ||
				     o->solid_angle || o->polarisation != 0))
		return refuse(who, "angles need the detector's distance_m; units r_mm and r_pixels "
				   "without solid_angle and polarisation need none");
	if (v->unit == SL_RADIAL_Q_NM && !(g->photon_energy_keV > 0))
		return refuse(who, "unit q_nm needs the detector's photon_energy_keV");
	if (g->photon_energy_keV > 0)
		v->wavelength_nm = hc_keV_A / g->photon_energy_keV / 10;
	if (o->high > 0 && !(o->high > o->low))
		return refuse(who, "high must be above low");
	return 0;
}

static int allocate(struct sl_radial *r, const char *who)
{
	uint64_t bins = r->bins * sizeof(*r->total), norms = r->pixels * sizeof(*r->norm);
	int err = sl_region_open(SL_REGION_HOST, bins + norms + r->pixels * sizeof(*r->bin),
				 &r->memory);

	if (err) {
		sl_error("%s: no memory for tables of %llu pixels", who,
			 (unsigned long long)r->pixels);
		return err;
	}
	r->total = r->memory.base;
	r->norm = (float *)(r->total + r->bins);
	r->bin = (uint16_t *)(r->norm + r->pixels);
	memset(r->total, 0, bins);
	return 0;
}

static double farthest(const struct view *v)
{
	uint32_t pixels = (uint32_t)sl_geometry_pixels(&v->geometry);
	double most = 0;

	for (uint32_t m = 0; m < v->geometry.modules; m++)
		for (uint32_t i = 0; i < pixels; i++) {
			struct place place = place_of(v, m, i);

			if (place.x > most)
				most = place.x;
		}
	/* So that the farthest pixel is inside of the last bin. */
	return nextafter(most, INFINITY);
}

static bool is_masked(const struct sl_env *env, uint64_t pixel)
{
	return env->calibration && env->calibration->mask && env->calibration->mask[pixel];
}

/* How many pixels have a bin. */
static uint64_t fill(struct sl_radial *r, const struct sl_radial_options *o, const struct view *v,
		     const struct sl_env *env)
{
	uint32_t pixels = (uint32_t)sl_geometry_pixels(&v->geometry);
	uint64_t used = 0;

	for (uint64_t i = 0; i < r->pixels; i++) {
		uint32_t pixel = (uint32_t)(i % pixels);
		struct place place = place_of(v, (uint32_t)(i / pixels), pixel);
		double at = (place.x - r->low) / (r->high - r->low) * r->bins;

		r->bin[i] = (uint16_t)r->bins;
		r->norm[i] = 0;
		if (!(at >= 0 && at < r->bins) || is_masked(env, i))
			continue;
		r->bin[i] = (uint16_t)at;
		r->norm[i] = (float)norm_of(o, v, &place, pixel);
		r->total[r->bin[i]] += r->norm[i];
		used++;
	}
	return used;
}

int sl_radial_open(struct sl_radial *radial, const struct sl_radial_options *options,
		   const struct sl_env *env, const char *who)
{
	struct view view;
	int err = look(&view, options, env, who);

	if (err)
		return err;
	*radial = (struct sl_radial){
		.bins = options->bins,
		.low = options->low,
		.high = options->high > 0 ? options->high : farthest(&view),
		.pixels = env->geometry->modules * sl_geometry_pixels(env->geometry),
	};
	if (!(radial->high > radial->low))
		return refuse(who, "low is beyond the farthest pixel");
	err = allocate(radial, who);
	if (!err && !fill(radial, options, &view, env)) {
		sl_radial_close(radial);
		return refuse(who, "no pixel that is not masked lies between low and high");
	}
	return err;
}

void sl_radial_close(struct sl_radial *radial)
{
	if (radial->memory.base)
		sl_region_close(&radial->memory);
	memset(radial, 0, sizeof(*radial));
}

double sl_radial_middle(const struct sl_radial *radial, uint32_t bin)
{
	return radial->low + (bin + 0.5) * (radial->high - radial->low) / radial->bins;
}
