/* scan.c - passes at memory speed over the pixels that may be outside of bounds.
 *
 * A block of 64 pixels is compared with the widest bounds of the bins that it touches. The pixels
 * outside of these are far apart, and so are their places in the tables of the detector: these are
 * fetched ahead. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "stage/sparse/maths.h"
#include "stage/sparse/work.h"

enum { BLOCK = SL_OUTSIDE_BLOCK, GROUP = SL_SPARSE_GROUP, MASKS = 128 };

/* Pixels that are listed at most, and as a share of all; when there are more, every round looks
 * through the image. */
enum { CANDIDATES = 1 << 17, SHARE = 8 };

uint32_t sl_sparse_groups(const struct sl_sparse *s)
{
	return (s->radial.bins + GROUP - 1) / GROUP;
}

uint32_t sl_sparse_candidates(const struct sl_sparse *s)
{
	uint64_t share = s->radial.pixels / SHARE;

	return share < CANDIDATES ? (uint32_t)share : CANDIDATES;
}

static void group(struct sl_sparse_work *w, const float *lows, const float *highs)
{
	uint32_t bins = w->s->radial.bins;

	for (uint32_t g = 0; g < sl_sparse_groups(w->s); g++) {
		float low = -INFINITY, high = INFINITY;

		for (uint32_t b = g * GROUP; b < bins && b < (g + 1) * GROUP; b++) {
			low = lows[b] > low ? lows[b] : low;
			high = highs[b] < high ? highs[b] : high;
		}
		w->group_low[g] = low;
		w->group_high[g] = high;
	}
}

static int64_t limit(float x, int64_t least, int64_t most)
{
	return x <= (float)least ? least : x >= (float)most ? most : (int64_t)x;
}

/* Casts round toward zero: one more is on the safe side. Overloads are outside of all bounds. */
static void fit(enum sl_dtype dtype, struct sl_outside_bounds *bounds)
{
	static const int64_t most[SL_DTYPES] = {[SL_U8] = UINT8_MAX,
						[SL_U16] = UINT16_MAX,
						[SL_U32] = UINT32_MAX,
						[SL_I16] = INT16_MAX - 1};
	int64_t least = dtype == SL_I16 ? INT16_MIN : 0;

	if (bounds->real_high > FLT_MAX)
		bounds->real_high = FLT_MAX;
	if (dtype == SL_F32)
		return;
	bounds->low = limit(bounds->real_low + 1, least, most[dtype]);
	bounds->high = limit(bounds->real_high - (bounds->real_high < 0), least, most[dtype]);
}

/* Bounds of I/N become bounds of I, by the norm that makes them narrower; and a little narrower
 * than that, for the roundings. */
static struct sl_outside_bounds bounds_of(const struct sl_sparse_work *w,
					  const struct sl_sparse_block *block)
{
	const float more = 1 + 1e-6f, less = 1 - 1e-6f;
	struct sl_outside_bounds bounds = {.real_low = -INFINITY, .real_high = INFINITY};

	for (uint32_t g = block->first / GROUP; g <= block->last / GROUP; g++) {
		float low = w->group_low[g], high = w->group_high[g];

		bounds.real_low = low > bounds.real_low ? low : bounds.real_low;
		bounds.real_high = high < bounds.real_high ? high : bounds.real_high;
	}
	bounds.real_low *= bounds.real_low > 0 ? block->most * more : block->least * less;
	bounds.real_high *= bounds.real_high > 0 ? block->least * less : block->most * more;
	fit(w->s->dtype, &bounds);
	return bounds;
}

/* Their places in the tables: not in cache, and soon needed. */
static void fetch(const struct sl_sparse *s, uint64_t mask, uint64_t at)
{
	for (; mask; mask &= mask - 1)
		__builtin_prefetch(&s->radial.bin[at + (uint32_t)__builtin_ctzll(mask)]);
}

/* Pixels whose bit is set; the first of the mask is pixel i, number `at` of the image. Most blocks
 * have one norm, which need not be looked up. */
static void visit(struct sl_sparse_work *w, const struct sl_sparse_block *block, uint64_t mask,
		  const void *pixels, uint32_t i, uint64_t at)
{
	const struct sl_sparse *s = w->s;
	size_t bytes = sl_dtype_bytes(s->dtype);
	bool one_norm = block->least == block->most;

	for (; mask; mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);
		struct sl_sparse_candidate pixel = {.at = (uint32_t)at + bit,
						    .bin = s->radial.bin[at + bit]};

		if (pixel.bin >= s->radial.bins)
			continue;
		memcpy(&pixel.value, (const char *)pixels + (i + bit) * bytes, bytes);
		pixel.x = (float)sl_sparse_value(s->dtype, &pixel.value, 0) /
			  (one_norm ? block->least : s->radial.norm[at + bit]);
		w->visitor(w, &pixel);
	}
}

