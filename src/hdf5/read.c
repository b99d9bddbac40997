/* read.c - reading back: whole datasets, single rows, texts and attributes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/handle.h"

/* Every part of the path must exist before HDF5 may be asked for the whole. */
static bool linked(struct sl_h5 *file, const char *path)
{
	char *copy = strdup(path), *slash;
	bool found = copy != NULL;

	for (slash = copy ? strchr(copy + 1, '/') : NULL; slash && found;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		found = H5Lexists(file->id, copy, file->links) > 0;
		*slash = '/';
	}
	found = found && (!strcmp(copy, "/") || H5Lexists(file->id, copy, file->links) > 0);
	free(copy);
	return found;
}

static bool exists(struct sl_h5 *file, const char *path)
{
	return linked(file, path) &&
	       H5Oexists_by_name(file->id, path, file->links) > 0; /* a link to nowhere */
}

bool sl_h5_dangles(struct sl_h5 *file, const char *path)
{
	return linked(file, path) && !exists(file, path);
}

static int classify(hid_t type, enum sl_h5_type *out)
{
	bool is_signed = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
	size_t bytes = H5Tget_size(type);

	if (H5Tget_class(type) == H5T_STRING) {
		*out = SL_H5_TEXT;
		return 0;
	}
	for (unsigned i = 0; i < SL_H5_TEXT; i++) {
		hid_t native = sl_h5_native(i);

		if (H5Tget_class(native) == H5Tget_class(type) && H5Tget_size(native) == bytes &&
		    (i >= SL_H5_F32 || (i >= SL_H5_I16) == is_signed)) {
			*out = i;
			return 0;
		}
	}
	return -ENOTSUP;
}

static int describe(hid_t dataset, struct sl_h5_shape *shape)
{
	hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
	hsize_t dim[H5S_MAX_RANK];
	int r = -EIO, rank;

	if (type < 0 || space < 0)
		goto undo_ids;
	rank = H5Sget_simple_extent_dims(space, dim, NULL);
	if (rank < 0)
		goto undo_ids;
	r = rank > SL_H5_RANK ? -ENOTSUP : classify(type, &shape->type);
	shape->rank = (uint32_t)rank;
	for (int i = 0; i < rank && !r; i++)
		shape->dim[i] = dim[i];
undo_ids:
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

int sl_h5_dataset(struct sl_h5 *file, const char *path, hid_t *dataset, struct sl_h5_shape *shape)
{
	hid_t id, access;
	int r;

	if (!exists(file, path))
		return -ENOENT;
	access = sl_h5_link_access(H5P_DATASET_ACCESS);
	id = H5Dopen2(file->id, path, access);
	if (access > 0)
		H5Pclose(access);
	if (id < 0)
		return sl_h5_failed(file, "read", path);
	r = sl_h5_check_origin(file->path, id, path);
	if (r) {
		H5Dclose(id);
		return r;
	}
	r = describe(id, shape);
	if (r) {
		H5Dclose(id);
		if (r != -ENOTSUP)
			return sl_h5_stop(file, r, "understand", path);
		sl_error("%s: %s: has %s", file->path, path,
			 shape->rank > SL_H5_RANK
				 ? "too many dimensions"
				 : "numbers of another kind than whole ones of 8, 16, 32 or 64 "
				   "bits (int8 is not read), float32 or float64");
		return r;
	}
	*dataset = id;
	return 0;
}

int sl_h5_describe(struct sl_h5 *file, const char *path, struct sl_h5_shape *shape)
{
	struct sl_h5_shape found = {0};
	hid_t dataset;
	int r = sl_h5_dataset(file, path, &dataset, &found);

	if (r)
		return r;
	H5Dclose(dataset);
	*shape = found;
	return 0;
}

uint64_t sl_h5_elements(const struct sl_h5_shape *shape, uint32_t first)
{
	uint64_t count = 1;
	bool over = false;

	for (uint32_t i = first; i < shape->rank; i++) {
		if (!shape->dim[i])
			return 0;
		over |= __builtin_mul_overflow(count, shape->dim[i], &count);
	}
	return over ? UINT64_MAX : count;
}

const char *sl_h5_shape_text(const struct sl_h5_shape *shape, char text[SL_H5_SHAPE_TEXT])
{
	size_t at = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < shape->rank && at < SL_H5_SHAPE_TEXT; i++)
		at += (size_t)snprintf(text + at, SL_H5_SHAPE_TEXT - at, "%s%llu", i ? " x " : "",
				       (unsigned long long)shape->dim[i]);
	return text;
}

