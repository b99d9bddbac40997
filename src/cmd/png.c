/* png.c - pictures in PNG files. The one place with <png.h>. */
#include <errno.h>
#include <string.h>

#include <png.h>

#include "base/log.h"
#include "cmd/picture.h"

int sl_png_write(const char *path, uint32_t rows, uint32_t columns, const uint8_t *index,
		 uint8_t palette[256][3])
{
	png_image image = {.version = PNG_IMAGE_VERSION,
			   .width = columns,
			   .height = rows,
			   .format = PNG_FORMAT_RGB_COLORMAP,
			   .colormap_entries = 256};

	errno = 0;
	if (png_image_write_to_file(&image, path, 0, index, 0, palette))
		return 0;
	sl_error("cannot write '%s': %s", path, errno ? strerror(errno) : image.message);
	return errno ? -errno : -EIO;
}
