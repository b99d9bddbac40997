/* fits.h - VECTOR_WIDTH events side by side as a group: their hits in, their rings out, and fits
 * of a circle to hits. Part of passes.h, and like it compiled once for each kind of vectors. */
#ifndef SL_STAGE_RINGS_FITS_H
#define SL_STAGE_RINGS_FITS_H

#include "stage/rings/find.h"
#include "stage/rings/vector.h"

#define PASS_FN static inline __attribute__((always_inline)) VECTOR_TARGET

static const float far_away = 1e6f;    /* mm: where hits are that are not */
static const float per_mm = 1 / 128.f; /* makes moments about 1 */

union vector { /* a vector, number by number */
	sl_vector all;
	sl_vector_mask mask;
	float one[VECTOR_WIDTH];
	int32_t whole[VECTOR_WIDTH];
};

struct group {
	uint32_t events, hits; /* hits: of the longest */
	union vector n;
	union vector x[SL_RICH_HITS], y[SL_RICH_HITS];
	union vector member[SL_RICH_HITS]; /* 1 or 0 */
};

struct members {
	sl_vector hits, spread;
};

/* ---- in and out ---- */

/* The first `left` hits of each event, or all of them. */
PASS_FN void load(const struct sl_rings_settings *s, const struct sl_rings_work *work,
		  const uint16_t *queue, uint32_t events, int all, struct group *g)
{
	g->events = events;
	g->hits = 0;
	for (uint32_t l = 0; l < VECTOR_WIDTH; l++) {
		const struct sl_rings_event *e = &work->event[queue[l < events ? l : 0]];
		uint32_t n = all ? e->hits : e->left;

		g->n.one[l] = (float)n;
		g->hits = n > g->hits ? n : g->hits;
	}
	for (uint32_t l = 0; l < VECTOR_WIDTH; l++) {
		const struct sl_rings_event *e = &work->event[queue[l < events ? l : 0]];
		uint32_t n = all ? e->hits : e->left;

		for (uint32_t h = 0; h < n; h++) {
			g->x[h].one[l] = s->x[e->cell[h]];
			g->y[h].one[l] = s->y[e->cell[h]];
		}
		for (uint32_t h = n; h < g->hits; h++)
			g->x[h].one[l] = g->y[h].one[l] = far_away;
	}
}

PASS_FN struct sl_rings_limits limits_of(const struct sl_rings_settings *s)
{
	return (struct sl_rings_limits){.least = s->radius_min * s->radius_min,
					.most = s->radius_max * s->radius_max,
					.reach = s->reach * s->reach,
					.window = s->window * s->window};
}

PASS_FN void keep_ring(struct sl_rings_ring *ring, const union vector *circle,
		       const union vector *members, uint32_t l)
{
	*ring = (struct sl_rings_ring){.x = circle[0].one[l],
				       .y = circle[1].one[l],
				       .square = circle[2].one[l],
				       .hits = members[0].one[l],
				       .spread = members[1].one[l]};
}

/* ---- fits ---- */

/* Those within a window of the circle. */
PASS_FN void mark_near(struct group *g, struct sl_rings_circle c, float window)
{
	sl_vector bound = sl_rings_bound(c, window), one = sl_vector_all(1),
		  none = sl_vector_all(0);

	for (uint32_t h = 0; h < g->hits; h++) {
		sl_vector power = sl_rings_power(c, g->x[h].all, g->y[h].all);

		g->member[h].all = sl_vector_pick(power * power < bound, one, none);
	}
}

PASS_FN void mark_all(struct group *g)
{
	for (uint32_t h = 0; h < g->hits; h++)
		g->member[h].all = sl_vector_pick(g->n.all > sl_vector_all((float)h),
						  sl_vector_all(1), sl_vector_all(0));
}

PASS_FN struct sl_rings_circle fit(const struct group *g)
{
	sl_vector n = sl_vector_all(0), x = n, y = n, per;
	struct sl_rings_moments m = {n, n, n, n, n, n};
	struct sl_rings_circle c;

	for (uint32_t h = 0; h < g->hits; h++) {
		n += g->member[h].all;
		x += g->member[h].all * g->x[h].all;
		y += g->member[h].all * g->y[h].all;
	}
	per = 1.f / n;
	x *= per;
	y *= per;
	for (uint32_t h = 0; h < g->hits; h++) {
		sl_vector u = (g->x[h].all - x) * per_mm * g->member[h].all;
		sl_vector v = (g->y[h].all - y) * per_mm * g->member[h].all;
		sl_vector uu = u * u, vv = v * v, z = uu + vv;

		m.xx += uu;
		m.yy += vv;
		m.xy += u * v;
		m.xz += u * z;
		m.yz += v * z;
		m.zz += z * z;
	}
	m.xx *= per;
	m.yy *= per;
	m.xy *= per;
	m.xz *= per;
	m.yz *= per;
	m.zz *= per;
	c = sl_rings_taubin(m);
	c.x = c.x * (1 / per_mm) + x;
	c.y = c.y * (1 / per_mm) + y;
	c.square = c.square * (1 / per_mm / per_mm);
	return c;
}

PASS_FN sl_vector count(const struct group *g)
{
	sl_vector n = sl_vector_all(0);

	for (uint32_t h = 0; h < g->hits; h++)
		n += g->member[h].all;
	return n;
}

PASS_FN struct members measure(const struct group *g, struct sl_rings_circle c)
{
	sl_vector n = sl_vector_all(0), sum = n;

	for (uint32_t h = 0; h < g->hits; h++) {
		sl_vector power = sl_rings_power(c, g->x[h].all, g->y[h].all);

		n += g->member[h].all;
		/* What is far away is no member, and its power may be no number. */
		sum += sl_vector_pick(g->member[h].all > 0, power * power, sl_vector_all(0));
	}
	return (struct members){n, sum / (4 * c.square * n)};
}

#endif
