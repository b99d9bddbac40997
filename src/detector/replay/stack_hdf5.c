/* stack_hdf5.c - images in datasets. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/paths.h"
#include "detector/replay/stack.h"
#include "hdf5/images.h"

/* NXmx, and what Dectris' master files have: links to one dataset in each data file. */
#define USUAL	       "/entry/data/data"
#define USUAL_NUMBERED "/entry/data/data_%06u"

enum { SHOWN = 6 };

static const enum sl_dtype types[SL_H5_TYPES] = {
	[SL_H5_U8] = SL_U8,	  [SL_H5_U16] = SL_U16, [SL_H5_U32] = SL_U32,
	[SL_H5_U64] = SL_DTYPES,  [SL_H5_I16] = SL_I16, [SL_H5_I32] = SL_I32,
	[SL_H5_I64] = SL_DTYPES,  [SL_H5_F32] = SL_F32, [SL_H5_F64] = SL_DTYPES,
	[SL_H5_TEXT] = SL_DTYPES,
};

bool sl_stack_hdf5_is(const char *path)
{
	return sl_h5_is_hdf5(path);
}

/* 0: there; -ENOENT: not; others are logged. */
static int is_there(const char *path, const char *name)
{
	struct sl_h5_shape shape;
	struct sl_h5 *file;
	int err = sl_h5_open(path, &file);

	if (err)
		return err == -ENOENT ? -EIO : err;
	err = sl_h5_describe(file, name, &shape);
	if (err == -ENOENT && sl_h5_dangles(file, name)) {
		sl_error("replay: '%s': %s is a link, and what it leads to is not there", path,
			 name);
		err = -ENOLINK;
	}
	sl_h5_close(file);
	return err;
}

static int find_only(const char *path, char *name, size_t bytes)
{
	char found[SHOWN][SL_H5_NAME], text[SHOWN * (SL_H5_NAME + 1) + 1] = "";
	unsigned n = 0;
	int err = sl_h5_images_find(path, found, SHOWN, &n);

	if (err)
		return err;
	if (n == 1) {
		if (snprintf(name, bytes, "%s", found[0]) < (int)bytes)
			return 0;
	}
	for (unsigned i = 0; i < n && i < SHOWN; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", found[i]);
	if (n)
		sl_error("replay: '%s' has %u datasets that may be images; set dataset to one "
			 "of%s%s",
			 path, n, text, n > SHOWN ? " ..." : "");
	else
		sl_error("replay: '%s' has no dataset of images (2, 3 or 4 dimensions of numbers); "
			 "set dataset where it is behind a link",
			 path);
	return -EINVAL;
}

static int numbered(const char *path, const char *pattern, unsigned k, char *name, size_t bytes)
{
	unsigned first = 0;
	int err = sl_paths_number(pattern, 0, name, bytes);

	if (err) {
		sl_error("replay: dataset '%s' takes one number, as in %%d or %%06d", pattern);
		return err == -ENOENT ? -EINVAL : err;
	}
	err = is_there(path, name);
	if (err == -ENOENT)
		first = 1;
	else if (err)
		return err;
	sl_paths_number(pattern, k + first, name, bytes);
	return is_there(path, name);
}

int sl_stack_hdf5_dataset(const char *path, const char *asked, unsigned k, char *name, size_t bytes)
{
	int err;

	if (asked[0] && strchr(asked, '%')) {
		err = numbered(path, asked, k, name, bytes);
		if (err == -ENOENT && !k)
			sl_error("replay: '%s' has no dataset '%s' for number 0 or 1", path, asked);
		return err == -ENOENT && !k ? -EINVAL : err;
	}
	if (asked[0]) {
		snprintf(name, bytes, "%s", asked);
		return k ? -ENOENT : 0;
	}
	err = k ? -ENOENT : is_there(path, USUAL);
	if (!err)
		snprintf(name, bytes, "%s", USUAL);
	if (err != -ENOENT)
		return err;
	err = k && !is_there(path, USUAL) ? -ENOENT
					  : numbered(path, USUAL_NUMBERED, k, name, bytes);
	if (err != -ENOENT || k)
		return err;
	return find_only(path, name, bytes);
}

int sl_stack_hdf5_open(const char *path, const char *dataset, struct sl_stack_part *part,
		       struct sl_stack_shape *shape)
{
	struct sl_h5_shape found;
	uint32_t at;
	int err = sl_h5_images_open(path, dataset, &part->h5, &found);

	if (err == -ENOENT)
		sl_error("replay: '%s' has no dataset '%s'", path, dataset);
	if (err)
		return err;
	shape->dtype = types[found.type];
	if (shape->dtype == SL_DTYPES) {
		sl_error(
			"replay: '%s': %s has 64-bit numbers or text; pixels have 8, 16 or 32 bits",
			path, dataset);
		return -EINVAL;
	}
	at = found.rank - 2;
	shape->rows = (uint32_t)found.dim[at];
	shape->columns = (uint32_t)found.dim[at + 1];
	shape->modules = found.rank == 4 ? (uint32_t)found.dim[1] : 0;
	shape->image_bytes = (uint64_t)shape->rows * shape->columns * sl_dtype_bytes(shape->dtype);
	if (shape->modules && shape->image_bytes > UINT64_MAX / shape->modules)
		return -EFBIG;
	shape->image_bytes *= shape->modules ? shape->modules : 1;
	part->images = found.rank == 2 ? 1 : found.dim[0];
	return 0;
}

int sl_stack_hdf5_read(const struct sl_stack_part *part, uint64_t image, void *data, size_t bytes)
{
	return sl_h5_images_read(part->h5, image, data, bytes);
}

void sl_stack_hdf5_close(struct sl_stack_part *part)
{
	if (part->h5)
		sl_h5_images_close(part->h5);
	part->h5 = NULL;
}
