/* passes.h - the passes over events, LANES of them side by side. Included by one file for
 * each kind of vectors, which defines LANES, LANES_TARGET and PASSES, the name of what it gives.
 *
 * Cost: `single` four fits; `search` a circle and its credit over all hits for every triplet, then
 * three fits; `share` three fits for each ring. Work is done for as many hits as the longest event
 * of the group has: others have hits far away in their place, which belong to nothing. */
#ifndef SL_STAGE_RINGS_PASSES_H
#define SL_STAGE_RINGS_PASSES_H

#include <string.h>

#include "stage/rings/find.h"
#include "stage/rings/vector.h"

#define PASS_FN static inline __attribute__((always_inline)) LANES_TARGET

static const float far_away = 1e6f;    /* mm: where hits are that are not */
static const float per_mm = 1 / 128.f; /* makes moments about 1 */

union lanes { /* a vector, number by number */
	sl_lanes all;
	sl_lanes_mask mask;
	float one[LANES];
	int32_t whole[LANES];
};

struct group {
	uint32_t events, hits; /* hits: of the longest */
	union lanes n;
	union lanes x[SL_RICH_HITS], y[SL_RICH_HITS];
	union lanes member[SL_RICH_HITS]; /* 1 or 0 */
};

struct members {
	sl_lanes hits, spread;
};

/* ---- in and out ---- */

