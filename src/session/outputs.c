/* outputs.c - where results may go. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "experiment/experiment.h"
#include "session/outputs.h"

static int refused(const char *path, int error)
{
	sl_error("cannot write '%s': %s", path, strerror(error));
	return -error;
}

/* A file can be made in the folder of path. made: folders that are missing will be made. */
static int check_folder(const char *path, bool made)
{
	size_t bytes = strlen(path);
	char folder[PATH_MAX];

	if (bytes >= sizeof(folder))
		return refused(path, ENAMETOOLONG);
	strcpy(folder, path);
	do {
		char *slash = strrchr(folder, '/');

		if (!slash)
			strcpy(folder, ".");
		else if (slash == folder)
			folder[1] = '\0';
		else
			*slash = '\0';
		if (!faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
			return 0;
	} while (made && errno == ENOENT && strcmp(folder, ".") && strcmp(folder, "/"));
	return refused(path, errno);
}

/* Results get their name by a rename, which would put them in the place of a device or a folder. A
 * link would lead them elsewhere. Nothing is made or changed here: another run may be at work. */
static int check_name(const char *path, bool made)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? check_folder(path, made) : refused(path, errno);
	if (S_ISLNK(st.st_mode)) {
		sl_error("'%s' is a symbolic link; remove it, or choose another path", path);
		return -ELOOP;
	}
	if (!S_ISREG(st.st_mode)) {
		sl_error("'%s' is there and is no ordinary file%s; choose another path", path,
			 S_ISDIR(st.st_mode) ? ", but a directory" : "");
		return -EEXIST;
	}
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return refused(path, errno);
	return check_folder(path, false);
}

/* Both of its names, while it is written (base/file/part_file.h) and in the end. */
static int check_one(const char *path, bool made)
{
	char part[PATH_MAX];
	int err;

	if (strlen(path) + sizeof(".part") > sizeof(part))
		return refused(path, ENAMETOOLONG);
	snprintf(part, sizeof(part), "%s.part", path);
	err = check_name(path, made);
	return err ? err : check_name(part, made);
}

int sl_outputs_forget(const char *path)
{
	if (!path[0] || !unlink(path) || errno == ENOENT)
		return 0;
	sl_error("cannot remove '%s', which is of an earlier run: %s", path, strerror(errno));
	return -errno;
}

/* One more part of a path whose beginning is resolved. */
static void append(char place[PATH_MAX], const char *part)
{
	size_t length = strlen(place);
	char *slash = strrchr(place, '/');

	if (!strcmp(part, "..") && slash)
		slash[slash == place] = '\0';
	else if (part[0] && strcmp(part, ".") && strcmp(part, ".."))
		snprintf(place + length, PATH_MAX - length, "%s%s",
			 length && place[length - 1] == '/' ? "" : "/", part);
}

/* A folder with all links resolved. One that is not there yet will be made: its name is taken as it
 * is, and ".." behind it leads back. */
static int resolve(const char *folder, char place[PATH_MAX])
{
	char copy[PATH_MAX], *slash;
	size_t length = strlen(folder);
	int err;

	if (length >= sizeof(copy))
		return -ENAMETOOLONG;
	if (realpath(length ? folder : ".", place))
		return 0;
	strcpy(copy, folder);
	while (length > 1 && copy[length - 1] == '/')
		copy[--length] = '\0';
	slash = strrchr(copy, '/');
	if (slash == copy && !copy[1])
		return -errno;
	if (slash)
		*slash = '\0';
	err = resolve(!slash ? "." : slash == copy ? "/" : copy, place);
	if (!err)
		append(place, slash ? slash + 1 : copy);
	return err;
}

/* The same place, by whatever name: its folder resolved, then its last part. A slash at the end
 * makes no other place of it. */
