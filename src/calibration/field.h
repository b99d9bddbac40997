/* field.h - a number for every pixel of a detector, out of a file: a dark image, a flat field.
 *
 * Model:     HDF5: a dataset [module][row][column], or [module * rows][column] with modules one
 *            below the other as they are read, of any numbers; one image, also as the only one of
 *            [image][...]. The only dataset of the file that could be images, or FILE:/DATASET.
 *            Raw binary: float32 or float64, little-endian, in that order; the size tells which.
 * Threads:   one; not a data thread.
 * Errors:    0 or -errno, logged here with the file and what is wrong.
 * Ownership: the numbers are the caller's, to free(). */
#ifndef SL_CALIBRATION_FIELD_H
#define SL_CALIBRATION_FIELD_H

#include <stddef.h>

#include <sluice/detector.h>

/* [module][pixel], NaN as it may be; -EINVAL: of another shape, or not one number is finite. `what`
 * it is for begins the message. */
int sl_field_read(const char *text, const char *what, const struct sl_geometry *geometry,
		  float **field);

/* The file that such a text names: FILE of FILE:/DATASET. */
void sl_field_path(const char *text, char *path, size_t bytes);

/* ---- between the files ---- */

/* Whether it begins as HDF5 files do. */
bool sl_field_is_hdf5(const char *path);

/* dataset NULL: the only one. */
int sl_field_read_hdf5(const char *path, const char *dataset, const char *what,
		       const struct sl_geometry *geometry, float *field);

#endif
