/* old_files.c - what is in the way of a run: whose it is, set aside, gone or brought back. */
#include "hdf5/rolled/old_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "hdf5/rolled/data_files.h"

static int aside_path(const char *path, uint32_t number, char *data, char *aside)
{
	return sl_h5_data_path(path, number, data, PATH_MAX) ||
			       (size_t)snprintf(aside, PATH_MAX, "%.*s" SL_H5_REPLACED,
						PATH_MAX - 10, data) >= PATH_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static bool is_file(const char *path, const struct sl_h5_old_file *file)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == file->device && st.st_ino == file->inode;
}

/* ---- look ---- */

/* A run that was killed before it had rows left it, or one that waits for its first frame. */
static int refuse_aside(const char *path, const char *aside)
{
	if (sl_part_file_is_locked(path)) {
		sl_error("%s: is being written by another run; choose another path", path);
		return -EBUSY;
	}
	sl_error("%s: is of an earlier run, set aside by a run that was killed or has no rows yet: "
		 "'sluice recover %s' brings it back; or move it away",
		 aside, path);
	return -EEXIST;
}

static int check_aside(const char *path)
{
	char data[PATH_MAX], aside[PATH_MAX];
	uint32_t *numbers = NULL;
	size_t n = 0;
	int r;

	if ((size_t)snprintf(aside, sizeof(aside), "%s" SL_H5_REPLACED, path) >= sizeof(aside))
		return -ENAMETOOLONG;
	if (is_there(aside))
		return refuse_aside(path, aside);
	r = sl_h5_data_list(path, SL_H5_REPLACED, &numbers, &n);
	if (!r && n) {
		r = aside_path(path, numbers[0], data, aside);
		r = r ? r : refuse_aside(path, aside);
	}
	free(numbers);
	return r;
}

/* A data file that belongs to no run at path. */
static int refuse_foreign(const char *path, const char *data, const struct sl_h5_identity *theirs)
{
	if (theirs->master[0] && strcmp(theirs->master, sl_h5_last_part(path)))
		sl_error("%s: is a data file of %s, and overwrite replaces those of %s alone: move "
			 "it away, or choose another path",
			 data, theirs->master, sl_h5_last_part(path));
	else
		sl_error("%s: exists, and there is no run at %s that says it is its data file, so "
			 "overwrite does not replace it: move it away, or choose another path",
			 data, path);
	return -EEXIST;
}

/* The data file may be replaced by a run to path. */
static int check_data(const char *path, const char *data, const struct sl_h5_identity *master)
{
	struct sl_h5_identity theirs;
	int r;

	if (sl_part_file_is_held(data)) {
		sl_error("%s: is being written by another run; choose another path", data);
		return -EBUSY;
	}
	r = sl_h5_identify(data, &theirs);
	if (r == -EBADMSG) {
		sl_error("%s: exists, and HDF5 cannot open it, so it may be any run's: if a killed "
			 "run left it, 'sluice recover %s' sets it aside; or move it away",
			 data, path);
		return -EEXIST;
	}
	if (r) {
		sl_error("%s: exists and cannot be replaced: %s; move it away, or choose another "
			 "path",
			 data, r == -EINVAL ? "it is no ordinary file" : strerror(-r));
		return -EEXIST;
	}
	return sl_h5_belongs(&theirs, master, path) ? 0 : refuse_foreign(path, data, &theirs);
}

static int look_at(const char *path, uint32_t number, bool overwrite,
		   const struct sl_h5_identity *master, struct sl_h5_old_file *file)
{
	char data[PATH_MAX];
	struct stat st;
	int r = sl_h5_data_path(path, number, data, sizeof(data));

	if (r)
		return r;
	if (!overwrite) {
		sl_error("%s: exists; move it away, or choose another path", data);
		return -EEXIST;
	}
	r = check_data(path, data, master);
	if (!r && lstat(data, &st))
		r = -errno;
	if (!r)
		*file = (struct sl_h5_old_file){number, st.st_dev, st.st_ino};
	return r;
}

