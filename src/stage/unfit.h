/* unfit.h - pixels that say nothing about peaks: masked, or wider than others.
 *
 * Model:     raw pixels at the edges of ASICs may be wide (layout.h): they count more of the
 *            background than their neighbours, and look like peaks. */
#ifndef SL_STAGE_UNFIT_H
#define SL_STAGE_UNFIT_H

#include <stdbool.h>

#include <sluice/env.h>

/* g: the geometry with its layout resolved; pixel: [modules][pixels]; wide: they are fit, too. */
static inline bool sl_is_unfit(const struct sl_env *env, const struct sl_geometry *g, bool wide,
			       uint64_t pixel)
{
	if (env->calibration && env->calibration->mask && env->calibration->mask[pixel])
		return true;
	return !wide && sl_layout_share(g, (uint32_t)(pixel % sl_geometry_pixels(g))) > 1;
}

#endif
