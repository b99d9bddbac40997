/* part.h - a file that has rows of a run: its columns, images and other series, read in order.
 *
 * Model:     everything that a leaf is made of, row by row. What the file says of its own sizes is
 *            checked when it is opened; what cannot be read later is told row by row.
 * Threads:   one.
 * Errors:    0 or -errno. What HDF5 refuses is logged by src/hdf5.
 * Cost:      a block of rows, an image, and a few MiB of each series in memory. */
#ifndef SL_AUDIT_PART_H
#define SL_AUDIT_PART_H

#include "audit/layout.h"
#include "audit/leaf.h"
#include "hdf5/file.h"
#include "hdf5/images.h"

enum { SL_PART_ROWS = 512 }; /* in a block */

struct sl_part_series {
	const char *path;
	enum sl_h5_type type;
	uint64_t rows, row_bytes, next; /* next: the first row that was not taken yet */
	uint8_t *window;
	uint64_t window_first, window_rows;
	int error; /* it cannot be read any more */
};

struct sl_part {
	struct sl_h5 *file;
	char run_id[SL_AUDIT_RUN_ID_TEXT], stored[64], arranged[16];
	char *names; /* of series; cut into lines */
	uint64_t rows;
	uint32_t modules, series;
	uint32_t series_names;
	struct sl_part_series one[SL_LEAF_SERIES];

	bool has_images;	     /* of frames that are kept */
	struct sl_h5_images *images; /* NULL: there are none so far */
	uint64_t image_count, image_bytes;
	uint8_t *image;

	/* The block at hand, rows first to first + count. */
	uint64_t first, count;
	struct sl_part_block *block;
};

/* What a row says; arrays are valid until the next block is read. */
struct sl_part_row {
	struct sl_leaf leaf; /* with checksums as the columns have them */
	struct sl_hash stored;
	int64_t image_index;
};

/* -ENOENT: no such file; -EBADMSG: it is none that an audit can read, and `why` says so. Close it
 * only when it was opened. */
int sl_part_open(struct sl_part *part, const char *path, char *why, size_t why_bytes);
void sl_part_close(struct sl_part *part);

/* Row by row from the first on. */
int sl_part_row(struct sl_part *part, uint64_t row, struct sl_part_row *out);

/* The root of the leaves as they are stored. */
int sl_part_stored_root(struct sl_part *part, struct sl_tree *whole, struct sl_hash *root);

/* CRC32C of the next rows of a series, in order; -ERANGE: it has not so many. */
int sl_part_take(struct sl_part *part, uint32_t series, uint64_t rows, uint32_t *crc);

/* The pixels of an image, valid until the next call. */
int sl_part_image(struct sl_part *part, uint64_t index, const uint8_t **pixels);

#endif
