/* kernel.h - tables of the kernels of `correlate`.
 *
 * Model:     pixels that are in a region are put one behind the other, region by region; a chunk is
 *            some that follow each other and are of one region. Samples of a level are made one by
 *            one, each in the next slot of the level's ring, with its time as a stamp: where frames
 *            are missing there is no sample. Sums are kept by chunk, and brought together when they
 *            are read. Where time goes back it is moved on instead, so far that no lag reaches
 *            over.
 *
 *            A part of a batch are its frames up to one that carries the result. */
#ifndef SL_STAGE_CORRELATE_KERNEL_H
#define SL_STAGE_CORRELATE_KERNEL_H

#include "gpu/dialect/language.h"

enum {
	SL_CORRELATE_THREADS = 128,
	SL_CORRELATE_PIXELS_OF_CHUNK = 8 * SL_CORRELATE_THREADS,
	SL_CORRELATE_LEVELS_MOST = 14,
	SL_CORRELATE_PARTS_MOST = 64,
};

struct sl_kernel_correlate {
	sl_u64 module_pixels, every;
	sl_u32 pixels, modules, levels, channels, lags, frames, items, regions;
	sl_i32 limit;
	sl_u32 raw;				/* the image is where views say */
	sl_u32 slots[SL_CORRELATE_LEVELS_MOST]; /* of a level's ring */
	sl_u32 first[SL_CORRELATE_LEVELS_MOST]; /* of all slots */
	sl_u32 rows[SL_CORRELATE_LEVELS_MOST];	/* samples of a batch, at most */
	sl_u32 first_row[SL_CORRELATE_LEVELS_MOST];
};

struct sl_kernel_pixel {
	sl_u32 module, pixel;
};

struct sl_kernel_chunk {
	sl_u32 first, pixels, region;
};

/* Stays from batch to batch. */
struct sl_kernel_clock {
	sl_u64 expected;		       /* the next frame number; 0: none came yet */
	sl_u64 ahead;			       /* time is the frame number and this */
	sl_u64 made[SL_CORRELATE_LEVELS_MOST]; /* samples so far */
};

/* Of one batch. */
struct sl_kernel_plan {
	sl_u32 rows[SL_CORRELATE_LEVELS_MOST];
	sl_u32 parts;
	sl_u32 due[SL_CORRELATE_PARTS_MOST]; /* the frame that carries the result; or frames */
};

struct sl_kernel_row {
	sl_u64 sample, before; /* its time; samples of the level that were made before */
	sl_u32 slot, part;
	sl_u32 from, later; /* level 0: the frame; others: slots of the level below */
};

/* Products are high * 2^64 + low. */
struct sl_kernel_correlation {
	sl_u64 low;
	sl_i64 high, left, right;
	sl_u64 pairs;
};

#endif
