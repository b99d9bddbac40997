/* pixels.h - pixels of any type: a region of an image, binned, and numbers as floats.
 *
 * Model:     an image is [rows][columns] of one type, by its NumPy name ("<u2"). A pixel that was
 *            not measured is marked: by the lowest number of a signed type, the highest of an
 *            unsigned one of 16 or 32 bits, NaN. Types of 8 bits have no mark, since 255 is what
 *            a camera counts up to. A bin is the maximum or the mean of the pixels of it that are
 *            not marked; where all are, it is marked itself. Bins at the right and lower edge may
 *            have fewer pixels.
 *            Maxima and plain regions keep the type if it is one of u1 u2 u4 i2 i4 f4, and are
 *            floats otherwise; means are floats.
 * Threads:   functions of their arguments.
 * Ownership: the caller's memory.
 * Cost:      about that of reading the region: rows are folded into one by loops that the compiler
 *            turns into vectors. */
#ifndef SL_PICTURE_PIXELS_H
#define SL_PICTURE_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/detector.h>

enum { SL_PIXELS_BIN = 256 }; /* at most */

struct sl_pixels_kind;

/* Of a NumPy type; NULL: its elements are no numbers, or complex. */
const struct sl_pixels_kind *sl_pixels_kind(const char *type);
uint32_t sl_pixels_bytes(const struct sl_pixels_kind *kind); /* of a pixel */

struct sl_pixels_view {
	uint32_t x, y, width, height; /* columns x to x + width - 1; inside the image, not empty */
	uint32_t bin;		      /* 1 to SL_PIXELS_BIN */
	bool mean;		      /* else the maximum */
};

static inline uint32_t sl_pixels_rows(const struct sl_pixels_view *view)
{
	return (view->height + view->bin - 1) / view->bin;
}

static inline uint32_t sl_pixels_columns(const struct sl_pixels_view *view)
{
	return (view->width + view->bin - 1) / view->bin;
}

/* The type of what sl_pixels_view() makes. */
const struct sl_pixels_kind *sl_pixels_made(const struct sl_pixels_kind *kind,
					    const struct sl_pixels_view *view);
const char *sl_pixels_type(const struct sl_pixels_kind *kind); /* its NumPy name */
/* The number that marks pixels. False: none does, or NaN. */
bool sl_pixels_mark(const struct sl_pixels_kind *kind, int64_t *mark);

/* out: [sl_pixels_rows()][sl_pixels_columns()] of sl_pixels_made(). columns: of the whole image. 0
 * or -ENOMEM: for some rows. */
int sl_pixels_view(const struct sl_pixels_kind *kind, const void *image, uint32_t columns,
		   const struct sl_pixels_view *view, void *out);

/* The same as a picture: floats (malloc'ed), NaN where nothing is. */
int sl_pixels_picture(const struct sl_pixels_kind *kind, const void *image, uint32_t columns,
		      const struct sl_pixels_view *view, struct sl_picture *picture);

/* n numbers; NaN where they are marked. */
void sl_pixels_to_floats(const struct sl_pixels_kind *kind, const void *data, uint64_t n,
			 float *to);

#endif