/* UINT64_MAX: more than that. */
static uint64_t bytes_from(const struct sl_h5_shape *shape, uint32_t first, uint64_t rows,
			   enum sl_h5_type type)
{
	uint64_t bytes = sl_h5_elements(shape, first);

	return __builtin_mul_overflow(bytes, rows, &bytes) ||
			       __builtin_mul_overflow(bytes, sl_h5_type_bytes(type), &bytes)
		       ? UINT64_MAX
		       : bytes;
}

static int read_all(struct sl_h5 *file, hid_t dataset, const struct sl_h5_shape *shape,
		    const char *path, enum sl_h5_type type, void *data, size_t bytes)
{
	if (bytes_from(shape, 0, 1, type) != bytes)
		return sl_h5_stop(file, -EMSGSIZE, "read", path);
	if (bytes && H5Dread(dataset, sl_h5_native(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
		return sl_h5_failed(file, "read", path);
	return 0;
}

int sl_h5_read(struct sl_h5 *file, const char *path, enum sl_h5_type type, void *data, size_t bytes)
{
	struct sl_h5_shape shape;
	hid_t dataset;
	int r = sl_h5_dataset(file, path, &dataset, &shape);

	if (r)
		return r;
	r = read_all(file, dataset, &shape, path, type, data, bytes);
	H5Dclose(dataset);
	return r;
}

static int read_slab(struct sl_h5 *file, hid_t dataset, const struct sl_h5_shape *shape,
		     uint64_t first, uint64_t rows, const char *path, enum sl_h5_type type,
		     void *data)
{
	hsize_t start[SL_H5_RANK] = {first}, count[SL_H5_RANK] = {rows};
	hid_t in_file = H5Dget_space(dataset), in_memory;
	int r = 0;

	for (uint32_t i = 1; i < shape->rank; i++)
		count[i] = shape->dim[i];
	in_memory = H5Screate_simple((int)shape->rank, count, NULL);
	if (in_file < 0 || in_memory < 0 ||
	    H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
	    H5Dread(dataset, sl_h5_native(type), in_memory, in_file, H5P_DEFAULT, data) < 0)
		r = sl_h5_failed(file, "read", path);
	if (in_memory >= 0)
		H5Sclose(in_memory);
	if (in_file >= 0)
		H5Sclose(in_file);
	return r;
}

int sl_h5_read_rows(struct sl_h5 *file, const char *path, uint64_t first, uint64_t count,
		    enum sl_h5_type type, void *data, size_t bytes)
{
	struct sl_h5_shape shape;
	hid_t dataset;
	int r = sl_h5_dataset(file, path, &dataset, &shape);

	if (r)
		return r;
	if (!shape.rank || first > shape.dim[0] || count > shape.dim[0] - first)
		r = sl_h5_stop(file, -ERANGE, "read that row of", path);
	else if (bytes_from(&shape, 1, count, type) != bytes)
		r = sl_h5_stop(file, -EMSGSIZE, "read a row of", path);
	else if (count)
		r = read_slab(file, dataset, &shape, first, count, path, type, data);
	H5Dclose(dataset);
	return r;
}

int sl_h5_read_row(struct sl_h5 *file, const char *path, uint64_t row, enum sl_h5_type type,
		   void *data, size_t bytes)
{
	return sl_h5_read_rows(file, path, row, 1, type, data, bytes);
}

/* Text lies in files as fixed or as variable strings. Both end up in one array of C strings. */
static int fetch_texts(hid_t type, hid_t dataset, hid_t attribute, uint64_t count, uint64_t index,
		       char *text, size_t bytes)
{
	size_t size = H5Tis_variable_str(type) > 0 ? sizeof(char *) : H5Tget_size(type);
	char *raw = calloc(count, size), **pointers = (char **)raw;
	herr_t status;

	if (!raw)
		return -ENOMEM;
	status = dataset >= 0 ? H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw)
			      : H5Aread(attribute, type, raw);
	if (status >= 0 && H5Tis_variable_str(type) > 0) {
		snprintf(text, bytes, "%s", pointers[index] ? pointers[index] : "");
		for (uint64_t i = 0; i < count; i++)
			H5free_memory(pointers[i]);
	} else if (status >= 0) {
		snprintf(text, bytes, "%.*s", (int)size, raw + index * size);
	}
	free(raw);
	return status < 0 ? -EIO : 0;
}

int sl_h5_read_text(struct sl_h5 *file, const char *path, uint64_t index, char *text, size_t bytes)
{
	struct sl_h5_shape shape;
	uint64_t count;
	hid_t dataset, type;
	int r = sl_h5_dataset(file, path, &dataset, &shape);

	if (r)
		return r;
	count = sl_h5_elements(&shape, 0);
	if (shape.type != SL_H5_TEXT || index >= count) {
		r = sl_h5_stop(file, shape.type == SL_H5_TEXT ? -ERANGE : -EINVAL,
			       "read as text:", path);
	} else {
		type = H5Dget_type(dataset);
		if (fetch_texts(type, dataset, H5I_INVALID_HID, count, index, text, bytes))
			r = sl_h5_failed(file, "read", path);
		H5Tclose(type);
	}
	H5Dclose(dataset);
	return r;
}

static int open_attribute(struct sl_h5 *file, const char *path, const char *name, hid_t *attribute)
{
	hid_t id;

	if (!exists(file, path) || H5Aexists_by_name(file->id, path, name, file->links) <= 0)
		return -ENOENT;
	id = H5Aopen_by_name(file->id, path, name, H5P_DEFAULT, file->links);
	if (id < 0)
		return sl_h5_failed(file, "read an attribute of", path);
	*attribute = id;
	return 0;
}

int sl_h5_read_attribute(struct sl_h5 *file, const char *path, const char *name,
			 enum sl_h5_type type, void *data, size_t bytes)
{
	hid_t attribute = H5I_INVALID_HID, space;
	hssize_t count;
	int r = open_attribute(file, path, name, &attribute);

	if (r)
		return r;
	space = H5Aget_space(attribute);
	count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	if (count < 0 || (uint64_t)count * sl_h5_type_bytes(type) != bytes)
		r = sl_h5_stop(file, -EMSGSIZE, "read an attribute of", path);
	else if (H5Aread(attribute, sl_h5_native(type), data) < 0)
		r = sl_h5_failed(file, "read an attribute of", path);
	if (space >= 0)
		H5Sclose(space);
	H5Aclose(attribute);
	return r;
}

int sl_h5_read_attribute_text(struct sl_h5 *file, const char *path, const char *name, char *text,
			      size_t bytes)
{
	hid_t attribute = H5I_INVALID_HID, type, space;
	int r = open_attribute(file, path, name, &attribute);

	if (r)
		return r;
	type = H5Aget_type(attribute);
	space = H5Aget_space(attribute);
	if (type < 0 || H5Tget_class(type) != H5T_STRING || space < 0 ||
	    H5Sget_simple_extent_npoints(space) != 1)
		r = sl_h5_stop(file, -EINVAL, "read as text an attribute of", path);
	else if (fetch_texts(type, H5I_INVALID_HID, attribute, 1, 0, text, bytes))
		r = sl_h5_failed(file, "read an attribute of", path);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	H5Aclose(attribute);
	return r;
}
