/* veto.cl - counts bright pixels of every frame, then decides; GPU side of src/stage/veto/veto.c. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"

enum { SL_KERNEL_BRIGHT_PIXELS = 2 }; /* SL_REASON_BRIGHT_PIXELS */

/* Group 0: of pixels, 1: of frames. */
#define COUNT(NAME, TYPE, THRESHOLD, IS_BRIGHT)                                                                             \
	SL_KERNEL void NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame, sl_u64 pixels,      \
			    sl_u64 stride, THRESHOLD threshold, SL_GLOBAL sl_u32 *count)                                   \
	{                                                                                                                   \
		SL_SHARED sl_u32 shared[SL_GROUP_MOST];                                                                     \
		sl_u32 f = sl_group(1), n = 0;                                                                              \
		sl_u64 step = (sl_u64)sl_groups(0) * sl_threads(), i = (sl_u64)sl_group(0) * sl_threads() + sl_thread();    \
                                                                                                                            \
		if (frame[f].flags & SL_KERNEL_DARK)                                                                        \
			i = pixels; /* has no image */                                                                      \
		image += f * stride;                                                                                        \
		for (; i < pixels; i += step) {                                                                             \
			TYPE v = image[i];                                                                                  \
                                                                                                                            \
			n += (sl_u32)(IS_BRIGHT);                                                                           \
		}                                                                                                           \
		n = sl_group_sum(shared, n);                                                                                \
		if (sl_thread() == 0 && n)                                                                                  \
			sl_add(&count[f], n);                                                                               \
	}

COUNT(veto_count_i16, sl_i16, sl_i32, v >= threshold)
COUNT(veto_count_f32, float, float, v >= threshold)
COUNT(veto_count_u8, sl_u8, sl_u32, v >= threshold && v != 0xff)
COUNT(veto_count_u16, sl_u16, sl_u32, v >= threshold && v != 0xffff)
COUNT(veto_count_u32, sl_u32, sl_u32, v >= threshold && v != 0xffffffff)

/* Counts are 0 again afterwards, for the next batch. */
SL_KERNEL void veto_decide(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL struct sl_kernel_verdict *verdict,
			   sl_u32 items, SL_GLOBAL sl_u32 *count, sl_u32 min_pixels, sl_u32 frames)
{
	sl_u32 f = sl_group(0) * sl_threads() + sl_thread(), i;

	if (f >= frames || frame[f].flags & SL_KERNEL_DARK)
		return;
	for (i = 0; i < frame[f].items; i++)
		sl_kernel_decide(&verdict[f * items + i], count[f] >= min_pixels, (float)count[f],
				 SL_KERNEL_BRIGHT_PIXELS);
	count[f] = 0;
}
