/* series.c - datasets that grow by rows.
 *
 * Chunks go to the file with H5Dwrite_chunk, straight from memory: no chunk cache, no conversion;
 * the caller has packed them, if they are packed. So a file's bytes are the machine's own order,
 * and HDF5's type says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "hdf5/series.h"

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
	    H5Pset_obj_track_times(properties, 0) < 0 ||
	    sl_h5_filter_set(properties, series->codec, sl_h5_type_bytes(series->type)) < 0) {
		H5Pclose(properties);
		return H5I_INVALID_HID;
	}
	return properties;
}

static int make_dataset(struct sl_h5_series *series)
{
	hid_t properties = make_properties(series), links = H5Pcreate(H5P_LINK_CREATE), space;
	hsize_t first[SL_H5_RANK], most[SL_H5_RANK];

	memcpy(first, series->dim, sizeof(first));
	memcpy(most, series->dim, sizeof(most));
	first[0] = 0;
	most[0] = H5S_UNLIMITED;
	space = H5Screate_simple((int)series->rank, first, most);
	if (properties >= 0 && space >= 0 && links >= 0 &&
	    H5Pset_create_intermediate_group(links, series->file != series->owner) >= 0)
		series->id = H5Dcreate2(series->file->id, series->path, sl_h5_native(series->type),
					space, links, properties, H5P_DEFAULT);
	if (space >= 0)
		H5Sclose(space);
	if (links >= 0)
		H5Pclose(links);
	if (properties >= 0)
		H5Pclose(properties);
	return series->id < 0 ? sl_h5_failed(series->file, "create", series->path) : 0;
}

/* ---- notes ---- */

static void free_note(struct sl_h5_note *note)
{
	free(note->name);
	free(note->data);
	free(note);
}

int sl_h5_series_note(struct sl_h5_series *series, const char *name, enum sl_h5_type type,
		      size_t count, const void *data)
{
	size_t bytes = type == SL_H5_TEXT ? strlen(data) + 1
					  : (count ? count : 1) * sl_h5_type_bytes(type);
	struct sl_h5_note *note = calloc(1, sizeof(*note)), **last = &series->notes;

	if (!note)
		return -ENOMEM;
	*note = (struct sl_h5_note){
		.name = strdup(name), .type = type, .count = count, .data = malloc(bytes)};
	if (!note->name || !note->data) {
		free_note(note);
		return -ENOMEM;
	}
	memcpy(note->data, data, bytes);
	while (*last)
		last = &(*last)->next;
	*last = note;
	return 0;
}

int sl_h5_series_notes(const struct sl_h5_series *series, struct sl_h5 *file)
{
	int r = 0;

	for (const struct sl_h5_note *n = series->notes; n && !r; n = n->next)
		r = n->type == SL_H5_TEXT
			    ? sl_h5_attribute_text(file, series->path, n->name, n->data)
			    : sl_h5_attribute(file, series->path, n->name, n->type, n->count,
					      n->data);
	return r;
}

void sl_h5_series_free(struct sl_h5_series *series)
{
	struct sl_h5_note *note;

	while ((note = series->notes)) {
		series->notes = note->next;
		free_note(note);
	}
	free(series->samples);
	free(series->buffer);
	free(series->part);
	free(series->path);
	free(series);
}

struct sl_h5_series *sl_h5_series_at(const struct sl_h5 *owner, const char *path)
{
	struct sl_h5_series *series = owner->series;

	while (series && strcmp(series->path, path) != 0)
		series = series->next;
	return series;
}

/* ---- a dataset begins ---- */

int sl_h5_series_begin(struct sl_h5_series *series)
{
	struct sl_h5 *file = series->file;
	int r = sl_h5_room(file, 0, series->path);

	if (r)
		return r;
	series->rows = series->chunks = series->buffered = 0;
	series->samples = calloc(1, sizeof(*series->samples));
	if (!series->samples || series->lost)
		return sl_h5_stop(file, -ENOMEM, "create", series->path);
	r = make_dataset(series);
	if (!r && file != series->owner)
		r = sl_h5_series_notes(series, file);
	/* What is buffered must be writable at the end, whatever happens. */
	if (!r && series->per_chunk > 1)
		file->headroom += series->per_chunk * series->row_bytes + SL_H5_SLACK_BYTES;
	return r;
}

int sl_h5_series_open_packed(struct sl_h5 *file, const char *path, const struct sl_h5_shape *row,
			     enum sl_codec codec, uint32_t rows_per_chunk,
			     struct sl_h5_series **opened)
{
	struct sl_h5 *at = sl_h5_home(file);
	struct sl_h5_series *series;
	int r = sl_h5_room(at, 0, path);

	if (r)
		return r;
	series = calloc(1, sizeof(*series));
	if (!series)
		return sl_h5_stop(at, -ENOMEM, "create", path);
	*series = (struct sl_h5_series){.owner = file,
					.file = at,
					.path = strdup(path),
					.id = H5I_INVALID_HID,
					.type = row->type,
					.codec = codec,
					.per_chunk = rows_per_chunk};
	r = measure(series, row);
	if (!r && rows_per_chunk > 1)
		series->buffer = malloc(rows_per_chunk * series->row_bytes);
	if (!r && (!series->path || (rows_per_chunk > 1 && !series->buffer)))
		r = -ENOMEM;
	r = r ? sl_h5_stop(at, r, "create", path) : sl_h5_series_begin(series);
	if (r) {
		sl_h5_series_free(series);
		return r;
	}
	series->next = file->series;
	file->series = series;
	*opened = series;
	return 0;
}

