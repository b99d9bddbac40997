/* part_file.c - one inode from the first byte to the published name. */
#include "base/file/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_private.h"
#include "base/log.h"

enum {
	ATTEMPTS = 16,	/* to open a name that other programs take and leave meanwhile */
	LEFTOVERS = 999 /* kept as PATH.part.1 to PATH.part.999 */
};

/* mkdir -p of the folders that lead to path. */
int sl_make_folders(const char *path)
{
	char *copy = strdup(path), *slash;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (slash = path[0] ? strchr(copy + 1, '/') : NULL; slash && !r;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			r = sl_part_refused(copy, "create this folder", errno);
		*slash = '/';
	}
	free(copy);
	return r;
}

int sl_folder_sync(const char *path)
{
	char *copy = strdup(path), *slash;
	int fd, r = 0;

	if (!copy)
		return -ENOMEM;
	slash = strrchr(copy, '/');
	if (slash)
		slash[slash == copy] = '\0';
	fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	if (fd < 0)
		return -errno;
	/* EINVAL: this kind of file system has nothing to sync there. */
	if (fsync(fd) && errno != EINVAL)
		r = -errno;
	close(fd);
	return r;
}

static bool is_named(int fd, const char *path)
{
	struct stat held, there;

	return !fstat(fd, &held) && !lstat(path, &there) && held.st_dev == there.st_dev &&
	       held.st_ino == there.st_ino;
}

/* By a second link where the file system cannot do it at once. */
int sl_rename_new(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return link(from, to) || unlink(from) ? -errno : 0;
}

/* What an earlier run wrote may be all that is left of its data: it gets the first free name of
 * PATH.part.1, PATH.part.2, ... -EAGAIN: done, and PATH.part is free. */
static int keep_leftover(const char *part, long long bytes)
{
	char *kept = NULL;
	int r = -EEXIST;

	for (unsigned i = 1; i <= LEFTOVERS && r == -EEXIST; i++) {
		free(kept);
		if (asprintf(&kept, "%s.%u", part, i) < 0)
			return -ENOMEM;
		r = sl_rename_new(part, kept);
	}
	if (!r) {
		sl_warn("%s: holds %lld bytes of a run that did not finish; they are kept as %s",
			part, bytes, kept);
		r = -EAGAIN;
	} else if (r == -EEXIST) {
		sl_error("%s: holds %lld bytes of a run that did not finish, and there are %d "
			 "others beside it (.part.1, ...): move or remove them",
			 part, bytes, LEFTOVERS);
	} else if (r == -ENOENT) {
		r = -EAGAIN; /* another program was faster */
	} else {
		r = sl_part_refused(part, "keep under another name what an earlier run left in",
				    -r);
	}
	free(kept);
	return r;
}

/* An ordinary file of this user, with no other name: what a run of this user left. */
static int check_leftover(int fd, const char *path, long long *bytes)
{
	const char *why = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return sl_part_refused(path, "look at", errno);
	if (!S_ISREG(st.st_mode))
		why = "is no ordinary file";
	else if (st.st_uid != geteuid())
		why = "belongs to another user";
	else if (st.st_nlink > 1)
		why = "has another name, too";
	*bytes = (long long)st.st_size;
	if (!why)
		return 0;
	sl_error("%s: is there and %s; remove it, or choose another path", path, why);
	return -EEXIST;
}

/* The descriptor; -EAGAIN: the name went to another file meanwhile; -EBUSY, not logged: another
 * process has it. *bytes: what an earlier run left in it. */
static int open_own_once(const char *path, long long *bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666), r = 0;
	bool found = fd < 0 && errno == EEXIST;

	*bytes = 0;
	/* O_NONBLOCK: a pipe would wait for a reader. */
	if (found)
		fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && found && errno == ENOENT)
		return -EAGAIN;
	if (fd < 0 && errno == ELOOP) {
		sl_error("%s: is a symbolic link; remove it, or choose another path", path);
		return -ELOOP;
	}
	if (fd < 0)
		return sl_part_refused(path, "create", errno);
	/* A file system without locks has none to refuse. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		r = -EBUSY;
	if (!r && found)
		r = check_leftover(fd, path, bytes);
	if (!r && !is_named(fd, path))
		r = -EAGAIN;
	if (r)
		close(fd);
	return r ? r : fd;
}

/* 0, with the descriptor in file->fd; -EAGAIN: the name went to another file meanwhile. */
static int open_once(struct sl_part_file *file)
{
	long long bytes;
	int fd = open_own_once(file->part, &bytes), r = 0;

	if (fd == -EBUSY)
		sl_error("%s: is being written by another run; choose another path", file->part);
	if (fd < 0)
		return fd;
	if (bytes && file->over && ftruncate(fd, 0))
		r = sl_part_refused(file->part, "empty", errno);
	else if (bytes && !file->over)
		r = keep_leftover(file->part, bytes);
	if (r)
		close(fd);
	else
		file->fd = fd;
	return r;
}

