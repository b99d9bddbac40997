/* file.h - arrays and growing tables in HDF5 files. The one folder with <hdf5.h>.
 *
 * Model:     a file is written once, front to back, as PATH.part, and gets its name when it is
 * whole and on disk: what lies under PATH can always be opened. Objects are named by their path in
 * the file. A series is a dataset that grows row by row: images one chunk each, table columns in
 * blocks.
 *
 * Space:     HDF5 1.10 leaves a broken file and may crash at exit when a write fails, so none is
 * let fail: everything HDF5 writes goes to blocks that were reserved before. sl_h5_reserve() asks
 * for room for data about to come, on top of a headroom that is enough to write what is buffered
 * and to close; when it says no, nothing has been harmed, and the file can still be finished.
 *
 * Errors:    0 or -errno; logged here, once, with the path. The first error of a file being written
 * sticks: later writes return it and do nothing, so that a list of writes needs one check at its
 * end (sl_h5_status). A reservation that was refused is not an error of the file and does not
 * stick.
 *
 * Threads:   a file belongs to one thread at a time; different files may be on different ones
 * where sl_h5_is_threadsafe().
 *
 * Ownership: data is copied or written before a call returns; the file owns its
 * series.
 *
 * Cost:      an image is one pwrite from the caller's memory; memory does not grow with the
 * file. */
#ifndef SL_HDF5_FILE_H
#define SL_HDF5_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/access.h"
#include "codec/codec.h"

enum { SL_H5_RANK = 5 };

enum sl_h5_type {
	SL_H5_U8,
	SL_H5_U16,
	SL_H5_U32,
	SL_H5_U64,
	SL_H5_I16,
	SL_H5_I32,
	SL_H5_I64,
	SL_H5_F32,
	SL_H5_F64,
	SL_H5_TEXT, /* UTF-8 of any length; found when reading, never asked for */
	SL_H5_TYPES,
};

size_t sl_h5_type_bytes(enum sl_h5_type type); /* 0 for text */

struct sl_h5_shape {
	enum sl_h5_type type;
	uint32_t rank; /* 0: a scalar */
	uint64_t dim[SL_H5_RANK];
};

/* Numbers from dimension `first` on. UINT64_MAX: more than that; files from elsewhere may say
 * anything, and no size is computed from them but by this. */
uint64_t sl_h5_elements(const struct sl_h5_shape *shape, uint32_t first);

/* "2 x 512 x 1024", for messages. */
enum { SL_H5_SHAPE_TEXT = 128 };
const char *sl_h5_shape_text(const struct sl_h5_shape *shape, char text[SL_H5_SHAPE_TEXT]);

/* Of an image: beyond what any detector has. A file that says more is damaged, and not worth the
 * memory. */
#define SL_H5_PIXELS_MOST (UINT64_C(1) << 30)

struct sl_h5;
struct sl_h5_series;

/* Whether the library was built so that several threads may call it, each with files of its own. */
bool sl_h5_is_threadsafe(void);

/* ---- a file being written ---- */

/* Begin PATH.part; missing folders are created. -EBUSY: somebody is writing it at this moment. */
int sl_h5_create(const char *path, struct sl_h5 **file);

/* Write what is buffered, close, sync, and give the file its name. 0 only when all of that
 * happened; otherwise PATH.part stays and PATH is as it was. Frees the file in any case. */
int sl_h5_finish(struct sl_h5 *file);

/* Forget it: PATH.part is removed. */
void sl_h5_abandon(struct sl_h5 *file);

/* Group and mode of the file and of all its data files (rolled.h); right after it was created.
 * -errno, logged, and it sticks. */
int sl_h5_set_access(struct sl_h5 *file, const struct sl_file_access *access);

/* Room on disk that it and the data file at hand have reserved and not used yet; of this, what
 * stays so until the end. */
uint64_t sl_h5_unused(const struct sl_h5 *file);
uint64_t sl_h5_headroom(const struct sl_h5 *file);

int sl_h5_status(const struct sl_h5 *file); /* the error that sticks, or 0 */

/* Room for `bytes` of data in one or a few writes, and the headroom behind it. -ENOSPC, -EDQUOT or
 * -EFBIG (RLIMIT_FSIZE): there is none; not logged. Usually a comparison: space is taken in steps.
 */
int sl_h5_reserve(struct sl_h5 *file, uint64_t bytes);

/* Add to the headroom what the caller will write at the end, whatever happens. */
void sl_h5_keep(struct sl_h5 *file, uint64_t bytes);

