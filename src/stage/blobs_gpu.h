/* blobs_gpu.h - marked pixels that touch each other, on an accelerator: what `peaks` and `spots`
 * share there.
 *
 * Model:     a stage's kernel marks pixels, in bits that are zeroed before; choose() makes
 *            candidates of these, blobs of fit size in the CPU's order. The stage's kernels measure
 *            each, and say which are good; the last of them places these in the result. The steps
 *            are those of src/stage/blobs.clh, which is part of the stage's own program.
 * Ownership: memory for every batch slot. The program is the stage's: it outlives this. */
#ifndef SL_STAGE_BLOBS_GPU_H
#define SL_STAGE_BLOBS_GPU_H

#include "core/gpu.h"

enum { SL_BLOBS_STEPS = 5, SL_BLOBS_COLUMNS = 8, SL_BLOBS_THREADS = 256 };

struct sl_blobs_batch_slot {
	struct sl_device_memory marked, before;		 /* uint32_t [frames][words] */
	struct sl_device_memory counts;			 /* uint32_t [frames][spans] */
	struct sl_device_memory at, parent, size, first; /* uint32_t [frames][most] */
	struct sl_device_memory total;			 /* uint32_t [frames] */
	struct sl_device_memory blob;			 /* uint32_t [frames][room][3] */
	struct sl_device_memory blobs;			 /* uint32_t [frames] */
	struct sl_device_memory good;			 /* uint32_t [frames][room] */
	struct sl_device_memory row;			 /* float [frames][room][8] */
};

struct sl_blobs_gpu {
	/* Given. */
	struct sl_device *device;
	uint32_t rows, columns; /* of a module */
	uint64_t pixels;	/* of all modules */
	uint32_t items, all;	/* look at rejected frames, too */
	uint32_t inside;	/* begin inside of a module only */
	uint32_t judged;	/* not all candidates are good: `good` and `row` are needed */
	uint32_t least, largest;
	uint32_t most; /* marked pixels that there can be in a frame */

	uint32_t spans, words, room;
	struct sl_device_kernel *kernel[SL_BLOBS_STEPS];
	struct sl_blobs_batch_slot slot[SL_GPU_BATCH_SLOTS];
};

int sl_blobs_gpu_open(struct sl_blobs_gpu *gpu, const struct sl_gpu_env *env,
		      struct sl_device_program *program);
void sl_blobs_gpu_close(struct sl_blobs_gpu *gpu);

/* Nothing is marked; then, when the stage's kernels have, candidates. */
int sl_blobs_gpu_clear(struct sl_blobs_gpu *gpu, const struct sl_gpu_batch *batch);
int sl_blobs_gpu_choose(struct sl_blobs_gpu *gpu, const struct sl_gpu_batch *batch);

#endif
