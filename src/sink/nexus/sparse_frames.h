/* sparse_frames.h - lists of pixels in the layout that pyFAI's sparsify writes and fabio reads.
 *
 * Model:     where the stage `sparse` made lists, a group /entry/sparse_frames: frame_ptr [n + 1]
 *            says where each frame's pixels begin in index and intensity; mask, radius, dummy,
 *            background_avg and background_std make images of them again. The lists and backgrounds
 *            are links to /entry/results.
 * Threads:   those of the file.
 * Errors:    stick to the file (hdf5/file.h).
 * Cost:      once four bytes per pixel of the detector for the mask, and as many for norms where
 *            there are any; eight bytes per frame. */
#ifndef SL_SINK_NEXUS_SPARSE_FRAMES_H
#define SL_SINK_NEXUS_SPARSE_FRAMES_H

#include <stdbool.h>

#include <sluice/sink.h>

#include "hdf5/file.h"

struct sl_sparse_frames {
	struct sl_h5_series *pointer;		  /* NULL: there are no lists */
	struct sl_h5_series *average, *deviation; /* zeros, where there is no background */
	uint32_t result;			  /* the list's, in sl_frame.result */
	uint64_t total;				  /* pixels so far */
};

/* Whether the chain of stages makes lists. */
bool sl_sparse_frames_are(const struct sl_env *env);

/* After sl_results_open(). 0, or -ENOMEM. */
int sl_sparse_frames_open(struct sl_sparse_frames *frames, struct sl_h5 *file,
			  const struct sl_env *env);
void sl_sparse_frames_append(struct sl_sparse_frames *frames, const struct sl_frame *frame);

#endif
