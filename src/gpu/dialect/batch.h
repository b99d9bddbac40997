/* batch.h - what kernels know of a batch: its frames, where modules lie, and verdicts.
 *
 * The same layout for the host and for every device; core/gpu.h says who fills it in. */
#ifndef SL_GPU_DIALECT_BATCH_H
#define SL_GPU_DIALECT_BATCH_H

#include "gpu/dialect/language.h"

/* Of struct sl_frame: the same numbers as enum sl_frame_flags. And one more: a stage behind the
 * device may keep the frame although it is rejected, so it must have what the CPU gives it. */
enum { SL_KERNEL_DARK = 1, SL_KERNEL_SEEN = 1 << 16 };

struct sl_kernel_frame {
	sl_u64 missing; /* a bit per module */
	sl_u32 flags, items;
};

struct sl_kernel_view { /* [frames][modules] */
	sl_u64 at;	/* bytes into the memory of raw pixels */
	sl_u64 number;	/* of the frame */
	sl_u32 cell;	/* what the source says; it may be more than there are */
	sl_u32 missing; /* its pixels are the fill */
};

struct sl_kernel_verdict { /* [frames][items] */
	float score;
	sl_u16 keep, reason;
};

/* Where in an answer of a kernel that polls its results are: bytes from the beginning, where the
 * verdicts are. */
enum { SL_KERNEL_POLL_RESULTS = 4 };
struct sl_kernel_slot {
	sl_u32 rows; /* sl_u32 [SL_KERNEL_POLL_RESULTS], of ragged ones */
	sl_u32 result[SL_KERNEL_POLL_RESULTS];
	sl_u32 share; /* groups that work on a frame together */
};

#endif
