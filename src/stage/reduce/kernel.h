/* kernel.h - tables of the kernels of `reduce`.
 *
 * Model:     pixels of all modules are taken in eights. A region is a list of eights, each with a
 *            bit for every pixel that is in it; the whole image, region 0, needs none. A group adds
 *            up some eights of one region and one frame; another kernel brings groups together. */
#ifndef SL_STAGE_REDUCE_KERNEL_H
#define SL_STAGE_REDUCE_KERNEL_H

#include "gpu/dialect/language.h"

enum {
	SL_REDUCE_THREADS = 256,
	SL_REDUCE_EIGHTS = 16 * SL_REDUCE_THREADS, /* of a group, at most */
	SL_REDUCE_COLUMNS = 5,			   /* of the table that comes of it */
	SL_REDUCE_ALONE = 16, /* pixels in a row of a bin that a thread adds up, at most */
	SL_REDUCE_MANY = 128  /* threads for a larger one */
};

struct sl_kernel_eight {
	sl_u32 number, mask;
};

struct sl_kernel_part { /* of a region */
	sl_u64 first;	/* of the eights that there are, or in the list */
	sl_u32 eights, region;
};

struct sl_kernel_sum {
	sl_i64 whole, rest;
	sl_i64 most; /* a number, or the bits of a float */
	sl_u32 valid, overloads;
};

/* Where pixels are. */
struct sl_kernel_reduce {
	sl_u64 module_pixels;
	sl_u32 modules, rows, columns;
	sl_u32 raw;	/* the image is where views say; else frames follow each other */
	sl_u32 aligned; /* eight pixels are one load, in one module */
	sl_u32 parts, regions;
};

enum { SL_BINNED_I32, SL_BINNED_I64, SL_BINNED_SUM_F32, SL_BINNED_MEAN_F32 };

struct sl_kernel_bins {
	sl_u64 bins; /* of all modules */
	sl_u32 bin, rows, columns;
	sl_u32 kind; /* SL_BINNED_... */
};

#endif