static int contended(const char *path)
{
	sl_error("%s: is made and removed by other programs all the time; choose another path",
		 path);
	return -EAGAIN;
}

int sl_own_file_open(const char *path, long long *bytes)
{
	int fd = -EAGAIN;

	for (unsigned i = 0; i < ATTEMPTS && fd == -EAGAIN; i++)
		fd = open_own_once(path, bytes);
	return fd == -EAGAIN ? contended(path) : fd;
}

void sl_own_file_remove(int fd, const char *path)
{
	if (is_named(fd, path))
		unlink(path);
}

/* The file gets its name by a rename, which would put it in the place of a device. */
static int look_at_path(struct sl_part_file *file)
{
	struct stat st;

	if (!file->path[0]) {
		sl_error("a file to write has an empty path");
		return -EINVAL;
	}
	if (lstat(file->path, &st))
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : sl_part_refused(file->path, "look at", errno);
	if (S_ISLNK(st.st_mode)) {
		sl_error("%s: is a symbolic link; remove it, or choose another path", file->path);
		return -ELOOP;
	}
	if (!S_ISREG(st.st_mode))
		return sl_part_refused(file->path, "write", S_ISDIR(st.st_mode) ? EISDIR : EEXIST);
	file->replaces = true;
	file->old_device = st.st_dev;
	file->old_inode = st.st_ino;
	return 0;
}

static int open_part(const char *path, bool over, struct sl_part_file *file)
{
	int r;

	*file = (struct sl_part_file){.fd = -1, .path = strdup(path), .over = over};
	if (!file->path || asprintf(&file->part, "%s.part", path) < 0) {
		file->part = NULL;
		r = -ENOMEM;
		goto undo_file;
	}
	r = look_at_path(file);
	if (!r)
		r = sl_make_folders(path);
	if (!r) {
		r = -EAGAIN;
		for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++)
			r = open_once(file);
	}
	if (!r)
		return 0;
	if (r == -EAGAIN)
		contended(file->part);
undo_file:
	sl_part_file_leave(file);
	return r;
}

int sl_part_file_open(const char *path, struct sl_part_file *file)
{
	return open_part(path, false, file);
}

int sl_part_file_open_over(const char *path, struct sl_part_file *file)
{
	return open_part(path, true, file);
}

int sl_part_file_open_new(const char *path, const struct sl_file_access *access,
			  struct sl_part_file *file)
{
	int r;

	*file = (struct sl_part_file){
		.fd = -1, .path = strdup(path), .part = strdup(path), .named = true};
	r = file->path && file->part ? sl_make_folders(path) : -ENOMEM;
	if (r)
		goto undo_file;
	r = sl_file_create(path, access);
	if (r == -EEXIST)
		sl_error("%s: exists; move it away, or choose another path", path);
	if (r < 0)
		goto undo_file;
	file->fd = r;
	if (access)
		file->access = *access;
	/* A file system without locks has none to refuse. */
	fcntl(file->fd, F_OFD_SETLK, &(struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET});
	return 0;
undo_file:
	sl_part_file_leave(file);
	return r;
}

void sl_part_file_leave(struct sl_part_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->part);
	free(file->path);
	*file = (struct sl_part_file){.fd = -1};
}

bool sl_part_is_old(const struct sl_part_file *file, const char *path)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == file->old_device && st.st_ino == file->old_inode;
}

static int appeared(const struct sl_part_file *file)
{
	sl_error("%s: appeared while this run was writing; it stays, and this run's data are in %s",
		 file->path, file->part);
	return -EEXIST;
}

static int name_new(const struct sl_part_file *file)
{
	int r = sl_rename_new(file->part, file->path);

	if (r == -EEXIST)
		return appeared(file);
	return r ? sl_part_refused(file->part, "rename to its final name", -r) : 0;
}