int sl_h5_group(struct sl_h5 *file, const char *path, const char *nx_class);
int sl_h5_link(struct sl_h5 *file, const char *path, const char *target); /* soft */
/* The object at `target` by a second name: readers that follow no soft links find it, too. */
int sl_h5_name_again(struct sl_h5 *file, const char *path, const char *target);

/* An object of another file; its name is relative to this file's folder. */
int sl_h5_link_file(struct sl_h5 *file, const char *path, const char *other, const char *target);
int sl_h5_remove(struct sl_h5 *file, const char *path);

int sl_h5_write(struct sl_h5 *file, const char *path, const struct sl_h5_shape *shape,
		const void *data);
int sl_h5_write_u64(struct sl_h5 *file, const char *path, uint64_t value);
int sl_h5_write_f64(struct sl_h5 *file, const char *path, double value, const char *units);
int sl_h5_write_text(struct sl_h5 *file, const char *path, const char *text);
int sl_h5_write_texts(struct sl_h5 *file, const char *path, const char *const *text, size_t count);

/* Attributes of the object at path ("/" is the root). count 0 writes a scalar. */
int sl_h5_attribute(struct sl_h5 *file, const char *path, const char *name, enum sl_h5_type type,
		    size_t count, const void *data);
int sl_h5_attribute_text(struct sl_h5 *file, const char *path, const char *name, const char *text);
/* A list of them; of objects that are no series. */
int sl_h5_attribute_texts(struct sl_h5 *file, const char *path, const char *name,
			  const char *const *text, size_t count);

/* A dataset [rows, dim...] that grows by rows; row->dim is the extent of one row. Rows are
 * collected and written rows_per_chunk at a time; with 1 they are written straight from the
 * caller's memory. */
int sl_h5_series_open(struct sl_h5 *file, const char *path, const struct sl_h5_shape *row,
		      uint32_t rows_per_chunk, struct sl_h5_series **series);
/* The same with chunks that the caller packs (codec/pack.h): rows_per_chunk is 1, and a row is
 * appended as the packed bytes. */
int sl_h5_series_open_packed(struct sl_h5 *file, const char *path, const struct sl_h5_shape *row,
			     enum sl_codec codec, uint32_t rows_per_chunk,
			     struct sl_h5_series **series);
int sl_h5_series_append_packed(struct sl_h5_series *series, const void *row, size_t bytes);

int sl_h5_series_append(struct sl_h5_series *series, const void *row);
int sl_h5_series_append_rows(struct sl_h5_series *series, const void *rows, uint32_t count);
uint64_t sl_h5_series_rows(const struct sl_h5_series *series);

/* Every series that was opened, in no order; path is the series'. */
void sl_h5_series_each(struct sl_h5 *file,
		       void (*one)(void *arg, struct sl_h5_series *series, const char *path),
		       void *arg);

/* Sum up what is appended from now on, and the rows that are buffered; not for packed ones. take()
 * gives the rows since the last call, and the CRC32C of their bytes. */
void sl_h5_series_watch(struct sl_h5_series *series);
uint32_t sl_h5_series_take(struct sl_h5_series *series, uint32_t *crc);

/* ---- a file being read; errors do not stick, -ENOENT is not logged ---- */

int sl_h5_open(const char *path, struct sl_h5 **file);
void sl_h5_close(struct sl_h5 *file);

int sl_h5_describe(struct sl_h5 *file, const char *path, struct sl_h5_shape *shape);
bool sl_h5_dangles(struct sl_h5 *file, const char *path); /* a link that leads nowhere */

/* The whole dataset, or one index of its slowest dimension, converted to type. `bytes` is the size
 * of data and must be what is read: -EMSGSIZE otherwise. */
int sl_h5_read(struct sl_h5 *file, const char *path, enum sl_h5_type type, void *data,
	       size_t bytes);
int sl_h5_read_row(struct sl_h5 *file, const char *path, uint64_t row, enum sl_h5_type type,
		   void *data, size_t bytes);
int sl_h5_read_rows(struct sl_h5 *file, const char *path, uint64_t first, uint64_t count,
		    enum sl_h5_type type, void *data, size_t bytes);

/* Text number `index` of a text dataset (0 for a scalar), cut to fit. */
int sl_h5_read_text(struct sl_h5 *file, const char *path, uint64_t index, char *text, size_t bytes);

int sl_h5_read_attribute(struct sl_h5 *file, const char *path, const char *name,
			 enum sl_h5_type type, void *data, size_t bytes);
int sl_h5_read_attribute_text(struct sl_h5 *file, const char *path, const char *name, char *text,
			      size_t bytes);

#endif
