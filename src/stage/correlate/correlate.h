/* correlate.h - what the files of the stage `correlate` share.
 *
 * Model:     time is counted in frames, by the frame number. Sample j of level l of a pixel is the
 *            sum of what it counted in frames j * 2^l to (j + 1) * 2^l - 1; it is missing unless
 *            the pixel was measured in all of them. A lag is a level and a channel: level 0 has
 *            channels 0 to C - 1, the others C / 2 to C - 1; sample j makes a pair with sample
 *            j - channel. Numbers are integers (maths.h), and so are their sums, so that no result
 *            depends on the order in which tiles, workers or a device add them up.
 * Threads:   a pixel's history belongs to its tile; sums to one worker, until finish() adds them
 *            to those of the run; where each pixel is a region, its sums belong to its tile.
 * Ownership: the stage's state owns all tables. */
#ifndef SL_STAGE_CORRELATE_CORRELATE_H
#define SL_STAGE_CORRELATE_CORRELATE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/stage.h>

#include "core/region.h"
#include "stage/correlate/maths.h"

enum {
	SL_CORRELATE_TEXT = 512,
	SL_CORRELATE_LEVELS = 14, /* at most: samples of 16 bits stay below SL_CORRELATE_MOST */
	SL_CORRELATE_CHANNELS = 64,
};
enum { SL_CORRELATE_IMAGE, SL_CORRELATE_RINGS, SL_CORRELATE_LABELS, SL_CORRELATE_PIXELS };
#define SL_CORRELATE_NONE UINT32_MAX /* in no region */

/* Of one region and lag: products as a number of 128 bits, and samples. */
struct sl_correlate_sum {
	uint64_t low;
	int64_t high;
	int64_t left, right; /* the earlier and the later sample of each pair */
	uint64_t pairs;
};

typedef void sl_correlate_products(const int32_t *const *later, const int32_t *const *earlier,
				   void *sums);

struct sl_correlate_taken {
	uint32_t missing;
	int32_t low, high;
};
typedef void sl_correlate_take(const int32_t *restrict from, uint32_t count, int32_t *restrict to,
			       struct sl_correlate_taken *taken);

struct sl_correlate {
	uint32_t regions, rings, unit, levels, channels, vectors;
	char labels[SL_CORRELATE_TEXT];
	double low, high, period_us;
	uint64_t every;

	enum sl_dtype dtype;
	uint32_t modules, lags, count; /* count: of regions */
	uint64_t module_pixels, pixels;
	int32_t limit; /* a pixel that counts more, either way, is an overload */
	int input, result;
	size_t scratch_bytes;
	sl_correlate_products *narrow, *wide;
	sl_correlate_take *take;

	uint32_t *region; /* [pixels]: SL_CORRELATE_NONE: it is in none */
	uint32_t *number; /* [count]: pixels of the region */
	double *axis;	  /* [count]: the middle of a ring, a label, or which pixel it is */
	double *tau;	  /* [lags], in seconds, or in frames */
	uint32_t *lag;	  /* [lags], in frames */

	struct sl_region memory;
	int32_t *history;		/* [levels][channels][pixels] */
	uint64_t *next;			/* [pixels]: the frame that comes next; 0: none came yet */
	struct sl_correlate_sum *total; /* [count][lags] */
	/* Of the run as a whole, once it has ended: [count][lags]. */
	double *g2, *numerator, *left, *right;
	int64_t *pairs;

	/* finish()'s own. */
	uint64_t frames, skipped, restarts, rows, expected;
};

extern const struct sl_gpu sl_gpu_correlate;

static inline uint32_t sl_correlate_first_channel(const struct sl_correlate *s, uint32_t level)
{
	return level ? s->channels / 2 : 0;
}

/* The first lag of a level. */
static inline uint32_t sl_correlate_first_lag(const struct sl_correlate *s, uint32_t level)
{
	return level ? s->channels + (level - 1) * (s->channels / 2) : 0;
}

/* Frames that no lag reaches over. */
static inline uint64_t sl_correlate_reach(const struct sl_correlate *s)
{
	return (uint64_t)s->channels << (s->levels - 1);
}

/* Whether the frame carries the result. */
static inline bool sl_correlate_is_due(const struct sl_correlate *s, const struct sl_frame *frame)
{
	return s->every && !(frame->flags & SL_FRAME_DARK) && (frame->number + 1) % s->every == 0;
}

static inline size_t sl_correlate_sums_bytes(const struct sl_correlate *s)
{
	return s->regions == SL_CORRELATE_PIXELS
		       ? 0
		       : (size_t)s->count * s->lags * sizeof(struct sl_correlate_sum);
}

/* ---- correlate.c ---- */

/* A frame of the run, in order, for the figures. */
void sl_correlate_note(struct sl_correlate *s, const struct sl_frame *frame);

/* ---- regions.c ---- */

int sl_correlate_regions_open(struct sl_correlate *s, const struct sl_env *env);

/* ---- tile.c ---- */

size_t sl_correlate_work_bytes(void);
void sl_correlate_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile);

/* ---- products.c ---- */

void sl_correlate_choose(struct sl_correlate *s);

/* ---- sums.c ---- */

void sl_correlate_add(struct sl_correlate_sum *to, const struct sl_correlate_sum *from);
/* g2 of one region and lag; NaN without a pair, and where nothing was counted. */
double sl_correlate_g2(const struct sl_correlate_sum *sum);
/* Of all of them, into arrays of the state. */
void sl_correlate_conclude(struct sl_correlate *s);

#endif
