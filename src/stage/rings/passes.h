/* passes.h - the passes over events, VECTOR_WIDTH of them side by side. Included by one file for
 * each kind of vectors, which defines VECTOR_WIDTH, VECTOR_TARGET and PASSES, the name of what it
 * gives.
 *
 * Cost: `single` four fits; `search` a circle and its credit over all hits for every triplet, then
 * three fits; `share` three fits for each ring. Work is done for as many hits as the longest event
 * of the group has: others have hits far away in their place, which belong to nothing. */
#ifndef SL_STAGE_RINGS_PASSES_H
#define SL_STAGE_RINGS_PASSES_H

#include <string.h>

#include "stage/rings/fits.h"
#include "stage/rings/share.h"

/* ---- one ring that explains the event ---- */

PASS_FN void single(const struct sl_rings_settings *s, struct sl_rings_work *work,
		    const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	float min_hits = (float)s->min_hits, min_own = (float)s->min_own;
	struct sl_rings_circle c;
	struct members m;
	union vector good, circle[3], members[2];
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

/* Of each pair of the network the larger goes behind. */
PASS_FN void sort(const struct sl_rings_network *network, union vector *key)
{
	for (uint32_t e = 0; e < network->pairs; e++) {
		union vector *low = &key[network->pair[e][0]], *high = &key[network->pair[e][1]];
		sl_vector_mask a = low->mask, b = high->mask, swap = a > b;

		low->mask = sl_vector_choose(swap, b, a);
		high->mask = sl_vector_choose(swap, a, b);
	}
}

/* From 0 to 4 around a circle that is a square; 2^18 steps to the unit, above bits for a cell. */
PASS_FN sl_vector_mask angle_key(sl_vector x, sl_vector y)
{
	sl_vector u = sl_vector_pick(x < 0, -x, x), v = sl_vector_pick(y < 0, -y, y);
	sl_vector t = x / (u + v + 1e-3f), angle = sl_vector_pick(y < 0, 3 + t, 1 - t);

	return sl_vector_whole(angle * 262143.f) << 11;
}

PASS_FN void order(const struct sl_rings_settings *s, struct sl_rings_work *work,
		   const uint16_t *queue, uint32_t events)
{
	sl_vector x = sl_vector_all(0), y = x;
	union vector key[SL_RICH_HITS];
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
		key[h].mask = sl_vector_choose(g.member[h].all > 0, key[h].mask,
					       sl_vector_all_whole(INT32_MAX));
	}
	sort(&s->network[g.hits], key);
	for (uint32_t l = 0; l < events; l++) {
		struct sl_rings_event *e = &work->event[queue[l]];

		for (uint32_t h = 0; h < e->hits; h++)
			e->cell[h] = key[h].whole[l] & 0x7ff;
	}
}

/* ---- the best ring among what is left ---- */

struct places {
	union vector x[SL_RINGS_PLACES], y[SL_RINGS_PLACES];
};

PASS_FN void spread_out(const struct group *g, struct places *places)
{
	for (uint32_t l = 0; l < VECTOR_WIDTH; l++) {
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
	sl_vector credit;
};

PASS_FN void prefer(struct best *best, struct sl_rings_circle c, sl_vector credit,
		    struct sl_rings_limits limits)
{
	sl_vector_mask better = sl_rings_is_within(c, limits) & (credit > best->credit);

	best->credit = sl_vector_pick(better, credit, best->credit);
	best->circle.x = sl_vector_pick(better, c.x, best->circle.x);
	best->circle.y = sl_vector_pick(better, c.y, best->circle.y);
	best->circle.square = sl_vector_pick(better, c.square, best->circle.square);
}

/* Two at a time, which read hits once. */
PASS_FN struct sl_rings_circle try_triplets(const struct sl_rings_settings *s,
					    const struct group *g, const struct places *at,
					    struct sl_rings_limits limits)
{
	sl_vector none = sl_vector_all(0);
	struct best best = {{none, none, none}, none};

	for (uint32_t t = 0; t < s->triplets; t += 2) {
		struct sl_rings_circle a = circle_at(at, s->triplet[t]);
		struct sl_rings_circle b = circle_at(at, s->triplet[t + 1]);
		sl_vector bound_a = sl_rings_bound(a, limits.window), credit_a = none;
		sl_vector bound_b = sl_rings_bound(b, limits.window), credit_b = none;

		for (uint32_t h = 0; h < g->hits; h++) {
			sl_vector x = g->x[h].all, y = g->y[h].all;

			credit_a += sl_rings_credit(a, bound_a, x, y);
			credit_b += sl_rings_credit(b, bound_b, x, y);
		}
		prefer(&best, a, credit_a / bound_a, limits);
		prefer(&best, b, credit_b / bound_b, limits);
	}
	return best.circle;
}

/* Hits of the ring go behind those that are left; all stay in order. Each hit is written to both
 * ends, one of which grows: a branch would be mispredicted for every second hit. */
PASS_FN void take_away(struct sl_rings_event *e, const struct group *g, uint32_t l)
{
	uint16_t taken[SL_RICH_HITS];
	uint32_t n = 0, left = 0;

	for (uint32_t h = 0; h < e->left; h++) {
		uint32_t is_taken = g->member[h].one[l] > 0;

		taken[n] = e->cell[left] = e->cell[h]; /* left <= h: it has been read */
		n += is_taken;
		left += !is_taken;
	}
	memcpy(e->cell + left, taken, n * sizeof(*taken));
	e->left = (uint8_t)left;
}

PASS_FN void search(const struct sl_rings_settings *s, struct sl_rings_work *work,
		    const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	struct sl_rings_circle c;
	struct places places;
	union vector good, circle[3], members[2];
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

/* ---- all groups of a queue ---- */

#define PASS_OVER(name)                                                                         \
	VECTOR_TARGET static void name##_all(const struct sl_rings_settings *s,                 \
					     struct sl_rings_work *work, const uint16_t *queue, \
					     uint32_t n)                                        \
	{                                                                                       \
		for (uint32_t i = 0; i < n; i += VECTOR_WIDTH)                                  \
			name(s, work, queue + i, n - i < VECTOR_WIDTH ? n - i : VECTOR_WIDTH);  \
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
