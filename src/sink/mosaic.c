/* mosaic.c - images with gaps, and masks. */
#include "sink/mosaic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void choose_fill(enum sl_dtype dtype, uint8_t fill[4])
{
	const int16_t least_16 = INT16_MIN;
	const int32_t least_32 = INT32_MIN;
	const float nothing = NAN;

	memset(fill, 0xff, 4);
	if (dtype == SL_I16)
		memcpy(fill, &least_16, sizeof(least_16));
	else if (dtype == SL_I32)
		memcpy(fill, &least_32, sizeof(least_32));
	else if (dtype == SL_F32)
		memcpy(fill, &nothing, sizeof(nothing));
}

int sl_mosaic_open(struct sl_mosaic *m, const struct sl_env *env, const struct sl_shape *shape,
		   const char *sink)
{
	struct sl_geometry *g = &m->geometry;
	char why[128];

	*m = (struct sl_mosaic){.geometry = *env->geometry,
				.bytes = (uint32_t)sl_dtype_bytes(shape->dtype)};
	sl_layout_resolve(env->geometry, &g->layout);
	if (sl_shape_elements(shape) != g->modules * sl_geometry_pixels(g)) {
		sl_error("%s: '%s' is not made of the modules' pixels: it cannot be assembled",
			 sink, shape->name);
		return -EINVAL;
	}
	if (sl_layout_check(g, why, sizeof(why))) {
		sl_error("%s: the detector's layout is none: %s", sink, why);
		return -EINVAL;
	}
	choose_fill(shape->dtype, m->fill);
	return 0;
}

void sl_mosaic_assemble(const struct sl_mosaic *m, const void *modules, uint64_t missing,
			void *image)
{
	sl_layout_assemble(&m->geometry, m->bytes, modules, missing, m->fill, image);
}

uint32_t *sl_modules_mask(const struct sl_geometry *g, const struct sl_calibration *calibration)
{
	const uint8_t *bad = calibration ? calibration->mask : NULL;
	uint64_t pixels = sl_geometry_pixels(g), all = g->modules * pixels;
	uint32_t *mask = malloc(all * sizeof(*mask));

	for (uint64_t i = 0; mask && i < all; i++)
		mask[i] = (bad && bad[i] ? SL_MASK_DEAD : 0) |
			  (sl_layout_share(g, (uint32_t)(i % pixels)) > 1 ? SL_MASK_VIRTUAL : 0);
	return mask;
}

uint32_t *sl_mosaic_mask(const struct sl_mosaic *m, const struct sl_calibration *calibration)
{
	const struct sl_geometry *g = &m->geometry;
	const uint32_t gap = SL_MASK_GAP;
	uint32_t *raw = sl_modules_mask(g, calibration);
	uint32_t *mask = malloc((size_t)g->layout.rows * g->layout.columns * sizeof(*mask));

	if (raw && mask) {
		sl_layout_assemble(g, sizeof(*mask), raw, 0, &gap, mask);
	} else {
		free(mask);
		mask = NULL;
	}
	free(raw);
	return mask;
}
