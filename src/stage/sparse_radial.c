/* sparse_radial.c - pixels that stand out of the background at their distance from the beam, as
 * pyFAI's sparsify finds them (docs/sparse.md has the definition and where it is from).
 *
 * For each bin, over its valid pixels (I: the pixel, N: its norm, V = max(I, 1): its variance):
 *   average = sum I / sum N,  sigma = sqrt(sum V / sum N)
 * then, `cycle` times or until there is none: pixels with |I/N - average| > c sigma are left out for
 * good, c = max(cutoff_clip, sqrt(2 ln(n / sqrt(2 pi)))), n = pixels of the bin that are left, 3 at
 * least (Chauvenet). A pixel is picked when, with both interpolated between the middles of bins,
 *   I/N - average > max(noise, cutoff_pick sqrt(sigma^2 + noise^2))
 *
 * Cost: one pass adds pixels to their bins. What follows are passes at memory speed: a block of 64
 * pixels is compared with the widest bounds of the bins that it touches, and only pixels outside of
 * these are looked at one by one. What a round clips is taken off the sums again, which is exact
 * for whole numbers; sums of floats are doubles, where it leaves errors of 1e-15 of what was ever
 * added. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "maths/sparse.h"
#include "stage/sparse.h"

enum { BLOCK = SL_OUTSIDE_BLOCK, WAYS = 4, GROUP = 8, MASKS = 128 };

/* Pixels of 16 bits until halves of a sum might overflow: a way has a quarter of them, and the odd
 * ones of each chunk, below 2^15 in all. */
enum { PACKED_PIXELS = 100000 };

union sum {
	int64_t whole;
	double real;
};

struct bin {
	union sum signal, variance;
	double norm;
	uint32_t valid;	  /* pixels in these sums */
	uint32_t n;	  /* of Chauvenet's criterion */
	uint32_t clipped; /* in this round */
	float average, sigma, cut;
	bool active;
};

/* A round's bounds of a bin: out is |x - average| > cut. */
struct bound {
	float average, cut;
};

struct work;

/* Pixel i of `pixels` is number `at` of the image, in that bin, and outside of the widest bounds of
 * its block. */
typedef void on_pixel(struct work *w, const void *pixels, uint32_t i, uint64_t at);

/* One frame's work. The arrays lie in scratch. */
struct work {
	const struct sl_sparse *s;
	const struct sl_frame *frame;
	struct bin *bin;      /* [bins + 1]: the last for pixels without one */
	struct bound *rounds; /* [cycle][bins] */
	float *low, *high;    /* [bins]: below or above it is out, perhaps; then by groups */
	float *group_low, *group_high;
	union sum *ways; /* [WAYS][bins + 1][2], or packed [WAYS][bins + 1] */
	struct sl_sparse_list *list;
	float *average, *sigma; /* [bins]: the results */
	on_pixel *visitor;
	uint32_t round, packed;
};

static uint32_t groups_of(const struct sl_sparse *s)
{
	return (s->radial.bins + GROUP - 1) / GROUP;
}

uint64_t sl_sparse_radial_scratch(const struct sl_sparse *s)
{
	uint64_t bins = s->radial.bins + 1;
	uint64_t bytes = bins * (sizeof(struct bin) + s->cycle * sizeof(struct bound) +
				 2 * sizeof(float) + WAYS * 2 * sizeof(union sum)) +
			 2 * groups_of(s) * sizeof(float);

	return (bytes + 63) / 64 * 64;
}

static void lay_out(struct work *w, void *scratch)
{
	const struct sl_sparse *s = w->s;
	uint64_t bins = s->radial.bins + 1;

	w->bin = scratch;
	w->ways = (union sum *)(w->bin + bins);
	w->rounds = (struct bound *)(w->ways + WAYS * 2 * bins);
	w->low = (float *)(w->rounds + s->cycle * bins);
	w->high = w->low + bins;
	w->group_low = w->high + bins;
	w->group_high = w->group_low + groups_of(s);
}

static double value_of(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i];
	case SL_U32:
		return ((const uint32_t *)pixels)[i];
	case SL_I16:
		return ((const int16_t *)pixels)[i];
	default:
		return ((const float *)pixels)[i];
	}
}

