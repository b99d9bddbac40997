/* mask.h - which pixels are not to be used, or in which region they are, out of a file.
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

/* Numbers of regions, label [module][pixel]: whole numbers, 0 where a pixel has none. The same
 * kinds of files and shapes. `who`: the option, for messages. */
int sl_labels_read(const char *text, const char *who, const struct sl_geometry *geometry,
		   uint32_t *label);

/* The file that such a text names: FILE of FILE:/DATASET. */
void sl_mask_path(const char *text, char *path, size_t bytes);

/* ---- between the files ---- */

enum { SL_MASK_WHY = 160 };

struct sl_mask_image {
	uint32_t rank; /* 2 or 3 */
	uint64_t dim[3];
	uint32_t *pixel; /* [dim...]: numbers; not 0: masked */
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
int sl_mask_read_hdf5(const char *path, const char *dataset, const char *who,
		      struct sl_mask_image *image);

/* How the numbers of a file are written: integers or floats of 1, 2, 4 or 8 bytes. */
struct sl_mask_numbers {
	uint32_t size; /* bytes */
	bool real, big_endian, has_sign;
};

/* In an image while it is read. NaN: sl_mask_parse() refuses images that have it. OTHER: a number
 * that is not 0 and no label: negative, with a fraction, or above SL_LABEL_MOST. */
enum { SL_LABEL_MOST = INT32_MAX };
#define SL_MASK_OTHER (UINT32_MAX - 1)
#define SL_MASK_NAN   UINT32_MAX

/* The number that is written there: 0, a label, or one of the two above. */
uint32_t sl_mask_number(const struct sl_mask_numbers *numbers, const uint8_t *at);
uint32_t sl_mask_number_of(double number);

/* -EINVAL, with a reason: no image, too large, or `bytes` are too few. */
int sl_mask_allocate(struct sl_mask_image *image, uint32_t size, size_t bytes,
		     char why[SL_MASK_WHY]);

#endif
