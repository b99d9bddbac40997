/* bring_back.c - a run that was killed before it had rows gives way to the one that it had set
 * aside. */
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
#include "hdf5/rolled/old_files.h"
#include "hdf5/rolled/recover.h"

struct aside {
	char master[PATH_MAX]; /* where the earlier master is if it was set aside */
	bool has_master;
	uint32_t *number; /* data files that were set aside */
	size_t numbers;
	struct sl_h5_identity identity; /* of the earlier run */
};

static int name_aside(const char *path, char aside[PATH_MAX])
{
	return (size_t)snprintf(aside, PATH_MAX, "%s" SL_H5_REPLACED, path) >= PATH_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

/* Data file `number` and what it is called while it is aside. */
static int name_data(const char *path, uint32_t number, char data[PATH_MAX], char aside[PATH_MAX])
{
	int r = sl_h5_data_path(path, number, data, PATH_MAX);

	return r ? r : name_aside(data, aside);
}

static int find(const char *path, struct aside *aside)
{
	char data[PATH_MAX], name[PATH_MAX];
	struct stat st;
	int r = name_aside(path, aside->master);

	if (!r)
		r = sl_h5_data_list(path, SL_H5_REPLACED, &aside->number, &aside->numbers);
	if (r)
		return r;
	aside->has_master = !lstat(aside->master, &st) && S_ISREG(st.st_mode);
	if (aside->has_master)
		sl_h5_identify(aside->master, &aside->identity);
	else if (aside->numbers && !name_data(path, aside->number[0], data, name))
		sl_h5_identify(name, &aside->identity);
	return 0;
}

static int leave(const char *name, const char *why)
{
	sl_warn("%s: is of an earlier run, and stays: %s; move it away, or remove it", name, why);
	return -EEXIST;
}

/* What is at the names of the earlier run's files is of the killed run, and has no rows. -EEXIST:
 * it is not so, logged. */
static int check_killed(const char *path, const struct aside *aside)
{
	struct sl_h5_identity there = {.file_set = ""};
	char data[PATH_MAX];
	uint32_t *numbers = NULL;
	size_t n = 0;
	int r = sl_h5_data_list(path, "", &numbers, &n);

	if (!r && !aside->identity.file_set[0])
		r = leave(aside->has_master ? aside->master : path,
			  "it does not say which data files belong to it");
	for (size_t i = 0; i < n && !r; i++) {
		r = sl_h5_data_path(path, numbers[i], data, sizeof(data));
		if (!r && sl_part_file_is_held(data)) {
			sl_error("%s: is being written by another run", data);
			r = -EBUSY;
		}
		if (!r && !sl_h5_identify(data, &there) &&
		    strcmp(there.file_set, aside->identity.file_set) && sl_h5_data_rows(data))
			r = leave(aside->has_master ? aside->master : path,
				  "the run that replaced it has rows");
	}
	free(numbers);
	if (!r && !aside->has_master && !sl_h5_identify(path, &there) &&
	    strcmp(there.file_set, aside->identity.file_set))
		r = leave(path, "the master that its data files belong to is not there");
	return r;
}

/* A file that HDF5 cannot open may be anything: it is kept under a name that no reader takes. */
static void keep_unreadable(const char *name)
{
	char kept[PATH_MAX];

	if ((size_t)snprintf(kept, sizeof(kept), "%s.unreadable", name) < sizeof(kept) &&
	    !sl_rename_new(name, kept))
		sl_warn("%s: HDF5 cannot open it; it is %s now", name, kept);
}

/* What the killed run left at this name goes; files of any other run stay. */
static void clear(const char *name, const char *master, const struct sl_h5_identity *earlier)
{
	struct sl_h5_identity there = {.file_set = ""};
	int r = sl_h5_identify(name, &there);

	if (!r && there.file_set[0] && strcmp(there.file_set, earlier->file_set) &&
	    !strcmp(there.master, master))
		unlink(name);
	else if (r == -EBADMSG)
		keep_unreadable(name);
}

static int give_name(const char *aside, const char *name, uint32_t *files)
{
	int r = sl_rename_new(aside, name);

	if (r)
		sl_error("%s: cannot get its name %s back: %s", aside, name, strerror(-r));
	*files += !r;
	return r;
}

static int bring_back(const char *path, const struct aside *aside, uint32_t *files)
{
	char data[PATH_MAX], name[PATH_MAX];
	uint32_t *numbers = NULL;
	size_t n = 0;
	int r = sl_h5_data_list(path, "", &numbers, &n);

	for (size_t i = 0; i < n && !r; i++)
		if (!sl_h5_data_path(path, numbers[i], data, sizeof(data)))
			clear(data, sl_h5_last_part(path), &aside->identity);
	free(numbers);
	for (size_t i = 0; i < aside->numbers && !r; i++) {
		r = name_data(path, aside->number[i], data, name);
		r = r ? r : give_name(name, data, files);
	}
	if (!r && aside->has_master) {
		clear(path, "", &aside->identity);
		r = give_name(aside->master, path, files);
	}
	return r;
}

int sl_h5_old_bring_back(const char *path, uint32_t *files)
{
	struct aside aside = {.has_master = false};
	struct sl_part_file lock = {.fd = -1};
	uint32_t back = 0;
	int r = find(path, &aside);

	if (r || (!aside.has_master && !aside.numbers))
		goto undo_find;
	r = sl_part_file_open_over(path, &lock); /* no run is at work there */
	if (r)
		goto undo_find;
	r = check_killed(path, &aside);
	if (!r)
		r = bring_back(path, &aside, &back);
	r = r == -EEXIST ? 0 : r;
	sl_part_file_discard(&lock);
undo_find:
	free(aside.number);
	if (!r)
		*files = back;
	return r;
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static int release(const char *path, const char *data, uint32_t *files)
{
	struct sl_h5_identity there = {.file_set = ""};
	int r = sl_h5_identify(data, &there);

	if (sl_part_file_is_locked(path) || sl_part_file_is_held(data)) {
		sl_error("%s: is being written by another run", path);
		return -EBUSY;
	}
	if (r == -EBADMSG)
		keep_unreadable(data);
	else if (!r && !strcmp(there.master, sl_h5_last_part(path)) && !sl_h5_data_rows(data))
		unlink(data);
	*files += !is_there(data);
	return 0;
}

int sl_h5_old_release(const char *path, uint32_t *files)
{
	char data[PATH_MAX];
	uint32_t *numbers = NULL;
	size_t n = 0;
	int r;

	*files = 0;
	if (is_there(path))
		return 0;
	r = sl_h5_data_list(path, "", &numbers, &n);
	for (size_t i = 0; i < n && !r; i++)
		if (!sl_h5_data_path(path, numbers[i], data, sizeof(data)))
			r = release(path, data, files);
	free(numbers);
	return r;
}

bool sl_h5_is_since(const struct stat *st, uint64_t since_ns)
{
	return (uint64_t)st->st_ctim.tv_sec * UINT64_C(1000000000) +
		       (uint64_t)st->st_ctim.tv_nsec >=
	       since_ns;
}

/* since_ns 0: an unreadable file stays. */
static void remove_of_set(const char *name, const char *file_set, uint64_t since_ns)
{
	struct sl_h5_identity there;
	struct stat st;
	int r;

	if (sl_part_file_is_held(name))
		return;
	r = sl_h5_identify(name, &there);
	if ((!r && !strcmp(there.file_set, file_set)) ||
	    (r == -EBADMSG && since_ns && !lstat(name, &st) && S_ISREG(st.st_mode) &&
	     sl_h5_is_since(&st, since_ns)))
		unlink(name);
}

/* Data files with `ending` behind their names. file_set NULL: all of them go. */
static int each_data(const char *path, const char *ending, const char *file_set, uint32_t kept,
		     uint64_t since_ns)
{
	char name[PATH_MAX];
	uint32_t *numbers = NULL;
	size_t n = 0, used;
	int r = sl_h5_data_list(path, ending, &numbers, &n);

	for (size_t i = 0; i < n && !r; i++) {
		if (numbers[i] <= kept || sl_h5_data_path(path, numbers[i], name, sizeof(name)))
			continue;
		used = strlen(name);
		if ((size_t)snprintf(name + used, sizeof(name) - used, "%s", ending) >=
		    sizeof(name) - used)
			continue;
		if (!file_set)
			unlink(name);
		else
			remove_of_set(name, file_set, since_ns);
	}
	free(numbers);
	return r;
}

int sl_h5_remove_set(const char *path, const char *file_set, uint32_t kept, uint64_t since_ns)
{
	char name[PATH_MAX];
	int r = each_data(path, "", file_set, kept, since_ns);

	if (r)
		return r;
	remove_of_set(path, file_set, 0);
	if ((size_t)snprintf(name, sizeof(name), "%s" SL_H5_REPLACED, path) >= sizeof(name))
		return -ENAMETOOLONG;
	if (!kept) {
		remove_of_set(name, file_set, 0);
		return 0;
	}
	/* It has data files on disk: what it replaced had been set aside by it, and goes. */
	unlink(name);
	return each_data(path, SL_H5_REPLACED, NULL, 0, 0);
}