int sl_h5_old_find(const char *path, bool overwrite, struct sl_h5_old *old)
{
	struct sl_h5_identity master = {.file_set = ""};
	struct sl_h5_old found = {.n = 0};
	uint32_t *numbers = NULL;
	size_t n = 0;
	int r = check_aside(path);

	if (!r)
		r = sl_h5_data_list(path, "", &numbers, &n);
	if (!r && n) {
		sl_h5_identify(path, &master); /* an error: it is no master of ours */
		found.file = calloc(n, sizeof(*found.file));
		r = found.file ? 0 : -ENOMEM;
	}
	for (; found.n < n && !r; found.n += !r)
		r = look_at(path, numbers[found.n], overwrite, &master, &found.file[found.n]);
	free(numbers);
	if (r) {
		free(found.file);
		return r;
	}
	*old = found;
	return 0;
}

/* ---- give way ---- */

int sl_h5_old_set_aside(const char *path, struct sl_h5_old *old)
{
	char data[PATH_MAX], aside[PATH_MAX];
	int r = 0;

	for (; old->aside < old->n && !r; old->aside += !r) {
		const struct sl_h5_old_file *file = &old->file[old->aside];

		r = aside_path(path, file->number, data, aside);
		if (r)
			continue;
		/* Since the look, another run may have begun there. */
		if (!is_file(data, file) || sl_part_file_is_held(data)) {
			sl_error("%s: was changed by another program while this run began; start "
				 "it again",
				 data);
			r = -EBUSY;
		} else if ((r = sl_rename_new(data, aside))) {
			sl_error("%s: cannot be set aside as %s: %s", data, aside, strerror(-r));
		}
	}
	return r;
}

static void forget(struct sl_h5_old *old)
{
	free(old->file);
	*old = (struct sl_h5_old){.n = 0};
}

void sl_h5_old_end(const char *path, struct sl_h5_old *old, bool bring_back)
{
	char data[PATH_MAX], aside[PATH_MAX];
	int r;

	for (size_t i = 0; i < old->aside; i++) {
		if (aside_path(path, old->file[i].number, data, aside) ||
		    !is_file(aside, &old->file[i]))
			continue;
		if (!bring_back)
			unlink(aside);
		else if ((r = sl_rename_new(aside, data)))
			sl_warn("%s: cannot get its name %s back: %s", aside, data, strerror(-r));
	}
	forget(old);
}

void sl_h5_old_leave(const char *path, struct sl_h5_old *old)
{
	char data[PATH_MAX], aside[PATH_MAX];

	if (old->aside && !aside_path(path, old->file[0].number, data, aside))
		sl_warn("%s: this file of the earlier run stays (%zu in all), since this run is "
			"not whole; remove it when you do not need it",
			aside, old->aside);
	forget(old);
}

/* ---- without taking their names ---- */

int sl_h5_old_find_own(const char *path, struct sl_h5_old *old)
{
	struct sl_h5_identity master = {.file_set = ""}, theirs;
	struct sl_h5_old found = {.n = 0};
	uint32_t *numbers = NULL;
	char data[PATH_MAX];
	struct stat st;
	size_t n = 0;
	int r = 0;

	if (sl_h5_identify(path, &master) || !master.file_set[0])
		goto done;
	r = sl_h5_data_list(path, "", &numbers, &n);
	found.file = r || !n ? NULL : calloc(n, sizeof(*found.file));
	if (!r && n && !found.file)
		r = -ENOMEM;
	for (size_t i = 0; i < n && !r; i++)
		if (!sl_h5_data_path(path, numbers[i], data, sizeof(data)) &&
		    !sl_h5_identify(data, &theirs) && sl_h5_belongs(&theirs, &master, path) &&
		    !lstat(data, &st))
			found.file[found.n++] =
				(struct sl_h5_old_file){numbers[i], st.st_dev, st.st_ino};
	free(numbers);
done:
	if (!r)
		*old = found;
	return r;
}

void sl_h5_old_remove(const char *path, struct sl_h5_old *old)
{
	char data[PATH_MAX];

	for (size_t i = 0; i < old->n; i++)
		if (!sl_h5_data_path(path, old->file[i].number, data, sizeof(data)) &&
		    is_file(data, &old->file[i]) && !sl_part_file_is_held(data))
			unlink(data);
	forget(old);
}
