/* rings.c - rings that the stage `rings` found beside true ones.
 *
 * A found ring is a true one when its centre is within 25 mm of it and its radius within 20 mm: of
 * all such pairs the nearest first, each ring once. A true ring can be found when it has 7 hits.
 * All other found rings are fakes, also second ones of the same. */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "sink/score/score.h"

enum { EVENT, X, Y, RADIUS, HITS };			   /* of the truth */
enum { FOUND_EVENT, FOUND_X, FOUND_Y, FOUND_R, WIDE = 7 }; /* of the result (stage/rings/rings.c) */
enum { FINDABLE_HITS = 7, MOST = 64 };
enum { COUNT_RINGS = 0, COUNT_MORE = 5 }; /* of rings_found: all rings; events with four */
static const double CENTRE_MM = 25, RADIUS_MM = 20;

static double known(const struct sl_score *score, const struct sl_score_event *e, uint32_t i,
		    int column)
{
	return e->known[i * score->columns + score->at[column]];
}

/* How far apart they are, squared, in units of what is allowed; inf: too far. */
static double distance(const struct sl_score *score, const struct sl_score_event *e, uint32_t i,
		       uint32_t k)
{
	const float *found = e->found + (size_t)k * WIDE;
	double centre = hypot((double)found[FOUND_X] - known(score, e, i, X),
			      (double)found[FOUND_Y] - known(score, e, i, Y)) /
			CENTRE_MM;
	double radius = fabs((double)found[FOUND_R] - known(score, e, i, RADIUS)) / RADIUS_MM;

	return centre < 1 && radius < 1 ? centre * centre + radius * radius : INFINITY;
}

/* The nearest pair of those that have no partner; false: there is none. */
static bool next_pair(const struct sl_score *score, const struct sl_score_event *e, uint64_t taken,
		      uint64_t paired, uint32_t *i_of, uint32_t *k_of)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < e->knowns; i++)
		for (uint32_t k = 0; k < e->founds; k++) {
			double d;

			if (paired >> i & 1 || taken >> k & 1)
				continue;
			d = distance(score, e, i, k);
			if (d < least) {
				least = d;
				*i_of = i;
				*k_of = k;
			}
		}
	return least < INFINITY;
}

static void add_found(const struct sl_score *score, const struct sl_score_event *e, uint32_t i,
		      uint32_t k, struct sl_score_class *class)
{
	const float *found = e->found + (size_t)k * WIDE;
	double x = (double)found[FOUND_X] - known(score, e, i, X);
	double y = (double)found[FOUND_Y] - known(score, e, i, Y);
	double r = (double)found[FOUND_R] - known(score, e, i, RADIUS);

	if (known(score, e, i, HITS) < FINDABLE_HITS)
		return;
	class->found++;
	class->radius += r * r;
	class->centre += (x * x + y * y) / 2;
}

static bool matches(const struct sl_score *score, const struct sl_score_event *e, uint32_t i)
{
	const struct sl_rings_wanted *w = &score->wanted.rings;
	double radius = known(score, e, i, RADIUS);

	return radius >= (double)w->radius_min_mm && radius <= (double)w->radius_max_mm &&
	       hypot(known(score, e, i, X) - (double)w->x_mm,
		     known(score, e, i, Y) - (double)w->y_mm) <= (double)w->distance_mm;
}

/* By true rings of so many hits or more. */
static bool is_wanted(const struct sl_score *score, const struct sl_score_event *e, double hits)
{
	const struct sl_rings_wanted *w = &score->wanted.rings;
	uint32_t rings = 0, matched = 0;

	for (uint32_t i = 0; i < e->knowns; i++) {
		if (known(score, e, i, HITS) < hits)
			continue;
		rings++;
		matched += matches(score, e, i);
	}
	rings = rings < 4 ? rings : 4;
	return rings >= w->min_rings && rings <= w->max_rings && matched >= w->min_matches;
}

