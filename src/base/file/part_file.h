/* part_file.h - a result file: written as PATH.part, and PATH once it is whole and on disk.
 *
 * Model:     the file that was opened is the file that is published: it is held by its descriptor,
 *            locked from beginning to end, and before PATH is given to it the name PATH.part must
 *            still be its own. Neither name is ever followed if it is a symbolic link. What lies
 *            under PATH when writing begins is replaced; a file that appears there later is not.
 *            A PATH.part that an earlier run left with data in it is moved aside, to the first
 *            free name of PATH.part.1, PATH.part.2, ..., with a warning; an empty one is used. Both
 *            only if it is an ordinary file of this user, not locked, with no other name.
 *            A file may also have its name from the beginning (sl_part_file_open_new): then no file
 *            may be there.
 * Threads:   one at a time.
 * Ownership: the caller's memory; open, then publish, discard or leave.
 * Errors:    -errno, logged with the path and what to do. */
#ifndef SL_BASE_PART_FILE_H
#define SL_BASE_PART_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/file/access.h"

struct sl_part_file {
	char *path, *part;
	int fd;		/* locked; -1: not open */
	bool over;	/* what an earlier run left in PATH.part is of no use */
	bool named;	/* it has its name already: part is path */
	bool previewed; /* the file at path is a copy of this one */
	bool set_aside; /* the file that was at path in the beginning is PATH.replaced */
	bool replaces;	/* a file was at path in the beginning: */
	dev_t old_device;
	ino_t old_inode;
	struct sl_file_access access; /* of preview(), too */
};

/* Missing folders are made. -EBUSY: another process is writing it. */
int sl_part_file_open(const char *path, struct sl_part_file *file);

/* The same; what an earlier run left in PATH.part goes. */
int sl_part_file_open_over(const char *path, struct sl_part_file *file);

/* Under its own name at once, with this access (NULL: by the umask): other programs may read it.
 * -EEXIST: a file is there. publish() syncs it, discard() removes it. */
int sl_part_file_open_new(const char *path, const struct sl_file_access *access,
			  struct sl_part_file *file);

/* The file at `path` was opened by sl_part_file_open_new(), of any process, and is not closed yet.
 * Its lock is of a kind (fcntl, shared) that readers neither take nor meet: flock() is HDF5's. */
bool sl_part_file_is_held(const char *path);

/* Who may read it, from now on; before it has data. */
int sl_part_file_set_access(struct sl_part_file *file, const struct sl_file_access *access);

/* Another process is writing PATH.part at this moment. */
bool sl_part_file_is_locked(const char *path);

/* A copy of what PATH.part holds now becomes PATH, for readers that do not wait for the end; what
 * publish() gives its name to replaces this copy. A file that was there is PATH.replaced from now
 * on, until sl_part_file_replaced() removes it, or discard() gives it its name back. */
int sl_part_file_preview(struct sl_part_file *file);
void sl_part_file_replaced(struct sl_part_file *file);

/* PATH.part, which is new, gets the bytes of the file at PATH. */
int sl_part_file_take(struct sl_part_file *file);

/* -ESTALE: PATH.part is no longer the name of this file. */
int sl_part_file_check(const struct sl_part_file *file);

/* Sync, and give it its name. After an error PATH is as it was, and the data are still under
 * PATH.part if that is ours. The file is closed in any case. */
int sl_part_file_publish(struct sl_part_file *file);

/* PATH.part goes, and what preview() has put at PATH, if they are still ours. */
void sl_part_file_discard(struct sl_part_file *file);
void sl_part_file_leave(struct sl_part_file *file); /* PATH.part stays as it is */

/* The folders that lead to path, as mkdir -p makes them. */
int sl_make_folders(const char *path);

/* The name of this file becomes durable: its folder is synced. -errno, not logged. */
int sl_folder_sync(const char *path);

/* Rename without replacing what is there: -EEXIST. Not logged. */
int sl_rename_new(const char *from, const char *to);

/* A file that one run after another goes on with, such as a journal: new, or as the run before left
 * it, if it is an ordinary file of this user with no other name, and no symbolic link. Locked.
 * *bytes: what it holds. The descriptor, or -errno, logged; -EBUSY, not logged: another process has
 * it. */
int sl_own_file_open(const char *path, long long *bytes);

/* `path` goes, if it is still the name of this file. */
void sl_own_file_remove(int fd, const char *path);

/* A file that other programs may read while it grows, under its own name from the beginning:
 * locked, emptied if it is there, never through a symbolic link. Every write goes to its end, so
 * that a file that another program has cut stays too short. The descriptor, or -errno, logged;
 * -EBUSY: another process is writing it. */
int sl_output_open(const char *path);

/* Before it is closed: `path` still names this file, and it has as many bytes as were written.
 * -ESTALE, logged, otherwise. */
int sl_output_check(int fd, const char *path, uint64_t written);

#endif
