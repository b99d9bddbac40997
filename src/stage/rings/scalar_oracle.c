/* scalar_oracle.c - rings by plain loops: one event after the other, an early end wherever there
 * is one, lists of hits rather than weights. Built with -O3 and without vectors. Sums are added in
 * the order of the stage's, so that the rings are equal to its rings bit for bit. The tests of the
 * stage compare the two, and `sluice bench trigger` measures them side by side. */
#include "stage/rings/scalar_oracle.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* Plain floats for the mathematics. */
#define VECTOR_WIDTH 1
#define VECTOR_TARGET
#include "stage/rings/vector.h"

static const float per_mm = 1 / 128.f; /* as the stage's, for the same bits */

struct hits {
	uint32_t n;
	float x[SL_RICH_HITS], y[SL_RICH_HITS];
};

struct event {
	const struct sl_rings_settings *set;
	struct sl_rings_limits limits;
	struct hits all;	     /* the first `left` of them belong to no ring */
	uint16_t cell[SL_RICH_HITS]; /* of these */
	uint32_t left;
	struct sl_rings_event *found;
};

/* ---- fits ---- */

static struct sl_rings_circle fit(const struct hits *hits)
{
	struct sl_rings_moments m = {0};
	struct sl_rings_circle c;
	float x = 0, y = 0, per = 1.f / (float)hits->n;

