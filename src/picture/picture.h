/* picture.h - numbers made visible: binned, scaled, coloured, as a PNG file.
 *
 * Model:     a picture is floats; NaN is where nothing is, and gets a colour of its own. The scale
 *            goes from a low percentile to a high one, so that neither noise nor a few bright
 *            pixels decide what is seen.
 * Threads:   one. */
#ifndef SL_PICTURE_PICTURE_H
#define SL_PICTURE_PICTURE_H

#include <sluice/detector.h>
#include <sluice/option.h>

enum sl_picture_scale { SL_PICTURE_LOG, SL_PICTURE_SQRT, SL_PICTURE_LINEAR };
enum sl_picture_colours { SL_PICTURE_FIRE, SL_PICTURE_PAPER, SL_PICTURE_GREY };

struct sl_picture_look {
	uint32_t scale, colours; /* of the enums */
	double low, high;	 /* percentiles */
};

/* The options of a command that draws, in members of these names: uint32_t scale, colours, bin;
 * double low, high. */
#define SL_PICTURE_OPTIONS(S)                                                         \
	SL_CHOICE(S, scale, log, "log|sqrt|linear", "of brightness"),                 \
		SL_CHOICE(S, colours, fire, "fire|paper|grey",                        \
			  "from night to fire; as on film, dark where it is bright; " \
			  "grey"),                                                    \
		SL_F64(S, low, 1, 0, 100, "%", "percentile of the first colour"),     \
		SL_F64(S, high, 99.9, 0, 100, "%", "percentile of the last colour"),  \
		SL_U32(S, bin, 1, 1, 64, "pixels",                                    \
		       "so many pixels by so many become one, their mean")

/* Means of bin x bin pixels, in place; what is left over at the edges is dropped. */
void sl_picture_bin(struct sl_picture *picture, uint32_t bin);

/* An index into 256 colours for each pixel; 0 is for nothing. range: what first and last colour
 * stand for. 0 or -ENOMEM. */
int sl_picture_colour(const struct sl_picture *picture, const struct sl_picture_look *look,
		      uint8_t *index, double range[2]);

/* Red, green and blue of the 256. */
void sl_picture_palette(enum sl_picture_colours colours, uint8_t palette[256][3]);

/* Whether this program has libpng. */
bool sl_png_is_there(void);

/* 0 or -errno, logged. */
int sl_png_write(const char *path, uint32_t rows, uint32_t columns, const uint8_t *index,
		 uint8_t palette[256][3]);
int sl_png_write_rgb(const char *path, uint32_t rows, uint32_t columns, const uint8_t *rgb);
/* The same in memory (malloc'ed), quickly rather than as small as can be. 0 or -errno, not logged;
 * -ENOTSUP: this program has no libpng. */
int sl_png_encode_rgb(uint32_t rows, uint32_t columns, const uint8_t *rgb, uint8_t **png,
		      size_t *bytes);

#endif
