/* radial.c - pixels that stand out of the background at their distance from the beam, as
 * pyFAI's sparsify finds them (docs/reference/sparse.md has the definition and where it is from).
 *
 * For each bin, over its valid pixels (I: the pixel, N: its norm, V = max(I, 1): its variance):
 *   average = sum I / sum N,  sigma = sqrt(sum V / sum N)
 * then, `cycle` times or until there is none: pixels with |I/N - average| > c sigma are left out
 * for good, c = max(cutoff_clip, sqrt(2 ln(n / sqrt(2 pi)))), n = pixels of the bin that are left,
 * 3 at least (Chauvenet). A pixel is picked when, with both interpolated between the middles of
 * bins,
 *   I/N - average > max(noise, cutoff_pick sqrt(sigma^2 + noise^2))
 *
 * Cost: one pass adds pixels to their bins (sums.c), and usually two at memory speed list
 * those that may be outside of the bounds to come (scan.c); rounds then go over the list.
 * What a round clips is taken off the sums again, which is exact for whole numbers; sums of floats
 * are doubles, where it leaves errors of 1e-15 of what was ever added. */
#include <math.h>
#include <string.h>

#include "stage/sparse/maths.h"
#include "stage/sparse/work.h"

static bool is_outside(float x, const struct sl_sparse_bound *bound)
{
	return sl_sparse_clips(x, bound->average, bound->cut);
}

uint64_t sl_sparse_radial_scratch(const struct sl_sparse *s)
{
	uint64_t bins = s->radial.bins + 1;
	uint64_t bytes = bins * (sizeof(struct sl_sparse_bin) +
				 s->cycle * sizeof(struct sl_sparse_bound) + 4 * sizeof(float) +
				 SL_SPARSE_WAYS * 2 * sizeof(union sl_sparse_sum)) +
			 2 * sl_sparse_groups(s) * sizeof(float) +
			 sl_sparse_candidates(s) * sizeof(struct sl_sparse_candidate);

	return (bytes + 63) / 64 * 64;
}

static void lay_out(struct sl_sparse_work *w, void *scratch)
{
	const struct sl_sparse *s = w->s;
	uint64_t bins = s->radial.bins + 1;

	w->bin = scratch;
	w->ways = (union sl_sparse_sum *)(w->bin + bins);
	w->rounds = (struct sl_sparse_bound *)(w->ways + SL_SPARSE_WAYS * 2 * bins);
	w->low = (float *)(w->rounds + s->cycle * bins);
	w->high = w->low + bins;
	w->list_low = w->high + bins;
	w->list_high = w->list_low + bins;
	w->group_low = w->list_high + bins;
	w->group_high = w->group_low + sl_sparse_groups(s);
	w->candidate = (struct sl_sparse_candidate *)(w->group_high + sl_sparse_groups(s));
}

/* ---- rounds of clipping ---- */

/* Average and sigma of what is left in a bin; none: 0, as pyFAI has it for empty bins. */
static void conclude(const struct sl_sparse *s, struct sl_sparse_bin *bin)
{
	float signal = (float)(s->dtype == SL_F32 ? bin->signal.real : (double)bin->signal.whole);
	float variance =
		(float)(s->dtype == SL_F32 ? bin->variance.real : (double)bin->variance.whole);

	bin->active = bin->valid > 0 && bin->norm > 0;
	bin->average = bin->active ? signal / (float)bin->norm : 0;
	bin->sigma = bin->active ? sl_sqrt(variance / (float)bin->norm) : 0;
}

/* Chauvenet: less than half a pixel of n should be farther out than that. */
float sl_sparse_cutoff(const struct sl_sparse *s, uint32_t n)
{
	float least = (float)s->cutoff_clip;
	float chauvenet = sqrtf(2 * logf((float)(n > 3 ? n : 3) / sqrtf(2 * (float)M_PI)));

	return least > chauvenet ? least : chauvenet;
}

static void set_bounds(struct sl_sparse_work *w)
{
	const struct sl_sparse *s = w->s;
	struct sl_sparse_bound *bound = w->rounds + w->round * s->radial.bins;

	for (uint32_t b = 0; b < s->radial.bins; b++) {
		const struct sl_sparse_bin *bin = &w->bin[b];
		float cut = INFINITY;

		if (bin->active)
			cut = bin->sigma * sl_sparse_cutoff(s, bin->n);
		bound[b] = (struct sl_sparse_bound){bin->average, cut};
		w->average[b] = bin->average;
		w->sigma[b] = bin->sigma;
		/* A little narrower than that, for the rounding of differences. */
		w->low[b] = bin->average - cut * (1 - 1e-6f) + fabsf(bin->average) * 1e-6f;
		w->high[b] = bin->average + cut * (1 - 1e-6f) - fabsf(bin->average) * 1e-6f;
	}
}

