/* png.c - pictures in PNG files. The one place with <png.h>. */
#include <errno.h>
#include <string.h>

#include <png.h>

#include "base/log.h"
#include "cmd/show/picture.h"

static int write_image(png_image *image, const char *path, const void *pixels, const void *colours)
{
	errno = 0;
	if (png_image_write_to_file(image, path, 0, pixels, 0, colours))
		return 0;
	sl_error("cannot write '%s': %s", path, errno ? strerror(errno) : image->message);
	return errno ? -errno : -EIO;
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