static int score_event(struct sl_score *score, const struct sl_score_event *event)
{
	struct sl_score_event e = *event;
	struct sl_score_class *class;
	uint64_t taken = 0, paired = 0;
	uint32_t i, k, pairs = 0;

	e.knowns = e.knowns < MOST ? e.knowns : MOST;
	e.founds = e.founds < MOST ? e.founds : MOST;
	if (e.knowns && e.knowns <= SL_SCORE_CLASSES) {
		class = &score->class[e.knowns - 1];
		class->events++;
		class->counted += e.founds == e.knowns;
		for (i = 0; i < e.knowns; i++)
			class->findable += known(score, &e, i, HITS) >= FINDABLE_HITS;
		for (; next_pair(score, &e, taken, paired, &i, &k); pairs++) {
			paired |= UINT64_C(1) << i;
			taken |= UINT64_C(1) << k;
			add_found(score, &e, i, k, class);
		}
		class->fakes += e.founds - pairs;
	}
	if (!is_wanted(score, &e, 0))
		return SL_SCORE_REJECT;
	return is_wanted(score, &e, FINDABLE_HITS) ? SL_SCORE_KEEP_FINDABLE : SL_SCORE_KEEP;
}

static bool decides(const struct sl_score *score)
{
	return true;
}

static uint64_t unlisted(struct sl_frame *frame)
{
	const struct sl_array *rings = sl_frame_result(frame, "rings");
	const struct sl_array *counts = sl_frame_result(frame, "rings_found");
	const uint32_t *count = counts ? counts->host : NULL;

	/* Of an event with four the first three are listed. */
	return count ? count[COUNT_RINGS] - count[COUNT_MORE] - rings->rows : 0;
}

static double rms(double sum, uint64_t n)
{
	return n ? sqrt(sum / (double)n) : 0;
}

static void tell(const struct sl_score *score)
{
	for (int i = 0; i < SL_SCORE_CLASSES; i++) {
		const struct sl_score_class *c = &score->class[i];
		char found[16], counted[16];

		if (c->events)
			sl_info("score: %" PRIu64 " events with %d ring%s: found %s of %" PRIu64
				" with %d hits or more, %.3f fakes an event, the right number "
				"in %s; off by (mm, RMS): radius %.2f, centre %.2f",
				c->events, i + 1, i ? "s" : "",
				sl_score_share(found, c->found, c->findable), c->findable,
				FINDABLE_HITS, (double)c->fakes / (double)c->events,
				sl_score_share(counted, c->counted, c->events),
				rms(c->radius, c->found), rms(c->centre, c->found));
	}
}

static void figures(const struct sl_score *score, sl_sink_figure *figure, void *arg)
{
	static const char *const names[SL_SCORE_CLASSES][5] = {
		{"rings1_events", "rings1_findable", "rings1_found", "rings1_fakes",
		 "rings1_counted"},
		{"rings2_events", "rings2_findable", "rings2_found", "rings2_fakes",
		 "rings2_counted"},
		{"rings3_events", "rings3_findable", "rings3_found", "rings3_fakes",
		 "rings3_counted"},
	};

	for (int i = 0; i < SL_SCORE_CLASSES; i++) {
		const struct sl_score_class *c = &score->class[i];

		figure(arg, names[i][0], c->events, 0);
		figure(arg, names[i][1], c->findable, 0);
		figure(arg, names[i][2], c->found, 0);
		figure(arg, names[i][3], c->fakes, 0);
		figure(arg, names[i][4], c->counted, 0);
	}
}

const struct sl_score_kind sl_score_rings = {
	.result = "rings",
	.result_columns = WIDE,
	.wanted = "rings_wanted",
	.wanted_bytes = sizeof(struct sl_rings_wanted),
	.column = {"event", "x", "y", "radius", "hits"},
	.decides = decides,
	.event = score_event,
	.unlisted = unlisted,
	.tell = tell,
	.figures = figures,
};