/* Out of the sums again. */
static void take_off(const struct sl_sparse *s, struct sl_sparse_bin *bin, double v, float norm)
{
	double variance = v > s->photon ? v : s->photon;

	if (s->dtype == SL_F32) {
		bin->signal.real -= v;
		bin->variance.real -= variance * s->photon;
	} else {
		bin->signal.whole -= (int64_t)v;
		bin->variance.whole -= (int64_t)variance;
	}
	bin->norm -= norm;
	bin->valid--;
}

static void clip(struct sl_sparse_work *w, const struct sl_sparse_candidate *pixel)
{
	const struct sl_sparse *s = w->s;
	const struct sl_sparse_bound *bound = &w->rounds[pixel->bin];
	struct sl_sparse_bin *bin = &w->bin[pixel->bin];

	if (!is_outside(pixel->x, bound + w->round * s->radial.bins) ||
	    sl_sparse_is_bad(s->dtype, &pixel->value, 0) ||
	    sl_sparse_is_overload(s->dtype, &pixel->value, 0))
		return;
	for (uint32_t earlier = 0; earlier < w->round; earlier++)
		if (is_outside(pixel->x, bound + earlier * s->radial.bins))
			return;
	take_off(s, bin, sl_sparse_value(s->dtype, &pixel->value, 0), s->radial.norm[pixel->at]);
	bin->clipped++;
}

/* Whether any bin is not done yet. */
static bool next_round(struct sl_sparse_work *w)
{
	bool more = false;

	for (uint32_t b = 0; b < w->s->radial.bins; b++) {
		struct sl_sparse_bin *bin = &w->bin[b];

		if (!bin->clipped) {
			bin->active = false;
			continue;
		}
		bin->n = bin->n > bin->clipped + 3 ? bin->n - bin->clipped : 3;
		bin->clipped = 0;
		conclude(w->s, bin);
		more |= bin->active;
	}
	return more;
}

static void clip_all(struct sl_sparse_work *w)
{
	const struct sl_sparse *s = w->s;
	bool more = true;

	for (uint32_t b = 0; b < s->radial.bins; b++)
		conclude(s, &w->bin[b]);
	for (w->round = 0; w->round < s->cycle && more; w->round++) {
		set_bounds(w);
		sl_sparse_visit_outside(w, clip);
		more = next_round(w);
	}
}

/* ---- what stands out ---- */

/* Its place in the table is looked up only when it can be picked at all. */
static bool stands_out(const struct sl_sparse_work *w, const struct sl_sparse_candidate *pixel)
{
	const struct sl_sparse *s = w->s;
	uint32_t last = s->radial.bins - 1, left, right;
	float position, part;

	if (!(pixel->x > w->high[pixel->bin]))
		return false;
	position = (s->radius[pixel->at] - s->middle[0]) / s->step;
	position = position > 0 ? position : 0;
	left = position < (float)last ? (uint32_t)position : last;
	right = left < last ? left + 1 : last;
	part = position - (float)left;
	return sl_sparse_picks(pixel->x,
			       sl_sparse_between(w->average[left], w->average[right], part),
			       sl_sparse_between(w->sigma[left], w->sigma[right], part),
			       s->photon * (float)s->noise, (float)s->cutoff_pick);
}

static void pick(struct sl_sparse_work *w, const struct sl_sparse_candidate *pixel)
{
	enum sl_dtype dtype = w->s->dtype;

	if (sl_sparse_is_bad(dtype, &pixel->value, 0))
		return;
	if (sl_sparse_is_overload(dtype, &pixel->value, 0) || stands_out(w, pixel))
		sl_sparse_pick(w->list, dtype, pixel->at, &pixel->value, 0);
}

static void pick_all(struct sl_sparse_work *w)
{
	for (uint32_t b = 0; b < w->s->radial.bins; b++) {
		w->average[b] = w->bin[b].average;
		w->sigma[b] = w->bin[b].sigma;
	}
	for (uint32_t b = 0; b < w->s->radial.bins; b++) {
		w->low[b] = -INFINITY;
		w->high[b] = sl_sparse_picked_above(w, b, 1);
	}
	sl_sparse_visit_outside(w, pick);
}

void sl_sparse_radial_frame(const struct sl_sparse *s, void *scratch, const struct sl_frame *frame,
			    struct sl_sparse_list *list, float *average, float *sigma)
{
	struct sl_sparse_work w = {
		.s = s, .frame = frame, .list = list, .average = average, .sigma = sigma};

	lay_out(&w, scratch);
	sl_sparse_add_up(&w);
	clip_all(&w);
	pick_all(&w);
}
