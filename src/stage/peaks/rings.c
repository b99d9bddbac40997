/* rings.c - mean, deviation and limits of every ring, and which pixels are strong.
 *
 * The first iteration takes all valid pixels. A later one takes those strictly between the limits
 * of the one before: the sums over all, less the pixels outside of the limits. These are on a list
 * that a scan has made of all pixels a good way out, somewhat nearer to the mean than the limits
 * then were. When limits come nearer than that, the scan is made again. By Chebyshev's inequality
 * no more than one pixel in nine is three deviations or more from the mean: the list has room for
 * one in eight. If it is too short all the same, all pixels are looked at in every iteration.
 *
 * Counts are added and taken away exactly. Sums of floats lose what is below 2^-53 of the sum of
 * squares of all pixels; those of 2^17 keV or more, and counts of 2^18 or more, are kept out of the
 * sums and added one by one where the limits let them in.
 *
 * A ring whose usual pixels do not vary is settled: nothing would be left strictly between its
 * limits. It keeps mean and limits. (CrystFEL's peakfinder8 begins anew with all positive pixels
 * then, and may lose peaks on an empty background.) A ring without a valid pixel has no strong one.
 */
#include <math.h>
#include <string.h>

#include "stage/peaks/maths.h"
#include "stage/peaks/peaks.h"
#include "stage/pixels.h"

enum { SHIFT = 36, WAYS = SL_PEAKS_WAYS };
enum { AROUND = 8, FEW = 32 }; /* rings; pixels */

static const float nearer = 0.6f, three = 3; /* of the limits' reach; deviations */

static size_t capacity_of(const struct sl_peaks_table *t)
{
	return t->pixels / 8 + 1024;
}

size_t sl_peaks_work_bytes(const struct sl_peaks_table *t, const struct sl_peaks_settings *settings)
{
	size_t rings = t->rings + 1;

	size_t bytes = rings * (sizeof(struct sl_peaks_ring) +
				2 * WAYS * sizeof(union sl_peaks_sum) + 2 * sizeof(double) +
				2 * sizeof(float) + sizeof(uint32_t)) +
		       sl_peaks_chunks(t) * sizeof(struct sl_peaks_extremes) +
		       (capacity_of(t) + SL_PEAKS_HUGE) * sizeof(struct sl_peaks_entry) +
		       sl_blobs_bytes(t->modules, t->rows, t->columns, settings->max_pixels) + 16;

	return (bytes + 63) / 64 * 64;
}

/* What needs eight bytes' alignment first. */
void sl_peaks_work_init(struct sl_peaks_work *w, const struct sl_peaks_table *t,
			const struct sl_peaks_settings *settings, enum sl_dtype dtype, void *memory)
{
	size_t rings = t->rings + 1;
	uint64_t blobs;

	*w = (struct sl_peaks_work){
		.table = t, .settings = settings, .dtype = dtype, .whole = dtype != SL_F32};
	w->extremes = memory;
	w->ring = (struct sl_peaks_ring *)(w->extremes + sl_peaks_chunks(t));
	w->sum = (union sl_peaks_sum *)(w->ring + rings);
	w->wide_sum = (double *)(w->sum + rings * 2 * WAYS);
	w->wide_square = w->wide_sum + rings;
	w->window_high = (float *)(w->wide_square + rings);
	w->window_low = w->window_high + rings;
	w->missing = (uint32_t *)(w->window_low + rings);
	w->list = (struct sl_peaks_entry *)(w->missing + rings);
	w->capacity = (uint32_t)capacity_of(t);
	w->huge = w->list + w->capacity;
	blobs = ((uintptr_t)(w->huge + SL_PEAKS_HUGE) + 7) / 8 * 8;
	sl_blobs_init(&w->blobs, t->modules, t->rows, t->columns, settings->max_pixels,
		      (void *)blobs);
}