/* What its value would be with a norm of 1. */
static float corrected(const struct sl_sparse *s, const void *pixels, uint64_t i, uint64_t at)
{
	return (float)value_of(s->dtype, pixels, i) / s->radial.norm[at];
}

static bool is_measured(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	return !sl_sparse_is_bad(dtype, pixels, i) && !sl_sparse_is_overload(dtype, pixels, i);
}

static bool is_outside(float x, const struct bound *bound)
{
	return sl_sparse_clips(x, bound->average, bound->cut);
}

/* ---- the image, in runs that lie in one piece ---- */

/* Pixels first to first + count of the image. */
typedef void on_run(struct work *w, const void *pixels, uint64_t first, uint32_t count);

static void for_runs(struct work *w, on_run *work)
{
	const struct sl_sparse *s = w->s;
	size_t bytes = sl_dtype_bytes(s->dtype);

	for (uint32_t m = 0; m < s->modules; m++) {
		const struct sl_array *raw = &w->frame->view[m].pixels;
		uint64_t first = m * s->module_pixels;

		if (s->input != SL_STAGE_RAW)
			work(w, (const char *)w->frame->result[s->input].host + first * bytes,
			     first, (uint32_t)s->module_pixels);
		else if (!raw->pitch)
			work(w, raw->host, first, (uint32_t)s->module_pixels);
		for (uint32_t row = 0; s->input == SL_STAGE_RAW && raw->pitch && row < s->rows;
		     row++)
			work(w, (const char *)raw->host + row * raw->pitch,
			     first + (uint64_t)row * s->columns, s->columns);
	}
}

/* ---- the first sums ---- */

/* One pixel more in the sums, or less. */
static void account(const struct sl_sparse *s, struct bin *bin, double v, int sign)
{
	double variance = v > s->photon ? v : s->photon;

	if (s->dtype == SL_F32) {
		bin->signal.real += sign * v;
		bin->variance.real += sign * variance * s->photon;
	} else {
		bin->signal.whole += sign * (int64_t)v;
		bin->variance.whole += sign * (int64_t)variance;
	}
}

static void leave_out(struct bin *bin, float norm)
{
	bin->norm -= norm;
	bin->valid--;
}

/* A few pixels, some of which may be no measurement. */
static void add_slowly(struct work *w, const void *pixels, uint32_t first, uint32_t count,
		       uint64_t at)
{
	const struct sl_sparse *s = w->s;

	for (uint32_t i = first; i < first + count; i++) {
		struct bin *bin = &w->bin[s->radial.bin[at + i]];

		if (is_measured(s->dtype, pixels, i))
			account(s, bin, value_of(s->dtype, pixels, i), 1);
		else
			leave_out(bin, s->radial.norm[at + i]);
	}
}

/* What ways have of whole numbers goes to the bins: the variance is in the upper half. */
static void unpack(struct work *w)
{
	uint32_t bins = w->s->radial.bins + 1;

	for (uint32_t i = 0; i < WAYS * bins; i++) {
		int64_t both = w->ways[i].whole;
		int32_t signal = (int32_t)(uint32_t)both;
		struct bin *bin = &w->bin[i % bins];

		bin->signal.whole += signal;
		bin->variance.whole += (both - signal) >> 32;
		w->ways[i].whole = 0;
	}
	w->packed = 0;
}

/* For each type of pixel: whole chunks that are all measurements, in four ways, so that neighbours
 * of one bin need not wait for each other. The check comes first: it vectorises. */
#define ADD(TYPE, NAME, VALID, ONE)                                                              \
	static void add_##NAME(struct work *w, const void *pixels, uint64_t at, uint32_t count)  \
	{                                                                                        \
		const TYPE *restrict pixel = pixels;                                             \
		const uint16_t *restrict bin = w->s->radial.bin + at;                            \
		union sum *restrict sum = w->ways;                                               \
		size_t way = w->s->radial.bins + 1;                                              \
                                                                                                 \
		for (uint32_t first = 0; first < count; first += BLOCK) {                        \
			uint32_t end = count - first < BLOCK ? count : first + BLOCK, i = first; \
			TYPE valid = 1;                                                          \
                                                                                                 \
			for (uint32_t k = first; k < end; k++)                                   \
				valid = (VALID) ? valid : 0;                                     \
			for (; valid != 0 && i + WAYS <= end; i += WAYS) {                       \
				ONE(0)                                                           \
				ONE(1)                                                           \
				ONE(2)                                                           \
				ONE(3)                                                           \
			}                                                                        \
			add_slowly(w, pixels, i, end - i, at);                                   \
			w->packed += BLOCK;                                                      \
			if (sizeof(TYPE) <= 2 && w->packed >= PACKED_PIXELS)                     \
				unpack(w);                                                       \
		}                                                                                \
	}

