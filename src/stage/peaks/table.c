/* table.c - which ring each pixel belongs to: the distance of its middle from the beam,
 * rounded to whole pixels, halves to even. Where a detector has planes in space, it is the distance
 * on an image square to the beam at distance_m, so that rings are of equal angle all the same. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/peaks/peaks.h"
#include "stage/unfit.h"

enum { MOST_RINGS = 65534 };

/* By the tangent up to 80 degrees; beyond, on a straight line: there is no such image. */
static double distance_in_space(const struct sl_geometry *g, uint32_t module, uint32_t pixel)
{
	const double most = 80 * M_PI / 180;
	double place[3], angle;

	sl_layout_place(g, module, pixel, 0, 0, place);
	angle = atan2(hypot(place[0], place[1]), place[2]);
	return g->distance_m / g->pixel_size_m *
	       (angle < most ? tan(angle) : tan(most) + (angle - most) / pow(cos(most), 2));
}

static double distance(const struct sl_geometry *g, uint64_t i)
{
	uint64_t pixels = sl_geometry_pixels(g);
	double row, column;

	if (g->planes)
		return distance_in_space(g, (uint32_t)(i / pixels), (uint32_t)(i % pixels));
	sl_layout_centre(g, (uint32_t)(i / pixels), (uint32_t)(i % pixels), &row, &column);
	return hypot(row - g->layout.beam_row, column - g->layout.beam_column);
}

/* The first ring that is needed, and how many from there on. 0: there is no pixel to look at. */
static uint32_t range(const struct sl_env *env, const struct sl_geometry *g, bool wide,
		      double r_min, double r_max, double *first)
{
	uint64_t pixels = g->modules * sl_geometry_pixels(g);
	double low = INFINITY, high = -INFINITY;

	for (uint64_t i = 0; i < pixels; i++) {
		double r = distance(g, i);

		if (r < r_min || r > r_max || sl_is_unfit(env, g, wide, i))
			continue;
		low = fmin(low, rint(r));
		high = fmax(high, rint(r));
	}
	*first = low;
	if (!(high >= low))
		return 0;
	return high - low >= MOST_RINGS ? UINT32_MAX : (uint32_t)(high - low) + 1;
}

static int allocate(struct sl_peaks_table *t)
{
	uint64_t chunks = sl_peaks_chunks(t);
	uint64_t rings = chunks * SL_PEAKS_CHUNK * sizeof(*t->ring);
	uint64_t spans = chunks * sizeof(*t->span), totals = 2 * t->rings * sizeof(*t->total);
	int err = sl_region_open(SL_REGION_HOST, rings + spans + totals, &t->memory);

	if (err) {
		sl_error("peaks: no memory for tables of %llu pixels",
			 (unsigned long long)t->pixels);
		return err;
	}
	t->ring = t->memory.base;
	t->span = (struct sl_peaks_span *)((char *)t->ring + rings);
	t->total = (uint32_t *)((char *)t->span + spans);
	t->sample = t->total + t->rings;
	memset(t->total, 0, totals);
	return 0;
}

static void fill(struct sl_peaks_table *t, const struct sl_env *env, const struct sl_geometry *g,
		 bool wide, double r_min, double r_max, double first)
{
	for (uint64_t i = 0; i < sl_peaks_chunks(t) * SL_PEAKS_CHUNK; i++) {
		struct sl_peaks_span *span = &t->span[i / SL_PEAKS_CHUNK];
		double r = i < t->pixels ? distance(g, i) : 0;
		uint16_t ring;

		if (i % SL_PEAKS_CHUNK == 0)
			*span = (struct sl_peaks_span){UINT16_MAX, 0};
		t->ring[i] = (uint16_t)t->rings;
		if (i >= t->pixels || r < r_min || r > r_max || sl_is_unfit(env, g, wide, i))
			continue;
		ring = (uint16_t)(rint(r) - first);
		t->ring[i] = ring;
		span->low = ring < span->low ? ring : span->low;
		span->high = ring > span->high ? ring : span->high;
		t->sample[ring] += sl_peaks_in_sample(i / SL_PEAKS_CHUNK);
		if (++t->total[ring] > t->largest)
			t->largest = t->total[ring];
	}
}

int sl_peaks_table_open(struct sl_peaks_table *t, const struct sl_env *env, bool wide, double r_min,
			double r_max)
{
	struct sl_geometry g = *env->geometry;
	double first;
	char why[160];
	int err;

	sl_layout_resolve(env->geometry, &g.layout);
	if (sl_layout_check(&g, why, sizeof(why))) {
		sl_error("peaks: %s", why);
		return -EINVAL;
	}
	if (!g.planes && (!isfinite(g.layout.beam_row) || !isfinite(g.layout.beam_column))) {
		sl_error("peaks: the detector does not know where the beam is; stage 'spots' needs "
			 "none");
		return -EINVAL;
	}
	r_max = r_max > 0 ? r_max : INFINITY;
	*t = (struct sl_peaks_table){
		.modules = g.modules,
		.rows = g.rows,
		.columns = g.columns,
		.pixels = g.modules * sl_geometry_pixels(&g),
	};
	t->rings = t->pixels > UINT32_MAX ? UINT32_MAX : range(env, &g, wide, r_min, r_max, &first);
	if (t->rings == UINT32_MAX || !t->rings) {
		sl_error(t->rings ? "peaks: the image is too large"
				  : "peaks: no pixel between r_min and r_max that is not masked");
		return -EINVAL;
	}
	err = allocate(t);
	if (err)
		return err;
	fill(t, env, &g, wide, r_min, r_max, first);
	return 0;
}

void sl_peaks_table_close(struct sl_peaks_table *t)
{
	if (t->memory.base)
		sl_region_close(&t->memory);
}
