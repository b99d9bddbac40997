/* folder.c - a run's folder is made, filled and closed. */
#include "session/folder/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define NEW_FILE (O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

void sl_run_folder_init(struct sl_run_folder *f)
{
	*f = (struct sl_run_folder){.dir = -1, .lock = -1, .result = -1};
	sl_run_log_init(&f->log);
}

void sl_run_folder_fini(struct sl_run_folder *f)
{
	sl_run_folder_close(f);
	sl_run_log_fini(&f->log);
}

void sl_run_folder_name(const struct sl_run_folder *f, const char *stem, const char *ending,
			char *name, size_t bytes)
{
	snprintf(name, bytes, "%s%s%s.%s", stem, f->transfer[0] ? "." : "", f->transfer, ending);
}

static int failed(const struct sl_run_folder *f, const char *name, int err)
{
	sl_error("cannot write '%s/%s': %s", f->path, name, strerror(-err));
	return err;
}

/* ---- a new number ---- */

static int open_root(const char *root)
{
	int fd;

	if (mkdir(root, 0777) && errno != EEXIST) {
		sl_error("cannot make the root of the runs '%s': %s", root, strerror(errno));
		return -errno;
	}
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		sl_error("cannot open the root of the runs '%s': %s", root, strerror(errno));
	return fd < 0 ? -errno : fd;
}

static bool is_unchanged(const struct sl_run_folder *f, int root)
{
	struct stat st;

	return f->last && !fstat(root, &st) && st.st_mtim.tv_sec == f->changed.tv_sec &&
	       st.st_mtim.tv_nsec == f->changed.tv_nsec;
}

/* The root is read only when another program has changed it: it may have 100,000 runs. Another
 * session that changed it within the same tick of the clock has made the next number, which mkdir
 * then refuses. */
static int find_highest(struct sl_run_folder *f, int root)
{
	uint64_t highest = 0;
	int err = is_unchanged(f, root) ? 0 : sl_run_folder_highest(root, &highest);

	/* A number is not used again in this session, even when its folder was moved elsewhere. */
	if (highest > f->last)
		f->last = highest;
	return err;
}

static int make_numbered(struct sl_run_folder *f, int root, char *name, size_t bytes)
{
	int err = find_highest(f, root);
	uint64_t number = f->last;
	struct stat st;

	if (err)
		return err;
	do {
		sl_run_folder_digits(++number, name, bytes);
		err = mkdirat(root, name, 0777) ? -errno : 0;
	} while (err == -EEXIST);
	if (err)
		return err;
	f->last = number;
	if (!fstat(root, &st))
		f->changed = st.st_mtim;
	return 0;
}

/* ---- its own files ---- */

/* `lock` is there only once it is held: no other program sees it free while the run lives. */
static int make_lock(struct sl_run_folder *f)
{
	char text[300], host[200] = "";
	int n;

	f->lock = openat(f->dir, ".lock", O_RDWR | NEW_FILE, 0666);
	if (f->lock < 0)
		return -errno;
	if (flock(f->lock, LOCK_EX | LOCK_NB))
		return -errno;
	gethostname(host, sizeof(host) - 1);
	n = snprintf(text, sizeof(text), "%s %d\n", host, (int)getpid());
	if (write(f->lock, text, (size_t)n) != n)
		return errno ? -errno : -ENOSPC;
	return renameat(f->dir, ".lock", f->dir, "lock") ? -errno : 0;
}

static int reserve_result(struct sl_run_folder *f, size_t bytes)
{
	char name[128];
	int err;

	sl_run_folder_name(f, "result", "json.part", name, sizeof(name));
	f->result = openat(f->dir, name, O_RDWR | NEW_FILE, 0666);
	if (f->result < 0)
		return -errno;
	do {
		err = posix_fallocate(f->result, 0, (off_t)bytes);
	} while (err == EINTR);
	f->reserved = bytes;
	return -err;
}

static int begin_files(struct sl_run_folder *f, size_t result_bytes)
{
	char name[128];
	int err;

	sl_run_folder_name(f, "run", "log", name, sizeof(name));
	err = sl_run_log_open(&f->log, f->dir, name);
	if (err)
		return failed(f, name, err);
	err = reserve_result(f, result_bytes);
	return err ? failed(f, "result.json", err) : 0;
}

