/* outside.h - which pixels of a block lie outside of bounds, a bit each.
 *
 * Model:     a block is 64 pixels. A pixel is outside when it is above `high` or below `low`; NaN
 *            never is. Bounds are numbers of the image's type: `low` and `high` of integers,
 *            `real_...` of floats.
 * Threads:   functions of their arguments.
 * Cost:      memory speed; all sets of instructions give the same bits. */
#ifndef SL_STAGE_OUTSIDE_H
#define SL_STAGE_OUTSIDE_H

#include <stdint.h>

#include <sluice/frame.h>

enum { SL_OUTSIDE_BLOCK = 64 };

struct sl_outside_bounds {
	int64_t low, high; /* of integers */
	float real_low, real_high;
};

/* mask[i]: of block i, whose bounds are bounds[i * step]. */
typedef void sl_outside(const void *pixel, uint32_t blocks, const struct sl_outside_bounds *bounds,
			uint32_t step, uint64_t *mask);

/* The best that this CPU has and `vectors` (of stage/vectors.h) allows; NULL: not for that type. */
sl_outside *sl_outside_choose(enum sl_dtype dtype, uint32_t vectors);

/* Of fewer pixels than a block: bits from `count` on are 0. */
uint64_t sl_outside_part(enum sl_dtype dtype, const void *pixel, uint32_t count,
			 const struct sl_outside_bounds *bounds);

#endif
