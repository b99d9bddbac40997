/* sparse.h - images out of lists of pixels and their background, as pyFAI's sparsify writes them.
 *
 * Model:     a group with frame_ptr, index, intensity, mask, radius, background_avg, background_std
 *            and perhaps normalization, dummy and found: the entry that the file names as default,
 *            and the group that this names; or /entry/sparse_frames. Pixels that were picked are as
 *            they were; masked ones (a mask that is not finite) are the dummy; others the
 *            background, interpolated by their radius, times their norm, rounded where pixels are
 *            whole numbers. Where a list was cut (found says more) pixels behind its last one are
 *            not known, and the dummy; so are modules that the file says were missing.
 * Threads:   one at a time; not a data thread.
 * Errors:    0 or -errno, logged here with the file. What the file says is checked before it is
 *            used: a pointer that goes back or too far, an index out of the image, sizes that
 *            contradict each other are -EINVAL.
 * Cost:      a mask, an image and a list in memory. */
#ifndef SL_HDF5_SPARSE_H
#define SL_HDF5_SPARSE_H

#include "hdf5/file.h"

struct sl_h5_sparse;

/* `image`: of one image, [rows][columns]. -ENOENT is logged, too. */
int sl_h5_sparse_open(const char *path, struct sl_h5_sparse **sparse, struct sl_h5_shape *image,
		      uint64_t *images);
void sl_h5_sparse_close(struct sl_h5_sparse *sparse);

/* Image number `index`, into the caller's memory. `background` false: zeros instead. *cut: its list
 * was. */
int sl_h5_sparse_read(struct sl_h5_sparse *sparse, uint64_t index, bool background, void *image,
		      bool *cut);

/* The file itself, for what else it has. */
struct sl_h5 *sl_h5_sparse_file(struct sl_h5_sparse *sparse);

#endif