/* The first `left` hits of each event, or all of them. */
PASS_FN void load(const struct sl_rings_settings *s, const struct sl_rings_work *work,
		  const uint16_t *queue, uint32_t events, int all, struct group *g)
{
	g->events = events;
	g->hits = 0;
	for (uint32_t l = 0; l < LANES; l++) {
		const struct sl_rings_event *e = &work->event[queue[l < events ? l : 0]];
		uint32_t n = all ? e->hits : e->left;

		g->n.one[l] = (float)n;
		g->hits = n > g->hits ? n : g->hits;
	}
	for (uint32_t l = 0; l < LANES; l++) {
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

PASS_FN void keep_ring(struct sl_rings_ring *ring, const union lanes *circle,
		       const union lanes *members, uint32_t l)
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
	sl_lanes bound = sl_rings_bound(c, window), one = sl_lanes_all(1), none = sl_lanes_all(0);

	for (uint32_t h = 0; h < g->hits; h++) {
		sl_lanes power = sl_rings_power(c, g->x[h].all, g->y[h].all);

		g->member[h].all = sl_lanes_pick(power * power < bound, one, none);
	}
}

PASS_FN void mark_all(struct group *g)
{
	for (uint32_t h = 0; h < g->hits; h++)
		g->member[h].all = sl_lanes_pick(g->n.all > sl_lanes_all((float)h), sl_lanes_all(1),
						 sl_lanes_all(0));
}

PASS_FN struct sl_rings_circle fit(const struct group *g)
{
	sl_lanes n = sl_lanes_all(0), x = n, y = n, per;
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
		sl_lanes u = (g->x[h].all - x) * per_mm * g->member[h].all;
		sl_lanes v = (g->y[h].all - y) * per_mm * g->member[h].all;
		sl_lanes uu = u * u, vv = v * v, z = uu + vv;

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

PASS_FN sl_lanes count(const struct group *g)
{
	sl_lanes n = sl_lanes_all(0);

	for (uint32_t h = 0; h < g->hits; h++)
		n += g->member[h].all;
	return n;
}

PASS_FN struct members measure(const struct group *g, struct sl_rings_circle c)
{
	sl_lanes n = sl_lanes_all(0), sum = n;

	for (uint32_t h = 0; h < g->hits; h++) {
		sl_lanes power = sl_rings_power(c, g->x[h].all, g->y[h].all);

		n += g->member[h].all;
		/* What is far away is no member, and its power may be no number. */
		sum += sl_lanes_pick(g->member[h].all > 0, power * power, sl_lanes_all(0));
	}
	return (struct members){n, sum / (4 * c.square * n)};
}

/* ---- one ring that explains the event ---- */

PASS_FN void single(const struct sl_rings_settings *s, struct sl_rings_work *work,
		    const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	float min_hits = (float)s->min_hits, min_own = (float)s->min_own;
	struct sl_rings_circle c;
	struct members m;
	union lanes good, circle[3], members[2];
	struct group g;

	load(s, work, queue, events, 1, &g);
	mark_all(&g);
	c = fit(&g);
	mark_near(&g, c, 9 * limits.window);
	c = fit(&g);
	mark_near(&g, c, 2.25f * limits.window);
	c = fit(&g);
	mark_near(&g, c, limits.window);
	c = fit(&g);
	mark_near(&g, c, limits.window);
	m = measure(&g, c);
	good.mask = sl_rings_is_within(c, limits) & (m.hits >= min_hits) &
		    (g.n.all - m.hits < min_own) & (m.spread <= s->rms * s->rms);
	circle[0].all = c.x;
	circle[1].all = c.y;
	circle[2].all = c.square;
	members[0].all = m.hits;
	members[1].all = m.spread;
	for (uint32_t l = 0; l < events; l++) {
		struct sl_rings_event *e = &work->event[queue[l]];

		if (!good.whole[l])
			continue;
		keep_ring(&e->ring[0], circle, members, l);
		e->rings = e->alone = 1;
		e->left = 0;
	}
}

/* ---- hits in the order of their angle about their centroid ---- */

/* Batcher's network for 32: of each pair the larger goes behind. What is behind the last hit is
 * large already and stays there. */
PASS_FN void sort(union lanes *key, uint32_t hits)
{
	for (uint32_t p = 1; p < SL_RICH_HITS; p *= 2)
		for (uint32_t k = p; k >= 1; k /= 2)
			for (uint32_t j = k % p; j + k < SL_RICH_HITS; j += 2 * k)
				for (uint32_t i = j; i < j + k && i + k < hits; i++) {
					sl_lanes_mask a = key[i].mask, b = key[i + k].mask, swap;

					if (i / (2 * p) != (i + k) / (2 * p))
						continue;
					swap = a > b;
					key[i].mask = sl_lanes_choose(swap, b, a);
					key[i + k].mask = sl_lanes_choose(swap, a, b);
				}
}

/* From 0 to 4 around a circle that is a square; 2^18 steps to the unit, above bits for a cell. */
PASS_FN sl_lanes_mask angle_key(sl_lanes x, sl_lanes y)
{
	sl_lanes u = sl_lanes_pick(x < 0, -x, x), v = sl_lanes_pick(y < 0, -y, y);
	sl_lanes t = x / (u + v + 1e-3f), angle = sl_lanes_pick(y < 0, 3 + t, 1 - t);

	return sl_lanes_whole(angle * 262143.f) << 11;
}

PASS_FN void order(const struct sl_rings_settings *s, struct sl_rings_work *work,
		   const uint16_t *queue, uint32_t events)
{
	sl_lanes x = sl_lanes_all(0), y = x;
	union lanes key[SL_RICH_HITS];
	struct group g;

	load(s, work, queue, events, 1, &g);
	mark_all(&g);
	for (uint32_t h = 0; h < g.hits; h++) {
		x += g.member[h].all * g.x[h].all;
		y += g.member[h].all * g.y[h].all;
	}
	x /= g.n.all;
	y /= g.n.all;
	for (uint32_t h = 0; h < g.hits; h++) {
		key[h].mask = angle_key(g.x[h].all - x, g.y[h].all - y);
		for (uint32_t l = 0; l < events; l++)
			key[h].whole[l] |= work->event[queue[l]].cell[h] & 0x7ff;
		key[h].mask = sl_lanes_choose(g.member[h].all > 0, key[h].mask,
					      sl_lanes_all_whole(INT32_MAX));
	}
	sort(key, g.hits);
	for (uint32_t l = 0; l < events; l++) {
		struct sl_rings_event *e = &work->event[queue[l]];

		for (uint32_t h = 0; h < e->hits; h++)
			e->cell[h] = key[h].whole[l] & 0x7ff;
	}
}

/* ---- the best ring among what is left ---- */

struct places {
	union lanes x[SL_RINGS_PLACES], y[SL_RINGS_PLACES];
};

PASS_FN void spread_out(const struct group *g, struct places *places)
{
	for (uint32_t l = 0; l < LANES; l++) {
		uint32_t n = (uint32_t)g->n.one[l];

		for (uint32_t p = 0; p < SL_RINGS_PLACES; p++) {
			uint32_t h = p * n / SL_RINGS_PLACES;

			places->x[p].one[l] = g->x[h].one[l];
			places->y[p].one[l] = g->y[h].one[l];
		}
	}
}

PASS_FN struct sl_rings_circle circle_at(const struct places *at, const uint8_t *p)
{
	return sl_rings_through(at->x[p[0]].all, at->y[p[0]].all, at->x[p[1]].all, at->y[p[1]].all,
				at->x[p[2]].all, at->y[p[2]].all);
}

struct best {
	struct sl_rings_circle circle;
	sl_lanes credit;
};

PASS_FN void prefer(struct best *best, struct sl_rings_circle c, sl_lanes credit,
		    struct sl_rings_limits limits)
{
	sl_lanes_mask better = sl_rings_is_within(c, limits) & (credit > best->credit);

	best->credit = sl_lanes_pick(better, credit, best->credit);
	best->circle.x = sl_lanes_pick(better, c.x, best->circle.x);
	best->circle.y = sl_lanes_pick(better, c.y, best->circle.y);
	best->circle.square = sl_lanes_pick(better, c.square, best->circle.square);
}

/* Two at a time, which read hits once. */
PASS_FN struct sl_rings_circle try_triplets(const struct sl_rings_settings *s,
					    const struct group *g, const struct places *at,
					    struct sl_rings_limits limits)
{
	sl_lanes none = sl_lanes_all(0);
	struct best best = {{none, none, none}, none};

	for (uint32_t t = 0; t < s->triplets; t += 2) {
		struct sl_rings_circle a = circle_at(at, s->triplet[t]);
		struct sl_rings_circle b = circle_at(at, s->triplet[t + 1]);
		sl_lanes bound_a = sl_rings_bound(a, limits.window), credit_a = none;
		sl_lanes bound_b = sl_rings_bound(b, limits.window), credit_b = none;

		for (uint32_t h = 0; h < g->hits; h++) {
			sl_lanes x = g->x[h].all, y = g->y[h].all;

			credit_a += sl_rings_credit(a, bound_a, x, y);
			credit_b += sl_rings_credit(b, bound_b, x, y);
		}
		prefer(&best, a, credit_a / bound_a, limits);
		prefer(&best, b, credit_b / bound_b, limits);
	}
	return best.circle;
}

/* Hits of the ring go behind those that are left; all stay in order. */
PASS_FN void take_away(struct sl_rings_event *e, const struct group *g, uint32_t l)
{
	uint16_t taken[SL_RICH_HITS];
	uint32_t n = 0, left = 0;

	for (uint32_t h = 0; h < e->left; h++)
		if (g->member[h].one[l] > 0)
			taken[n++] = e->cell[h];
		else
			e->cell[left++] = e->cell[h];
	memcpy(e->cell + left, taken, n * sizeof(*taken));
	e->left = (uint8_t)left;
}

PASS_FN void search(const struct sl_rings_settings *s, struct sl_rings_work *work,
		    const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	struct sl_rings_circle c;
	struct places places;
	union lanes good, circle[3], members[2];
	struct members m;
	struct group g;

	load(s, work, queue, events, 0, &g);
	spread_out(&g, &places);
	c = try_triplets(s, &g, &places, limits);
	mark_near(&g, c, 2.25f * limits.window);
	c = fit(&g);
	mark_near(&g, c, 1.5f * limits.window);
	c = fit(&g);
	mark_near(&g, c, limits.window);
	c = fit(&g);
	mark_near(&g, c, limits.window);
	m = measure(&g, c);
	good.mask = sl_rings_is_within(c, limits) & (m.hits >= (float)s->min_own);
	circle[0].all = c.x;
	circle[1].all = c.y;
	circle[2].all = c.square;
	members[0].all = m.hits;
	members[1].all = m.spread;
	for (uint32_t l = 0; l < events; l++) {
		struct sl_rings_event *e = &work->event[queue[l]];

		if (!good.whole[l]) {
			e->left = 0; /* there is nothing more */
			continue;
		}
		if (e->rings < SL_RINGS)
			keep_ring(&e->ring[e->rings], circle, members, l);
		e->rings++;
		take_away(e, &g, l);
	}
}

/* ---- hits that several rings claim ---- */

struct rings {
	uint32_t most; /* of an event of the group */
	struct sl_rings_circle circle[SL_RINGS];
	union lanes live[SL_RINGS]; /* 1 or 0 */
	union lanes nearest[SL_RICH_HITS];
};

PASS_FN void load_rings(const struct sl_rings_work *work, const uint16_t *queue, uint32_t events,
			struct rings *r)
{
	r->most = 0;
	for (uint32_t l = 0; l < events; l++)
		if (work->event[queue[l]].rings > r->most)
			r->most = work->event[queue[l]].rings;
	r->most = r->most < SL_RINGS ? r->most : SL_RINGS;
	for (uint32_t i = 0; i < r->most; i++) {
		union lanes x, y, square;

		for (uint32_t l = 0; l < LANES; l++) {
			const struct sl_rings_event *e = &work->event[queue[l < events ? l : 0]];
			int is_there = i < e->rings;

			x.one[l] = is_there ? e->ring[i].x : 0;
			y.one[l] = is_there ? e->ring[i].y : 0;
			square.one[l] = is_there ? e->ring[i].square : 1;
			r->live[i].one[l] = is_there ? 1 : 0;
		}
		r->circle[i] = (struct sl_rings_circle){x.all, y.all, square.all};
	}
}

/* The nearest ring of each hit, when it is within the window; otherwise -1. */
PASS_FN void find_nearest(const struct group *g, float window, struct rings *r)
{
	sl_lanes scale[SL_RINGS];

	for (uint32_t i = 0; i < r->most; i++)
		scale[i] = 0.25f / r->circle[i].square;
	for (uint32_t h = 0; h < g->hits; h++) {
		sl_lanes least = sl_lanes_all(window), which = sl_lanes_all(-1);

		for (uint32_t i = 0; i < r->most; i++) {
			sl_lanes power = sl_rings_power(r->circle[i], g->x[h].all, g->y[h].all);
			sl_lanes d = power * power * scale[i];
			sl_lanes_mask nearer = (r->live[i].all > 0) & (d < least);

			least = sl_lanes_pick(nearer, d, least);
			which = sl_lanes_pick(nearer, sl_lanes_all((float)i), which);
		}
		r->nearest[h].all = which;
	}
}

PASS_FN void mark_nearest(struct group *g, const struct rings *r, uint32_t i)
{
	for (uint32_t h = 0; h < g->hits; h++)
		g->member[h].all = sl_lanes_pick(r->nearest[h].all == sl_lanes_all((float)i),
						 sl_lanes_all(1), sl_lanes_all(0));
}

/* Rings anew, each of the hits that are nearest to it; those with too few are none. */
PASS_FN void fit_rings(const struct sl_rings_settings *s, struct sl_rings_limits limits,
		       struct group *g, struct rings *r)
{
	find_nearest(g, limits.window, r);
	for (uint32_t i = 0; i < r->most; i++) {
		struct sl_rings_circle *old = &r->circle[i], c;
		sl_lanes_mask good;
		sl_lanes n;

		mark_nearest(g, r, i);
		c = fit(g);
		n = count(g);
		r->live[i].all =
			sl_lanes_pick(n >= (float)s->min_own, r->live[i].all, sl_lanes_all(0));
		good = sl_rings_is_within(c, limits);
		old->x = sl_lanes_pick(good, c.x, old->x);
		old->y = sl_lanes_pick(good, c.y, old->y);
		old->square = sl_lanes_pick(good, c.square, old->square);
	}
}

PASS_FN void share(const struct sl_rings_settings *s, struct sl_rings_work *work,
		   const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	uint32_t more[LANES];
	struct group g;
	struct rings r;

	load(s, work, queue, events, 1, &g);
	load_rings(work, queue, events, &r);
	for (int i = 0; i < 3; i++)
		fit_rings(s, limits, &g, &r);
	find_nearest(&g, limits.window, &r);
	for (uint32_t l = 0; l < events; l++) {
		struct sl_rings_event *e = &work->event[queue[l]];

		more[l] = e->rings > SL_RINGS;
		e->rings = 0;
	}
	for (uint32_t i = 0; i < r.most; i++) {
		union lanes circle[3], members[2], good;
		struct members m;

		mark_nearest(&g, &r, i);
		good.mask = (r.live[i].all > 0) & (count(&g) >= (float)s->min_own);
		mark_near(&g, r.circle[i], limits.window);
		m = measure(&g, r.circle[i]);
		good.mask &= m.hits >= (float)s->min_hits;
		circle[0].all = r.circle[i].x;
		circle[1].all = r.circle[i].y;
		circle[2].all = r.circle[i].square;
		members[0].all = m.hits;
		members[1].all = m.spread;
		for (uint32_t l = 0; l < events; l++) {
			struct sl_rings_event *e = &work->event[queue[l]];

			if (good.whole[l])
				keep_ring(&e->ring[e->rings++], circle, members, l);
		}
	}
	for (uint32_t l = 0; l < events; l++)
		work->event[queue[l]].rings += more[l] && work->event[queue[l]].rings == SL_RINGS;
}

/* ---- all groups of a queue ---- */

#define PASS_OVER(name)                                                                        \
	LANES_TARGET static void name##_all(const struct sl_rings_settings *s,                 \
					    struct sl_rings_work *work, const uint16_t *queue, \
					    uint32_t n)                                        \
	{                                                                                      \
		for (uint32_t i = 0; i < n; i += LANES)                                        \
			name(s, work, queue + i, n - i < LANES ? n - i : LANES);               \
	}

PASS_OVER(single)
PASS_OVER(order)
PASS_OVER(search)
PASS_OVER(share)

const struct sl_rings_passes PASSES = {
	.single = single_all,
	.order = order_all,
	.search = search_all,
	.share = share_all,
};

#endif
