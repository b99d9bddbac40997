/* space.c - blocks on disk before HDF5 wants them.
 *
 * HDF5 writes only below its end of allocation, which grows when objects are created and chunks
 * inserted, and also when it finds time to write cached metadata. So when everything up to
 * (end of allocation + data to come + headroom) is reserved, no write can run out of space.
 * fallocate() with KEEP_SIZE reserves without changing what the file looks like; it does not look
 * at RLIMIT_FSIZE, so that is checked here. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "hdf5/handle.h"

static uint64_t size_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return limit.rlim_cur;
}

/* Where fallocate() does not exist (NFS before 4.2, some FUSE): the best that can be had is to look
 * whether there is room now. */
static int look(const struct sl_h5 *file, uint64_t end)
{
	struct statvfs vfs;
	struct stat st;
	uint64_t have;

	if (fstatvfs(file->disk.fd, &vfs) || fstat(file->disk.fd, &st))
		return -errno;
	have = (uint64_t)st.st_blocks * 512 + (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return have < end ? -ENOSPC : 0;
}

static int take(struct sl_h5 *file, uint64_t end)
{
	int r;

	do {
		r = fallocate(file->disk.fd, FALLOC_FL_KEEP_SIZE, (off_t)file->reserved,
			      (off_t)(end - file->reserved));
	} while (r && errno == EINTR);
	if (r)
		return -errno;
	file->reserved = end;
	return 0;
}

/* Reserve ahead at most a quarter of what is free: other files of the run need room, too. */
static void be_modest(const struct sl_h5 *file, uint64_t *step)
{
	struct statvfs vfs;

	if (fstatvfs(file->disk.fd, &vfs))
		return;
	while (*step && *step / vfs.f_frsize > vfs.f_bavail / 4)
		*step = *step > (1 << 20) ? *step / 2 : 0;
}

/* Own everything below need, and up to `step` more so that this is rare. */
static int secure(struct sl_h5 *file, uint64_t need, uint64_t *step)
{
	uint64_t limit = size_limit(), end;
	int r;

	if (need > limit)
		return -EFBIG;
	if (file->no_fallocate)
		return look(file, need);
	if (need <= file->reserved)
		return 0;
	be_modest(file, step);
	for (;;) {
		end = limit - need < *step ? limit : need + *step;
		r = take(file, end);
		if (r == -EOPNOTSUPP || r == -ENOSYS) {
			file->no_fallocate = true;
			return look(file, need);
		}
		if (!r || !*step)
			return r;
		*step = *step > (1 << 20) ? *step / 2 : 0; /* nearly full: be modest from now on */
	}
}

static int end_of_allocation(struct sl_h5 *file, uint64_t *end)
{
	haddr_t eoa = 0;
	struct stat st;

	if (file->id >= 0 && H5Fget_eoa(file->id, &eoa) < 0)
		return -EIO;
	if (file->id < 0 && !fstat(file->disk.fd, &st)) /* closed for the time being */
		eoa = (haddr_t)st.st_size;
	*end = eoa;
	return 0;
}

static int reserve_in(struct sl_h5 *file, uint64_t bytes)
{
	uint64_t end;
	int r = end_of_allocation(file, &end);

	return r ? r : secure(file, end + bytes + SL_H5_SLACK_BYTES + file->headroom, &file->step);
}

int sl_h5_reserve(struct sl_h5 *file, uint64_t bytes)
{
	int r = sl_h5_status(file);

	return r ? r : reserve_in(sl_h5_home(file), bytes);
}

int sl_h5_keep_more(struct sl_h5 *file, uint64_t bytes)
{
	uint64_t step = file->step;
	int r;

	file->headroom += bytes;
	file->step = 0; /* it does not grow meanwhile */
	r = reserve_in(file, 0);
	file->step = step;
	return r;
}

int sl_h5_room(struct sl_h5 *file, uint64_t bytes, const char *path)
{
	uint64_t end, step = 0;
	int r;

	if (file->status)
		return file->status;
	r = end_of_allocation(file, &end);
	if (!r)
		r = secure(file, end + bytes + SL_H5_SLACK_BYTES, &step);
	return r ? sl_h5_stop(file, r, "write", path) : 0;
}

void sl_h5_keep(struct sl_h5 *file, uint64_t bytes)
{
	file->headroom += bytes;
}
