/* virtual.h - a dataset that is made of datasets of other files.
 *
 * Model:     rows one file after another. The names of the files are relative to the folder of the
 *            file that has the virtual dataset.
 * Threads:   those of the file.
 * Errors:    stick to the file. */
#ifndef SL_HDF5_ROLLED_VIRTUAL_H
#define SL_HDF5_ROLLED_VIRTUAL_H

#include "hdf5/handle.h"

struct sl_h5_virtual {
	const char *path; /* in all files */
	enum sl_h5_type type;
	uint32_t rank;
	const hsize_t *dim;   /* [rank]: dim[0] does not count */
	const uint64_t *rows; /* [files] */
	uint32_t files;	      /* numbers 1 to files of data files */
};

/* Without any rows it is an empty dataset of this file's own. */
int sl_h5_virtual_make(struct sl_h5 *file, const struct sl_h5_virtual *virtual);

#endif