/* Some blocks of a run, each one whole; the first begins with pixel i, number `at` of the image. */
static void visit_blocks(struct sl_sparse_work *w, const void *pixels, uint32_t i, uint64_t at,
			 const struct sl_sparse_block *block, uint32_t blocks)
{
	const struct sl_sparse *s = w->s;
	struct sl_outside_bounds bounds[MASKS];
	uint64_t mask[MASKS];

	for (uint32_t b = 0; b < blocks; b++)
		bounds[b] = bounds_of(w, &block[b]);
	s->outside((const char *)pixels + i * sl_dtype_bytes(s->dtype), blocks, bounds, 1, mask);
	for (uint32_t b = 0; b < blocks; b++)
		fetch(s, mask[b], at + b * BLOCK);
	for (uint32_t b = 0; b < blocks; b++)
		if (mask[b])
			visit(w, &block[b], mask[b], pixels, i + b * BLOCK, at + b * BLOCK);
}

/* Fewer pixels than a block, or not all of one. */
static void visit_part(struct sl_sparse_work *w, const void *pixels, uint32_t i, uint64_t at,
		       const struct sl_sparse_block *block, uint32_t count)
{
	const char *first = (const char *)pixels + i * sl_dtype_bytes(w->s->dtype);
	struct sl_outside_bounds bounds = bounds_of(w, block);

	visit(w, block, sl_outside_part(w->s->dtype, first, count, &bounds), pixels, i, at);
}

static void visit_span(struct sl_sparse_work *w, const void *pixels, uint64_t first, uint32_t count)
{
	const struct sl_sparse *s = w->s;
	uint64_t module = first / s->module_pixels, in_module = first % s->module_pixels;
	const struct sl_sparse_block *blocks = s->block + module * s->module_blocks;

	for (uint32_t i = 0, n; i < count; i += n) {
		const struct sl_sparse_block *block = &blocks[(in_module + i) / BLOCK];
		uint32_t to_edge = BLOCK - (uint32_t)(in_module + i) % BLOCK;

		if (to_edge == BLOCK && count - i >= BLOCK) {
			n = (count - i) / BLOCK < MASKS ? (count - i) / BLOCK : MASKS;
			visit_blocks(w, pixels, i, first + i, block, n);
			n *= BLOCK;
		} else {
			n = count - i < to_edge ? count - i : to_edge;
			visit_part(w, pixels, i, first + i, block, n);
		}
	}
}

/* ---- a list of them, so that later rounds need not look through the image ---- */

static float least_of(const float *array, uint32_t b, uint32_t last)
{
	float least = array[b];

	if (b && array[b - 1] < least)
		least = array[b - 1];
	return b < last && array[b + 1] < least ? array[b + 1] : least;
}

/* Its background is between those of its bin and a neighbour. */
float sl_sparse_picked_above(const struct sl_sparse_work *w, uint32_t b, float share)
{
	uint32_t last = w->s->radial.bins - 1;
	float average = least_of(w->average, b, last), sigma = least_of(w->sigma, b, last);
	float over = sl_sparse_margin(sigma, w->s->photon * (float)w->s->noise,
				      (float)w->s->cutoff_pick);

	return average - fabsf(average) * 1e-6f + over * (1 - 1e-6f) * share;
}

/* Bounds fall while what stands out is clipped: the list begins some way inside of them. */
static void choose_list(struct sl_sparse_work *w)
{
	const float share = 0.8f;

	for (uint32_t b = 0; b < w->s->radial.bins; b++) {
		float middle = w->average[b], pick = sl_sparse_picked_above(w, b, share);
		float low = w->low[b] + (middle - w->low[b]) * (1 - share);
		float high = w->high[b] - (w->high[b] - middle) * (1 - share);

		w->list_low[b] = low > w->low[b] ? low : w->low[b];
		high = high < w->high[b] ? high : w->high[b];
		w->list_high[b] = pick < high ? pick : high;
	}
}

static void note(struct sl_sparse_work *w, const struct sl_sparse_candidate *pixel)
{
	if (!(pixel->x > w->list_high[pixel->bin] || pixel->x < w->list_low[pixel->bin]) ||
	    sl_sparse_is_bad(w->s->dtype, &pixel->value, 0))
		return;
	if (w->candidates < sl_sparse_candidates(w->s))
		w->candidate[w->candidates++] = *pixel;
	else
		w->listed = SL_SPARSE_TOO_MANY;
}

static bool list_has_all(const struct sl_sparse_work *w)
{
	if (w->listed != SL_SPARSE_LISTED)
		return false;
	for (uint32_t b = 0; b < w->s->radial.bins; b++)
		if (w->low[b] > w->list_low[b] || w->high[b] < w->list_high[b])
			return false;
	return true;
}

static void make_list(struct sl_sparse_work *w)
{
	choose_list(w);
	w->listed = SL_SPARSE_LISTED;
	w->candidates = 0;
	w->visitor = note;
	group(w, w->list_low, w->list_high);
	sl_sparse_spans(w, visit_span);
}

void sl_sparse_visit_outside(struct sl_sparse_work *w, sl_sparse_visitor *visitor)
{
	if (w->listed != SL_SPARSE_TOO_MANY && !list_has_all(w))
		make_list(w);
	if (w->listed == SL_SPARSE_LISTED) {
		for (uint32_t i = 0; i < w->candidates; i++)
			visitor(w, &w->candidate[i]);
		return;
	}
	w->visitor = visitor;
	group(w, w->low, w->high);
	sl_sparse_spans(w, visit_span);
}