#define PACKED(k)                                                                                  \
	{                                                                                          \
		int64_t v = pixel[i + (k)];                                                        \
                                                                                                   \
		sum[(k)*way + bin[i + (k)]].whole += v +                                           \
						     ((int64_t)((uint64_t)(v > 1 ? v : 1) << 32)); \
	}
#define PAIR_WHOLE(k)                                                 \
	{                                                             \
		union sum *pair = &sum[2 * ((k)*way + bin[i + (k)])]; \
		int64_t v = pixel[i + (k)];                           \
                                                                      \
		pair[0].whole += v;                                   \
		pair[1].whole += v > 1 ? v : 1;                       \
	}
#define PAIR_REAL(k)                                                  \
	{                                                             \
		union sum *pair = &sum[2 * ((k)*way + bin[i + (k)])]; \
		double v = pixel[i + (k)], photon = w->s->photon;     \
                                                                      \
		pair[0].real += v;                                    \
		pair[1].real += (v > photon ? v : photon) * photon;   \
	}

ADD(uint8_t, u8, pixel[k] != UINT8_MAX, PACKED)
ADD(uint16_t, u16, pixel[k] != UINT16_MAX, PACKED)
ADD(int16_t, i16, pixel[k] != INT16_MAX && pixel[k] != INT16_MIN, PACKED)
ADD(uint32_t, u32, pixel[k] != UINT32_MAX, PAIR_WHOLE)
ADD(float, f32, fabsf(pixel[k]) < INFINITY, PAIR_REAL)

static void unpack_pairs(struct work *w)
{
	uint32_t bins = w->s->radial.bins + 1;

	for (uint32_t i = 0; i < WAYS * bins; i++) {
		const union sum *pair = &w->ways[2 * i];
		struct bin *bin = &w->bin[i % bins];

		if (w->s->dtype == SL_F32) {
			bin->signal.real += pair[0].real;
			bin->variance.real += pair[1].real;
		} else {
			bin->signal.whole += pair[0].whole;
			bin->variance.whole += pair[1].whole;
		}
	}
}

static void add_up(struct work *w)
{
	static on_run *const add[SL_DTYPES] = {[SL_U8] = add_u8,
					       [SL_U16] = add_u16,
					       [SL_U32] = add_u32,
					       [SL_I16] = add_i16,
					       [SL_F32] = add_f32};
	const struct sl_sparse *s = w->s;
	uint32_t bins = s->radial.bins;

	for (uint32_t b = 0; b <= bins; b++)
		w->bin[b] = (struct bin){.norm = b < bins ? s->radial.total[b] : 0,
					 .valid = b < bins ? s->pixels_of[b] : 0,
					 .n = b < bins ? s->pixels_of[b] : 0};
	memset(w->ways, 0, WAYS * 2 * (bins + 1) * sizeof(*w->ways));
	w->packed = 0;
	for_runs(w, add[s->dtype]);
	if (sl_dtype_bytes(s->dtype) <= 2)
		unpack(w);
	else
		unpack_pairs(w);
}

/* ---- passes over what is outside ---- */