/* Adds up what passes left, of so many pixels. */
static void collect(struct sl_peaks_work *w, struct sl_peaks_ring *ring, uint32_t r,
		    uint32_t pixels)
{
	const union sl_peaks_sum *sum = w->sum + (size_t)r * WAYS * (w->whole ? 1 : 2);

	ring->all = (double)(pixels - w->missing[r]);
	ring->all_sum = w->wide_sum[r];
	ring->all_square = w->wide_square[r];
	for (int i = 0; i < WAYS; i++) {
		if (w->whole) {
			uint64_t square = sum[i].packed & ((UINT64_C(1) << SHIFT) - 1);

			ring->all_square += (double)square;
			ring->all_sum += (double)((int64_t)(sum[i].packed - square) >> SHIFT);
		} else {
			ring->all_sum += sum[2 * i].real;
			ring->all_square += sum[2 * i + 1].real;
		}
	}
	ring->count = ring->all;
	ring->sum = ring->all_sum;
	ring->square = ring->all_square;
}

/* n times the variance, times n: in whole numbers where the sums are such. */
static double spread_of(const struct sl_peaks_work *w, const struct sl_peaks_ring *ring)
{
	const double most = 0x1p53;
	double spread;

	if (w->whole && ring->square < most)
		return (double)((__int128)(int64_t)ring->count * (int64_t)ring->square -
				(__int128)(int64_t)ring->sum * (int64_t)ring->sum);
	spread = ring->count * ring->square - ring->sum * ring->sum;
	return spread > 0 ? spread : 0;
}

static void conclude(const struct sl_peaks_work *w, struct sl_peaks_ring *ring)
{
	struct sl_peaks_limits limits;
	double spread;

	if (!(ring->count > 0)) {
		ring->settled = true;
		return;
	}
	spread = spread_of(w, ring);
	ring->mean = (float)(ring->sum / ring->count);
	ring->sigma = (float)(sqrt(spread) / ring->count);
	limits = sl_peaks_limits(ring->mean, ring->sigma, w->settings->snr, w->settings->threshold);
	ring->lower = limits.lower;
	ring->upper = limits.upper;
	ring->settled = !(spread > 0);
}

static void add(struct sl_peaks_ring *ring, float value, double sign)
{
	ring->count += sign;
	ring->sum += sign * value;
	ring->square += sign * ((double)value * value);
}

static void clear(struct sl_peaks_work *w)
{
	size_t rings = w->table->rings + 1;

	memset(w->sum, 0, rings * WAYS * (w->whole ? 1 : 2) * sizeof(*w->sum));
	memset(w->wide_sum, 0, rings * sizeof(*w->wide_sum));
	memset(w->wide_square, 0, rings * sizeof(*w->wide_square));
	memset(w->missing, 0, rings * sizeof(*w->missing));
	w->huges = w->listed = 0;
	w->overflow = w->crowded = false;
	w->ring[w->table->rings] = (struct sl_peaks_ring){.high = INFINITY, .low = -INFINITY};
}

static void reset(struct sl_peaks_work *w)
{
	for (uint32_t r = 0; r < w->table->rings; r++)
		w->ring[r] = (struct sl_peaks_ring){.lower = -SL_PEAKS_FIRST_LIMIT,
						    .upper = SL_PEAKS_FIRST_LIMIT};
}

/* One iteration, from the limits there are to the next ones. */
static void iterate(struct sl_peaks_work *w)
{
	for (uint32_t r = 0; r < w->table->rings; r++) {
		struct sl_peaks_ring *ring = &w->ring[r];

		ring->count = ring->all;
		ring->sum = ring->all_sum;
		ring->square = ring->all_square;
	}
	for (uint32_t i = 0; i < w->listed; i++) {
		struct sl_peaks_ring *ring = &w->ring[w->list[i].ring];

		if (!sl_peaks_is_usual(w->list[i].value, ring->lower, ring->upper))
			add(ring, w->list[i].value, -1);
	}
	for (uint32_t i = 0; i < w->huges; i++) {
		struct sl_peaks_ring *ring = &w->ring[w->huge[i].ring];

		if (sl_peaks_is_usual(w->huge[i].value, ring->lower, ring->upper))
			add(ring, w->huge[i].value, 1);
	}
	for (uint32_t r = 0; r < w->table->rings; r++)
		if (!w->ring[r].settled)
			conclude(w, &w->ring[r]);
}

