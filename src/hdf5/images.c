/* images.c - images out of datasets of any layout. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/handle.h"
#include "hdf5/images.h"

/* Chunks that are kept unpacked, at most, and slots of HDF5's table of them (a prime). */
#define CACHE_MOST_BYTES (UINT64_C(1) << 30)
enum { CACHE_SLOTS = 12421 };

struct sl_h5_images {
	struct sl_h5 *file;
	char name[SL_H5_NAME];
	hid_t dataset;
	struct sl_h5_shape shape;
	size_t chunk_bytes; /* 0: not in chunks */
};

static int refuse(const struct sl_h5_images *images, const char *why)
{
	sl_error("%s: %s: %s", images->file->path, images->name, why);
	return -EINVAL;
}

/* Images take whole pixels: what is one number each, in a type that a frame can have. */
static int check_shape(const struct sl_h5_images *images)
{
	const struct sl_h5_shape *s = &images->shape;
	char why[160 + SL_H5_SHAPE_TEXT], shape[SL_H5_SHAPE_TEXT];

	if (s->rank < 2 || s->rank > 4) {
		snprintf(why, sizeof(why),
			 "it has %u dimensions; images have 2, 3 (image, row, column) or 4 (image, "
			 "module, row, column)",
			 s->rank);
		return refuse(images, why);
	}
	if (sl_h5_elements(s, 0) && s->dim[0] <= UINT32_MAX &&
	    sl_h5_elements(s, s->rank > 2) <= SL_H5_PIXELS_MOST)
		return 0;
	snprintf(why, sizeof(why), "it is %s (%s numbers)",
		 sl_h5_elements(s, 0) ? "larger than any detector" : "empty",
		 sl_h5_shape_text(s, shape));
	return refuse(images, why);
}

