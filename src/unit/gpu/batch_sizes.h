/* batch_sizes.h - bytes of the parts that a batch has on a device: batch_slots.c opens memory for
 * them, batch_way.c fills it. */
#ifndef SL_UNIT_GPU_BATCH_SIZES_H
#define SL_UNIT_GPU_BATCH_SIZES_H

#include "gpu/dialect/batch.h"
#include "unit/gpu/gpu.h"

static inline uint64_t sl_device_whole_lines(uint64_t bytes)
{
	return (bytes + SL_BATCH_SLOT_LINE - 1) / SL_BATCH_SLOT_LINE * SL_BATCH_SLOT_LINE;
}

static inline uint64_t sl_device_frames_bytes(const struct sl_batch_slots *slots)
{
	return sl_device_whole_lines(slots->chain->batch_frames * sizeof(struct sl_kernel_frame));
}

static inline uint64_t sl_device_views_bytes(const struct sl_batch_slots *slots)
{
	return sl_device_whole_lines((uint64_t)slots->chain->batch_frames * slots->modules *
				     sizeof(struct sl_kernel_view));
}

static inline uint64_t sl_device_verdicts_bytes(const struct sl_batch_slots *slots)
{
	return sl_device_whole_lines((uint64_t)slots->chain->batch_frames * slots->items *
				     sizeof(struct sl_kernel_verdict));
}

static inline uint64_t sl_device_rows_bytes(const struct sl_batch_slots *slots)
{
	return (uint64_t)SL_RESULTS * slots->chain->batch_frames * sizeof(uint32_t);
}

#endif
