/* old_files.h - files of an earlier run at the names that a run is about to take.
 *
 * Model:     data files give way to a run with `overwrite` only where they belong to the master
 *            at its path (data_files.h) and no run is writing them. They are NAME.replaced until
 *            this run has rows on disk; a run that is given up before brings them back. Any
 *            other file in the way makes the start fail, before anything is changed.
 *            What a killed run has left as NAME.replaced stays: no run starts beside it, and
 *            sl_h5_old_bring_back() makes it the earlier run again.
 * Threads:   those of the file.
 * Ownership: find, then end, leave or remove.
 * Errors:    -errno, logged, with the file that is in the way and what to do. */
#ifndef SL_HDF5_ROLLED_OLD_FILES_H
#define SL_HDF5_ROLLED_OLD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_h5_old_file {
	uint32_t number;
	dev_t device; /* what was set aside */
	ino_t inode;
};

struct sl_h5_old {
	struct sl_h5_old_file *file; /* data files in the way that may be replaced */
	size_t n, aside;	     /* of these, set aside so far: the first ones */
};

/* Look at all names that a run to `path` may take; nothing is changed. */
int sl_h5_old_find(const char *path, bool overwrite, struct sl_h5_old *old);

/* With PATH.part locked. An error leaves what was done to sl_h5_old_end(). */
int sl_h5_old_set_aside(const char *path, struct sl_h5_old *old);

/* They go for good, or get their names back. Frees the list. */
void sl_h5_old_end(const char *path, struct sl_h5_old *old, bool bring_back);

/* They stay as they are, and a warning names them. Frees the list. */
void sl_h5_old_leave(const char *path, struct sl_h5_old *old);

/* Of a run that needs none of these names, but replaces their master: the data files that belong to
 * the master at `path`; and they go, where they are still the same. */
int sl_h5_old_find_own(const char *path, struct sl_h5_old *old);
void sl_h5_old_remove(const char *path, struct sl_h5_old *old);

/* The master at `path`, also where it was set aside, and data files behind number `kept` go as far
 * as they carry this text: what a writer left that ended early. A data file that it had just
 * created may not be readable: one that no run writes and that is not older than `since_ns`, when
 * the writer began (wall clock), goes as well. */
int sl_h5_remove_set(const char *path, const char *file_set, uint32_t kept, uint64_t since_ns);

/* The file was changed at this time of the wall clock, or later. */
struct stat;
bool sl_h5_is_since(const struct stat *st, uint64_t since_ns);

/* A run that was killed before it had rows gives way to the run whose files it had set aside.
 * `files`: how many got their names back; 0: there were none, or the killed run has rows, and a
 * warning says so. -EBUSY: a run is at work there. */
int sl_h5_old_bring_back(const char *path, uint32_t *files);

/* A run that was killed before it had a master left data files without rows, which no run takes for
 * its own: they go, and those that HDF5 cannot open are NAME.unreadable. `files`: how many; 0:
 * there is a master, or they are of another run or have rows. -EBUSY: a run is at work there. */
int sl_h5_old_release(const char *path, uint32_t *files);

#endif