int sl_run_folder_make(struct sl_run_folder *f, const char *root, size_t result_bytes)
{
	int length = (int)strlen(root), err, at;
	char name[32];

	if (strlen(root) + sizeof(name) > sizeof(f->path)) {
		sl_error("the root of the runs has more than %zu characters; choose a shorter path",
			 sizeof(f->path) - sizeof(name));
		return -ENAMETOOLONG;
	}
	at = open_root(root);
	if (at < 0)
		return at;
	f->transfer[0] = '\0';
	err = make_numbered(f, at, name, sizeof(name));
	if (err) {
		sl_error("cannot make a run folder in '%s': %s", root, strerror(-err));
		close(at);
		return err;
	}
	while (length && root[length - 1] == '/')
		length--;
	snprintf(f->path, sizeof(f->path), "%.*s/%s", length, root, name);
	f->dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(at);
	if (f->dir < 0) {
		err = -errno;
		sl_error("cannot open '%s': %s", f->path, strerror(-err));
		return err;
	}
	f->number = f->last;
	err = make_lock(f);
	err = err ? failed(f, "lock", err) : begin_files(f, result_bytes);
	if (err)
		sl_run_folder_remove(f);
	return err;
}

/* ---- shared by several receivers ---- */

void sl_run_folder_give(const struct sl_run_folder *f, char *given, size_t bytes)
{
	snprintf(given, bytes, "%d:%s", f->lock, f->path);
}

/* The folder at this path is the one whose lock we were given. */
static bool is_of_lock(const struct sl_run_folder *f)
{
	struct stat here, given;

	return !fstatat(f->dir, "lock", &here, AT_SYMLINK_NOFOLLOW) && !fstat(f->lock, &given) &&
	       here.st_dev == given.st_dev && here.st_ino == given.st_ino;
}

int sl_run_folder_join(struct sl_run_folder *f, const char *given, const char *transfer,
		       size_t result_bytes)
{
	char *path;
	long lock = strtol(given, &path, 10);
	const char *slash = strrchr(given, '/');
	int err;

	if (*path++ != ':' || lock < 3 || !slash || fcntl((int)lock, F_SETFD, FD_CLOEXEC)) {
		sl_error("'%s' is no run folder of the program that started this one", given);
		return -EINVAL;
	}
	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(f->transfer, sizeof(f->transfer), "%s", transfer);
	f->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	f->lock = (int)lock;
	if (f->dir < 0 || !is_of_lock(f)) {
		sl_error("'%s' is not the folder of this run", path);
		f->lock = -1; /* not a lock of ours */
		sl_run_folder_close(f);
		return -ESTALE;
	}
	f->number = sl_run_folder_number(slash + 1);
	err = begin_files(f, result_bytes);
	if (err)
		sl_run_folder_close(f);
	return err;
}

/* ---- texts ---- */

static int write_at(int fd, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = pwrite(fd, text + at, bytes - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		at += (size_t)n;
	}
	return 0;
}

int sl_run_folder_write(const struct sl_run_folder *f, const char *name, const char *text)
{
	int err, fd = openat(f->dir, name, O_WRONLY | NEW_FILE, 0666);

	if (fd < 0)
		return failed(f, name, -errno);
	err = write_at(fd, text, strlen(text));
	close(fd);
	return err ? failed(f, name, err) : 0;
}

int sl_run_folder_write_result(struct sl_run_folder *f, const char *text)
{
	char part[128], name[128];
	size_t bytes = strlen(text);
	int err;

	sl_run_folder_name(f, "result", "json.part", part, sizeof(part));
	sl_run_folder_name(f, "result", "json", name, sizeof(name));
	err = f->result < 0 ? -EBADF : write_at(f->result, text, bytes);
	if (!err && ftruncate(f->result, (off_t)bytes))
		err = -errno;
	if (!err && fsync(f->result) && errno != EINVAL)
		err = -errno;
	if (!err && renameat2(f->dir, part, f->dir, name, RENAME_NOREPLACE)) {
		/* EINVAL: this file system has no such rename. */
		err = errno == EINVAL && !renameat(f->dir, part, f->dir, name) ? 0 : -errno;
	}
	/* EINVAL: there is nothing to sync in a folder of this kind of file system. */
	if (!err && fsync(f->dir) && errno != EINVAL)
		err = -errno;
	return err ? failed(f, name, err) : 0;
}

/* ---- the end ---- */

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void sl_run_folder_close(struct sl_run_folder *f)
{
	sl_run_log_close(&f->log);
	close_one(&f->result);
	close_one(&f->dir);
	close_one(&f->lock); /* the last: the run is over */
	f->number = 0;
}

void sl_run_folder_remove(struct sl_run_folder *f)
{
	static const char *const names[] = {"run.log", "result.json.part", "experiment.yaml",
					    ".lock", "lock"};

	for (size_t i = 0; f->dir >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(f->dir, names[i], 0);
	if (!rmdir(f->path))
		f->last--; /* the next run may have this number */
	sl_run_folder_close(f);
}
