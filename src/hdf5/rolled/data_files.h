/* data_files.h - the data files beside a master: their names, which of them there are, and to which
 * master each belongs.
 *
 * Model:     the master and its data files carry one random text, the attribute `file_set` of
 *            "/"; data files also carry the last part of the master's path, `master`. A data file
 *            belongs to the master at PATH when both agree: a name alone proves nothing, since
 *            run.nxs and run.h5 have data files of the same names.
 *            A data file that is being written is locked (base/file/part_file.h).
 * Threads:   any.
 * Ownership: lists are the caller's to free.
 * Cost:      a listing reads the folder once; an identity opens the file. */
#ifndef SL_HDF5_ROLLED_DATA_FILES_H
#define SL_HDF5_ROLLED_DATA_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_H5_REPLACED ".replaced"

enum { SL_H5_FILE_SET_BYTES = 33 };

struct sl_h5_identity {
	char file_set[SL_H5_FILE_SET_BYTES]; /* empty: it has none */
	char master[NAME_MAX + 1];	     /* empty: it is no data file */
};

/* The path of data file `number` of the master at `path`; -ENAMETOOLONG. */
int sl_h5_data_path(const char *path, uint32_t number, char *out, size_t bytes);

/* The last part of a path. */
const char *sl_h5_last_part(const char *path);

/* A new random text. -EIO: the kernel gives none. */
int sl_h5_file_set_make(char file_set[SL_H5_FILE_SET_BYTES]);

/* 0, with empty texts where the file has none; -EBADMSG: HDF5 cannot open it, not even as a file
 * that grows; -errno: it cannot be read, or is no ordinary file. Logs nothing. */
int sl_h5_identify(const char *path, struct sl_h5_identity *identity);

/* A data file of these identities belongs to the master at `path`. */
bool sl_h5_belongs(const struct sl_h5_identity *data, const struct sl_h5_identity *master,
		   const char *path);

/* The numbers, in order, of all that is in the folder under the names of data files of the master
 * at `path`, with `ending` behind them ("": none). No folder: no numbers. */
int sl_h5_data_list(const char *path, const char *ending, uint32_t **numbers, size_t *n);

#endif
