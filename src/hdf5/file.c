/* file.c - the life of a file: begun as PATH.part, finished as PATH; and opening one to read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/series.h"

/* Reserved ahead of what is needed: one system call per 64 MiB. */
#define STEP_BYTES (UINT64_C(64) << 20)

/* For closing, besides what series and sl_h5_keep() ask: cached metadata has its place already;
 * what is new then is a few object headers. */
#define HEADROOM_BYTES (UINT64_C(1) << 20)

/* Chunks start on pages, so that no write shares one with its neighbour. */
enum { ALIGN_FROM_BYTES = 64 << 10, ALIGN_BYTES = 4096 };

/* Readers that follow a file need the newest format: its index of chunks may be read while it
 * grows. */
static bool prepare_access(hid_t access, bool swmr)
{
	return access >= 0 && H5Pset_fapl_sec2(access) >= 0 &&
	       H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
	       H5Pset_alignment(access, ALIGN_FROM_BYTES, ALIGN_BYTES) >= 0 &&
	       H5Pset_file_locking(access, false, true) >= 0 &&
	       (!swmr || H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
}

/* The file by its descriptor: HDF5 opens this inode whatever its name is by now. The lock is held
 * by that descriptor (base/file/part_file.h), and HDF5's own would only meet it. */
int sl_h5_begin(struct sl_h5 *file, bool create, bool swmr)
{
	char self[32];
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	int r = 0;

	sl_h5_self(file, self);
	if (!prepare_access(access, swmr)) {
		r = sl_h5_failed(file, "prepare", "HDF5");
		goto undo_access;
	}
	/* Once to see that there is room; creating empties the file, so once more to have it. */
	if (create)
		r = sl_h5_reserve(file, 0);
	if (!r) {
		file->reserved = create ? 0 : file->reserved;
		file->id = create ? H5Fcreate(self, H5F_ACC_TRUNC, H5P_DEFAULT, access)
				  : H5Fopen(self, H5F_ACC_RDWR, access);
		if (file->id < 0) {
			r = sl_h5_failed(file, create ? "create" : "open", "the file");
			goto undo_access;
		}
		r = create ? sl_h5_reserve(file, 0) : 0;
	}
	if (r)
		sl_h5_stop(file, r, "reserve space for", "the file");
undo_access:
	if (access >= 0)
		H5Pclose(access);
	return r;
}

void sl_h5_forget(struct sl_h5 *file)
{
	sl_h5_samples_free(file);
	sl_part_file_leave(&file->disk);
	if (file->links > 0)
		H5Pclose(file->links);
	free(file->old.file);
	free(file->path);
	free(file);
}

struct sl_h5 *sl_h5_allocate(const char *path)
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

int sl_h5_create_over(const char *path, bool over, struct sl_h5 **created)
{
	struct sl_h5 *file = sl_h5_allocate(path);
	int r;

	sl_h5_prepare();
	if (!file)
		return -ENOMEM;
	r = over ? sl_part_file_open_over(path, &file->disk) : sl_part_file_open(path, &file->disk);
	if (r) {
		sl_h5_forget(file);
		return r;
	}
	r = sl_h5_begin(file, true, false);
	if (r) {
		sl_h5_abandon(file);
		return r;
	}
	*created = file;
	return 0;
}

int sl_h5_create(const char *path, struct sl_h5 **created)
{
	return sl_h5_create_over(path, false, created);
}

/* HDF5 is done with the file: give back what it did not use, look whether what was written is
 * there, and publish it. */
int sl_h5_settle(struct sl_h5 *file)
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
	if (file->closed) {
		file->closed->device = st.st_dev;
		file->closed->inode = st.st_ino;
		file->closed->bytes = st.st_size;
	}
	if (!r)
		r = file->status = sl_part_file_publish(&file->disk);
	return r;
}

void sl_h5_close_id(struct sl_h5 *file)
{
	/* After a failed write HDF5 would try it again, and again at exit, and crash. Its handles
	 * are left alone instead; the process will not need them. */
	if (file->id >= 0 && !file->broken && H5Fclose(file->id) < 0)
		sl_h5_failed(file, "close", "the file");
	file->id = H5I_INVALID_HID;
}

static void end_series(struct sl_h5 *file, bool flush)
{
	struct sl_h5_series *series;

	while ((series = file->series)) {
		file->series = series->next;
		if (series->file == file)
			sl_h5_series_end(series, flush);
		sl_h5_series_free(series);
	}
}

int sl_h5_finish(struct sl_h5 *file)
{
	int status;

	if (file->rolled)
		sl_h5_rolled_end(file);
	end_series(file, true);
	sl_h5_close_id(file);
	if (!file->status)
		sl_h5_settle(file);
	status = file->status;
	if (!status)
		sl_h5_old_remove(file->path, &file->old);
	if (status && file->disk.fd >= 0)
		sl_warn("%s: is not whole; it keeps this name, and %s is as it was",
			file->disk.part, file->path);
	sl_h5_forget(file);
	return status;
}

void sl_h5_abandon(struct sl_h5 *file)
{
	if (file->rolled)
		sl_h5_rolled_discard(file);
	end_series(file, false);
	sl_h5_close_id(file);
	sl_part_file_discard(&file->disk);
	sl_h5_forget(file);
}

bool sl_h5_is_threadsafe(void)
{
	hbool_t safe = 0;

	return H5is_library_threadsafe(&safe) >= 0 && safe;
}

static uint64_t unused_of(const struct sl_h5 *file)
{
	struct stat st;

	if (fstat(file->disk.fd, &st) || st.st_blocks * 512 <= st.st_size)
		return 0;
	return (uint64_t)(st.st_blocks * 512 - st.st_size);
}

uint64_t sl_h5_unused(const struct sl_h5 *file)
{
	const struct sl_h5 *home = sl_h5_home((struct sl_h5 *)file);

	return unused_of(file) + (home == file ? 0 : unused_of(home));
}

uint64_t sl_h5_headroom(const struct sl_h5 *file)
{
	const struct sl_h5 *home = sl_h5_home((struct sl_h5 *)file);

	return file->headroom + (home == file ? 0 : home->headroom) + 2 * SL_H5_SLACK_BYTES;
}

int sl_h5_status(const struct sl_h5 *file)
{
	const struct sl_h5 *home = sl_h5_home((struct sl_h5 *)file);

	return file->status ? file->status : home->status;
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
	file = sl_h5_allocate(path);
	if (!file)
		return -ENOMEM;
	file->links = sl_h5_link_access(H5P_LINK_ACCESS);
	file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file->id < 0) {
		r = sl_h5_failed(file, "open", "the file");
		sl_h5_forget(file);
		return r;
	}
	*opened = file;
	return 0;
}

void sl_h5_close(struct sl_h5 *file)
{
	H5Fclose(file->id);
	sl_h5_forget(file);
}