/* From where on pixels must be on the list: what is not usual, or only what is strong. */
static float needed_high(const struct sl_peaks_work *w, const struct sl_peaks_ring *ring, float x)
{
	if (!ring->settled)
		return w->whole ? ceilf(x) : x;
	return w->whole ? floorf(ring->upper) + 1 : nextafterf(ring->upper, INFINITY);
}

static float needed_low(const struct sl_peaks_work *w, const struct sl_peaks_ring *ring, float x)
{
	return ring->settled ? -INFINITY : w->whole ? floorf(x) : x;
}

static bool is_listed(const struct sl_peaks_work *w)
{
	for (uint32_t r = 0; r < w->table->rings; r++) {
		const struct sl_peaks_ring *ring = &w->ring[r];

		if (ring->high > needed_high(w, ring, ring->upper) ||
		    ring->low < needed_low(w, ring, ring->lower))
			return false;
	}
	return true;
}

/* In deviations: a good way out, but nearer than the limits. */
static float reach_of(const struct sl_peaks_work *w)
{
	float snr = w->settings->snr;

	return snr * nearer > three ? snr * nearer : snr < three ? snr : three;
}

static void make_list(struct sl_peaks_work *w, sl_peaks_pass *scan, const void *image)
{
	for (uint32_t r = 0; r < w->table->rings; r++) {
		struct sl_peaks_ring *ring = &w->ring[r];
		struct sl_peaks_limits near = sl_peaks_limits(ring->mean, ring->sigma, reach_of(w),
							      w->settings->threshold);

		ring->high = needed_high(w, ring, near.upper);
		ring->low = needed_low(w, ring, near.lower);
	}
	sl_peaks_windows(w);
	w->listed = 0;
	w->overflow = false;
	scan(w, image, 0, sl_peaks_chunks(w->table));
}

/* The limits that a sample suggests, at least one count from the mean. */
static void guess_limits(struct sl_peaks_work *w)
{
	for (uint32_t r = 0; r < w->table->rings; r++) {
		struct sl_peaks_ring *ring = &w->ring[r];
		struct sl_peaks_limits limits;
		float sigma;

		collect(w, ring, r, w->table->sample[r]);
		conclude(w, ring);
		sigma = fmaxf(ring->sigma, 1 / reach_of(w));
		limits = sl_peaks_limits(ring->mean, sigma, reach_of(w), w->settings->threshold);
		ring->upper = w->whole ? ceilf(limits.upper) : limits.upper;
		ring->lower = w->whole ? floorf(limits.lower) : limits.lower;
	}
}

/* Bounds from these. A bright peak in the sample spoils the limits of a few rings: so the nearest
 * ones of rings around are taken. Rings that have hardly anything in the sample are small: all of
 * their pixels go on the list. */
static void guess_bounds(struct sl_peaks_work *w)
{
	uint32_t rings = w->table->rings;

	guess_limits(w);
	for (uint32_t r = 0; r < rings; r++) {
		uint32_t first = r < AROUND ? 0 : r - AROUND;
		struct sl_peaks_ring *ring = &w->ring[r];

		ring->high = ring->all < FEW ? -INFINITY : INFINITY;
		ring->low = ring->all < FEW ? INFINITY : -INFINITY;
		for (uint32_t i = first; i <= r + AROUND && i < rings; i++)
			if (w->ring[i].all >= FEW) {
				ring->high = fminf(ring->high, w->ring[i].upper);
				ring->low = fmaxf(ring->low, w->ring[i].lower);
			}
	}
	sl_peaks_windows(w);
}

