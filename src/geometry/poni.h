/* poni.h - geometry files of pyFAI (.poni), versions 1, 2 and 2.1.
 *
 * Model:     lines "key: value"; a key that comes again replaces the one before, as pyFAI appends
 *            calibrations to a file. Of the detector only what can be checked is read: the size of
 *            a pixel, the shape, the orientation. The image is the assembled one.
 * Errors:    logged with file and line. */
#ifndef SL_GEOMETRY_PONI_H
#define SL_GEOMETRY_PONI_H

#include <stdio.h>

#include "geometry/plane.h"

struct sl_poni_file {
	struct sl_poni poni;
	double pixel1, pixel2, wavelength_m; /* 0: the file has none */
	uint32_t rows, columns;		     /* of the image; 0: the file does not say */
	/* pyFAI's: 3 is its default, and what files without one have; 1 is the same turned by half
	 * a turn, 2 and 4 are mirrored. */
	uint32_t orientation;
	unsigned pixel_line, shape_line; /* where these are */
};

/* `file` is for messages. */
int sl_poni_parse(const char *file, const char *text, size_t bytes, struct sl_poni_file *poni);

/* The plane of a geometry's image, which must have the file's shape and pixels. */
int sl_poni_plane(const char *file, const struct sl_poni_file *poni,
		  const struct sl_geometry *geometry, struct sl_plane *plane);

/* Version 2, as pyFAI reads it. */
void sl_poni_write(FILE *out, const struct sl_poni_file *poni);

#endif
