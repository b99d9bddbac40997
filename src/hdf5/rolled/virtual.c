/* virtual.c - rows of data files as one dataset of the master. */
#include "hdf5/rolled/virtual.h"

#include <limits.h>
#include <string.h>

#include "hdf5/rolled/rolled.h"

enum { EMPTY_CHUNK = 512 };

/* One data file's rows, from row `first` of the whole on. */
static herr_t map(const struct sl_h5 *file, const struct sl_h5_virtual *v, hid_t properties,
		  hid_t whole, uint32_t number, hsize_t first)
{
	hsize_t start[SL_H5_RANK] = {first}, count[SL_H5_RANK];
	char name[NAME_MAX + 1];
	hid_t source;
	herr_t r = -1;

	memcpy(count, v->dim, v->rank * sizeof(*count));
	count[0] = v->rows[number - 1];
	source = H5Screate_simple((int)v->rank, count, NULL);
	if (source >= 0 && !sl_h5_data_name(file->path, number, name, sizeof(name)) &&
	    H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
		r = H5Pset_virtual(properties, whole, name, v->path, source);
	if (source >= 0)
		H5Sclose(source);
	return r;
}

static hid_t space_of(const struct sl_h5_virtual *v, hsize_t rows)
{
	hsize_t extent[SL_H5_RANK], most[SL_H5_RANK];

	memcpy(extent, v->dim, v->rank * sizeof(*extent));
	memcpy(most, v->dim, v->rank * sizeof(*most));
	extent[0] = rows;
	most[0] = rows ? rows : H5S_UNLIMITED;
	return H5Screate_simple((int)v->rank, extent, most);
}

static herr_t lay_out(const struct sl_h5 *file, const struct sl_h5_virtual *v, hid_t properties,
		      hid_t whole, hsize_t rows)
{
	hsize_t first = 0, chunk[SL_H5_RANK];
	herr_t r = 0;

	if (!rows) {
		memcpy(chunk, v->dim, v->rank * sizeof(*chunk));
		chunk[0] = v->rank > 1 ? 1 : EMPTY_CHUNK;
		return H5Pset_chunk(properties, (int)v->rank, chunk);
	}
	for (uint32_t i = 0; i < v->files && r >= 0; first += v->rows[i++])
		if (v->rows[i])
			r = map(file, v, properties, whole, i + 1, first);
	return r;
}

int sl_h5_virtual_make(struct sl_h5 *file, const struct sl_h5_virtual *v)
{
	hid_t properties = H5Pcreate(H5P_DATASET_CREATE), whole, dataset = H5I_INVALID_HID;
	hsize_t rows = 0;
	int r = sl_h5_room(file, 0, v->path);

	for (uint32_t i = 0; i < v->files; i++)
		rows += v->rows[i];
	whole = space_of(v, rows);
	if (!r && properties >= 0 && whole >= 0 && H5Pset_obj_track_times(properties, 0) >= 0 &&
	    lay_out(file, v, properties, whole, rows) >= 0)
		dataset = H5Dcreate2(file->id, v->path, sl_h5_native(v->type), whole, H5P_DEFAULT,
				     properties, H5P_DEFAULT);
	if (!r && dataset < 0)
		r = sl_h5_failed(file, "create", v->path);
	if (dataset >= 0 && H5Dclose(dataset) < 0)
		r = sl_h5_failed(file, "create", v->path);
	if (whole >= 0)
		H5Sclose(whole);
	if (properties >= 0)
		H5Pclose(properties);
	return r;
}
