/* object.c - groups, links, attributes and small datasets, written once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/series.h"

size_t sl_h5_type_bytes(enum sl_h5_type type)
{
	static const uint8_t bytes[SL_H5_TYPES] = {
		[SL_H5_U8] = 1,	 [SL_H5_U16] = 2, [SL_H5_U32] = 4, [SL_H5_U64] = 8,
		[SL_H5_I16] = 2, [SL_H5_I32] = 4, [SL_H5_I64] = 8, [SL_H5_F32] = 4,
		[SL_H5_F64] = 8, [SL_H5_TEXT] = 0};

	return type < SL_H5_TYPES ? bytes[type] : 0;
}

hid_t sl_h5_native(enum sl_h5_type type)
{
	switch (type) {
	case SL_H5_U8:
		return H5T_NATIVE_UINT8;
	case SL_H5_U16:
		return H5T_NATIVE_UINT16;
	case SL_H5_U32:
		return H5T_NATIVE_UINT32;
	case SL_H5_U64:
		return H5T_NATIVE_UINT64;
	case SL_H5_I16:
		return H5T_NATIVE_INT16;
	case SL_H5_I32:
		return H5T_NATIVE_INT32;
	case SL_H5_I64:
		return H5T_NATIVE_INT64;
	case SL_H5_F32:
		return H5T_NATIVE_FLOAT;
	case SL_H5_F64:
		return H5T_NATIVE_DOUBLE;
	default:
		return H5I_INVALID_HID;
	}
}

/* Variable length, UTF-8: what h5py writes itself, and gives back as str. */
hid_t sl_h5_text_type(void)
{
	hid_t type = H5Tcopy(H5T_C_S1);

	if (type < 0)
		return type;
	if (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0) {
		H5Tclose(type);
		return H5I_INVALID_HID;
	}
	return type;
}

static hid_t make_space(uint32_t rank, const uint64_t *dim)
{
	hsize_t extent[SL_H5_RANK];

	if (!rank)
		return H5Screate(H5S_SCALAR);
	for (uint32_t i = 0; i < rank; i++)
		extent[i] = dim[i];
	return H5Screate_simple((int)rank, extent, NULL);
}

/* Without time stamps of their own, two runs of the same data give the same file. */
static hid_t make_dataset(hid_t file, const char *path, hid_t type, hid_t space)
{
	hid_t properties = H5Pcreate(H5P_DATASET_CREATE), dataset = H5I_INVALID_HID;

	if (properties >= 0 && H5Pset_obj_track_times(properties, 0) >= 0)
		dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
	if (properties >= 0)
		H5Pclose(properties);
	return dataset;
}

/* One dataset, created and written; memory and file type are the same. */
static int put_dataset(struct sl_h5 *file, const char *path, hid_t type, uint32_t rank,
		       const uint64_t *dim, const void *data)
{
	hid_t space = make_space(rank, dim), dataset = H5I_INVALID_HID;
	bool ok = false;

	if (space >= 0 && type >= 0)
		dataset = make_dataset(file->id, path, type, space);
	if (dataset >= 0) {
		ok = H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
		ok = H5Dclose(dataset) >= 0 && ok;
	}
	if (space >= 0)
		H5Sclose(space);
	return ok ? 0 : sl_h5_failed(file, "write", path);
}

static int put_attribute(struct sl_h5 *file, const char *path, const char *name, hid_t type,
			 size_t count, const void *data)
{
	uint64_t dim = count;
	hid_t object, space, attribute = H5I_INVALID_HID;
	bool ok = false;

	object = H5Oopen(file->id, path, H5P_DEFAULT);
	space = make_space(count ? 1 : 0, &dim);
	if (object >= 0 && space >= 0 && type >= 0)
		attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	if (attribute >= 0) {
		ok = H5Awrite(attribute, type, data) >= 0;
		ok = H5Aclose(attribute) >= 0 && ok;
	}
	if (space >= 0)
		H5Sclose(space);
	if (object >= 0)
		H5Oclose(object);
	return ok ? 0 : sl_h5_failed(file, "write an attribute of", path);
}