static void group(struct work *w)
{
	uint32_t bins = w->s->radial.bins;

	for (uint32_t g = 0; g < groups_of(w->s); g++) {
		float low = -INFINITY, high = INFINITY;

		for (uint32_t b = g * GROUP; b < bins && b < (g + 1) * GROUP; b++) {
			low = w->low[b] > low ? w->low[b] : low;
			high = w->high[b] < high ? w->high[b] : high;
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
static struct sl_outside_bounds bounds_of(const struct work *w, const struct sl_sparse_block *block)
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

/* Pixels whose bit is set; the first of `pixels` is number `at` of the image. */
static void visit(struct work *w, on_pixel *visitor, uint64_t mask, const void *pixels, uint32_t i,
		  uint64_t at)
{
	for (; mask; mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);

		if (w->s->radial.bin[at + bit] < w->s->radial.bins)
			visitor(w, pixels, i + bit, at + bit);
	}
}

/* Some blocks of a run, each one whole; the first begins with pixel i, number `at` of the image. */
static void visit_blocks(struct work *w, const void *pixels, uint32_t i, uint64_t at,
			 const struct sl_sparse_block *block, uint32_t blocks)
{
	const struct sl_sparse *s = w->s;
	struct sl_outside_bounds bounds[MASKS];
	uint64_t mask[MASKS];

	for (uint32_t b = 0; b < blocks; b++)
		bounds[b] = bounds_of(w, &block[b]);
	s->outside((const char *)pixels + i * sl_dtype_bytes(s->dtype), blocks, bounds, 1, mask);
	for (uint32_t b = 0; b < blocks; b++)
		visit(w, w->visitor, mask[b], pixels, i + b * BLOCK, at + b * BLOCK);
}

static void visit_run(struct work *w, const void *pixels, uint64_t first, uint32_t count)
{
	const struct sl_sparse *s = w->s;
	uint64_t in_module = first % s->module_pixels;
	const struct sl_sparse_block *blocks = s->block +
					       first / s->module_pixels * s->module_blocks;

	for (uint32_t i = 0, n; i < count; i += n) {
		const struct sl_sparse_block *block = &blocks[(in_module + i) / BLOCK];
		uint32_t to_edge = BLOCK - (uint32_t)(in_module + i) % BLOCK;

		if (to_edge == BLOCK && count - i >= BLOCK) {
			n = (count - i) / BLOCK < MASKS ? (count - i) / BLOCK : MASKS;
			visit_blocks(w, pixels, i, first + i, block, n);
			n *= BLOCK;
		} else {
			struct sl_outside_bounds bounds = bounds_of(w, block);

			n = count - i < to_edge ? count - i : to_edge;
			visit(w, w->visitor,
			      sl_outside_part(s->dtype,
					      (const char *)pixels + i * sl_dtype_bytes(s->dtype),
					      n, &bounds),
			      pixels, i, first + i);
		}
	}
}

/* Every pixel that low[] and high[] leave in doubt. */
static void visit_outside(struct work *w, on_pixel *visitor)
{
	w->visitor = visitor;
	group(w);
	for_runs(w, visit_run);
}

/* ---- rounds of clipping ---- */

/* Average and sigma of what is left in a bin; none: 0, as pyFAI has it for empty bins. */
static void conclude(const struct sl_sparse *s, struct bin *bin)
{
	float signal = (float)(s->dtype == SL_F32 ? bin->signal.real : (double)bin->signal.whole);
	float variance =
		(float)(s->dtype == SL_F32 ? bin->variance.real : (double)bin->variance.whole);

	bin->active = bin->valid > 0 && bin->norm > 0;
	bin->average = bin->active ? signal / (float)bin->norm : 0;
	bin->sigma = bin->active ? sl_sqrt(variance / (float)bin->norm) : 0;
}

/* Chauvenet: less than half a pixel of n should be farther out than that. */
static float cutoff(const struct sl_sparse *s, uint32_t n)
{
	float least = (float)s->cutoff_clip;
	float chauvenet = sqrtf(2 * logf((float)(n > 3 ? n : 3) / sqrtf(2 * (float)M_PI)));

	return least > chauvenet ? least : chauvenet;
}

static void set_bounds(struct work *w)
{
	const struct sl_sparse *s = w->s;
	struct bound *bound = w->rounds + w->round * s->radial.bins;

	for (uint32_t b = 0; b < s->radial.bins; b++) {
		const struct bin *bin = &w->bin[b];
		float cut = INFINITY;

		if (bin->active)
			cut = bin->sigma * cutoff(s, bin->n);
		bound[b] = (struct bound){bin->average, cut};
		/* A little narrower than that, for the rounding of differences. */
		w->low[b] = bin->average - cut * (1 - 1e-6f) + fabsf(bin->average) * 1e-6f;
		w->high[b] = bin->average + cut * (1 - 1e-6f) - fabsf(bin->average) * 1e-6f;
	}
}

static void clip(struct work *w, const void *pixels, uint32_t i, uint64_t at)
{
	const struct sl_sparse *s = w->s;
	uint32_t b = s->radial.bin[at];
	float x = corrected(s, pixels, i, at);
	struct bin *bin = &w->bin[b];

	if (!is_outside(x, &w->rounds[w->round * s->radial.bins + b]) ||
	    !is_measured(s->dtype, pixels, i))
		return;
	for (uint32_t earlier = 0; earlier < w->round; earlier++)
		if (is_outside(x, &w->rounds[earlier * s->radial.bins + b]))
			return;
	account(s, bin, value_of(s->dtype, pixels, i), -1);
	leave_out(bin, s->radial.norm[at]);
	bin->clipped++;
}

/* Whether any bin is not done yet. */
static bool next_round(struct work *w)
{
	bool more = false;

	for (uint32_t b = 0; b < w->s->radial.bins; b++) {
		struct bin *bin = &w->bin[b];

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

static void clip_all(struct work *w)
{
	const struct sl_sparse *s = w->s;
	bool more = true;

	for (uint32_t b = 0; b < s->radial.bins; b++)
		conclude(s, &w->bin[b]);
	for (w->round = 0; w->round < s->cycle && more; w->round++) {
		set_bounds(w);
		visit_outside(w, clip);
		more = next_round(w);
	}
}

/* ---- what stands out ---- */

static void pick(struct work *w, const void *pixels, uint32_t i, uint64_t at)
{
	const struct sl_sparse *s = w->s;
	uint32_t last = s->radial.bins - 1;
	float position = (s->radius[at] - s->middle[0]) / s->step, part;
	uint32_t left, right;

	position = position > 0 ? position : 0;
	left = position < (float)last ? (uint32_t)position : last;
	right = left < last ? left + 1 : last;
	part = position - (float)left;
	if (sl_sparse_is_bad(s->dtype, pixels, i))
		return;
	if (sl_sparse_is_overload(s->dtype, pixels, i) ||
	    sl_sparse_picks(corrected(s, pixels, i, at),
			    sl_sparse_between(w->average[left], w->average[right], part),
			    sl_sparse_between(w->sigma[left], w->sigma[right], part),
			    s->photon * (float)s->noise, (float)s->cutoff_pick))
		sl_sparse_pick(w->list, s->dtype, (uint32_t)at, pixels, i);
}

static float least_of(const float *array, uint32_t b, uint32_t last)
{
	float least = array[b];

	if (b && array[b - 1] < least)
		least = array[b - 1];
	return b < last && array[b + 1] < least ? array[b + 1] : least;
}

/* A pixel's background is between those of its bin and a neighbour. */
static void pick_all(struct work *w)
{
	const struct sl_sparse *s = w->s;
	uint32_t last = s->radial.bins - 1;

	for (uint32_t b = 0; b <= last; b++) {
		float average = least_of(w->average, b, last), sigma = least_of(w->sigma, b, last);
		float over =
			sl_sparse_margin(sigma, s->photon * (float)s->noise, (float)s->cutoff_pick);

		w->low[b] = -INFINITY;
		w->high[b] = average - fabsf(average) * 1e-6f + over * (1 - 1e-6f);
	}
	visit_outside(w, pick);
}

void sl_sparse_radial_frame(const struct sl_sparse *s, void *scratch, const struct sl_frame *frame,
			    struct sl_sparse_list *list, float *average, float *sigma)
{
	struct work w = {.s = s, .frame = frame, .list = list, .average = average, .sigma = sigma};

	lay_out(&w, scratch);
	add_up(&w);
	clip_all(&w);
	for (uint32_t b = 0; b < s->radial.bins; b++) {
		average[b] = w.bin[b].average;
		sigma[b] = w.bin[b].sigma;
	}
	pick_all(&w);
}

/* ---- tables ---- */

static int allocate(struct sl_sparse *s)
{
	uint64_t blocks = (uint64_t)s->modules * s->module_blocks, pixels = s->radial.pixels;
	int err = sl_region_open(SL_REGION_HOST,
				 blocks * sizeof(*s->block) + pixels * sizeof(*s->radius) +
					 s->radial.bins *
						 (sizeof(*s->pixels_of) + sizeof(*s->middle)),
				 &s->memory);

	if (err) {
		sl_error("sparse: no memory for tables of %llu pixels", (unsigned long long)pixels);
		return err;
	}
	s->block = s->memory.base;
	s->radius = (float *)(s->block + blocks);
	s->middle = s->radius + pixels;
	s->pixels_of = (uint32_t *)(s->middle + s->radial.bins);
	memset(s->pixels_of, 0, s->radial.bins * sizeof(*s->pixels_of));
	return 0;
}

/* How far a pixel is from the beam, in the unit: what decided on its bin. */
static double radius_of(const struct sl_geometry *g, uint32_t unit, uint32_t module, uint32_t pixel)
{
	static const double hc_keV_nm = 1.2398419843320026;
	double row, column, r;

	sl_layout_centre(g, module, pixel, &row, &column);
	r = hypot(row - g->layout.beam_row, column - g->layout.beam_column);
	switch (unit) {
	case SL_RADIAL_Q_NM:
		r = sin(atan2(r * g->pixel_size_m, g->distance_m) / 2);
		return 4 * M_PI * r * g->photon_energy_keV / hc_keV_nm;
	case SL_RADIAL_TTH_DEG:
		return atan2(r * g->pixel_size_m, g->distance_m) * 180 / M_PI;
	case SL_RADIAL_R_MM:
		return r * g->pixel_size_m * 1e3;
	default:
		return r;
	}
}

static void widen(struct sl_sparse_block *block, uint16_t bin, float norm)
{
	block->first = bin < block->first ? bin : block->first;
	block->last = bin > block->last ? bin : block->last;
	block->least = norm < block->least ? norm : block->least;
	block->most = norm > block->most ? norm : block->most;
}

static void fill(struct sl_sparse *s, const struct sl_env *env)
{
	struct sl_geometry geometry = *env->geometry;
	struct sl_radial *r = &s->radial;

	sl_layout_resolve(env->geometry, &geometry.layout);

	for (uint32_t b = 0; b < r->bins; b++)
		s->middle[b] = (float)sl_radial_middle(r, b);
	s->step = r->bins > 1 ? s->middle[1] - s->middle[0] : (float)(r->high - r->low);
	for (uint32_t b = 0; b < s->modules * s->module_blocks; b++)
		s->block[b] = (struct sl_sparse_block){.first = UINT16_MAX, .least = FLT_MAX};
	for (uint64_t i = 0; i < r->pixels; i++) {
		uint64_t module = i / s->module_pixels, in_module = i % s->module_pixels;

		s->radius[i] = NAN;
		if (r->bin[i] < r->bins) {
			s->radius[i] = (float)radius_of(&geometry, s->unit, (uint32_t)module,
							(uint32_t)in_module);
			s->pixels_of[r->bin[i]]++;
			widen(&s->block[module * s->module_blocks + in_module / BLOCK], r->bin[i],
			      r->norm[i]);
		}
	}
}

int sl_sparse_radial_open(struct sl_sparse *s, const struct sl_env *env)
{
	const struct sl_radial_options options = {
		.bins = s->bins,
		.unit = s->unit,
		.low = s->low,
		.high = s->high,
		.solid_angle = s->solid_angle,
		.polarisation = s->polarisation,
	};
	int err = sl_radial_open(&s->radial, &options, env, "sparse");

	if (err)
		return err;
	s->module_blocks = (uint32_t)((s->module_pixels + BLOCK - 1) / BLOCK);
	s->photon = s->dtype == SL_F32 && env->geometry->photon_energy_keV > 0
			    ? (float)env->geometry->photon_energy_keV
			    : 1;
	err = allocate(s);
	if (err)
		return err;
	fill(s, env);
	return 0;
}

void sl_sparse_radial_close(struct sl_sparse *s)
{
	if (s->memory.base)
		sl_region_close(&s->memory);
	s->memory.base = NULL;
	sl_radial_close(&s->radial);
}
