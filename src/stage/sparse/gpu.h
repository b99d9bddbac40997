/* gpu.h - between the files of `sparse` on an accelerator. */
#ifndef SL_STAGE_SPARSE_GPU_H
#define SL_STAGE_SPARSE_GPU_H

#include "core/gpu.h"
#include "stage/sparse/sparse.h"

enum { SL_SPARSE_RUN_THREADS = 256, SL_SPARSE_RUN = 32 * SL_SPARSE_RUN_THREADS };

/* What the radial method has there besides. */
struct sl_sparse_radial_gpu {
	const struct sl_sparse *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[3];
	uint32_t items, unit; /* unit: all norms are 1 */
	struct sl_device_memory start, index, cutoff;
	struct sl_device_memory sorted; /* norms, in the order of index */
	struct sl_device_memory bin, norm, radius;
	struct sl_device_memory above[SL_GPU_BATCH_SLOTS]; /* float [frames][bins] */
};

int sl_sparse_radial_gpu_open(struct sl_sparse_radial_gpu *gpu, const struct sl_sparse *stage,
			      const struct sl_gpu_env *env);
void sl_sparse_radial_gpu_close(struct sl_sparse_radial_gpu *gpu);

/* Backgrounds, and a bit for each pixel that is picked; counts of runs. */
int sl_sparse_radial_gpu_pick(struct sl_sparse_radial_gpu *gpu, const struct sl_gpu_batch *batch,
			      const struct sl_device_memory *image,
			      const struct sl_device_memory *mask,
			      const struct sl_device_memory *counts);

#endif