int sl_h5_series_open(struct sl_h5 *file, const char *path, const struct sl_h5_shape *row,
		      uint32_t rows_per_chunk, struct sl_h5_series **opened)
{
	return sl_h5_series_open_packed(file, path, row, SL_CODEC_NONE, rows_per_chunk, opened);
}

/* ---- rows ---- */

/* The chunk that ends with the last row appended. */
static int put_chunk(struct sl_h5_series *series, const void *chunk, size_t bytes, uint32_t rows)
{
	hsize_t extent[SL_H5_RANK], offset[SL_H5_RANK] = {0};
	int r = sl_h5_room(series->file, bytes, series->path);

	if (r)
		return r;
	memcpy(extent, series->dim, sizeof(extent));
	extent[0] = series->rows;
	offset[0] = series->rows - rows;
	if (H5Dset_extent(series->id, extent) < 0 ||
	    H5Dwrite_chunk(series->id, H5P_DEFAULT, 0, offset, bytes, chunk) < 0)
		return sl_h5_failed(series->file, "write", series->path);
	return 0;
}

static int write_chunk(struct sl_h5_series *series, const void *chunk, size_t bytes, uint32_t rows)
{
	int r = put_chunk(series, chunk, bytes, rows);

	if (!r)
		sl_h5_sample(series->samples, series->chunks++, series->rows - rows, chunk, bytes);
	return r;
}

static void pad(struct sl_h5_series *series)
{
	memset(series->buffer + series->buffered * series->row_bytes, 0,
	       (series->per_chunk - series->buffered) * series->row_bytes);
}

static int flush(struct sl_h5_series *series)
{
	uint32_t rows = series->buffered;

	if (!rows)
		return 0;
	pad(series);
	series->buffered = 0;
	return write_chunk(series, series->buffer, series->per_chunk * series->row_bytes, rows);
}

int sl_h5_series_show(struct sl_h5_series *series)
{
	if (!series->buffered)
		return 0;
	pad(series);
	return put_chunk(series, series->buffer, series->per_chunk * series->row_bytes,
			 series->buffered);
}

int sl_h5_series_append_packed(struct sl_h5_series *series, const void *row, size_t bytes)
{
	if (!series->file || series->file->status)
		return series->file ? series->file->status : -EPIPE;
	series->rows++;
	return write_chunk(series, row, bytes, 1);
}

int sl_h5_series_append_rows(struct sl_h5_series *series, const void *rows, uint32_t count)
{
	const uint8_t *at = rows;
	int r = series->file ? series->file->status : -EPIPE; /* no data file is at hand */

	if (series->watched && !r) {
		series->new_rows += count;
		series->new_crc = sl_crc32c(series->new_crc, rows, count * series->row_bytes);
	}

	while (count && !r) {
		uint32_t room = series->per_chunk - series->buffered;
		uint32_t n = !series->buffer ? 1 : count < room ? count : room;

		series->rows += n;
		if (!series->buffer) {
			r = write_chunk(series, at, series->row_bytes, 1);
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

void sl_h5_series_each(struct sl_h5 *file,
		       void (*one)(void *arg, struct sl_h5_series *series, const char *path),
		       void *arg)
{
	for (struct sl_h5_series *s = file->series; s; s = s->next)
		one(arg, s, s->path);
}

void sl_h5_series_watch(struct sl_h5_series *series)
{
	series->watched = true;
	series->new_rows = series->buffered;
	series->new_crc = sl_crc32c(0, series->buffer, series->buffered * series->row_bytes);
}

uint32_t sl_h5_series_take(struct sl_h5_series *series, uint32_t *crc)
{
	uint32_t rows = series->new_rows;

	*crc = series->new_crc;
	series->new_rows = series->new_crc = 0;
	return rows;
}

uint64_t sl_h5_series_rows(const struct sl_h5_series *series)
{
	uint64_t rows = series->rows;

	for (uint32_t i = 0; i < series->parts; i++)
		rows += series->part[i];
	return rows;
}

/* ---- a dataset ends ---- */

/* They are compared when the file is closed. */
static void hand_samples(struct sl_h5_series *series)
{
	struct sl_h5_samples *samples = series->samples;

	samples->path = strdup(series->path);
	if (!samples->path) {
		sl_h5_stop(series->file, -ENOMEM, "check", series->path);
		return;
	}
	samples->rows = series->rows;
	samples->rank = series->rank;
	samples->next = series->file->samples;
	series->file->samples = samples;
	series->samples = NULL;
}

void sl_h5_series_end(struct sl_h5_series *series, bool with_flush)
{
	uint64_t *part;

	if (with_flush)
		flush(series);
	if (!series->file->broken && series->id >= 0 && H5Dclose(series->id) < 0)
		sl_h5_failed(series->file, "close", series->path);
	series->id = H5I_INVALID_HID;
	if (series->samples)
		hand_samples(series);
	part = realloc(series->part, (series->parts + 1) * sizeof(*part));
	if (!part) {
		series->lost = true;
		return;
	}
	series->part = part;
	part[series->parts++] = series->rows;
	series->rows = 0;
}
