/* rays.c - distances, angles and norms of pixels: by the layout in the image's plane, which is
 * exact and quick; with planes, by where they are in space. */
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

/* ---- planes in space ---- */

/* down and right of the beam, and along it, as pyFAI's axes 1, 2 and 3. */
struct point {
	double down, right, along, r, length;
};

static struct point point_of(const struct sl_rays *rays, uint32_t module, uint32_t pixel,
			     double down, double right)
{
	struct point at;
	double place[3];

	sl_layout_place(&rays->geometry, module, pixel, down, right, place);
	at = (struct point){.down = -place[1], .right = -place[0], .along = place[2]};
	at.r = sqrt(at.down * at.down + at.right * at.right);
	at.length = sqrt(at.r * at.r + at.along * at.along);
	return at;
}

static double x_in_space(const struct sl_rays *rays, const struct point *at)
{
	double c = at->along / at->length, sine;

	switch ((enum sl_radial_unit)rays->options.unit) {
	case SL_RADIAL_Q_NM:
		/* Of theta; the first is exact for small angles, the second for large ones. */
		sine = c > 0 ? at->r / at->length / sqrt(2 * (1 + c)) : sqrt((1 - c) / 2);
		return 4 * M_PI / rays->wavelength_nm * sine;
	case SL_RADIAL_TTH_DEG:
		return atan2(at->r, at->along) * 180 / M_PI;
	case SL_RADIAL_R_MM:
		return at->r * 1e3;
	default:
		return at->r / rays->geometry.pixel_size_m;
	}
}

/* A pixel's area, seen from the sample, to that of one square to its ray at distance_m. */
static double solid_angle_in_space(const struct sl_rays *rays, uint32_t module, uint32_t pixel,
				   const struct point *at)
{
	const struct sl_geometry *g = &rays->geometry;
	const double place[3] = {-at->right, -at->down, at->along};
	struct sl_plane plane;
	double normal[3], size = 0, seen = 0, near;

	sl_layout_plane(g, module, sl_layout_piece_of(g, pixel), &plane);
	for (int i = 0; i < 3; i++) {
		int j = (i + 1) % 3, k = (i + 2) % 3;

		normal[i] = plane.down[j] * plane.right[k] - plane.down[k] * plane.right[j];
		size += normal[i] * normal[i];
		seen += normal[i] * place[i];
	}
	near = g->distance_m / at->length;
	return near * near * fabs(seen) / sqrt(size) / at->length;
}

static double norm_in_space(const struct sl_rays *rays, uint32_t module, uint32_t pixel,
			    const struct point *at)
{
	double c = at->along / at->length, norm = sl_layout_share(&rays->geometry, pixel);

	if (rays->options.solid_angle)
		norm *= solid_angle_in_space(rays, module, pixel, at);
	if (rays->options.polarisation != 0 && at->r > 0) {
		double cos_2chi = (at->right * at->right - at->down * at->down) / (at->r * at->r);

		norm *= 0.5 * (1 + c * c - rays->options.polarisation * cos_2chi * (1 - c * c));
	}
	return norm;
}

static double chi_in_space(const struct point *at)
{
	return atan2(at->down, at->right) * 180 / M_PI;
}

static struct sl_ray middle_in_space(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct point at = point_of(rays, module, pixel, 0, 0);

	return (struct sl_ray){.x = x_in_space(rays, &at),
			       .chi = rays->options.azimuth ? chi_in_space(&at) : 0,
			       .norm = norm_in_space(rays, module, pixel, &at)};
}

static void widen(const struct sl_rays *rays, double x, double chi, struct sl_ray *ray)
{
	double far = fabs(x - ray->x);
	double turn = rays->options.azimuth ? fabs(chi - ray->chi) : 0;

	turn = turn > 180 ? 360 - turn : turn;
	ray->half_x = far > ray->half_x ? far : ray->half_x;
	ray->half_chi = turn > ray->half_chi ? turn : ray->half_chi;
}

static struct sl_ray box_in_space(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct sl_ray ray = middle_in_space(rays, module, pixel);

	for (int corner = 0; corner < 4; corner++) {
		struct point to = point_of(rays, module, pixel, corner & 1 ? 0.5 : -0.5,
					   corner & 2 ? 0.5 : -0.5);

		widen(rays, x_in_space(rays, &to), chi_in_space(&to), &ray);
	}
	return ray;
}

/* ---- any ---- */

struct sl_ray sl_rays_middle(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct place at;

	if (rays->geometry.planes)
		return middle_in_space(rays, module, pixel);
	at = middle_of(rays, module, pixel);
	return (struct sl_ray){.x = x_at(rays, at),
			       .chi = rays->options.azimuth ? chi_at(at) : 0,
			       .norm = norm_at(rays, at, pixel)};
}

struct sl_ray sl_rays_box(const struct sl_rays *rays, uint32_t module, uint32_t pixel)
{
	struct place at = middle_of(rays, module, pixel);
	struct sl_ray ray = sl_rays_middle(rays, module, pixel);
	uint32_t rows, columns;

	if (rays->geometry.planes)
		return box_in_space(rays, module, pixel);
	sl_layout_size(&rays->geometry, module, pixel, &rows, &columns);
	for (int corner = 0; corner < 4; corner++) {
		struct place to = {at.row + (corner & 1 ? 0.5 : -0.5) * rows,
				   at.column + (corner & 2 ? 0.5 : -0.5) * columns};

		widen(rays, x_at(rays, to), chi_at(to), &ray);
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
			struct sl_ray ray = boxes ? sl_rays_box(rays, m, i)
						  : sl_rays_middle(rays, m, i);

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
	if (!g->planes && (!isfinite(rays->geometry.layout.beam_row) ||
			   !isfinite(rays->geometry.layout.beam_column)))
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
