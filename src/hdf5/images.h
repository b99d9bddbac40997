/* images.h - a dataset that somebody else wrote, as a row of images.
 *
 * Model:     the dataset is [row][column], one image; [image][row][column]; or
 *            [image][module][row][column]; of whole numbers or floats, in any byte order, laid out
 *            and packed as it may be: HDF5 unpacks what it knows; bitshuffle (alone, with LZ4 or
 *            with Zstandard), LZ4 and LZF are unpacked by src/codec. Links to other files and
 *            virtual datasets are followed.
 * Threads:   one at a time; not a data thread.
 * Errors:    0 or -errno; logged here with file and dataset. -ENOENT is not logged.
 * Cost:      reading is HDF5's; a chunk that holds several images is unpacked once when they are
 *            read in order. */
#ifndef SL_HDF5_IMAGES_H
#define SL_HDF5_IMAGES_H

#include "hdf5/file.h"

enum { SL_H5_NAME = 256 };

struct sl_h5_images;

/* `shape` is the dataset's. -EINVAL: it cannot be images, or cannot be unpacked here; -ENOENT: not
 * there. */
int sl_h5_images_open(const char *path, const char *dataset, struct sl_h5_images **images,
		      struct sl_h5_shape *shape);
int sl_h5_images_read(struct sl_h5_images *images, uint64_t index, void *data, size_t bytes);
void sl_h5_images_close(struct sl_h5_images *images);

/* How many datasets of a file could be images, and the names of the first `most`. */
int sl_h5_images_find(const char *path, char (*name)[SL_H5_NAME], unsigned most, unsigned *found);

/* Whether the file begins as HDF5 files do. */
bool sl_h5_is_hdf5(const char *path);

#endif
