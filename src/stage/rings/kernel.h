/* kernel.h - what the kernels of `rings` are told, the same for host and device. */
#ifndef SL_STAGE_RINGS_KERNEL_H
#define SL_STAGE_RINGS_KERNEL_H

#include "stage/rings/maths.h"

enum {
	SL_KERNEL_RINGS_MOST = 3,    /* of an event, in the table */
	SL_KERNEL_RINGS_COUNTS = 8,  /* of "rings_found" */
	SL_KERNEL_RINGS_COLUMNS = 7, /* of "rings" */
	SL_KERNEL_RINGS_STORED = 6,  /* of these, per ring: all but the event */
	SL_KERNEL_RINGS_RUN = 4,     /* events of a thread that lists rings */
};

/* Events that a group of the kernel that polls has at once. */
#if defined(__OPENCL_C_VERSION__)
enum { SL_KERNEL_RINGS_TEAMS = 1 };
#else
enum { SL_KERNEL_RINGS_TEAMS = 32 };
#endif

struct sl_kernel_rings {
	struct sl_rings_limits limits;
	float rms; /* square of what hits of a ring that is alone are off, at most */
	sl_u32 min_hits, min_own, triplets;
	sl_u32 min_rings, max_rings, min_matches;
	float match_least, match_most, match_x, match_y, match_distance;
	sl_u32 modules, events; /* events: of a module */
	sl_u32 rows;		/* of the result */
	sl_u32 is_raw;		/* events are where views say; else they follow each other */
	sl_u32 looks_at_all;	/* also at frames that were rejected */
};

#endif
