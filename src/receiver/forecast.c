/* forecast.c - whether the disks have room for the run: looked at once, when the sinks are open.
 *
 * An upper bound: every frame kept, no image packed. A run that is packed, or whose stages reject
 * frames, may need a small part of it; so too little room is a warning, and the run begins. It is
 * refused where not even one frame has room in the sinks that are required. Quotas, and files that
 * this run will replace, are not looked at. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "receiver/private.h"

/* Sums that no disk has are as good as infinite. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The folder of the file. */
static void folder_of(const char *path, char *folder, size_t bytes)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, bytes, ".");
	else
		snprintf(folder, bytes, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

enum { NO_DISK = SL_STATUS_DISKS };

/* The disk of this folder in the list, or a new one; NO_DISK: it has no limits that are known, or
 * the list is full. */
static uint32_t disk_of(struct sl_forecast *f, const char *path)
{
	struct sl_status_disk *disk = &f->disk[f->n];
	struct statvfs vfs;
	struct stat st;

	if (f->n == SL_STATUS_DISKS)
		return NO_DISK;
	folder_of(path, disk->path, sizeof(disk->path));
	if (stat(disk->path, &st) || statvfs(disk->path, &vfs) || !vfs.f_blocks)
		return NO_DISK;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->device[i] == st.st_dev)
			return i;
	disk->free_bytes = times(vfs.f_bavail, vfs.f_frsize);
	f->device[f->n] = st.st_dev;
	return f->n++;
}

static void add(struct sl_forecast *f, const struct sl_sink_space *space, bool required)
{
	uint32_t i = disk_of(f, space->path);
	struct sl_status_disk *disk = &f->disk[i];

	if (i == NO_DISK)
		return;
	disk->free_bytes = plus(disk->free_bytes, space->held_bytes);
	disk->frame_bytes = plus(disk->frame_bytes, space->frame_bytes);
	disk->fixed_bytes = plus(disk->fixed_bytes, space->fixed_bytes);
	if (required)
		f->required_bytes[i] =
			plus(f->required_bytes[i], plus(space->frame_bytes, space->fixed_bytes));
}

static void conclude(struct sl_status_disk *disk, uint64_t frames)
{
	uint64_t room = disk->free_bytes > disk->fixed_bytes ? disk->free_bytes - disk->fixed_bytes
							     : 0;

	disk->frames_fit = disk->frame_bytes ? room / disk->frame_bytes : UINT64_MAX;
	if (frames)
		disk->needed_bytes = plus(times(frames, disk->frame_bytes), disk->fixed_bytes);
	disk->is_short = disk->needed_bytes > disk->free_bytes;
}

/* What is short is told once, before the first frame. required_bytes: of its first one. */
static int judge(const struct sl_status_disk *disk, uint64_t required_bytes, uint64_t frames)
{
	if (required_bytes > disk->free_bytes) {
		sl_error("%s: not even one frame has room: it may need %.1f MB, and %.1f MB are "
			 "free; free some space, or set path to another file system",
			 disk->path, (double)required_bytes * 1e-6,
			 (double)disk->free_bytes * 1e-6);
		return -ENOSPC;
	}
	if (!disk->frames_fit)
		sl_warn("%s: not even one frame has room there in every sink: it may need %.1f MB, "
			"and %.1f MB are free. The run begins, since sinks that have no room are "
			"not required; they count what they cannot take. Free some space, or set "
			"path to another file system",
			disk->path, (double)plus(disk->frame_bytes, disk->fixed_bytes) * 1e-6,
			(double)disk->free_bytes * 1e-6);
	else if (disk->is_short)
		sl_warn("%s: %" PRIu64
			" frames may need up to %.1f MB, and %.1f MB are free: about "
			"%" PRIu64 " frames have room, more if images are packed or rejected; free "
			"some space, or set path to another file system",
			disk->path, frames, (double)disk->needed_bytes * 1e-6,
			(double)disk->free_bytes * 1e-6, disk->frames_fit);
	return 0;
}

int sl_forecast_make(struct sl_receiver *r)
{
	const struct sl_experiment *e = r->experiment;
	struct sl_forecast *f = &r->forecast;
	int err = 0;

	*f = (struct sl_forecast){.n = 0};
	for (unsigned i = 0; i < e->sinks; i++) {
		struct sl_sink_space space = {.path = NULL};

		if (e->sink[i]->space)
			e->sink[i]->space(e->sink_state[i], &space);
		if (space.path && space.path[0])
			add(f, &space, !r->sink_optional[i]);
	}
	for (uint32_t i = 0; i < f->n && !err; i++) {
		conclude(&f->disk[i], r->env.frames);
		err = judge(&f->disk[i], f->required_bytes[i], r->env.frames);
	}
	return err;
}

void sl_forecast_status(const struct sl_receiver *r, struct sl_status *status)
{
	status->disks = r->forecast.n;
	memcpy(status->disk, r->forecast.disk, r->forecast.n * sizeof(status->disk[0]));
}
