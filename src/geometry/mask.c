/* mask.c - masks: which kind of file, and which pixels of which modules. */
#include "geometry/mask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "calibration/field.h"

enum { PATH_BYTES = 512 };
#define FILE_MOST   (UINT64_C(1) << 32)
#define PIXELS_MOST (UINT64_C(1) << 30)

void sl_mask_path(const char *text, char *path, size_t bytes)
{
	sl_field_path(text, path, bytes);
}

int sl_mask_allocate(struct sl_mask_image *image, uint32_t size, size_t bytes,
		     char why[SL_MASK_WHY])
{
	uint64_t count = 1;

	if (image->rank < 2 || image->rank > 3) {
		snprintf(why, SL_MASK_WHY, "it has %u dimensions; a mask has 2 or 3", image->rank);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < image->rank; i++) {
		if (!image->dim[i] || image->dim[i] > PIXELS_MOST / count) {
			snprintf(why, SL_MASK_WHY, "it is empty, or larger than any detector");
			return -EINVAL;
		}
		count *= image->dim[i];
	}
	if (count > bytes / size) {
		snprintf(why, SL_MASK_WHY,
			 "it ends too soon: %llu numbers of %u bytes in %zu bytes",
			 (unsigned long long)count, size, bytes);
		return -EINVAL;
	}
	image->pixel = malloc(count * sizeof(*image->pixel));
	if (!image->pixel)
		snprintf(why, SL_MASK_WHY, "no memory for it");
	return image->pixel ? 0 : -ENOMEM;
}

static int parse_any(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		     char why[SL_MASK_WHY])
{
	if (bytes >= 6 && !memcmp(data, "\x93NUMPY", 6))
		return sl_mask_parse_npy(data, bytes, image, why);
	if (bytes >= 4 && (!memcmp(data, "II*\0", 4) || !memcmp(data, "MM\0*", 4)))
		return sl_mask_parse_tiff(data, bytes, image, why);
	if (bytes >= 1 && (data[0] == '{' || data[0] == '\r' || data[0] == '\n'))
		return sl_mask_parse_edf(data, bytes, image, why);
	snprintf(why, SL_MASK_WHY, "it is none of HDF5, npy, TIFF and EDF%s",
		 bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b ? ": it is compressed by gzip"
								  : "");
	return -EINVAL;
}

int sl_mask_parse(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		  char why[SL_MASK_WHY])
{
	uint64_t count = 1;
	int err;

	*image = (struct sl_mask_image){.rank = 0};
	err = parse_any(data, bytes, image, why);
	for (uint32_t i = 0; i < image->rank; i++)
		count *= image->dim[i];
	for (uint64_t i = 0; i < count && !err; i++)
		if (image->pixel[i] == SL_MASK_NAN) {
			snprintf(why, SL_MASK_WHY, "number %llu is NaN: every pixel has a number",
				 (unsigned long long)i);
			err = -EINVAL;
		}
	return err;
}

