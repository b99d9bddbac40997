/* png_absent.c - stands in where libpng was not found. */
#include <errno.h>

#include "base/log.h"
#include "picture/picture.h"

bool sl_png_is_there(void)
{
	return false;
}

int sl_png_write(const char *path, uint32_t rows, uint32_t columns, const uint8_t *index,
		 uint8_t palette[256][3])
{
	sl_error("cannot write '%s': libpng-dev was not found when this was built", path);
	return -ENOTSUP;
}

int sl_png_write_rgb(const char *path, uint32_t rows, uint32_t columns, const uint8_t *rgb)
{
	return sl_png_write(path, rows, columns, rgb, NULL);
}

int sl_png_encode_rgb(uint32_t rows, uint32_t columns, const uint8_t *rgb, uint8_t **png,
		      size_t *bytes)
{
	return -ENOTSUP;
}
