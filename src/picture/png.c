/* png.c - pictures in PNG files. The one place with <png.h>. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "picture/picture.h"

/* A picture takes the place of a picture or of an empty file, and of nothing else: data that were
 * named by mistake are not to be had again. Links, folders and devices are left to
 * sl_part_file_open(), which refuses them. */
static int spare_others(const char *path)
{
	uint8_t begin[8];
	struct stat st;
	const char *why = NULL;
	ssize_t n;
	int fd;

	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, begin, sizeof(begin));
	if (n < 0)
		why = strerror(errno);
	else if (n && (n < (ssize_t)sizeof(begin) || png_sig_cmp(begin, 0, sizeof(begin))))
		why = "it is no PNG file, and a picture does not replace it";
	else if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		why = "another program is writing it";
	if (fd >= 0)
		close(fd);
	if (!why)
		return 0;
	sl_error("cannot write '%s': %s; choose another file", path, why);
	return -EEXIST;
}

static int write_to(png_image *image, int fd, const void *pixels, const void *colours)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), err = 0;
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

	if (!file) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	errno = 0;
	if (!png_image_write_to_stdio(image, file, 0, pixels, 0, colours) || fflush(file))
		err = errno ? -errno : -EIO;
	return fclose(file) && !err ? -errno : err;
}

static int write_image(png_image *image, const char *path, const void *pixels, const void *colours)
{
	struct sl_part_file file;
	int err = spare_others(path);

	if (!err)
		err = sl_part_file_open(path, &file);
	if (err)
		return err;
	err = write_to(image, file.fd, pixels, colours);
	if (!err)
		return sl_part_file_publish(&file);
	sl_error("cannot write '%s': %s%s%s", path, strerror(-err), image->message[0] ? ": " : "",
		 image->message);
	sl_part_file_discard(&file);
	return err;
}

bool sl_png_is_there(void)
{
	return true;
}

int sl_png_write(const char *path, uint32_t rows, uint32_t columns, const uint8_t *index,
		 uint8_t palette[256][3])
{
	png_image image = {.version = PNG_IMAGE_VERSION,
			   .width = columns,
			   .height = rows,
			   .format = PNG_FORMAT_RGB_COLORMAP,
			   .colormap_entries = 256};

	return write_image(&image, path, index, palette);
}

int sl_png_write_rgb(const char *path, uint32_t rows, uint32_t columns, const uint8_t *rgb)
{
	png_image image = {.version = PNG_IMAGE_VERSION,
			   .width = columns,
			   .height = rows,
			   .format = PNG_FORMAT_RGB};

	return write_image(&image, path, rgb, NULL);
}

int sl_png_encode_rgb(uint32_t rows, uint32_t columns, const uint8_t *rgb, uint8_t **png,
		      size_t *bytes)
{
	png_image image = {.version = PNG_IMAGE_VERSION,
			   .width = columns,
			   .height = rows,
			   .format = PNG_FORMAT_RGB,
			   .flags = PNG_IMAGE_FLAG_FAST};
	png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
	uint8_t *memory = malloc(size), *exact;

	if (!memory)
		return -ENOMEM;
	if (!png_image_write_to_memory(&image, memory, &size, 0, rgb, 0, NULL)) {
		free(memory);
		return -ENOMEM; /* libpng has no other reason */
	}
	exact = realloc(memory, size);
	*png = exact ? exact : memory;
	*bytes = size;
	return 0;
}
