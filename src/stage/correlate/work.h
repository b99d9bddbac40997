/* work.h - what a worker needs for a few hundred pixels at a time.
 *
 * Model:     rows of samples of one level: `channels` - 1 of the past, then those of a group of
 *            frames. A row is missing where no pixel has a sample, and mixed where some have none;
 *            pixels that have none in some row are dirty, and have their pairs counted one by one.
 *            A span is neighbouring pixels of one region.
 * Threads:   one worker's. */
#ifndef SL_STAGE_CORRELATE_WORK_H
#define SL_STAGE_CORRELATE_WORK_H

#include "stage/correlate/correlate.h"

enum {
	SL_CORRELATE_CHUNK = 256,
	SL_CORRELATE_GROUP = 16, /* frames */
	SL_CORRELATE_ROWS = SL_CORRELATE_CHANNELS - 1 + SL_CORRELATE_GROUP,
};

enum sl_correlate_row { SL_ROW_WHOLE, SL_ROW_MIXED, SL_ROW_MISSING };

struct sl_correlate_span {
	uint32_t first, count, region, clean; /* clean: how many of them are */
};

struct sl_correlate_work {
	/* Of the frames that came, and of the next level. */
	int32_t fresh[SL_CORRELATE_GROUP][SL_CORRELATE_CHUNK];
	int32_t row[SL_CORRELATE_ROWS][SL_CORRELATE_CHUNK];
	uint8_t is_missing[SL_CORRELATE_ROWS][SL_CORRELATE_CHUNK]; /* of mixed rows */
	uint8_t kind[SL_CORRELATE_ROWS];
	/* Of each span's clean pixels, in all rows before. */
	int64_t sum[SL_CORRELATE_ROWS + 1][SL_CORRELATE_CHUNK];
	int32_t before[SL_CORRELATE_CHUNK];	 /* the sample before the first fresh one */
	int64_t products[4][SL_CORRELATE_CHUNK]; /* or int32_t, as many */

	struct sl_correlate_span span[SL_CORRELATE_CHUNK];
	uint8_t is_dirty[SL_CORRELATE_CHUNK];
	uint32_t spans, used, dirty;

	struct sl_correlate_sum *sums; /* [count][lags]: where they are added */
	uint64_t first_pixel;	       /* of the chunk, in all modules */
	uint32_t pixels;
	uint64_t first, next; /* time of the first fresh frame, and of the one behind the last */
};

/* level.c: pairs of the fresh frames, on all levels; then there are none. */
void sl_correlate_advance(const struct sl_correlate *s, struct sl_correlate_work *w);

#endif