/* In the place of the file that was there in the beginning, and of no other. */
static int replace_old(const struct sl_part_file *file)
{
	if (!sl_part_is_old(file, file->path))
		return access(file->path, F_OK) && errno == ENOENT ? name_new(file)
								   : appeared(file);
	if (renameat2(AT_FDCWD, file->part, AT_FDCWD, file->path, RENAME_EXCHANGE)) {
		if (errno != EINVAL && errno != ENOSYS)
			return sl_part_refused(file->part, "rename to its final name", errno);
		return rename(file->part, file->path)
			       ? sl_part_refused(file->part, "rename to its final name", errno)
			       : 0;
	}
	if (!sl_part_is_old(file, file->part)) { /* put it back */
		renameat2(AT_FDCWD, file->part, AT_FDCWD, file->path, RENAME_EXCHANGE);
		return appeared(file);
	}
	return unlink(file->part) ? sl_part_refused(file->part, "remove", errno) : 0;
}

static int stolen(const struct sl_part_file *file)
{
	sl_error("%s: the file that this run was writing is no longer at this name: it was "
		 "moved or removed, or another file was put in its place",
		 file->part);
	return -ESTALE;
}

int sl_part_file_check(const struct sl_part_file *file)
{
	return is_named(file->fd, file->part) ? 0 : stolen(file);
}

void sl_part_file_discard(struct sl_part_file *file)
{
	if (file->fd >= 0 && is_named(file->fd, file->part))
		unlink(file->part);
	if (file->previewed && sl_part_is_old(file, file->path))
		unlink(file->path);
	sl_part_bring_back(file);
	sl_part_file_leave(file);
}

static int sync_named(const struct sl_part_file *file)
{
	int r = sl_folder_sync(file->path);

	return r ? sl_part_refused(file->path, "sync the folder of", -r) : 0;
}

static int give_name(const struct sl_part_file *file)
{
	int r;

	if (fsync(file->fd))
		return sl_part_refused(file->part, "sync", errno);
	r = sl_part_file_check(file);
	if (r)
		return r;
	if (file->named)
		return sync_named(file);
	r = file->replaces ? replace_old(file) : name_new(file);
	if (r)
		return r;
	if (!is_named(file->fd, file->path)) /* between the look and the rename */
		return stolen(file);
	return sync_named(file);
}

int sl_part_file_publish(struct sl_part_file *file)
{
	int r = give_name(file);

	if (!r)
		sl_part_file_replaced(file);
	sl_part_file_leave(file);
	return r;
}

static int check_output(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return sl_part_refused(path, "look at", errno);
	if (!S_ISREG(st.st_mode)) {
		sl_error("%s: is there and is no ordinary file; choose another path", path);
		return -EEXIST;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		sl_error("%s: is being written by another run; choose another path", path);
		return -EBUSY;
	}
	/* Another program may have put a file in its place before it was locked. */
	if (!is_named(fd, path))
		return -EAGAIN;
	return ftruncate(fd, 0) ? sl_part_refused(path, "empty", errno) : 0;
}

int sl_output_open(const char *path)
{
	int r = -EAGAIN, fd = -1;

	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		/* O_NONBLOCK: a pipe would wait for a reader. The file is emptied once it is
		 * known to be an ordinary one, and locked. */
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			  0666);
		if (fd < 0 && errno == ELOOP) {
			sl_error("%s: is a symbolic link; remove it, or choose another path", path);
			return -ELOOP;
		}
		if (fd < 0)
			return sl_part_refused(path, "write", errno);
		r = check_output(fd, path);
		if (r)
			close(fd);
	}
	if (r == -EAGAIN)
		contended(path);
	return r ? r : fd;
}

int sl_output_check(int fd, const char *path, uint64_t written)
{
	struct stat st;

	if (!is_named(fd, path)) {
		sl_error("%s: the file that this run was writing is no longer at this name: it was "
			 "moved or removed, or another file was put in its place",
			 path);
		return -ESTALE;
	}
	if (fstat(fd, &st) || (uint64_t)st.st_size == written)
		return 0;
	sl_error("%s: has %lld bytes, and this run has written %llu: another program has changed "
		 "it",
		 path, (long long)st.st_size, (unsigned long long)written);
	return -ESTALE;
}
