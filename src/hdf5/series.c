/* series.c - datasets that grow by rows.
 *
 * Chunks go to the file with H5Dwrite_chunk, straight from memory: no chunk cache, no filters, no
 * conversion. So a file's bytes are the machine's own order, and HDF5's type says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/handle.h"

struct sl_h5_series {
	struct sl_h5 *file;
	struct sl_h5_series *next;
	char *path;
	hid_t id;
	uint32_t rank; /* of the dataset, rows included */
	hsize_t dim[SL_H5_RANK];
	size_t row_bytes;
	uint32_t per_chunk, buffered;
	uint64_t rows;	 /* appended */
	uint8_t *buffer; /* [per_chunk * row_bytes]; NULL when rows go straight to the file */
	uint64_t chunks; /* written */
	struct sl_h5_samples *samples;
};

/* A chunk's size is 32 bits in the file format. */
#define CHUNK_MOST_BYTES UINT64_C(0xffffffff)

static int measure(struct sl_h5_series *series, const struct sl_h5_shape *row)
{
	uint64_t bytes = sl_h5_type_bytes(row->type);

	if (!bytes || row->rank + 1 > SL_H5_RANK || !series->per_chunk)
		return -EINVAL;
	for (uint32_t i = 0; i < row->rank; i++) {
		if (!row->dim[i] || row->dim[i] > CHUNK_MOST_BYTES / bytes)
			return -EINVAL;
		bytes *= row->dim[i];
		series->dim[i + 1] = row->dim[i];
	}
	if (bytes > CHUNK_MOST_BYTES / series->per_chunk)
		return -EINVAL;
	series->rank = row->rank + 1;
	series->row_bytes = bytes;
	return 0;
}

/* No fill values: every chunk is written whole. */
static hid_t make_properties(const struct sl_h5_series *series)
{
	hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
	hsize_t chunk[SL_H5_RANK];

	if (properties < 0)
		return properties;
	memcpy(chunk, series->dim, sizeof(chunk));
	chunk[0] = series->per_chunk;
	if (H5Pset_chunk(properties, (int)series->rank, chunk) < 0 ||
	    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) < 0 ||
	    H5Pset_obj_track_times(properties, 0) < 0) {
		H5Pclose(properties);
		return H5I_INVALID_HID;
	}
	return properties;
}

static int make_dataset(struct sl_h5_series *series, enum sl_h5_type type)
{
	hid_t properties = make_properties(series), space;
	hsize_t most[SL_H5_RANK];

	memcpy(most, series->dim, sizeof(most));
	most[0] = H5S_UNLIMITED;
	space = H5Screate_simple((int)series->rank, series->dim, most);
	if (properties >= 0 && space >= 0)
		series->id = H5Dcreate2(series->file->id, series->path, sl_h5_native(type), space,
					H5P_DEFAULT, properties, H5P_DEFAULT);
	if (space >= 0)
		H5Sclose(space);
	if (properties >= 0)
		H5Pclose(properties);
	return series->id < 0 ? sl_h5_failed(series->file, "create", series->path) : 0;
}

static void forget(struct sl_h5_series *series)
{
	free(series->samples);
	free(series->buffer);
	free(series->path);
	free(series);
}

int sl_h5_series_open(struct sl_h5 *file, const char *path, const struct sl_h5_shape *row,
		      uint32_t rows_per_chunk, struct sl_h5_series **opened)
{
	struct sl_h5_series *series;
	int r = sl_h5_room(file, 0, path);

	if (r)
		return r;
	series = calloc(1, sizeof(*series));
	if (!series)
		return sl_h5_stop(file, -ENOMEM, "create", path);
	*series = (struct sl_h5_series){.file = file,
					.path = strdup(path),
					.id = H5I_INVALID_HID,
					.per_chunk = rows_per_chunk,
					.samples = calloc(1, sizeof(*series->samples))};
	r = measure(series, row);
	if (!r && rows_per_chunk > 1)
		series->buffer = malloc(rows_per_chunk * series->row_bytes);
	if (!r && (!series->path || !series->samples || (rows_per_chunk > 1 && !series->buffer)))
		r = -ENOMEM;
	r = r ? sl_h5_stop(file, r, "create", path) : make_dataset(series, row->type);
	if (r) {
		forget(series);
		return r;
	}
	/* What is buffered must be writable at the end, whatever happens. */
	if (rows_per_chunk > 1)
		file->headroom += rows_per_chunk * series->row_bytes + SL_H5_SLACK_BYTES;
	series->next = file->series;
	file->series = series;
	*opened = series;
	return 0;
}

/* Write the chunk that ends with the last row appended. */
static int write_chunk(struct sl_h5_series *series, const void *chunk, uint32_t rows)
{
	hsize_t extent[SL_H5_RANK], offset[SL_H5_RANK] = {0};
	size_t bytes = series->per_chunk * series->row_bytes;
	int r = sl_h5_room(series->file, bytes, series->path);

	if (r)
		return r;
	memcpy(extent, series->dim, sizeof(extent));
	extent[0] = series->rows;
	offset[0] = series->rows - rows;
	if (H5Dset_extent(series->id, extent) < 0 ||
	    H5Dwrite_chunk(series->id, H5P_DEFAULT, 0, offset, bytes, chunk) < 0)
		return sl_h5_failed(series->file, "write", series->path);
	sl_h5_sample(series->samples, series->chunks++, offset[0], chunk, bytes);
	return 0;
}

static int flush(struct sl_h5_series *series)
{
	uint32_t rows = series->buffered;

	if (!rows)
		return 0;
	memset(series->buffer + rows * series->row_bytes, 0,
	       (series->per_chunk - rows) * series->row_bytes);
	series->buffered = 0;
	return write_chunk(series, series->buffer, rows);
}

int sl_h5_series_append_rows(struct sl_h5_series *series, const void *rows, uint32_t count)
{
	const uint8_t *at = rows;
	int r = series->file->status;

	while (count && !r) {
		uint32_t room = series->per_chunk - series->buffered;
		uint32_t n = !series->buffer ? 1 : count < room ? count : room;

		series->rows += n;
		if (!series->buffer) {
			r = write_chunk(series, at, 1);
		} else {
			memcpy(series->buffer + series->buffered * series->row_bytes, at,
			       n * series->row_bytes);
			series->buffered += n;
			if (series->buffered == series->per_chunk)
				r = flush(series);
		}
		at += n * series->row_bytes;
		count -= n;
	}
	return r;
}

int sl_h5_series_append(struct sl_h5_series *series, const void *row)
{
	return sl_h5_series_append_rows(series, row, 1);
}

uint64_t sl_h5_series_rows(const struct sl_h5_series *series)
{
	return series->rows;
}

/* They are compared when the file is closed. */
static void hand_samples(struct sl_h5_series *series)
{
	struct sl_h5_samples *samples = series->samples;

	samples->path = series->path;
	samples->rows = series->rows;
	samples->rank = series->rank;
	samples->next = series->file->samples;
	series->file->samples = samples;
	series->path = NULL;
	series->samples = NULL;
}

void sl_h5_series_end(struct sl_h5 *file, bool with_flush)
{
	struct sl_h5_series *series;

	while ((series = file->series)) {
		file->series = series->next;
		if (with_flush)
			flush(series);
		if (!file->broken && H5Dclose(series->id) < 0)
			sl_h5_failed(file, "close", series->path);
		hand_samples(series);
		forget(series);
	}
}
