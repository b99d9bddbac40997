/* series.h - what the files of this folder know of a series.
 *
 * Model:     a series belongs to the file that it was opened on, its owner. Its dataset lies in
 *            that file, or, where the owner is rolled (rolled.h), in the data file at hand: then it
 *            is closed and made again in the next one, a part in each.
 * Threads:   those of the owner. */
#ifndef SL_HDF5_SERIES_H
#define SL_HDF5_SERIES_H

#include "hdf5/handle.h"

struct sl_h5_note { /* an attribute of a series, written again for each of its datasets */
	struct sl_h5_note *next;
	char *name;
	enum sl_h5_type type; /* SL_H5_TEXT: a text */
	size_t count;	      /* 0: a scalar */
	void *data;
};

struct sl_h5_series {
	struct sl_h5 *owner, *file; /* file: that has its dataset now */
	struct sl_h5_series *next;
	char *path;
	hid_t id;
	enum sl_h5_type type;
	enum sl_codec codec;
	uint32_t rank; /* of the dataset, rows included */
	hsize_t dim[SL_H5_RANK];
	size_t row_bytes;
	uint32_t per_chunk, buffered;
	uint64_t rows;	 /* appended, to this dataset */
	uint8_t *buffer; /* [per_chunk * row_bytes]; NULL when rows go straight to the file */
	uint64_t chunks; /* written */
	struct sl_h5_samples *samples;
	struct sl_h5_note *notes;
	uint64_t *part; /* [parts]: rows of each dataset that has ended */
	uint32_t parts;
	bool watched;		    /* the two below are kept */
	uint32_t new_rows, new_crc; /* since they were taken */
	bool lost; /* no memory for the next part: it is told when the part begins */
};

/* The dataset in series->file, with its notes. */
int sl_h5_series_begin(struct sl_h5_series *series);

/* Write what is buffered (`flush`), close the dataset, and leave the samples with its file. */
void sl_h5_series_end(struct sl_h5_series *series, bool flush);

/* Rows that are buffered become visible in the file, too; they are written again when their chunk
 * is full. */
int sl_h5_series_show(struct sl_h5_series *series);

/* Of its owner's list; NULL: there is none of this path. */
struct sl_h5_series *sl_h5_series_at(const struct sl_h5 *owner, const char *path);

/* Remember an attribute. -ENOMEM. */
int sl_h5_series_note(struct sl_h5_series *series, const char *name, enum sl_h5_type type,
		      size_t count, const void *data);
/* Write all that are remembered to the object of this path. */
int sl_h5_series_notes(const struct sl_h5_series *series, struct sl_h5 *file);

void sl_h5_series_free(struct sl_h5_series *series);

#endif
