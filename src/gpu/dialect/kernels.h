/* kernels.h - the kernels that are part of the program; one name for each source. */
#ifndef SL_GPU_DIALECT_KERNELS_H
#define SL_GPU_DIALECT_KERNELS_H

#include "core/device.h"

extern const struct sl_kernels sl_kernels_correct, sl_kernels_correlate, sl_kernels_integrate,
	sl_kernels_batch_slot, sl_kernels_peaks, sl_kernels_reduce, sl_kernels_rings,
	sl_kernels_rings_ring, sl_kernels_sparse, sl_kernels_sparse_radial, sl_kernels_spots,
	sl_kernels_tracks, sl_kernels_tracks_event, sl_kernels_tracks_ring, sl_kernels_veto,
	sl_kernels_weigh;

#endif
