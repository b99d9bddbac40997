/* rays.h - where what a pixel sees comes from: how far from the beam, at which angle about it, and
 * what share of it the pixel sees.
 *
 * Model:     a detector square to the beam, or with planes (sluice/layout.h) that lie as they may.
 *            A pixel is the rectangle that it covers in the image, wide ones more than the others.
 *            Its norm is what a pixel at the foot of the normal, distance_m away, would count to
 *            its one: solid angle (square to the normal the third power of the cosine),
 *            polarisation, and the area of wide pixels.
 * Threads:   functions of their arguments.
 * Cost:      some ten nanoseconds each: for tables, not for data. In double, since the place of a
 *            pixel among thousands of bins takes more than the 24 bits of a float. */
#ifndef SL_STAGE_RAYS_H
#define SL_STAGE_RAYS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/env.h>

/* The choices of `unit`. */
enum sl_radial_unit { SL_RADIAL_Q_NM, SL_RADIAL_TTH_DEG, SL_RADIAL_R_MM, SL_RADIAL_R_PIXELS };

struct sl_rays_options {
	uint32_t unit; /* enum sl_radial_unit */
	bool solid_angle;
	double polarisation; /* 0: none; 1: all in the plane of the rows */
	bool azimuth;	     /* chi is wanted, too: half of the cost */
};

struct sl_rays {
	struct sl_rays_options options;
	struct sl_geometry geometry; /* its layout is resolved */
	double wavelength_nm;
};

/* What a pixel sees: its middle, and how far its corners are from that at most. */
struct sl_ray {
	double x, half_x;     /* distance from the beam, in the unit */
	double chi, half_chi; /* about the beam, in degrees from -180 to 180; 0 along the rows, 90
				 down */
	double norm;
};

/* 0, or -EINVAL, logged with `who`: no distance, no pixel size, no energy for q. */
int sl_rays_open(struct sl_rays *rays, const struct sl_rays_options *options,
		 const struct sl_env *env, const char *who);

/* Only x, chi and norm. */
struct sl_ray sl_rays_middle(const struct sl_rays *rays, uint32_t module, uint32_t pixel);
/* All of it. */
struct sl_ray sl_rays_box(const struct sl_rays *rays, uint32_t module, uint32_t pixel);

/* The largest x of any pixel's middle, or of any box. */
double sl_rays_farthest(const struct sl_rays *rays, bool boxes);

#endif