	for (uint32_t h = 0; h < hits->n; h++) {
		x += hits->x[h];
		y += hits->y[h];
	}
	x *= per;
	y *= per;
	for (uint32_t h = 0; h < hits->n; h++) {
		float u = (hits->x[h] - x) * per_mm, v = (hits->y[h] - y) * per_mm;
		float uu = u * u, vv = v * v, z = uu + vv;

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

/* Of the first n hits, those within a window of the circle. */
static void choose_near(const struct hits *from, uint32_t n, struct sl_rings_circle c, float window,
			struct hits *near)
{
	float bound = sl_rings_bound(c, window);

	near->n = 0;
	for (uint32_t h = 0; h < n; h++) {
		float power = sl_rings_power(c, from->x[h], from->y[h]);

		near->x[near->n] = from->x[h];
		near->y[near->n] = from->y[h];
		near->n += power * power < bound;
	}
}

/* Mean square of their distance from the circle. */
static float spread(const struct hits *hits, struct sl_rings_circle c)
{
	float sum = 0;

	for (uint32_t h = 0; h < hits->n; h++) {
		float power = sl_rings_power(c, hits->x[h], hits->y[h]);

		sum += power * power;
	}
	return sum / (4 * c.square * (float)hits->n);
}

static void keep(struct sl_rings_event *e, uint32_t i, struct sl_rings_circle c,
		 const struct hits *hits)
{
	e->ring[i] = (struct sl_rings_ring){.x = c.x,
					    .y = c.y,
					    .square = c.square,
					    .hits = (float)hits->n,
					    .spread = spread(hits, c)};
}

/* ---- one ring that explains the event ---- */

static bool is_single(struct event *e)
{
	static const float windows[] = {9, 2.25f, 1};
	struct sl_rings_circle c = fit(&e->all);
	struct hits near;

	for (uint32_t i = 0; i < 3; i++) {
		choose_near(&e->all, e->all.n, c, windows[i] * e->limits.window, &near);
		c = fit(&near);
	}
	choose_near(&e->all, e->all.n, c, e->limits.window, &near);
	if (near.n < e->set->min_hits || e->all.n - near.n >= e->set->min_own ||
	    !sl_rings_is_within(c, e->limits) || !(spread(&near, c) <= e->set->rms * e->set->rms))
		return false;
	keep(e->found, 0, c, &near);
	e->found->rings = e->found->alone = 1;
	return true;
}

/* ---- the best ring among what is left ---- */

static int32_t angle_key(float x, float y)
{
	float u = x < 0 ? -x : x, v = y < 0 ? -y : y, t = x / (u + v + 1e-3f);

	return (int32_t)((y < 0 ? 3 + t : 1 - t) * 262143.f) << 11;
}

/* Hits in the order of their angle about their centroid. */
static void order(struct event *e)
{
	int32_t key[SL_RICH_HITS];
	float x = 0, y = 0;

	for (uint32_t h = 0; h < e->all.n; h++) {
		x += e->all.x[h];
		y += e->all.y[h];
	}
	x /= (float)e->all.n;
	y /= (float)e->all.n;
	for (uint32_t h = 0; h < e->all.n; h++) {
		int32_t k = angle_key(e->all.x[h] - x, e->all.y[h] - y) | e->cell[h];
		uint32_t at = h;

		for (; at && key[at - 1] > k; at--)
			key[at] = key[at - 1];
		key[at] = k;
	}
	for (uint32_t h = 0; h < e->all.n; h++) {
		e->cell[h] = key[h] & 0x7ff;
		e->all.x[h] = e->set->x[e->cell[h]];
		e->all.y[h] = e->set->y[e->cell[h]];
	}
}

/* Circles that are within the limits: most are not, and need no look at the hits. */
static uint32_t draw_circles(const struct event *e, struct sl_rings_circle *circle)
{
	uint32_t at[SL_RINGS_PLACES], n = 0;

	for (uint32_t p = 0; p < SL_RINGS_PLACES; p++)
		at[p] = p * e->left / SL_RINGS_PLACES;
	for (uint32_t t = 0; t < e->set->triplets; t++) {
		const uint8_t *p = e->set->triplet[t];
		uint32_t i = at[p[0]], j = at[p[1]], k = at[p[2]];

		circle[n] = sl_rings_through(e->all.x[i], e->all.y[i], e->all.x[j], e->all.y[j],
					     e->all.x[k], e->all.y[k]);
		n += (uint32_t)sl_rings_is_within(circle[n], e->limits);
	}
	return n;
}

/* One instruction where a compiler makes a jump that is guessed wrong half of the time. */
static inline float above_zero(float a)
{
#ifdef __x86_64__
	return _mm_cvtss_f32(_mm_max_ss(_mm_set_ss(a), _mm_setzero_ps()));
#else
	return a > 0 ? a : 0;
#endif
}

static inline float credit_of(struct sl_rings_circle c, float bound, float x, float y)
{
	float power = sl_rings_power(c, x, y);

	return above_zero(bound - power * power);
}

/* Four at a time: sums of one wait for each other. */
static struct sl_rings_circle try_triplets(const struct event *e)
{
	struct sl_rings_circle circle[SL_RINGS_TRIPLETS + 4], best = {0};
	uint32_t n = draw_circles(e, circle);
	float most = 0;

	for (uint32_t i = n; i < n + 3; i++)
		circle[i] = best;
	for (uint32_t i = 0; i < n; i += 4) {
		const struct sl_rings_circle *c = &circle[i];
		float bound[4], credit[4] = {0};

		for (uint32_t k = 0; k < 4; k++)
			bound[k] = sl_rings_bound(c[k], e->limits.window);
		for (uint32_t h = 0; h < e->left; h++) {
			float x = e->all.x[h], y = e->all.y[h];

			credit[0] += credit_of(c[0], bound[0], x, y);
			credit[1] += credit_of(c[1], bound[1], x, y);
			credit[2] += credit_of(c[2], bound[2], x, y);
			credit[3] += credit_of(c[3], bound[3], x, y);
		}
		for (uint32_t k = 0; k < 4 && i + k < n; k++)
			if (credit[k] / bound[k] > most) {
				most = credit[k] / bound[k];
				best = c[k];
			}
	}
	return best;
}

/* Hits of the ring go behind those that are left; all stay in order. */
static void take_away(struct event *e, struct sl_rings_circle c)
{
	float bound = sl_rings_bound(c, e->limits.window);
	uint32_t left = 0, taken[SL_RICH_HITS], n = 0;
	struct hits old = e->all;

	for (uint32_t h = 0; h < e->left; h++) {
		float power = sl_rings_power(c, old.x[h], old.y[h]);

		if (power * power < bound) {
			taken[n++] = h;
			continue;
		}
		e->all.x[left] = old.x[h];
		e->all.y[left++] = old.y[h];
	}
	for (uint32_t i = 0; i < n; i++) {
		e->all.x[left + i] = old.x[taken[i]];
		e->all.y[left + i] = old.y[taken[i]];
	}
	e->left = left;
}

static bool search(struct event *e, struct sl_rings_circle *ring)
{
	static const float windows[] = {2.25f, 1.5f, 1};
	struct sl_rings_circle c = try_triplets(e);
	struct hits near;

	for (uint32_t i = 0; i < 3; i++) {
		choose_near(&e->all, e->left, c, windows[i] * e->limits.window, &near);
		c = fit(&near);
	}
	choose_near(&e->all, e->left, c, e->limits.window, &near);
	if (near.n < e->set->min_own || !sl_rings_is_within(c, e->limits))
		return false;
	take_away(e, c);
	*ring = c;
	return true;
}

/* ---- hits that several rings claim ---- */

static void find_nearest(const struct event *e, const struct sl_rings_circle *ring,
			 const bool *live, uint32_t rings, int32_t *nearest)
{
	float scale[SL_RINGS];

	for (uint32_t i = 0; i < rings; i++)
		scale[i] = 0.25f / ring[i].square;
	for (uint32_t h = 0; h < e->all.n; h++) {
		float least = e->limits.window;

		nearest[h] = -1;
		for (uint32_t i = 0; i < rings; i++) {
			float power = sl_rings_power(ring[i], e->all.x[h], e->all.y[h]);
			float d = power * power * scale[i];

			if (live[i] && d < least) {
				least = d;
				nearest[h] = (int32_t)i;
			}
		}
	}
}

static void choose_nearest(const struct event *e, const int32_t *nearest, uint32_t ring,
			   struct hits *own)
{
	own->n = 0;
	for (uint32_t h = 0; h < e->all.n; h++) {
		own->x[own->n] = e->all.x[h];
		own->y[own->n] = e->all.y[h];
		own->n += nearest[h] == (int32_t)ring;
	}
}

static void share(struct event *e, struct sl_rings_circle *ring, uint32_t rings)
{
	bool live[SL_RINGS] = {true, true, true};
	int32_t nearest[SL_RICH_HITS];
	struct hits own;

	for (uint32_t step = 0; step < 3; step++) {
		find_nearest(e, ring, live, rings, nearest);
		for (uint32_t i = 0; i < rings; i++) {
			struct sl_rings_circle c;

			choose_nearest(e, nearest, i, &own);
			c = fit(&own);
			live[i] = live[i] && own.n >= e->set->min_own;
			if (sl_rings_is_within(c, e->limits))
				ring[i] = c;
		}
	}
	find_nearest(e, ring, live, rings, nearest);
	for (uint32_t i = 0; i < rings; i++) {
		choose_nearest(e, nearest, i, &own);
		if (!live[i] || own.n < e->set->min_own)
			continue;
		choose_near(&e->all, e->all.n, ring[i], e->limits.window, &own);
		if (own.n >= e->set->min_hits)
			keep(e->found, e->found->rings++, ring[i], &own);
	}
}

/* ---- an event ---- */

/* Numbers of cells, each once. */
static void unpack(const uint8_t *packed, struct event *e)
{
	uint64_t seen[(SL_RICH_CELLS + 63) / 64] = {0};

	for (uint32_t i = 0; i < SL_RICH_HITS; i++) {
		uint32_t cell = sl_rich_hit(packed, i);

		if (cell == SL_RICH_UNUSED)
			break;
		if (cell >= SL_RICH_CELLS || seen[cell / 64] >> cell % 64 & 1)
			continue;
		seen[cell / 64] |= 1ull << cell % 64;
		e->cell[e->all.n] = (uint16_t)cell;
		e->all.x[e->all.n] = e->set->x[cell];
		e->all.y[e->all.n++] = e->set->y[cell];
	}
}

void sl_scalar_rings(const struct sl_rings_settings *set, const uint8_t *packed,
		     struct sl_rings_event *found)
{
	struct sl_rings_circle ring[SL_RINGS_LOOKED_FOR];
	struct event e;
	uint32_t rings = 0;

	e.set = set;
	e.found = found;
	e.all.n = 0;
	e.limits = (struct sl_rings_limits){.least = set->radius_min * set->radius_min,
					    .most = set->radius_max * set->radius_max,
					    .reach = set->reach * set->reach,
					    .window = set->window * set->window};
	unpack(packed, &e);
	found->hits = (uint8_t)e.all.n;
	found->rings = found->alone = 0;
	if (e.all.n < set->min_hits || is_single(&e))
		return;
	order(&e);
	e.left = e.all.n;
	while (rings < SL_RINGS_LOOKED_FOR && (!rings || e.left >= set->min_own) &&
	       search(&e, &ring[rings]))
		rings++;
	if (!rings)
		return;
	share(&e, ring, rings < SL_RINGS ? rings : SL_RINGS);
	found->rings += rings > SL_RINGS && found->rings == SL_RINGS;
}
