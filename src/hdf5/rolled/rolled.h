/* rolled.h - a file whose series lie in data files beside it, so that a killed writer loses little.
 *
 * Model:     the master, PATH, describes the rows; NAME_data_000001.h5 and so on hold them. NAME is
 *            PATH without its ending, and without "_master". Objects and series are made on the
 *            master's handle; then sl_h5_rows_begin(), rows, sl_h5_rows_end(), and what else
 *            belongs to the end.
 *
 *            Data files have their names from the beginning. Other programs may read the one at
 *            hand while it grows (HDF5's SWMR); closed ones are ordinary files. The master appears
 *            with sl_h5_rows_begin(), complete but for the rows, and is replaced by the final one,
 *            which has every series as a virtual dataset over all data files.
 *
 *            sl_h5_flush() makes everything so far readable for others, and after a while durable.
 *            What a killed writer leaves is whole up to the last flush (recover.h): each flush adds
 *            a row to /entry/sluice/flushed of the data file, which says how many rows each series
 *            had.
 * Threads:   those of the file. A thread of its own (sync.h) syncs and checks data files meanwhile,
 *            where HDF5 is thread-safe.
 * Errors:    as file.h; an error of a data file sticks to the master.
 * Cost:      a flush writes the chunks that are not full once more, and waits for no disk. */
#ifndef SL_HDF5_ROLLED_ROLLED_H
#define SL_HDF5_ROLLED_ROLLED_H

#include "hdf5/file.h"

/* Begin PATH.part and the first data file. overwrite: data files that belong to the master at PATH
 * make room (old_files.h); they are removed when rows are flushed, and come back if this file is
 * abandoned before. Any other file at the name of a data file: -EEXIST or -EBUSY. */
int sl_h5_create_rolled(const char *path, bool overwrite, struct sl_h5 **file);

/* The same with the text that the files share (data_files.h) given, and, where kept is not 0, to go
 * on with a file whose writer ended early, and that is written once more from the first row on:
 * data files 1 to `kept` are whole and stay. Rows that belong to them are counted and otherwise
 * dropped, so that what is appended as packed rows may be anything meanwhile. All else that the
 * earlier writer left must be gone: sl_h5_remove_set() (old_files.h). */
int sl_h5_resume_rolled(const char *path, bool overwrite, const char *file_set, uint32_t kept,
			struct sl_h5 **file);

/* End early: what is there stays, for sl_h5_resume_rolled(). A file that is not rolled goes. */
void sl_h5_leave(struct sl_h5 *file);

/* As sl_h5_create(): all in one file. When it is finished, data files that belong to the master
 * which it replaces go. */
int sl_h5_create_single(const char *path, struct sl_h5 **file);

/* The functions below do nothing, and return 0, for a file that is not rolled. */

/* Data files 1 to this one are closed, checked and on disk. Any thread. */
uint32_t sl_h5_data_files_safe(const struct sl_h5 *file);

/* All objects and series are there. Until sl_h5_rows_end() only rows are written. */
int sl_h5_rows_begin(struct sl_h5 *file);
int sl_h5_rows_end(struct sl_h5 *file);

/* The data file ends here, and the next one begins. -ENOSPC and others: there is none, and no rows
 * may come any more; the error is logged and does not stick: the file can be finished. */
int sl_h5_roll(struct sl_h5 *file);

/* mark: what the caller calls everything up to now; grows. */
int sl_h5_flush(struct sl_h5 *file, uint64_t mark);

/* The greatest mark that is on disk for certain. Any thread. */
uint64_t sl_h5_durable(const struct sl_h5 *file);

/* The random text that the master and its data files share (data_files.h); empty: not rolled. */
const char *sl_h5_file_set(const struct sl_h5 *file);

uint32_t sl_h5_data_files(const struct sl_h5 *file); /* begun so far; 0: it is not rolled */

/* "NAME_data_%06u.h5" for a master of this path, without the folder; -ENAMETOOLONG. */
int sl_h5_data_name(const char *path, uint32_t number, char *name, size_t bytes);

#endif
