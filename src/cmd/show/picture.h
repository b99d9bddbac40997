/* picture.h - numbers made visible: binned, scaled, coloured, as a PNG file.
 *
 * Model:     a picture is floats; NaN is where nothing is, and gets a colour of its own. The scale
 *            goes from a low percentile to a high one, so that neither noise nor a few bright
 *            pixels decide what is seen.
 * Threads:   one. */
#ifndef SL_CMD_SHOW_PICTURE_H
#define SL_CMD_SHOW_PICTURE_H

#include <sluice/detector.h>

enum sl_picture_scale { SL_PICTURE_LOG, SL_PICTURE_SQRT, SL_PICTURE_LINEAR };
enum sl_picture_colours { SL_PICTURE_FIRE, SL_PICTURE_PAPER, SL_PICTURE_GREY };

struct sl_picture_look {
	uint32_t scale, colours; /* of the enums */
	double low, high;	 /* percentiles */
};

/* Means of bin x bin pixels, in place; what is left over at the edges is dropped. */
void sl_picture_bin(struct sl_picture *picture, uint32_t bin);

/* An index into 256 colours for each pixel; 0 is for nothing. range: what first and last colour
 * stand for. 0 or -ENOMEM. */
int sl_picture_colour(const struct sl_picture *picture, const struct sl_picture_look *look,
		      uint8_t *index, double range[2]);

/* Red, green and blue of the 256. */
void sl_picture_palette(enum sl_picture_colours colours, uint8_t palette[256][3]);

/* 0 or -errno, logged. */
int sl_png_write(const char *path, uint32_t rows, uint32_t columns, const uint8_t *index,
		 uint8_t palette[256][3]);
int sl_png_write_rgb(const char *path, uint32_t rows, uint32_t columns, const uint8_t *rgb);

#endif