static bool is_beside(const char *path, const char *name)
{
	char folder[PATH_MAX], beside[2 * PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", path);
	snprintf(beside, sizeof(beside), "%s/%s", dirname(folder), name);
	return !access(beside, R_OK);
}

/* Where HDF5 looks: beside the file as it was named, beside the file that a symbolic link leads to,
 * and in the working folder. */
static bool is_found(const char *path, const char *name)
{
	char real[PATH_MAX];

	return is_beside(path, name) || (realpath(path, real) && is_beside(real, name)) ||
	       !access(name, R_OK);
}

/* HDF5 gives fill values for what is missing of a virtual dataset, and says nothing. */
static int check_sources(const struct sl_h5_images *images, hid_t properties)
{
	size_t sources = 0;
	char name[PATH_MAX], why[PATH_MAX + 64];

	if (H5Pget_virtual_count(properties, &sources) < 0)
		return 0;
	for (size_t i = 0; i < sources; i++) {
		if (H5Pget_virtual_filename(properties, i, name, sizeof(name)) < 0 ||
		    !strcmp(name, ".") || strchr(name, '%'))
			continue;
		if (is_found(images->file->path, name))
			continue;
		snprintf(why, sizeof(why), "a part of it is in '%s', which cannot be read", name);
		return refuse(images, why);
	}
	return 0;
}

/* Room for the chunks that one image touches, so that those with several images are unpacked
 * once. */
static hid_t cache_for(struct sl_h5_images *images, hid_t properties)
{
	hsize_t chunk[H5S_MAX_RANK];
	hid_t access_properties = sl_h5_link_access(H5P_DATASET_ACCESS);
	uint64_t bytes = sl_h5_type_bytes(images->shape.type), count = 1;
	int rank = H5Pget_chunk(properties, H5S_MAX_RANK, chunk);

	for (int i = 0; i < rank; i++) {
		bytes *= chunk[i];
		if (i || rank == 2)
			count *= (images->shape.dim[i] + chunk[i] - 1) / chunk[i];
	}
	images->chunk_bytes = bytes;
	if (bytes * count > CACHE_MOST_BYTES)
		count = CACHE_MOST_BYTES / bytes;
	if (access_properties > 0 && count)
		H5Pset_chunk_cache(access_properties, CACHE_SLOTS, bytes * count, 1);
	return access_properties;
}

static int open_chunks(struct sl_h5_images *images)
{
	hid_t properties = H5Dget_create_plist(images->dataset), with_cache;
	H5D_layout_t layout = properties < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(properties);
	char why[256];
	int r = 0;

	if (layout == H5D_LAYOUT_ERROR)
		r = sl_h5_failed(images->file, "read", images->name);
	else if (layout == H5D_VIRTUAL)
		r = check_sources(images, properties);
	else if (layout == H5D_CHUNKED && sl_h5_filter_lacks(properties, why, sizeof(why)))
		r = refuse(images, why);
	else if (layout == H5D_CHUNKED) {
		with_cache = cache_for(images, properties);
		H5Dclose(images->dataset);
		images->dataset = H5Dopen2(images->file->id, images->name, with_cache);
		if (with_cache > 0)
			H5Pclose(with_cache);
		if (images->dataset < 0)
			r = sl_h5_failed(images->file, "read", images->name);
	}
	if (properties >= 0)
		H5Pclose(properties);
	return r;
}

int sl_h5_images_open(const char *path, const char *dataset, struct sl_h5_images **opened,
		      struct sl_h5_shape *shape)
{
	struct sl_h5_images *images = calloc(1, sizeof(*images));
	int r;

	if (!images)
		return -ENOMEM;
	images->dataset = H5I_INVALID_HID;
	snprintf(images->name, sizeof(images->name), "%s", dataset);
	r = sl_h5_open(path, &images->file);
	if (r) {
		free(images);
		return r;
	}
	sl_h5_filters();
	r = sl_h5_dataset(images->file, images->name, &images->dataset, &images->shape);
	if (r == -ENOTSUP)
		refuse(images, "images are whole numbers of 8, 16 or 32 bits, or float32");
	if (!r)
		r = check_shape(images);
	if (!r)
		r = open_chunks(images);
	if (r) {
		sl_h5_images_close(images);
		return r;
	}
	*shape = images->shape;
	*opened = images;
	return 0;
}

void sl_h5_images_close(struct sl_h5_images *images)
{
	if (images->dataset >= 0)
		H5Dclose(images->dataset);
	sl_h5_close(images->file);
	free(images);
}

int sl_h5_images_read(struct sl_h5_images *images, uint64_t index, void *data, size_t bytes)
{
	const struct sl_h5_shape *s = &images->shape;
	hsize_t start[SL_H5_RANK] = {0}, count[SL_H5_RANK];
	uint64_t whole = sl_h5_type_bytes(s->type);
	hid_t in_file, in_memory;
	int r = 0;

	for (uint32_t i = 0; i < s->rank; i++)
		count[i] = s->dim[i];
	if (s->rank > 2) {
		start[0] = index;
		count[0] = 1;
	}
	for (uint32_t i = 0; i < s->rank; i++)
		whole *= count[i];
	if (index >= (s->rank > 2 ? s->dim[0] : 1) || bytes != whole)
		return -EINVAL;
	sl_h5_prepare(); /* errors are noted per thread, and this may be another one */
	sl_h5_filter_expect(images->chunk_bytes);
	in_file = H5Dget_space(images->dataset);
	in_memory = H5Screate_simple((int)s->rank, count, NULL);
	if (in_file < 0 || in_memory < 0 ||
	    H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
	    H5Dread(images->dataset, sl_h5_native(s->type), in_memory, in_file, H5P_DEFAULT, data) <
		    0)
		r = sl_h5_failed(images->file, "read", images->name);
	sl_h5_filter_expect(0);
	if (in_memory >= 0)
		H5Sclose(in_memory);
	if (in_file >= 0)
		H5Sclose(in_file);
	return r;
}

struct search {
	char (*name)[SL_H5_NAME];
	unsigned most, found;
};

static bool may_be_images(hid_t object)
{
	hid_t space = H5Dget_space(object), type = H5Dget_type(object);
	hsize_t dim[H5S_MAX_RANK];
	int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dim, NULL);
	H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);

	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	return rank >= 2 && rank <= 4 && dim[rank - 1] > 1 &&
	       (class == H5T_INTEGER || class == H5T_FLOAT);
}

static herr_t look(hid_t root, const char *name, const H5O_info_t *info, void *arg)
{
	struct search *search = arg;
	hid_t object;

	if (info->type != H5O_TYPE_DATASET)
		return 0;
	object = H5Oopen(root, name, H5P_DEFAULT);
	if (object < 0)
		return 0;
	if (may_be_images(object)) {
		if (search->found < search->most)
			snprintf(search->name[search->found], SL_H5_NAME, "/%s", name);
		search->found++;
	}
	H5Oclose(object);
	return 0;
}

int sl_h5_images_find(const char *path, char (*name)[SL_H5_NAME], unsigned most, unsigned *found)
{
	struct search search = {.name = name, .most = most};
	struct sl_h5 *file;
	int r = sl_h5_open(path, &file);

	if (r)
		return r;
	if (H5Ovisit2(file->id, H5_INDEX_NAME, H5_ITER_INC, look, &search, H5O_INFO_BASIC) < 0)
		r = sl_h5_failed(file, "look through", "/");
	sl_h5_close(file);
	if (!r)
		*found = search.found;
	return r;
}

bool sl_h5_is_hdf5(const char *path)
{
	struct stat st;

	sl_h5_prepare();
	/* A pipe would wait for a writer. */
	return !stat(path, &st) && S_ISREG(st.st_mode) && H5Fis_hdf5(path) > 0;
}
