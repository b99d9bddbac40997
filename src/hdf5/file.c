/* file.c - the life of a file: begun as PATH.part, finished as PATH; and opening one to read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/handle.h"

/* Reserved ahead of what is needed: one system call per 64 MiB. */
#define STEP_BYTES (UINT64_C(64) << 20)

/* For closing, besides what series and sl_h5_keep() ask: cached metadata has its place already;
 * what is new then is a few object headers. */
#define HEADROOM_BYTES (UINT64_C(1) << 20)

/* Chunks start on pages, so that no write shares one with its neighbour. */
enum { ALIGN_FROM_BYTES = 64 << 10, ALIGN_BYTES = 4096 };

static int refused(const char *path, const char *verb, int error)
{
	sl_error("%s: cannot %s: %s", path, verb, strerror(error));
	return -error;
}

/* mkdir -p of the folders that lead to path. */
static int make_folders(const char *path)
{
	char *copy = strdup(path), *slash;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (slash = strchr(copy + 1, '/'); slash && !r; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			r = refused(copy, "create this folder", errno);
		*slash = '/';
	}
	free(copy);
	return r;
}

static int sync_folder(const char *path)
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

/* Our own descriptor of the part file, once it is clear that nobody else is at work on it: HDF5
 * holds flock() on a file that it writes, but empties it before it looks. */
static int open_part(struct sl_h5 *file)
{
	struct stat st;

	/* The file gets its name by a rename, which would put it in the place of a device. */
	if (!stat(file->path, &st) && !S_ISREG(st.st_mode))
		return refused(file->path, "write", S_ISDIR(st.st_mode) ? EISDIR : EEXIST);
	file->fd = open(file->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (file->fd < 0)
		return refused(file->part, "create", errno);
	if (flock(file->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		sl_error("%s: is being written by another run; choose another path", file->part);
		close(file->fd);
		file->fd = -1;
		return -EBUSY;
	}
	flock(file->fd, LOCK_UN);
	return 0;
}

static int begin(struct sl_h5 *file)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	int r;

	if (access < 0 || H5Pset_fapl_sec2(access) < 0 ||
	    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
	    H5Pset_alignment(access, ALIGN_FROM_BYTES, ALIGN_BYTES) < 0) {
		r = sl_h5_failed(file, "prepare", "HDF5");
		goto undo_access;
	}
	/* Once to see that there is room; creating empties the file, so once more to have it. */
	r = sl_h5_reserve(file, 0);
	if (!r) {
		file->reserved = 0;
		file->id = H5Fcreate(file->part, H5F_ACC_TRUNC, H5P_DEFAULT, access);
		if (file->id < 0) {
			r = sl_h5_failed(file, "create", "the file");
			goto undo_access;
		}
		r = sl_h5_reserve(file, 0);
	}
	if (r)
		sl_h5_stop(file, r, "reserve space for", "the file");
undo_access:
	if (access >= 0)
		H5Pclose(access);
	return r;
}

static void forget(struct sl_h5 *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->part);
	free(file->path);
	free(file);
}

static struct sl_h5 *allocate(const char *path)
{
	struct sl_h5 *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->id = H5I_INVALID_HID;
	file->fd = -1;
	file->headroom = HEADROOM_BYTES;
	file->step = STEP_BYTES;
	file->path = strdup(path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	return file;
}

int sl_h5_create(const char *path, struct sl_h5 **created)
{
	struct sl_h5 *file = allocate(path);
	int r;

	sl_h5_prepare();
	if (!file)
		return -ENOMEM;
	if (asprintf(&file->part, "%s.part", path) < 0) {
		file->part = NULL;
		r = -ENOMEM;
		goto undo_file;
	}
	r = make_folders(path);
	if (!r)
		r = open_part(file);
	if (r)
		goto undo_file;
	r = begin(file);
	if (r) {
		sl_h5_abandon(file);
		return r;
	}
	*created = file;
	return 0;
undo_file:
	forget(file);
	return r;
}

/* HDF5 is done with the file: give back what it did not use, and make the rest durable. */
static int settle(struct sl_h5 *file)
{
	struct stat st;
	int r;

	if (fstat(file->fd, &st) || ftruncate(file->fd, st.st_size) || fsync(file->fd))
		return sl_h5_stop(file, -errno, "sync", "the file");
	if (rename(file->part, file->path))
		return sl_h5_stop(file, -errno, "rename to", file->path);
	r = sync_folder(file->path);
	return r ? sl_h5_stop(file, r, "sync", "its folder") : 0;
}

static void close_id(struct sl_h5 *file)
{
	/* After a failed write HDF5 would try it again, and again at exit, and crash. Its handles
	 * are left alone instead; the process will not need them. */
	if (file->id >= 0 && !file->broken && H5Fclose(file->id) < 0)
		sl_h5_failed(file, "close", "the file");
	file->id = H5I_INVALID_HID;
}

int sl_h5_finish(struct sl_h5 *file)
{
	int status;

	sl_h5_series_end(file, true);
	close_id(file);
	if (!file->status)
		settle(file);
	status = file->status;
	if (status)
		sl_warn("%s: is not whole; it keeps this name, and %s is as it was", file->part,
			file->path);
	forget(file);
	return status;
}

void sl_h5_abandon(struct sl_h5 *file)
{
	sl_h5_series_end(file, false);
	close_id(file);
	unlink(file->part);
	forget(file);
}

int sl_h5_status(const struct sl_h5 *file)
{
	return file->status;
}

int sl_h5_open(const char *path, struct sl_h5 **opened)
{
	struct sl_h5 *file;
	int r;

	sl_h5_prepare();
	if (access(path, R_OK))
		return refused(path, "read", errno);
	file = allocate(path);
	if (!file)
		return -ENOMEM;
	file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file->id < 0) {
		r = sl_h5_failed(file, "open", "the file");
		forget(file);
		return r;
	}
	*opened = file;
	return 0;
}

void sl_h5_close(struct sl_h5 *file)
{
	H5Fclose(file->id);
	forget(file);
}
