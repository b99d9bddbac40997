/* image_cache.c - from files to where images can be had without delay. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "detector/replay/image_cache.h"

/* That the kernel is asked to read ahead of what is wanted. */
enum { AHEAD_IMAGES = 4 };

int sl_reel_open(const struct sl_stack_options *options, struct sl_reel *reel)
{
	int err;

	*reel = (struct sl_reel){.scratch = -1, .last_image = UINT64_MAX};
	err = sl_stack_open(options, &reel->stack);
	if (err)
		return err;
	reel->image_bytes = sl_stack_shape(reel->stack)->image_bytes;
	return 0;
}

static void say_failed(const struct sl_reel *reel)
{
	unsigned long long image = reel->failed_image;
	const char *path = sl_stack_where(reel->stack, reel->failed_image);

	if (reel->failed == -ESTALE)
		sl_error("replay: '%s' is not what it was when it was opened: image %llu could not "
			 "be sent",
			 path, image);
	else if (reel->failed)
		sl_error("replay: image %llu of '%s' could not be sent: %s", image, path,
			 strerror(-reel->failed));
}

void sl_reel_close(struct sl_reel *reel)
{
	if (!reel->stack)
		return;
	say_failed(reel);
	if (reel->memory)
		munmap(reel->memory, reel->ready * reel->image_bytes);
	if (reel->scratch >= 0)
		close(reel->scratch);
	free(reel->last);
	sl_stack_close(reel->stack);
	*reel = (struct sl_reel){.scratch = -1};
}

/* The image that is i-th from `first` on. */
static uint64_t image_at(const struct sl_reel *reel, uint64_t first, uint64_t i)
{
	return (first + i) % sl_stack_images(reel->stack);
}

static int load(struct sl_reel *reel, uint64_t first, uint64_t images)
{
	uint8_t *memory = mmap(NULL, images * reel->image_bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = 0;

	if (memory == MAP_FAILED) {
		sl_error("replay: no memory for %llu images (%.1f MB); set cache lower",
			 (unsigned long long)images,
			 (double)images * (double)reel->image_bytes * 1e-6);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < images && !err; i++)
		err = sl_stack_read(reel->stack, image_at(reel, first, i),
				    memory + i * reel->image_bytes);
	if (err) {
		munmap(memory, images * reel->image_bytes);
		return err;
	}
	reel->memory = memory;
	return 0;
}

static int write_all(int fd, const uint8_t *data, uint64_t bytes, uint64_t at)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pwrite(fd, data + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (uint64_t)n;
	}
	return 0;
}

/* A file without a name in that folder, with room for all of it. */
static int open_scratch(const char *folder, uint64_t bytes)
{
	char path[512];
	const char *base = getenv("TMPDIR");
	int fd, err;

	snprintf(path, sizeof(path), "%s/sluice-replay-XXXXXX",
		 folder[0]	   ? folder
		 : base && base[0] ? base
				   : "/var/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	err = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	sl_error("replay: the images do not fit into `cache`, and there is no room to unpack %.1f "
		 "MB as '%s': %s; raise cache, set scratch to another folder, or play fewer frames",
		 (double)bytes * 1e-6, path, strerror(err));
	return -err;
}

static int unpack(struct sl_reel *reel, uint64_t first, uint64_t images, const char *folder)
{
	uint8_t *image = malloc(reel->image_bytes);
	int fd = image ? open_scratch(folder, images * reel->image_bytes) : -ENOMEM;
	int err = fd < 0 ? fd : 0;

	if (!err)
		sl_info("replay: unpacking %llu images, %.1f MB, which is more than `cache`",
			(unsigned long long)images,
			(double)images * (double)reel->image_bytes * 1e-6);
	for (uint64_t i = 0; i < images && !err; i++) {
		err = sl_stack_read(reel->stack, image_at(reel, first, i), image);
		if (!err)
			err = write_all(fd, image, reel->image_bytes, i * reel->image_bytes);
	}
	free(image);
	if (err && fd >= 0)
		close(fd);
	if (!err)
		reel->scratch = fd;
	return err;
}

int sl_reel_prepare(struct sl_reel *reel, uint64_t first, uint64_t images, uint64_t most,
		    const char *folder)
{
	int err = 0;

	reel->first = first;
	if (images > UINT64_MAX / reel->image_bytes)
		return -EFBIG;
	if (images * reel->image_bytes <= most)
		err = load(reel, first, images);
	else if (sl_stack_is_raw(reel->stack)) {
		reel->direct = true;
		images = sl_stack_images(reel->stack); /* all are as near as these */
	} else
		err = unpack(reel, first, images, folder);
	reel->ready = err ? 0 : images;
	return err;
}

static int read_scratch(struct sl_reel *reel, uint64_t at, uint64_t bytes, uint8_t *buffer)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(reel->scratch, buffer + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (uint64_t)n;
	}
	posix_fadvise(reel->scratch, (off_t)(at + bytes), (off_t)(AHEAD_IMAGES * reel->image_bytes),
		      POSIX_FADV_WILLNEED);
	return 0;
}

/* Nobody prepared it: whoever asks waits. Modules of one image are asked for one after another. */
static int read_now(struct sl_reel *reel, uint64_t image)
{
	int err;

	if (reel->last_image == image)
		return 0;
	if (!reel->last)
		reel->last = malloc(reel->image_bytes);
	if (!reel->last)
		return -ENOMEM;
	reel->last_image = UINT64_MAX;
	err = sl_stack_read(reel->stack, image, reel->last);
	if (!err)
		reel->last_image = image;
	return err;
}

static int get_ready(struct sl_reel *reel, uint64_t image, uint64_t offset, uint64_t bytes,
		     void *buffer, const void **pixels)
{
	uint64_t images = sl_stack_images(reel->stack);
	uint64_t i = (image + images - reel->first) % images;
	int err = 0;

	if (i >= reel->ready)
		return -ENODATA;
	*pixels = buffer;
	if (reel->memory)
		*pixels = reel->memory + i * reel->image_bytes + offset;
	else if (reel->direct)
		err = sl_stack_read_part(reel->stack, image, offset, bytes, buffer);
	else
		err = read_scratch(reel, i * reel->image_bytes + offset, bytes, buffer);
	if (err && !reel->failed) {
		reel->failed = err;
		reel->failed_image = image;
	}
	return err;
}

int sl_reel_get(struct sl_reel *reel, uint64_t image, uint64_t offset, uint64_t bytes, void *buffer,
		const void **pixels)
{
	int err;

	if (reel->ready)
		return get_ready(reel, image, offset, bytes, buffer, pixels);
	err = read_now(reel, image);
	if (err)
		return err;
	memcpy(buffer, reel->last + offset, bytes);
	*pixels = buffer;
	return 0;
}
