/* file.c - the life of a file: begun as PATH.part, finished as PATH; and opening one to read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The file by its descriptor: HDF5 opens this inode whatever its name is by now. The lock is held
 * by that descriptor (base/file/part_file.h), and HDF5's own would only meet it. */
static int begin(struct sl_h5 *file)
{
	char self[32];
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	int r;

	if (access < 0 || H5Pset_fapl_sec2(access) < 0 ||
	    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
	    H5Pset_alignment(access, ALIGN_FROM_BYTES, ALIGN_BYTES) < 0 ||
	    H5Pset_file_locking(access, false, true) < 0) {
		r = sl_h5_failed(file, "prepare", "HDF5");
		goto undo_access;
	}
	/* Once to see that there is room; creating empties the file, so once more to have it. */
	r = sl_h5_reserve(file, 0);
	if (!r) {
		file->reserved = 0;
		sl_h5_self(file, self);
		file->id = H5Fcreate(self, H5F_ACC_TRUNC, H5P_DEFAULT, access);
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
	sl_h5_samples_free(file);
	sl_part_file_leave(&file->disk);
	if (file->links > 0)
		H5Pclose(file->links);
	free(file->path);
	free(file);
}

static struct sl_h5 *allocate(const char *path)
{
	struct sl_h5 *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->id = H5I_INVALID_HID;
	file->disk.fd = -1;
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
	r = sl_part_file_open(path, &file->disk);
	if (r) {
		forget(file);
		return r;
	}
	r = begin(file);
	if (r) {
		sl_h5_abandon(file);
		return r;
	}
	*created = file;
	return 0;
}

/* HDF5 is done with the file: give back what it did not use, look whether what was written is
 * there, and publish it. */
static int settle(struct sl_h5 *file)
{
	struct stat st;
	int r;

	file->status = sl_part_file_check(&file->disk);
	if (file->status) {
		sl_part_file_leave(&file->disk);
		return file->status;
	}
	if (fstat(file->disk.fd, &st) || ftruncate(file->disk.fd, st.st_size))
		return sl_h5_stop(file, -errno, "trim", "the file");
	r = sl_h5_read_back(file);
	if (!r)
		r = file->status = sl_part_file_publish(&file->disk);
	return r;
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
	if (status && file->disk.fd >= 0)
		sl_warn("%s: is not whole; it keeps this name, and %s is as it was",
			file->disk.part, file->path);
	forget(file);
	return status;
}

void sl_h5_abandon(struct sl_h5 *file)
{
	sl_h5_series_end(file, false);
	close_id(file);
	sl_part_file_discard(&file->disk);
	forget(file);
}

bool sl_h5_is_threadsafe(void)
{
	hbool_t safe = 0;

	return H5is_library_threadsafe(&safe) >= 0 && safe;
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
	if (access(path, R_OK)) {
		r = -errno;
		sl_error("%s: cannot read: %s", path, strerror(-r));
		return r;
	}
	r = sl_h5_check_ordinary(path, path);
	if (r)
		return r;
	file = allocate(path);
	if (!file)
		return -ENOMEM;
	file->links = sl_h5_link_access(H5P_LINK_ACCESS);
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
