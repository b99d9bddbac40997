/* mask_hdf5.c - masks out of HDF5. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "geometry/mask.h"
#include "hdf5/images.h"

/* The only dataset that could be an image. */
static int find(const char *path, const char *who, char *name, size_t bytes)
{
	char names[2][SL_H5_NAME];
	unsigned found = 0;
	int err = sl_h5_images_find(path, names, 2, &found);

	if (err)
		return err;
	if (found != 1) {
		sl_error("%s: '%s' has %s that could be an image%s", who, path,
			 found ? "several datasets" : "no dataset",
			 found ? "; name one, as in FILE:/mask" : "");
		return -EINVAL;
	}
	snprintf(name, bytes, "%s", names[0]);
	return 0;
}

static int look(const char *path, const char *who, const char *name, struct sl_h5_shape *shape)
{
	struct sl_h5_images *images;
	int err = sl_h5_images_open(path, name, &images, shape);

	if (err == -ENOENT)
		sl_error("%s: '%s' has no dataset '%s'", who, path, name);
	if (err)
		return err;
	sl_h5_images_close(images);
	return 0;
}

static int read_numbers(const char *path, const char *who, const char *name,
			struct sl_mask_image *image)
{
	size_t count = 1;
	struct sl_h5 *file;
	double *numbers;
	int err;

	for (uint32_t i = 0; i < image->rank; i++)
		count *= image->dim[i];
	numbers = malloc(count * sizeof(*numbers)); /* bounded by sl_mask_allocate() */
	if (!numbers) {
		sl_error("%s: '%s': no memory for %zu pixels", who, path, count);
		return -ENOMEM;
	}
	err = sl_h5_open(path, &file);
	if (!err) {
		err = sl_h5_read(file, name, SL_H5_F64, numbers, count * sizeof(*numbers));
		sl_h5_close(file);
	}
	for (size_t i = 0; i < count && !err; i++) {
		image->pixel[i] = sl_mask_number_of(numbers[i]);
		if (isnan(numbers[i])) {
			sl_error("%s: '%s': %s: number %zu is NaN: every pixel has a number", who,
				 path, name, i);
			err = -EINVAL;
		}
	}
	free(numbers);
	return err;
}

int sl_mask_read_hdf5(const char *path, const char *dataset, const char *who,
		      struct sl_mask_image *image)
{
	char name[SL_H5_NAME], why[SL_MASK_WHY];
	struct sl_h5_shape shape;
	int err = 0;

	if (dataset)
		snprintf(name, sizeof(name), "%s", dataset);
	else
		err = find(path, who, name, sizeof(name));
	if (!err)
		err = look(path, who, name, &shape);
	if (err)
		return err;
	*image = (struct sl_mask_image){.rank = shape.rank};
	for (uint32_t i = 0; i < shape.rank && i < 3; i++)
		image->dim[i] = shape.dim[i];
	err = sl_mask_allocate(image, 1, SIZE_MAX, why);
	if (err)
		sl_error("%s: '%s': %s: %s", who, path, name, why);
	return err ? err : read_numbers(path, who, name, image);
}
