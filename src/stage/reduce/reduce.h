/* reduce.h - what the files of the stage `reduce` share.
 *
 * Model:     a region is the whole image or a rectangle of it: spans of pixels, by rising number in
 *            [modules][rows][columns]. A sum adds pixels up without regard to their order: whole
 *            numbers, and of floats the whole part and the rest, in 2^-32.
 * Threads:   a sum belongs to one worker; the state is read-only once open, but for the window,
 *            which is finish()'s.
 * Ownership: the stage's state owns all tables. */
#ifndef SL_STAGE_REDUCE_REDUCE_H
#define SL_STAGE_REDUCE_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/stage.h>

enum { SL_REDUCE_REGIONS = 17, SL_REDUCE_TEXT = 512 }; /* the image, and 16 rectangles */
enum { SL_REDUCE_SUM, SL_REDUCE_MEAN };		       /* the choices of `binned` */

struct sl_reduce_sum {
	int64_t whole, rest;
	uint64_t valid, overloads;
	double most; /* of those that are valid */
};

struct sl_reduce_span {
	uint64_t first;
	uint32_t count;
};

struct sl_reduce_region {
	struct sl_reduce_span *span; /* [spans] */
	uint32_t spans;
};

extern const struct sl_gpu sl_gpu_reduce;

typedef void sl_reduce_add(const void *pixels, uint32_t count, struct sl_reduce_sum *sum);

struct sl_reduce {
	char roi[SL_REDUCE_TEXT];
	uint32_t roi_in, bin, binned, window, vectors;

	enum sl_dtype dtype, bin_dtype;
	uint32_t modules, rows, columns, regions;
	uint64_t module_pixels;
	struct sl_reduce_region region[SL_REDUCE_REGIONS]; /* [0] is the image: it has no spans */
	sl_reduce_add *add;
	int input, result;

	uint32_t bin_rows, bin_columns; /* of a module */
	uint64_t bins;			/* of all modules */
	void *window_sum, *window_most; /* [bins], of frames so far */
	uint32_t window_frames;
};

/* ---- sums.c ---- */

sl_reduce_add *sl_reduce_choose(enum sl_dtype dtype, uint32_t vectors);

/* ---- regions.c ---- */

int sl_reduce_regions_open(struct sl_reduce *r, const struct sl_env *env);
void sl_reduce_regions_close(struct sl_reduce *r);

/* What of the region lies among these pixels of the image; they are numbers first and on. */
void sl_reduce_region_add(const struct sl_reduce *r, uint32_t region, const void *pixels,
			  uint64_t first, uint32_t count, struct sl_reduce_sum *sum);

/* ---- bins.c ---- */

int sl_reduce_bins_open(struct sl_reduce *r, struct sl_stage_terms *terms);
void sl_reduce_bins_close(struct sl_reduce *r);

/* The binned image of a frame; and, in the order of frames, the windows. */
void sl_reduce_bins_frame(const struct sl_reduce *r, const struct sl_frame *frame);
void sl_reduce_window_begin(struct sl_reduce *r);
void sl_reduce_bins_window(struct sl_reduce *r, struct sl_frame *frame);
/* Note whether the frame counts for windows, when stages before have judged it and those behind
 * have not; before the call above. */
void sl_reduce_bins_judge(const struct sl_reduce *r, struct sl_frame *frame);

#endif
