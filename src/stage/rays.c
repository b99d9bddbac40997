/* rays.c - distances, angles and norms of pixels, by the layout. */
#include "stage/rays.h"

#include <errno.h>
#include <math.h>

#include "base/log.h"

static const double hc_keV_A = 12.398419843320026;

/* A place of the image, from the beam. */
struct place {
	double row, column;
};

static struct place middle_of(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	const struct sl_geometry *g = &rays->geometry;
	struct place at;

	sl_layout_centre(g, module, pixel, &at.row, &at.column);
	at.row -= g->layout.beam_row;
	at.column -= g->layout.beam_column;
	return at;
}

static double cosine_of(const struct sl_rays *rays, double distance_m)
{
	double to = rays->geometry.distance_m;

	return to > 0 ? to / sqrt(to * to + distance_m * distance_m) : 1;
}

static double x_at(const struct sl_rays *rays, struct place at)
{
	const struct sl_geometry *g = &rays->geometry;
	double r = sqrt(at.row * at.row + at.column * at.column), d = r * g->pixel_size_m, c;

	switch ((enum sl_radial_unit)rays->options.unit) {
	case SL_RADIAL_Q_NM:
		/* sin(tth / 2) is sin(tth) / sqrt(2 (1 + cos(tth))): exact for small angles. */
		c = cosine_of(rays, d);
		return 4 * M_PI / rays->wavelength_nm * (d * c / g->distance_m) / sqrt(2 * (1 + c));
	case SL_RADIAL_TTH_DEG:
		return atan2(d, g->distance_m) * 180 / M_PI;
	case SL_RADIAL_R_MM:
		return d * 1e3;
	default:
		return r;
	}
}

static double chi_at(struct place at)
{
	return atan2(at.row, at.column) * 180 / M_PI;
}

static double norm_at(const struct sl_rays *rays, struct place at, uint32_t pixel)
{
	double r2 = at.row * at.row + at.column * at.column;
	double c = cosine_of(rays, sqrt(r2) * rays->geometry.pixel_size_m), c2 = c * c;
	double norm = sl_layout_share(&rays->geometry, pixel);

	if (rays->options.solid_angle)
		norm *= c2 * c;
	if (rays->options.polarisation != 0 && r2 > 0) {
		double cos_2chi = (at.column * at.column - at.row * at.row) / r2;

		norm *= 0.5 * (1 + c2 - rays->options.polarisation * cos_2chi * (1 - c2));
	}
	return norm;
}

struct sl_ray sl_rays_middle(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct place at = middle_of(rays, module, pixel);

	return (struct sl_ray){.x = x_at(rays, at),
			       .chi = rays->options.azimuth ? chi_at(at) : 0,
			       .norm = norm_at(rays, at, pixel)};
}

struct sl_ray sl_rays_box(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct place at = middle_of(rays, module, pixel);
	struct sl_ray ray = sl_rays_middle(rays, module, pixel);
	uint32_t rows, columns;

	sl_layout_size(&rays->geometry, module, pixel, &rows, &columns);
	for (int corner = 0; corner < 4; corner++) {
		struct place to = {at.row + (corner & 1 ? 0.5 : -0.5) * rows,
				   at.column + (corner & 2 ? 0.5 : -0.5) * columns};
		double far = fabs(x_at(rays, to) - ray.x);
		double turn = rays->options.azimuth ? fabs(chi_at(to) - ray.chi) : 0;

		turn = turn > 180 ? 360 - turn : turn;
		ray.half_x = far > ray.half_x ? far : ray.half_x;
		ray.half_chi = turn > ray.half_chi ? turn : ray.half_chi;
	}
	return ray;
}

double sl_rays_farthest(const struct sl_rays *rays, bool boxes)
{
	const struct sl_geometry *g = &rays->geometry;
	uint32_t pixels = (uint32_t)sl_geometry_pixels(g);
	double most = 0;

	for (uint32_t m = 0; m < g->modules; m++)
		for (uint32_t i = 0; i < pixels; i++) {
			struct sl_ray ray = {.x = x_at(rays, middle_of(rays, m, i))};

			if (boxes)
				ray = sl_rays_box(rays, m, i);
			if (ray.x + ray.half_x > most)
				most = ray.x + ray.half_x;
		}
	return most;
}

static int refuse(const char *who, const char *why)
{
	sl_error("%s: %s", who, why);
	return -EINVAL;
}

int sl_rays_open(struct sl_rays *rays, const struct sl_rays_options *o, const struct sl_env *env,
		 const char *who)
{
	const struct sl_geometry *g = env->geometry;
	char why[160];

	*rays = (struct sl_rays){.options = *o, .geometry = *g};
	sl_layout_resolve(g, &rays->geometry.layout);
	if (sl_layout_check(&rays->geometry, why, sizeof(why)))
		return refuse(who, why);
	if (!isfinite(rays->geometry.layout.beam_row) ||
	    !isfinite(rays->geometry.layout.beam_column))
		return refuse(who, "the detector does not know where the beam is");
	if (o->unit != SL_RADIAL_R_PIXELS && !(g->pixel_size_m > 0))
		return refuse(who, "the detector has no pixel size; unit r_pixels needs none");
	if (!(g->distance_m > 0) && (o->unit == SL_RADIAL_Q_NM || o->unit == SL_RADIAL_TTH_DEG ||
				     o->solid_angle || o->polarisation != 0))
		return refuse(who, "angles need the detector's distance_m; units r_mm and r_pixels "
				   "without solid_angle and polarisation need none");
	if (o->unit == SL_RADIAL_Q_NM && !(g->photon_energy_keV > 0))
		return refuse(who, "unit q_nm needs the detector's photon_energy_keV");
	if (g->photon_energy_keV > 0)
		rays->wavelength_nm = hc_keV_A / g->photon_energy_keV / 10;
	return 0;
}
