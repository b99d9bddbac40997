/* image.h - a stage's result as DECTRIS' clients take images: unsigned, with gaps and bad pixels at
 * the type's maximum.
 *
 * Model:     modules are put together by the detector's layout, or lie one below the other. int16
 *            becomes uint16: what is below 0 becomes 0 and is counted; -32768, which marks a pixel
 *            without a measurement, becomes 65535. Pixels that the calibration masks, gaps, and
 *            modules that are missing get the type's maximum, whatever their type.
 * Threads:   sl_image_make() on any threads at a time, each with memory of its own.
 * Ownership: plain data, and lists that sl_image_close() frees.
 * Cost:      one pass to assemble and one to convert; neither for unsigned modules without bad
 *            pixels, which are used where they lie. */
#ifndef SL_SINK_STREAM2_IMAGE_H
#define SL_SINK_STREAM2_IMAGE_H

#include <stdbool.h>

#include <sluice/env.h>

#include "sink/mosaic.h"

struct sl_image {
	struct sl_geometry geometry; /* with its layout resolved */
	bool assembled, of_modules;  /* of_modules: one element per pixel of the detector */
	enum sl_dtype from, dtype;   /* of the result; as sent */
	uint32_t rows, columns, element;
	uint64_t bytes;	     /* of the image */
	uint64_t from_bytes; /* of the result */
	uint32_t *mask;	     /* [rows][columns], NeXus's bits; NULL: none is known */
	uint32_t *bad;	     /* places in the image of pixels that are masked and not a gap */
	uint32_t bads;
	bool changes; /* sl_image_make() must write an image of its own */
};

/* -EINVAL: this result cannot be sent, logged; -ENOMEM. After either, close as well. */
int sl_image_open(struct sl_image *image, const struct sl_env *env, const struct sl_shape *shape,
		  bool assembled);
void sl_image_close(struct sl_image *image);

/* Where the beam hits the image; NaN: not known. */
void sl_image_beam(const struct sl_image *image, double *row, double *column);

/* The image of a result: in `memory` (image->bytes), or the result itself. Adds pixels below 0 to
 * `clipped`. */
const void *sl_image_make(const struct sl_image *image, const void *result, uint64_t missing,
			  void *memory, uint64_t *clipped);

#endif
