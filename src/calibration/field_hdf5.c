/* field_hdf5.c - numbers per pixel out of HDF5. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "calibration/field.h"
#include "hdf5/images.h"

/* The only dataset that could be images. */
static int find(const char *path, const char *what, char *name, size_t bytes)
{
	char names[2][SL_H5_NAME];
	unsigned found = 0;
	int err = sl_h5_images_find(path, names, 2, &found);

	if (err)
		return err;
	if (found != 1) {
		sl_error("%s: '%s' has %s that could be an image%s", what, path,
			 found ? "several datasets" : "no dataset",
			 found ? "; name one, as in FILE:/entry/data/data" : "");
		return -EINVAL;
	}
	snprintf(name, bytes, "%s", names[0]);
	return 0;
}

/* Dimensions of 1 in front are the only image. */
static bool fits(const struct sl_h5_shape *shape, const struct sl_geometry *g)
{
	const uint64_t apart[] = {g->modules, g->rows, g->columns};
	const uint64_t together[] = {(uint64_t)g->modules * g->rows, g->columns};

	for (uint32_t skip = 0; skip < shape->rank && skip < 3; skip++) {
		const uint64_t *dim = shape->dim + skip;
		uint32_t rank = shape->rank - skip;

		if ((rank == 3 && !memcmp(dim, apart, sizeof(apart))) ||
		    (rank == 2 && !memcmp(dim, together, sizeof(together))))
			return true;
		if (*dim != 1)
			return false;
	}
	return false;
}

/* Opened as images first: that knows what it can unpack, and says so. */
static int look(const char *path, const char *name, const char *what, const struct sl_geometry *g)
{
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	char text[SL_H5_SHAPE_TEXT];
	int err = sl_h5_images_open(path, name, &images, &shape);

	if (err == -ENOENT)
		sl_error("%s: '%s' has no dataset '%s'", what, path, name);
	if (err)
		return err;
	sl_h5_images_close(images);
	if (fits(&shape, g))
		return 0;
	sl_h5_shape_text(&shape, text);
	sl_error("%s: '%s' has %s numbers in %s; the detector has %u modules of %u x %u pixels",
		 what, path, text, name, g->modules, g->rows, g->columns);
	return -EINVAL;
}

int sl_field_read_hdf5(const char *path, const char *dataset, const char *what,
		       const struct sl_geometry *geometry, float *field)
{
	char name[SL_H5_NAME];
	struct sl_h5 *file;
	int err = 0;

	if (dataset)
		snprintf(name, sizeof(name), "%s", dataset);
	else
		err = find(path, what, name, sizeof(name));
	if (!err)
		err = look(path, name, what, geometry);
	if (!err)
		err = sl_h5_open(path, &file);
	if (err)
		return err;
	err = sl_h5_read(file, name, SL_H5_F32, field,
			 geometry->modules * sl_geometry_pixels(geometry) * sizeof(*field));
	sl_h5_close(file);
	return err;
}