static int load(const char *path, const char *who, uint8_t **data, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	int err = 0;

	if (!file || fstat(fileno(file), &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MOST)
		err = S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
	else if (!(*data = malloc((size_t)st.st_size + 1)))
		err = -ENOMEM;
	else if (*bytes = (size_t)st.st_size, fread(*data, 1, *bytes, file) != *bytes)
		err = -EIO;
	if (file)
		fclose(file);
	if (err)
		sl_error("%s: cannot read '%s': %s", who, path, strerror(-err));
	return err;
}

static int read_image(const char *text, const char *who, struct sl_mask_image *image)
{
	char path[PATH_BYTES], why[SL_MASK_WHY];
	uint8_t *data = NULL;
	size_t bytes = 0;
	int err;

	sl_mask_path(text, path, sizeof(path));
	if (sl_field_is_hdf5(path))
		return sl_mask_read_hdf5(
			path, strlen(path) < strlen(text) ? text + strlen(path) + 1 : NULL, who,
			image);
	err = load(path, who, &data, &bytes);
	if (!err) {
		err = sl_mask_parse(data, bytes, image, why);
		if (err)
			sl_error("%s: '%s': %s", who, path, why);
	}
	free(data);
	return err;
}

/* ---- onto the modules ---- */

static bool is_shape(const struct sl_mask_image *image, uint64_t modules, uint64_t rows,
		     uint64_t columns)
{
	uint32_t skip = image->rank == 3 && (!modules || image->dim[0] == modules) ? 1 : 0;

	if (!modules && image->rank == 3 && image->dim[0] != 1)
		return false;
	return image->rank == 2 + skip && image->dim[skip] == rows &&
	       image->dim[skip + 1] == columns && (!modules || skip);
}

/* What is to be done with a number of the file. */
typedef void put_number(void *to, uint64_t pixel, uint32_t number);

static void put_mask(void *to, uint64_t pixel, uint32_t number)
{
	((uint8_t *)to)[pixel] |= number != 0;
}

static void put_label(void *to, uint64_t pixel, uint32_t number)
{
	((uint32_t *)to)[pixel] = number;
}

static void from_image(const struct sl_geometry *g, const uint32_t *number, put_number *put,
		       void *to)
{
	uint64_t pixels = sl_geometry_pixels(g);

	for (uint64_t i = 0; i < (uint64_t)g->layout.rows * g->layout.columns; i++) {
		uint32_t raw;
		int module = number[i] ? sl_layout_find(g, (int64_t)(i / g->layout.columns),
							(int64_t)(i % g->layout.columns), &raw)
				       : -1;

		if (module >= 0)
			put(to, (uint64_t)module * pixels + raw, number[i]);
	}
}

static int place(const char *text, const char *who, const struct sl_geometry *g,
		 const struct sl_mask_image *image, put_number *put, void *to)
{
	uint64_t pixels = g->modules * sl_geometry_pixels(g),
		 stack = (uint64_t)g->modules * g->rows;
	char shape[80];

	if (is_shape(image, 0, g->layout.rows, g->layout.columns)) {
		from_image(g, image->pixel, put, to);
		return 0;
	}
	if (is_shape(image, 0, stack, g->columns) ||
	    is_shape(image, g->modules, g->rows, g->columns)) {
		for (uint64_t i = 0; i < pixels; i++)
			put(to, i, image->pixel[i]);
		return 0;
	}
	snprintf(shape, sizeof(shape), image->rank == 3 ? "%llu x %llu x %llu" : "%llu x %llu",
		 (unsigned long long)image->dim[0], (unsigned long long)image->dim[1],
		 (unsigned long long)image->dim[2]);
	sl_error("%s: '%s' is %s; the detector is %u x %u assembled, %llu x %u with modules one "
		 "below the other, or %u x %u x %u",
		 who, text, shape, g->layout.rows, g->layout.columns, (unsigned long long)stack,
		 g->columns, g->modules, g->rows, g->columns);
	return -EINVAL;
}

int sl_mask_read(const char *text, const struct sl_geometry *geometry, uint8_t *mask)
{
	static const char who[] = "geometry.mask";
	struct sl_mask_image image = {.rank = 0};
	int err = read_image(text, who, &image);

	if (!err)
		err = place(text, who, geometry, &image, put_mask, mask);
	free(image.pixel);
	return err;
}

int sl_labels_read(const char *text, const char *who, const struct sl_geometry *geometry,
		   uint32_t *label)
{
	uint64_t pixels = geometry->modules * sl_geometry_pixels(geometry);
	struct sl_mask_image image = {.rank = 0};
	int err = read_image(text, who, &image);

	memset(label, 0, pixels * sizeof(*label));
	if (!err)
		err = place(text, who, geometry, &image, put_label, label);
	free(image.pixel);
	for (uint64_t i = 0; i < pixels && !err; i++)
		if (label[i] > SL_LABEL_MOST) {
			sl_error("%s: '%s': the number of a pixel is no label: labels are whole "
				 "numbers up to %d, and 0 where a pixel is in no region",
				 who, text, SL_LABEL_MOST);
			err = -EINVAL;
		}
	return err;
}
