/* radial.c - bins and norms of pixels. */
#include "stage/radial.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"

static int refuse(const char *who, const char *why)
{
	sl_error("%s: %s", who, why);
	return -EINVAL;
}

int sl_radial_range(const struct sl_rays *rays, bool boxes, double low, double *high,
		    const char *who)
{
	if (*high > 0)
		return *high > low ? 0 : refuse(who, "high must be above low");
	*high = sl_rays_farthest(rays, boxes);
	if (*high == 0) /* one pixel, with the beam through its middle */
		*high = sl_rays_farthest(rays, true);
	/* So that the farthest pixel is inside of the last bin. */
	*high = nextafter(*high, INFINITY);
	return *high > low ? 0 : refuse(who, "low is beyond the farthest pixel");
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

/* How many pixels have a bin. */
static uint64_t fill(struct sl_radial *r, const struct sl_rays *rays, const struct sl_env *env)
{
	uint32_t pixels = (uint32_t)sl_geometry_pixels(&rays->geometry);
	uint64_t used = 0;

	for (uint64_t i = 0; i < r->pixels; i++) {
		struct sl_ray ray =
			sl_rays_middle(rays, (uint32_t)(i / pixels), (uint32_t)(i % pixels));
		double at = (ray.x - r->low) / (r->high - r->low) * r->bins;

		r->bin[i] = (uint16_t)r->bins;
		r->norm[i] = 0;
		if (!(at >= 0 && at < r->bins) || sl_radial_is_masked(env, i))
			continue;
		r->bin[i] = (uint16_t)at;
		r->norm[i] = (float)ray.norm;
		r->total[r->bin[i]] += r->norm[i];
		used++;
	}
	return used;
}

int sl_radial_open(struct sl_radial *radial, const struct sl_radial_options *options,
		   const struct sl_env *env, const char *who)
{
	const struct sl_rays_options o = {.unit = options->unit,
					  .solid_angle = options->solid_angle,
					  .polarisation = options->polarisation};
	struct sl_rays rays;
	double high = options->high;
	int err = sl_rays_open(&rays, &o, env, who);

	if (!err)
		err = sl_radial_range(&rays, false, options->low, &high, who);
	if (err)
		return err;
	*radial = (struct sl_radial){
		.bins = options->bins,
		.low = options->low,
		.high = high,
		.pixels = env->geometry->modules * sl_geometry_pixels(env->geometry),
	};
	err = allocate(radial, who);
	if (!err && !fill(radial, &rays, env)) {
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
