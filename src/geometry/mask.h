/* mask.h - which pixels are not to be used, out of a file.
 *
 * Model:     numbers, of which 0 is a good pixel: HDF5 (any dataset that could be an image; the
 *            only one of the file, or FILE:/DATASET), npy of numpy, TIFF and EDF as fabio writes
 *            them, not compressed. Their shape is that of the assembled image, of the modules one
 *            below the other, or [module][row][column].
 * Threads:   one; not a data thread.
 * Errors:    0 or -errno, logged with the file and both shapes.
 * Ownership: what parsers give is the caller's, to free(). */
#ifndef SL_GEOMETRY_MASK_H
#define SL_GEOMETRY_MASK_H

#include <stddef.h>

#include <sluice/detector.h>

/* Sets mask [module][pixel] where the file does; g: with its layout resolved. */
int sl_mask_read(const char *text, const struct sl_geometry *geometry, uint8_t *mask);

/* The file that such a text names: FILE of FILE:/DATASET. */
void sl_mask_path(const char *text, char *path, size_t bytes);

/* ---- between the files ---- */

enum { SL_MASK_WHY = 160 };

struct sl_mask_image {
	uint32_t rank; /* 2 or 3 */
	uint64_t dim[3];
	uint8_t *pixel; /* [dim...]; not 0: masked */
};

/* Bytes of a whole file. -EINVAL, with a reason. */
int sl_mask_parse_npy(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		      char why[SL_MASK_WHY]);
int sl_mask_parse_tiff(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		       char why[SL_MASK_WHY]);
int sl_mask_parse_edf(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		      char why[SL_MASK_WHY]);

/* By how they begin. */
int sl_mask_parse(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		  char why[SL_MASK_WHY]);

/* dataset NULL: the only one. Errors are logged. */
int sl_mask_read_hdf5(const char *path, const char *dataset, struct sl_mask_image *image);

/* How the numbers of a file are written. */
struct sl_mask_numbers {
	uint32_t size; /* bytes */
	bool real, big_endian;
};
static inline bool sl_mask_is_set(const struct sl_mask_numbers *numbers, const uint8_t *at)
{
	uint32_t sign = numbers->big_endian ? 0 : numbers->size - 1;
	uint8_t any = 0;

	/* Minus zero is zero. */
	for (uint32_t i = 0; i < numbers->size; i++)
		any |= numbers->real && i == sign ? at[i] & 0x7f : at[i];
	return any;
}

/* The exponent has all bits set, and the fraction any. */
static inline bool sl_mask_is_nan(const struct sl_mask_numbers *numbers, const uint8_t *at)
{
	uint64_t bits = 0, exponent = numbers->size == 8   ? UINT64_C(0x7ff) << 52
				      : numbers->size == 4 ? UINT64_C(0xff) << 23
							   : UINT64_C(0x1f) << 10;

	if (!numbers->real || numbers->size > 8)
		return false;
	for (uint32_t i = 0; i < numbers->size; i++)
		bits |= (uint64_t)at[numbers->big_endian ? numbers->size - 1 - i : i] << (8 * i);
	return (bits & exponent) == exponent && bits & (exponent ^ (exponent - 1)) >> 1;
}

/* In an image while it is read: no number. sl_mask_parse() refuses images that have it. */
enum { SL_MASK_NAN = 2 };

/* -EINVAL, with a reason: no image, too large, or `bytes` are too few. */
int sl_mask_allocate(struct sl_mask_image *image, uint32_t size, size_t bytes,
		     char why[SL_MASK_WHY]);

#endif
