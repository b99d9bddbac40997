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

int sl_image_cache_open(const struct sl_stack_options *options, struct sl_image_cache *cache)
{
	int err;

	*cache = (struct sl_image_cache){.scratch = -1, .last_image = UINT64_MAX};
	err = sl_stack_open(options, &cache->stack);
	if (err)
		return err;
	cache->image_bytes = sl_stack_shape(cache->stack)->image_bytes;
	return 0;
}

int sl_image_cache_cut(struct sl_image_cache *cache, const struct sl_geometry *geometry)
{
	int err = sl_stack_cut(cache->stack, geometry);

	cache->image_bytes = sl_stack_shape(cache->stack)->image_bytes;
	return err;
}

static void say_failed(const struct sl_image_cache *cache)
{
	unsigned long long image = cache->failed_image;
	const char *path = sl_stack_where(cache->stack, cache->failed_image);

	if (cache->failed == -ESTALE)
		sl_error("replay: '%s' is not what it was when it was opened: image %llu could not "
			 "be sent",
			 path, image);
	else if (cache->failed)
		sl_error("replay: image %llu of '%s' could not be sent: %s", image, path,
			 strerror(-cache->failed));
}

void sl_image_cache_close(struct sl_image_cache *cache)
{
	if (!cache->stack)
		return;
	say_failed(cache);
	if (cache->memory)
		munmap(cache->memory, cache->ready * cache->image_bytes);
	if (cache->scratch >= 0)
		close(cache->scratch);
	free(cache->last);
	sl_stack_close(cache->stack);
	*cache = (struct sl_image_cache){.scratch = -1};
}

/* The image that is i-th from `first` on. */
static uint64_t image_at(const struct sl_image_cache *cache, uint64_t first, uint64_t i)
{
	return (first + i) % sl_stack_images(cache->stack);
}

static int load(struct sl_image_cache *cache, uint64_t first, uint64_t images)
{
	uint8_t *memory = mmap(NULL, images * cache->image_bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = 0;

	if (memory == MAP_FAILED) {
		sl_error("replay: no memory for %llu images (%.1f MB); set cache lower",
			 (unsigned long long)images,
			 (double)images * (double)cache->image_bytes * 1e-6);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < images && !err; i++)
		err = sl_stack_read(cache->stack, image_at(cache, first, i),
				    memory + i * cache->image_bytes);
	if (err) {
		munmap(memory, images * cache->image_bytes);
		return err;
	}
	cache->memory = memory;
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

static int unpack(struct sl_image_cache *cache, uint64_t first, uint64_t images, const char *folder)
{
	uint8_t *image = malloc(cache->image_bytes);
	int fd = image ? open_scratch(folder, images * cache->image_bytes) : -ENOMEM;
	int err = fd < 0 ? fd : 0;

	if (!err)
		sl_info("replay: unpacking %llu images, %.1f MB, which is more than `cache`",
			(unsigned long long)images,
			(double)images * (double)cache->image_bytes * 1e-6);
	for (uint64_t i = 0; i < images && !err; i++) {
		err = sl_stack_read(cache->stack, image_at(cache, first, i), image);
		if (!err)
			err = write_all(fd, image, cache->image_bytes, i * cache->image_bytes);
	}
	free(image);
	if (err && fd >= 0)
		close(fd);
	if (!err)
		cache->scratch = fd;
	return err;
}

int sl_image_cache_prepare(struct sl_image_cache *cache, uint64_t first, uint64_t images,
			   uint64_t most, const char *folder)
{
	int err = 0;

	cache->first = first;
	if (images > UINT64_MAX / cache->image_bytes)
		return -EFBIG;
	if (images * cache->image_bytes <= most)
		err = load(cache, first, images);
	else if (sl_stack_is_raw(cache->stack)) {
		cache->direct = true;
		images = sl_stack_images(cache->stack); /* all are as near as these */
	} else
		err = unpack(cache, first, images, folder);
	cache->ready = err ? 0 : images;
	return err;
}

static int read_scratch(struct sl_image_cache *cache, uint64_t at, uint64_t bytes, uint8_t *buffer)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(cache->scratch, buffer + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (uint64_t)n;
	}
	posix_fadvise(cache->scratch, (off_t)(at + bytes),
		      (off_t)(AHEAD_IMAGES * cache->image_bytes), POSIX_FADV_WILLNEED);
	return 0;
}

/* Nobody prepared it: whoever asks waits. Modules of one image are asked for one after another. */
static int read_now(struct sl_image_cache *cache, uint64_t image)
{
	int err;

	if (cache->last_image == image)
		return 0;
	if (!cache->last)
		cache->last = malloc(cache->image_bytes);
	if (!cache->last)
		return -ENOMEM;
	cache->last_image = UINT64_MAX;
	err = sl_stack_read(cache->stack, image, cache->last);
	if (!err)
		cache->last_image = image;
	return err;
}

static int get_ready(struct sl_image_cache *cache, uint64_t image, uint64_t offset, uint64_t bytes,
		     void *buffer, const void **pixels)
{
	uint64_t images = sl_stack_images(cache->stack);
	uint64_t i = (image + images - cache->first) % images;
	int err = 0;

	if (i >= cache->ready)
		return -ENODATA;
	*pixels = buffer;
	if (cache->memory)
		*pixels = cache->memory + i * cache->image_bytes + offset;
	else if (cache->direct)
		err = sl_stack_read_part(cache->stack, image, offset, bytes, buffer);
	else
		err = read_scratch(cache, i * cache->image_bytes + offset, bytes, buffer);
	if (err && !cache->failed) {
		cache->failed = err;
		cache->failed_image = image;
	}
	return err;
}

int sl_image_cache_get(struct sl_image_cache *cache, uint64_t image, uint64_t offset,
		       uint64_t bytes, void *buffer, const void **pixels)
{
	int err;

	if (cache->ready)
		return get_ready(cache, image, offset, bytes, buffer, pixels);
	err = read_now(cache, image);
	if (err)
		return err;
	memcpy(buffer, cache->last + offset, bytes);
	*pixels = buffer;
	return 0;
}
