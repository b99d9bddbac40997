/* share.h - the pass over hits that several rings claim: each goes to the nearest. Part of
 * passes.h, and like it compiled once for each kind of vectors. */
#ifndef SL_STAGE_RINGS_SHARE_H
#define SL_STAGE_RINGS_SHARE_H

#include "stage/rings/fits.h"

struct rings {
	uint32_t most; /* of an event of the group */
	struct sl_rings_circle circle[SL_RINGS];
	union vector live[SL_RINGS]; /* 1 or 0 */
	union vector nearest[SL_RICH_HITS];
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
		union vector x, y, square;

		for (uint32_t l = 0; l < VECTOR_WIDTH; l++) {
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
	sl_vector scale[SL_RINGS];

	for (uint32_t i = 0; i < r->most; i++)
		scale[i] = 0.25f / r->circle[i].square;
	for (uint32_t h = 0; h < g->hits; h++) {
		sl_vector least = sl_vector_all(window), which = sl_vector_all(-1);

		for (uint32_t i = 0; i < r->most; i++) {
			sl_vector power = sl_rings_power(r->circle[i], g->x[h].all, g->y[h].all);
			sl_vector d = power * power * scale[i];
			sl_vector_mask nearer = (r->live[i].all > 0) & (d < least);

			least = sl_vector_pick(nearer, d, least);
			which = sl_vector_pick(nearer, sl_vector_all((float)i), which);
		}
		r->nearest[h].all = which;
	}
}

PASS_FN void mark_nearest(struct group *g, const struct rings *r, uint32_t i)
{
	for (uint32_t h = 0; h < g->hits; h++)
		g->member[h].all = sl_vector_pick(r->nearest[h].all == sl_vector_all((float)i),
						  sl_vector_all(1), sl_vector_all(0));
}

/* Rings anew, each of the hits that are nearest to it; those with too few are none. */
PASS_FN void fit_rings(const struct sl_rings_settings *s, struct sl_rings_limits limits,
		       struct group *g, struct rings *r)
{
	find_nearest(g, limits.window, r);
	for (uint32_t i = 0; i < r->most; i++) {
		struct sl_rings_circle *old = &r->circle[i], c;
		sl_vector_mask good;
		sl_vector n;

		mark_nearest(g, r, i);
		c = fit(g);
		n = count(g);
		r->live[i].all =
			sl_vector_pick(n >= (float)s->min_own, r->live[i].all, sl_vector_all(0));
		good = sl_rings_is_within(c, limits);
		old->x = sl_vector_pick(good, c.x, old->x);
		old->y = sl_vector_pick(good, c.y, old->y);
		old->square = sl_vector_pick(good, c.square, old->square);
	}
}

PASS_FN void share(const struct sl_rings_settings *s, struct sl_rings_work *work,
		   const uint16_t *queue, uint32_t events)
{
	struct sl_rings_limits limits = limits_of(s);
	uint32_t more[VECTOR_WIDTH];
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
		union vector circle[3], members[2], good;
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

#endif
