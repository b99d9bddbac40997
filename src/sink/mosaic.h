/* mosaic.h - modules put together to the detector's image, with gaps, for a sink.
 *
 * Model:     the layout says where each raw pixel goes. What is not a pixel, or of a module that is
 *            missing, gets what marks no measurement in images of that type: the lowest number of a
 *            signed one, the highest of an unsigned one, NaN. The mask tells the same, and which
 *            pixels are bad by the calibration, with NeXus's bits.
 * Threads:   those of the sink.
 *            Assembling changes nothing here: several threads may.
 * Cost:      a copy of every image. */
#ifndef SL_SINK_MOSAIC_H
#define SL_SINK_MOSAIC_H

#include <sluice/env.h>

#include "hdf5/geometry.h"

struct sl_mosaic {
	struct sl_geometry geometry; /* with its layout */
	uint32_t bytes;		     /* of a pixel */
	uint8_t fill[4];
};

/* -EINVAL: the result is not made of the modules' pixels, or the layout is none. Logged, by the
 * name of the sink. */
int sl_mosaic_open(struct sl_mosaic *mosaic, const struct sl_env *env, const struct sl_shape *shape,
		   const char *sink);

/* image: [layout.rows][layout.columns]. */
void sl_mosaic_assemble(const struct sl_mosaic *mosaic, const void *modules, uint64_t missing,
			void *image);

/* [modules][rows][columns], malloc'ed, of a geometry with its layout: wide and bad pixels. NULL: no
 * memory. */
uint32_t *sl_modules_mask(const struct sl_geometry *geometry,
			  const struct sl_calibration *calibration);

/* [layout.rows][layout.columns], malloc'ed: gaps, too. NULL: no memory. */
uint32_t *sl_mosaic_mask(const struct sl_mosaic *mosaic, const struct sl_calibration *calibration);

#endif