/* The plain way, which needs no list. */
static void iterate_over_all(struct sl_peaks_work *w, const void *image)
{
	const struct sl_peaks_table *t = w->table;
	float value;

	for (uint32_t r = 0; r < t->rings; r++)
		w->ring[r].count = w->ring[r].sum = w->ring[r].square = 0;
	for (uint64_t i = 0; i < t->pixels; i++) {
		struct sl_peaks_ring *ring = &w->ring[t->ring[i]];

		if (t->ring[i] < t->rings && sl_pixel_read(w->dtype, image, i, &value) &&
		    sl_peaks_is_usual(value, ring->lower, ring->upper))
			add(ring, value, 1);
	}
	for (uint32_t r = 0; r < t->rings; r++)
		if (!w->ring[r].settled)
			conclude(w, &w->ring[r]);
}

static void mark_over_all(struct sl_peaks_work *w, const void *image)
{
	const struct sl_peaks_table *t = w->table;
	float value;

	for (uint64_t i = 0; i < t->pixels; i++)
		if (t->ring[i] < t->rings && sl_pixel_read(w->dtype, image, i, &value) &&
		    sl_peaks_is_strong(value, w->ring[t->ring[i]].upper))
			sl_blobs_mark(&w->blobs, (uint32_t)i);
}

static void mark(struct sl_peaks_work *w, const struct sl_peaks_entry *entry, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (sl_peaks_is_strong(entry[i].value, w->ring[entry[i].ring].upper))
			sl_blobs_mark(&w->blobs, entry[i].at);
}

/* Sums over all pixels, and a list with bounds that a sample of them suggests. */
static void begin(struct sl_peaks_work *w, sl_peaks_pass *sums, sl_peaks_pass *scan,
		  const void *image)
{
	uint64_t chunks = sl_peaks_chunks(w->table), end;

	clear(w);
	reset(w);
	for (uint64_t c = 0; c < chunks; c = end) {
		end = chunks - c < SL_PEAKS_BLOCK ? chunks : c + SL_PEAKS_BLOCK;
		if (sl_peaks_in_sample(c))
			sums(w, image, c, end);
	}
	guess_bounds(w);
	for (uint64_t c = 0; c < chunks; c = end) {
		end = chunks - c < SL_PEAKS_BLOCK ? chunks : c + SL_PEAKS_BLOCK;
		if (!sl_peaks_in_sample(c))
			sums(w, image, c, end);
		if (!w->overflow)
			scan(w, image, c, end);
	}
	for (uint32_t r = 0; r < w->table->rings; r++) {
		struct sl_peaks_ring *ring = &w->ring[r];
		float high = ring->high, low = ring->low;

		*ring = (struct sl_peaks_ring){.lower = -SL_PEAKS_FIRST_LIMIT,
					       .upper = SL_PEAKS_FIRST_LIMIT,
					       .high = high,
					       .low = low};
		collect(w, ring, r, w->table->total[r]);
	}
}

/* The limits of the first iteration leave out huge pixels at most, which are in no sum: it needs no
 * list. */
static void find_limits(struct sl_peaks_work *w, sl_peaks_pass *scan, const void *image)
{
	for (int k = 0; k < SL_PEAKS_ITERATIONS; k++) {
		iterate(w);
		if (w->overflow || !is_listed(w))
			make_list(w, scan, image);
		if (w->overflow)
			return;
	}
}

void sl_peaks_rings(struct sl_peaks_work *w, sl_peaks_pass *sums, sl_peaks_pass *scan,
		    const void *image)
{
	bool over_all;

	begin(w, sums, scan, image);
	if (!w->crowded)
		find_limits(w, scan, image);
	over_all = w->crowded || w->overflow;
	if (over_all) {
		reset(w);
		for (int k = 0; k < SL_PEAKS_ITERATIONS; k++)
			iterate_over_all(w, image);
	}
	/* A ring without a usual pixel has the first limits still. */
	for (uint32_t r = 0; r < w->table->rings; r++)
		if (w->ring[r].upper == SL_PEAKS_FIRST_LIMIT && !w->ring[r].count)
			w->ring[r].upper = INFINITY;
	sl_blobs_clear(&w->blobs);
	if (over_all) {
		mark_over_all(w, image);
		return;
	}
	mark(w, w->list, w->listed);
	mark(w, w->huge, w->huges);
}