int sl_h5_group(struct sl_h5 *file, const char *path, const char *nx_class)
{
	int r = sl_h5_room(file, 0, path);
	hid_t group;

	if (r)
		return r;
	group = H5Gcreate2(file->id, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (group < 0 || H5Gclose(group) < 0)
		return sl_h5_failed(file, "create group", path);
	return sl_h5_attribute_text(file, path, "NX_class", nx_class);
}

int sl_h5_link(struct sl_h5 *file, const char *path, const char *target)
{
	int r = sl_h5_room(file, 0, path);

	if (r)
		return r;
	if (H5Lcreate_soft(target, file->id, path, H5P_DEFAULT, H5P_DEFAULT) < 0)
		return sl_h5_failed(file, "link", path);
	return 0;
}

int sl_h5_link_file(struct sl_h5 *file, const char *path, const char *other, const char *target)
{
	int r = sl_h5_room(file, 0, path);

	if (r)
		return r;
	if (H5Lcreate_external(other, target, file->id, path, H5P_DEFAULT, H5P_DEFAULT) < 0)
		return sl_h5_failed(file, "link", path);
	return 0;
}

int sl_h5_remove(struct sl_h5 *file, const char *path)
{
	int r = sl_h5_room(file, 0, path);

	if (r)
		return r;
	return H5Ldelete(file->id, path, H5P_DEFAULT) < 0 ? sl_h5_failed(file, "remove", path) : 0;
}

int sl_h5_name_again(struct sl_h5 *file, const char *path, const char *target)
{
	int r = sl_h5_room(file, 0, path);

	if (r)
		return r;
	if (H5Lcreate_hard(file->id, target, file->id, path, H5P_DEFAULT, H5P_DEFAULT) < 0)
		return sl_h5_failed(file, "link", path);
	return 0;
}

int sl_h5_write(struct sl_h5 *file, const char *path, const struct sl_h5_shape *shape,
		const void *data)
{
	uint64_t bytes = sl_h5_type_bytes(shape->type);
	int r;

	if (!bytes || shape->rank > SL_H5_RANK)
		return sl_h5_stop(file, -EINVAL, "write", path);
	for (uint32_t i = 0; i < shape->rank; i++)
		bytes *= shape->dim[i];
	r = sl_h5_room(file, bytes, path);
	if (r)
		return r;
	return put_dataset(file, path, sl_h5_native(shape->type), shape->rank, shape->dim, data);
}

int sl_h5_write_u64(struct sl_h5 *file, const char *path, uint64_t value)
{
	return sl_h5_write(file, path, &(struct sl_h5_shape){.type = SL_H5_U64}, &value);
}

int sl_h5_write_f64(struct sl_h5 *file, const char *path, double value, const char *units)
{
	int r = sl_h5_write(file, path, &(struct sl_h5_shape){.type = SL_H5_F64}, &value);

	if (r || !units)
		return r;
	return sl_h5_attribute_text(file, path, "units", units);
}

static int write_texts(struct sl_h5 *file, const char *path, const char *const *text, size_t count)
{
	uint64_t dim = count, bytes = 0;
	hid_t type;
	int r;

	for (size_t i = 0; i < (count ? count : 1); i++)
		bytes += strlen(text[i]) + 64; /* and its places in heap and array */
	r = sl_h5_room(file, bytes, path);
	if (r)
		return r;
	type = sl_h5_text_type();
	r = put_dataset(file, path, type, count ? 1 : 0, &dim, text);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

int sl_h5_write_text(struct sl_h5 *file, const char *path, const char *text)
{
	return write_texts(file, path, &text, 0);
}

int sl_h5_write_texts(struct sl_h5 *file, const char *path, const char *const *text, size_t count)
{
	if (!count)
		return sl_h5_stop(file, -EINVAL, "write no texts to", path);
	return write_texts(file, path, text, count);
}

/* The file that has the object now. An attribute of a series in data files is remembered: the next
 * ones need it, too. */
static struct sl_h5 *place_of(struct sl_h5 *file, const char *path, const char *name,
			      enum sl_h5_type type, size_t count, const void *data)
{
	struct sl_h5_series *series = file->rolled ? sl_h5_series_at(file, path) : NULL;

	if (!series || series->id < 0)
		return file;
	if (sl_h5_series_note(series, name, type, count, data))
		sl_h5_stop(series->file, -ENOMEM, "remember an attribute of", path);
	return series->file;
}

int sl_h5_attribute(struct sl_h5 *file, const char *path, const char *name, enum sl_h5_type type,
		    size_t count, const void *data)
{
	int r;

	file = place_of(file, path, name, type, count, data);
	r = sl_h5_room(file, (count ? count : 1) * sl_h5_type_bytes(type), path);
	return r ? r : put_attribute(file, path, name, sl_h5_native(type), count, data);
}

int sl_h5_attribute_text(struct sl_h5 *file, const char *path, const char *name, const char *text)
{
	hid_t type;
	int r;

	file = place_of(file, path, name, SL_H5_TEXT, 0, text);
	r = sl_h5_room(file, strlen(text), path);
	if (r)
		return r;
	type = sl_h5_text_type();
	r = put_attribute(file, path, name, type, 0, &text);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

int sl_h5_attribute_texts(struct sl_h5 *file, const char *path, const char *name,
			  const char *const *text, size_t count)
{
	uint64_t bytes = 0;
	hid_t type;
	int r;

	if (!count)
		return sl_h5_stop(file, -EINVAL, "write no texts to", path);
	for (size_t i = 0; i < count; i++)
		bytes += strlen(text[i]) + 64; /* and its places in heap and array */
	r = sl_h5_room(file, bytes, path);
	if (r)
		return r;
	type = sl_h5_text_type();
	r = put_attribute(file, path, name, type, count, text);
	if (type >= 0)
		H5Tclose(type);
	return r;
}
