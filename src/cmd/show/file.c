/* file.c - an image of a run's NeXus file, as a picture. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cmd/show/show.h"
#include "hdf5/file.h"

#define DATA "/entry/data/data"
#define MASK "/entry/instrument/detector/pixel_mask"

bool sl_show_is_file(const char *path)
{
	static const char magic[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
	char begin[8] = "";
	struct stat st;
	/* A pipe would wait for a writer, and what is read of it would be missing later. */
	FILE *file = !stat(path, &st) && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	bool is = file && fread(begin, sizeof(begin), 1, file) == 1 &&
		  !memcmp(begin, magic, sizeof(magic));

	if (file)
		fclose(file);
	return is;
}

/* What marks a pixel that was not measured, by its type: see the stage `correct`, and the fill of
 * missing modules. */
static bool is_nothing(enum sl_h5_type type, float x)
{
	switch (type) {
	case SL_H5_I16:
		return x <= INT16_MIN;
	case SL_H5_U16:
		return x >= UINT16_MAX;
	case SL_H5_U32:
		return x >= (float)UINT32_MAX;
	default:
		return false;
	}
}

/* Where the file has a mask of this size, gaps and bad pixels are nothing; virtual ones stay. */
static void apply_mask(struct sl_h5 *file, struct sl_picture *p)
{
	size_t pixels = (size_t)p->rows * p->columns;
	struct sl_h5_shape shape;
	uint32_t *mask;

	if (sl_h5_describe(file, MASK, &shape) || shape.rank != 2 || shape.dim[0] != p->rows ||
	    shape.dim[1] != p->columns)
		return;
	mask = malloc(pixels * sizeof(*mask));
	if (mask && !sl_h5_read(file, MASK, SL_H5_U32, mask, pixels * sizeof(*mask)))
		for (size_t i = 0; i < pixels; i++)
			if (mask[i] & 0x7fffffff)
				p->pixels[i] = NAN;
	free(mask);
}

static int read_image(struct sl_h5 *file, const char *path, uint64_t index, struct sl_picture *p)
{
	struct sl_h5_shape shape;
	int err = sl_h5_describe(file, DATA, &shape);
	char text[SL_H5_SHAPE_TEXT];
	size_t pixels;

	if (err == -ENOENT || (!err && shape.rank != 3)) {
		sl_error("%s: has no images in %s", path, DATA);
		return -EINVAL;
	}
	if (!err && index >= shape.dim[0]) {
		sl_error("%s: has images 0 to %lld, not %" PRIu64, path,
			 (long long)shape.dim[0] - 1, index);
		return -EINVAL;
	}
	if (err)
		return err;
	pixels = sl_h5_elements(&shape, 1);
	if (!pixels || pixels > SL_H5_PIXELS_MOST) {
		sl_error("%s: %s: has images that are %s (%s numbers)", path, DATA,
			 pixels ? "larger than any detector" : "empty",
			 sl_h5_shape_text(&shape, text));
		return -EINVAL;
	}
	*p = (struct sl_picture){(uint32_t)shape.dim[1], (uint32_t)shape.dim[2], NULL};
	p->pixels = malloc(pixels * sizeof(float));
	if (!p->pixels) {
		sl_error("%s: %s: no memory for an image of %u x %u pixels", path, DATA, p->rows,
			 p->columns);
		return -ENOMEM;
	}
	err = sl_h5_read_row(file, DATA, index, SL_H5_F32, p->pixels, pixels * sizeof(float));
	for (size_t i = 0; i < pixels && !err; i++)
		if (is_nothing(shape.type, p->pixels[i]))
			p->pixels[i] = NAN;
	return err;
}

int sl_show_file(const char *path, uint64_t index, struct sl_picture *picture, uint64_t *number)
{
	struct sl_h5 *file;
	int err = sl_h5_open(path, &file);

	if (err)
		return err;
	*picture = (struct sl_picture){.pixels = NULL};
	err = read_image(file, path, index, picture);
	if (!err) {
		apply_mask(file, picture);
		if (sl_h5_read_row(file, "/entry/data/frame_number", index, SL_H5_U64, number,
				   sizeof(*number)))
			*number = index;
	} else {
		free(picture->pixels);
		picture->pixels = NULL;
	}
	sl_h5_close(file);
	return err;
}