static bool same_place(const char *a, const char *b)
{
	const char *path[2] = {a, b};
	char place[2][PATH_MAX];

	for (int i = 0; i < 2; i++) {
		char copy[PATH_MAX], *slash;
		size_t length = strlen(path[i]);

		if (length >= sizeof(copy))
			return false;
		strcpy(copy, path[i]);
		while (length > 1 && copy[length - 1] == '/')
			copy[--length] = '\0';
		slash = strrchr(copy, '/');
		if (slash)
			*slash = '\0';
		if (resolve(!slash ? "." : slash == copy ? "/" : copy, place[i]))
			return false;
		append(place[i], slash ? slash + 1 : copy);
	}
	return !strcmp(place[0], place[1]);
}

int sl_outputs_check(const char *const *path, size_t n, size_t ours)
{
	for (size_t i = 0; i < n; i++) {
		int err = 0;

		if (!path[i] || !path[i][0])
			continue;
		for (size_t j = 0; j < i; j++)
			if (path[j] && path[j][0] && same_place(path[i], path[j])) {
				sl_error("'%s' is to be written twice: as '%s' and as '%s'",
					 path[i], path[j], path[i]);
				return -EINVAL;
			}
		err = check_one(path[i], i >= ours);
		if (err)
			return err;
	}
	return 0;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int sl_outputs_spare(const char *input, const char *const *path, size_t n)
{
	struct sl_paths in;
	char why[600];
	int err = 0;

	/* A file that cannot be read is reported by the add-on that reads it. */
	if (!input[0] || sl_paths_expand(input, &in, why, sizeof(why)))
		return 0;
	for (size_t i = 0; i < in.n && !err; i++)
		for (size_t j = 0; j < n && !err; j++)
			if (path[j] && path[j][0] && same_file(in.path[i], path[j])) {
				sl_error("'%s' is read, and would be overwritten: choose another "
					 "path for what is written",
					 path[j]);
				err = -EEXIST;
			}
	sl_paths_free(&in);
	return err;
}

/* ---- of a run ---- */

struct list {
	enum sl_file_use use;
	char **path;
	size_t n;
	int err;
};

static void add(void *arg, enum sl_file_use use, const char *path)
{
	struct list *list = arg;
	char **more;

	if (use != list->use || list->err)
		return;
	more = realloc(list->path, (list->n + 1) * sizeof(*more));
	if (more) {
		list->path = more;
		more[list->n] = strdup(path);
	}
	if (more && more[list->n])
		list->n++;
	else
		list->err = -ENOMEM;
}

static void forget(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->path[i]);
	free(list->path);
}

int sl_outputs_check_run(const struct sl_experiment *e, const char *file, const char *const *ours,
			 size_t n)
{
	struct list out = {.use = SL_FILE_WRITE}, in = {.use = SL_FILE_READ};
	int err;

	for (size_t i = 0; i < n; i++)
		add(&out, SL_FILE_WRITE, ours[i]);
	sl_experiment_files(e, add, &out);
	sl_experiment_files(e, add, &in);
	err = out.err ? out.err : in.err;
	for (size_t i = n; i < out.n && !err; i++)
		if (!out.path[i][0]) {
			sl_error("a sink's path is empty: name the file that it is to write");
			err = -EINVAL;
		}
	if (!err)
		err = sl_outputs_check((const char *const *)out.path, out.n, n);
	if (!err)
		err = sl_outputs_spare(file, (const char *const *)out.path, out.n);
	for (size_t i = 0; i < in.n && !err; i++)
		err = sl_outputs_spare(in.path[i], (const char *const *)out.path, out.n);
	forget(&out);
	forget(&in);
	return err;
}

int sl_outputs_spare_paths(const struct sl_experiment *e, const char *const *ours, size_t n,
			   const char *const *path, size_t paths)
{
	struct list all = {.use = SL_FILE_WRITE};
	int err;

	for (size_t i = 0; i < n; i++)
		add(&all, SL_FILE_WRITE, ours[i]);
	sl_experiment_files(e, add, &all);
	err = all.err;
	for (size_t i = 0; i < all.n && !err; i++)
		for (size_t k = 0; k < paths && !err; k++)
			if (all.path[i][0] && same_place(all.path[i], path[k])) {
				sl_error("'%s': this name is reserved for a file of the run "
					 "folder's own; choose another path",
					 all.path[i]);
				err = -EINVAL;
			}
	forget(&all);
	return err;
}
