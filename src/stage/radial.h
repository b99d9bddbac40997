/* radial.h - in which ring about the beam each pixel is, and what share of what falls there it
 * sees.
 *
 * Model:     rings are equally wide in the unit. The middle of a raw pixel decides on its ring
 *            (bin); its norm is that of rays.h.
 * Ownership: tables in one region, pages there after open; read-only from then on. */
#ifndef SL_STAGE_RADIAL_H
#define SL_STAGE_RADIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/env.h>

#include "core/region.h"
#include "stage/rays.h"

struct sl_radial_options {
	uint32_t bins;
	uint32_t unit;	  /* enum sl_radial_unit */
	double low, high; /* in that unit; high 0: to the farthest pixel */
	bool solid_angle;
	double polarisation; /* 0: none; 1: all in the plane of the rows */
};

struct sl_radial {
	uint32_t bins;
	double low, high;
	uint64_t pixels;	 /* of all modules */
	uint16_t *bin;		 /* [pixels]; `bins`: masked, or out of range */
	float *norm;		 /* [pixels]; 0 where bin is `bins` */
	double *total;		 /* [bins]: all norms of a bin */
	struct sl_region memory; /* of these */
};

/* 0, or -errno, logged with `who`: no distance, no energy for q, a range without pixels. */
int sl_radial_open(struct sl_radial *radial, const struct sl_radial_options *options,
		   const struct sl_env *env, const char *who);
void sl_radial_close(struct sl_radial *radial);

/* The middle of a bin, in the unit. */
double sl_radial_middle(const struct sl_radial *radial, uint32_t bin);

/* ---- what other tables by distance share with this ---- */

/* The range that is asked for; high 0 becomes the farthest pixel's middle, or its far end. 0, or
 * -EINVAL, logged. */
int sl_radial_range(const struct sl_rays *rays, bool boxes, double low, double *high,
		    const char *who);

static inline bool sl_radial_is_masked(const struct sl_env *env, uint64_t pixel)
{
	return env->calibration && env->calibration->mask && env->calibration->mask[pixel];
}

#endif
