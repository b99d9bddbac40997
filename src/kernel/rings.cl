/* rings.cl - rings of light in events of a RICH; twin of src/stage/rings*.c.
 *
 * Model: 32 threads have an event, a thread for each of its hits. Fits add over hits in the order
 * of the CPU, so that floats are the CPU's to the last bit: a thread for each moment of each ring.
 * Of the search for the best circle each thread has some triplets. What was found is left beside
 * the event; rings_list counts it, and puts it into the table in the order of events.
 *
 * Cost: an event of 20 hits and one ring is about 1500 instructions of 32 threads, one of several
 * some times that; of memory 48 bytes are read, and 4 written and 24 for each ring. */
#include "kernel/batch.h"
#include "kernel/decide.clh"
#include "kernel/dialect.clh"
#include "kernel/rings.h"
#include "kernel/team.clh"

enum {
	SL_KERNEL_RINGS = 8, /* SL_REASON_RINGS */
	HITS = 32,	     /* and as many places, and threads */
	EVENT_BYTES = 48,
	UNUSED = 0xfff,
	CELLS = 1952,
	LOOKED_FOR = SL_KERNEL_RINGS_MOST + 1,
	MOMENTS = 6,
};
#define PER_MM (1 / 128.f) /* makes moments about 1 */

/* A word for each event: what was found. */
enum { RINGS = 7, ALONE = 8, LOOKED_AT = 16, ODD = 8 /* from this bit on */ };

struct team {
	float x[HITS], y[HITS]; /* of hits, the first `left` belong to no ring */
	sl_u32 cell[HITS];
	sl_i32 ring[HITS];	       /* that a hit counts for in a fit; -1: none */
	float part[MOMENTS][HITS + 1]; /* of hits: what is added */
	float sum[SL_KERNEL_RINGS_MOST][MOMENTS];
	float n[SL_KERNEL_RINGS_MOST][2], mean[SL_KERNEL_RINGS_MOST][2];
	float circle[SL_KERNEL_RINGS_MOST][3];
	float found[SL_KERNEL_RINGS_MOST][5]; /* x, y, square, hits, spread */
	sl_u32 word;
};

struct members {
	float hits, spread;
};

/* ---- which frames are looked at ---- */

/* A group has a frame. Before any event of it is judged. */
SL_KERNEL SL_GROUP(256, 4) void rings_look(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_verdict *verdict,
			  sl_u32 items, sl_u32 looks_at_all, SL_GLOBAL sl_u32 *look)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	sl_u32 f = sl_group(0), kept = looks_at_all, i;

	for (i = sl_thread(); i < frame[f].items; i += sl_threads())
		kept |= verdict[f * items + i].keep;
	kept = sl_group_sum(shared, kept != 0);
	if (sl_thread() == 0)
		look[f] = kept && !(frame[f].flags & SL_KERNEL_DARK);
}

/* ---- hits ---- */

/* Of known cells, each once, in their order; how many, and how many there were. */
SL_DEVICE sl_u32 load_hits(SL_LOCAL struct team *s, SL_GLOBAL const sl_u8 *event, SL_GLOBAL const float *x,
			   SL_GLOBAL const float *y, sl_u32 *all)
{
	sl_u32 t = sl_thread(), at = t / 2 * 3 + t % 2, low = event[at], high = event[at + 1], i;
	sl_u32 cell = t % 2 ? low >> 4 | high << 4 : low | (high & 15) << 8;
	sl_u32 ended = cell == UNUSED, again = 0, good;

	s->cell[t] = cell;
	s->x[t] = s->y[t] = 0;
	sl_team_barrier();
	for (i = 0; i < HITS; i++) {
		sl_u32 other = s->cell[i], is_before = i < t;

		ended |= is_before & (other == UNUSED);
		again |= is_before & (other == cell);
	}
	*all = HITS - (sl_u32)sl_popcount(sl_team_ballot(&s->word, (int)ended));
	good = sl_team_ballot(&s->word, !ended && !again && cell < CELLS);
	sl_team_barrier();
	if (good >> t & 1) {
		at = (sl_u32)sl_popcount(good & sl_below(t));
		s->cell[at] = cell;
		s->x[at] = x[cell];
		s->y[at] = y[cell];
	}
	sl_team_barrier();
	return (sl_u32)sl_popcount(good);
}

/* Hit t goes to place `to`, for threads below n. */
SL_DEVICE void rearrange(SL_LOCAL struct team *s, sl_u32 n, sl_u32 to)
{
	sl_u32 t = sl_thread(), cell = s->cell[t];
	float x = s->x[t], y = s->y[t];

	sl_team_barrier();
	if (t < n) {
		s->cell[to] = cell;
		s->x[to] = x;
		s->y[to] = y;
	}
	sl_team_barrier();
}

/* ---- fits ---- */

/* Of the moments of each ring, its circle. */
SL_DEVICE void solve(SL_LOCAL struct team *s)
{
	sl_u32 t = sl_thread(), i = t % SL_KERNEL_RINGS_MOST;
	struct sl_rings_moments m;
	struct sl_rings_circle c;

	m.xx = s->sum[i][0];
	m.yy = s->sum[i][1];
	m.xy = s->sum[i][2];
	m.xz = s->sum[i][3];
	m.yz = s->sum[i][4];
	m.zz = s->sum[i][5];
	c = sl_rings_taubin(m);
	if (t < SL_KERNEL_RINGS_MOST) {
		s->circle[t][0] = c.x * (1 / PER_MM) + s->mean[t][0];
		s->circle[t][1] = c.y * (1 / PER_MM) + s->mean[t][1];
		s->circle[t][2] = c.square * (1 / PER_MM / PER_MM);
	}
}

/* Circles through all hits of each ring at once; ring: of this thread's hit. Threads that have nothing to add do what
 * another does. */
SL_DEVICE void fit(SL_LOCAL struct team *s, sl_u32 hits, sl_i32 ring)
{
	sl_u32 t = sl_thread(), k = t % MOMENTS, i = t / MOMENTS % SL_KERNEL_RINGS_MOST, at, h;
	float n = 0, sum = 0, u, v, uu, vv, z;

	ring = t < hits ? ring : -1;
	at = ring < 0 ? 0 : (sl_u32)ring;
	s->ring[t] = ring;
	sl_team_barrier();
	for (h = 0; h < hits; h++) {
		float value = k % 2 ? s->y[h] : s->x[h];

		n += s->ring[h] == (sl_i32)i ? 1.f : 0.f;
		sum += s->ring[h] == (sl_i32)i ? value : 0.f;
	}
	if (t < SL_KERNEL_RINGS_MOST * MOMENTS && k < 2) {
		s->n[i][k] = n;
		s->mean[i][k] = sum * (1.f / n);
	}
	sl_team_barrier();
	u = (s->x[t] - s->mean[at][0]) * PER_MM;
	v = (s->y[t] - s->mean[at][1]) * PER_MM;
	uu = u * u;
	vv = v * v;
	z = uu + vv;
	s->part[0][t] = uu;
	s->part[1][t] = vv;
	s->part[2][t] = u * v;
	s->part[3][t] = u * z;
	s->part[4][t] = v * z;
	s->part[5][t] = z * z;
	sl_team_barrier();
	sum = 0;
	for (h = 0; h < hits; h++)
		sum += s->ring[h] == (sl_i32)i ? s->part[k][h] : 0.f;
	if (t < SL_KERNEL_RINGS_MOST * MOMENTS)
		s->sum[i][k] = sum * (1.f / n);
	sl_team_barrier();
	solve(s);
	sl_team_barrier();
}

SL_DEVICE struct sl_rings_circle circle_of(SL_LOCAL const struct team *s, sl_u32 i)
{
	struct sl_rings_circle c;

	c.x = s->circle[i][0];
	c.y = s->circle[i][1];
	c.square = s->circle[i][2];
	return c;
}

SL_DEVICE struct sl_rings_circle ring_of(SL_LOCAL const struct team *s, sl_u32 i)
{
	struct sl_rings_circle c;

	c.x = s->found[i][0];
	c.y = s->found[i][1];
	c.square = s->found[i][2];
	return c;
}

/* Is this thread's hit within a window of the circle? */
SL_DEVICE int is_near(SL_LOCAL const struct team *s, sl_u32 hits, struct sl_rings_circle c, float window)
{
	sl_u32 t = sl_thread();
	float power = sl_rings_power(c, s->x[t], s->y[t]);

	return (t < hits) & (power * power < sl_rings_bound(c, window));
}

/* Three times anew through the hits that are near to the circle, which are fewer each time. */
SL_DEVICE struct sl_rings_circle fit_near(SL_LOCAL struct team *s, sl_u32 hits, struct sl_rings_circle c, float wide,
					  float less, float window)
{
	sl_u32 i;

	for (i = 0; i < 3; i++) {
		fit(s, hits, is_near(s, hits, c, i == 0 ? wide : i == 1 ? less : window) - 1);
		c = circle_of(s, 0);
	}
	return c;
}

SL_DEVICE struct members measure(SL_LOCAL struct team *s, sl_u32 hits, sl_u32 member, struct sl_rings_circle c)
{
	sl_u32 t = sl_thread(), h;
	struct members m;
	float power, sum = 0;

	if (t < hits) {
		power = sl_rings_power(c, s->x[t], s->y[t]);
		s->part[0][t] = member >> t & 1 ? power * power : 0.f;
	}
	sl_team_barrier();
	for (h = 0; h < hits; h++)
		sum += s->part[0][h];
	sl_team_barrier();
	m.hits = (float)sl_popcount(member);
	m.spread = sum / (4 * c.square * m.hits);
	return m;
}

SL_DEVICE void keep_ring(SL_LOCAL struct team *s, sl_u32 i, struct sl_rings_circle c, struct members m)
{
	if (sl_thread())
		return;
	s->found[i][0] = c.x;
	s->found[i][1] = c.y;
	s->found[i][2] = c.square;
	s->found[i][3] = m.hits;
	s->found[i][4] = m.spread;
}

/* ---- one ring that explains the event ---- */

SL_DEVICE int find_single(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 hits)
{
	float window = rules.limits.window;
	struct sl_rings_circle c;
	struct members m;
	sl_u32 member;

	fit(s, hits, 0);
	c = circle_of(s, 0);
	c = fit_near(s, hits, c, 9 * window, 2.25f * window, window);
	member = sl_team_ballot(&s->word, is_near(s, hits, c, window));
	m = measure(s, hits, member, c);
	keep_ring(s, 0, c, m);
	return sl_rings_is_within(c, rules.limits) & (m.hits >= (float)rules.min_hits) &
	       ((float)hits - m.hits < (float)rules.min_own) & (m.spread <= rules.rms);
}

/* ---- the best ring among what is left ---- */

/* Hits in the order of their angle about their centroid, from 0 to 4 around a circle that is a
 * square; 2^18 steps to the unit, above bits for a cell. */
SL_DEVICE void sort_hits(SL_LOCAL struct team *s, sl_u32 hits)
{
	sl_u32 t = sl_thread(), rank = 0, h;
	float x = 0, y = 0, u, v, turn;
	sl_i32 key;

	for (h = 0; h < hits; h++) {
		x += s->x[h];
		y += s->y[h];
	}
	x /= (float)hits;
	y /= (float)hits;
	x = t < hits ? s->x[t] - x : 0.f;
	y = t < hits ? s->y[t] - y : 0.f;
	u = x < 0 ? -x : x;
	v = y < 0 ? -y : y;
	turn = x / (u + v + 1e-3f);
	key = (sl_i32)((y < 0 ? 3 + turn : 1 - turn) * 262143.f) << 11;
	key |= t < hits ? (sl_i32)s->cell[t] & 0x7ff : 0;
	s->ring[t] = key;
	sl_team_barrier();
	for (h = 0; h < hits; h++)
		rank += s->ring[h] < key;
	sl_team_barrier();
	rearrange(s, hits, rank);
}

/* Of the circles through three hits the one that most hits are near to, the first of equal ones. */
SL_DEVICE struct sl_rings_circle try_triplets(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 left,
					      SL_GLOBAL const sl_u8 *triplet)
{
	sl_u32 i, h, best = 0xffffffffu, bits, most;
	struct sl_rings_circle circle;
	float credit = 0;

	circle.x = circle.y = circle.square = 0;
	for (i = sl_thread(); i < rules.triplets; i += SL_TEAM) {
		sl_u32 p = triplet[3 * i] * left / HITS, q = triplet[3 * i + 1] * left / HITS;
		sl_u32 r = triplet[3 * i + 2] * left / HITS;
		struct sl_rings_circle c = sl_rings_through(s->x[p], s->y[p], s->x[q], s->y[q], s->x[r], s->y[r]);
		float bound = sl_rings_bound(c, rules.limits.window), sum = 0;

		for (h = 0; h < left; h++)
			sum += sl_rings_credit(c, bound, s->x[h], s->y[h]);
		sum /= bound;
		if (sl_rings_is_within(c, rules.limits) & (sum > credit)) {
			credit = sum;
			circle = c;
			best = i;
		}
	}
	/* Floats above 0 are in the order of their bits. */
	bits = (sl_u32)sl_float_bits(credit);
	most = sl_team_max(&s->word, bits);
	most = sl_team_max(&s->word, bits == most && most ? ~best : 0);
	sl_team_barrier();
	/* There may be none at all: then each has the same, which is no circle. */
	if (~most == best) {
		s->circle[0][0] = circle.x;
		s->circle[0][1] = circle.y;
		s->circle[0][2] = circle.square;
	}
	sl_team_barrier();
	return circle_of(s, 0);
}

/* How many hits are left when one more ring is found; `left`: there is none. Hits of the ring go
 * behind those that are left; all stay in order. */
SL_DEVICE sl_u32 search(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 left, sl_u32 rings,
			SL_GLOBAL const sl_u8 *triplet)
{
	float window = rules.limits.window;
	struct sl_rings_circle c = try_triplets(s, rules, left, triplet);
	sl_u32 t = sl_thread(), member, others, to;
	struct members m;

	c = fit_near(s, left, c, 2.25f * window, 1.5f * window, window);
	member = sl_team_ballot(&s->word, is_near(s, left, c, window));
	m = measure(s, left, member, c);
	if (!(sl_rings_is_within(c, rules.limits) & (m.hits >= (float)rules.min_own)))
		member = 0;
	else if (rings < SL_KERNEL_RINGS_MOST)
		keep_ring(s, rings, c, m);
	others = left - (sl_u32)sl_popcount(member);
	to = member >> t & 1 ? others + (sl_u32)sl_popcount(member & sl_below(t)) :
			       (sl_u32)sl_popcount(~member & sl_below(t));
	rearrange(s, left, to);
	return others;
}

/* ---- hits that several rings claim ---- */

/* The nearest of the rings, when it is within the window; else -1. live: a bit for each that is. */
SL_DEVICE sl_i32 nearest(SL_LOCAL const struct team *s, sl_u32 hits, sl_u32 rings, sl_u32 live, float window)
{
	float least = window, scale, power, d;
	sl_u32 t = sl_thread(), i;
	sl_i32 which = -1;

	for (i = 0; t < hits && i < rings; i++) {
		scale = 0.25f / s->found[i][2];
		power = sl_rings_power(ring_of(s, i), s->x[t], s->y[t]);
		d = power * power * scale;
		if ((live >> i & 1) && d < least) {
			least = d;
			which = (sl_i32)i;
		}
	}
	return which;
}

/* Rings anew, each of the hits that are nearest to it; those with too few are none. Which live. */
SL_DEVICE sl_u32 fit_rings(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 hits, sl_u32 rings, sl_u32 live)
{
	sl_u32 t = sl_thread(), i;

	fit(s, hits, nearest(s, hits, rings, live, rules.limits.window));
	for (i = 0; i < rings; i++)
		live &= s->n[i][0] >= (float)rules.min_own ? ~0u : ~(1u << i);
	if (t < rings && sl_rings_is_within(circle_of(s, t), rules.limits)) {
		s->found[t][0] = s->circle[t][0];
		s->found[t][1] = s->circle[t][1];
		s->found[t][2] = s->circle[t][2];
	}
	sl_team_barrier();
	return live;
}

/* How many rings stay. */
SL_DEVICE sl_u32 share(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 hits, sl_u32 found)
{
	sl_u32 rings = found < SL_KERNEL_RINGS_MOST ? found : SL_KERNEL_RINGS_MOST;
	sl_u32 live = (1u << rings) - 1, kept = 0, member, own, i;
	sl_i32 which;

	sl_team_barrier();
	for (i = 0; i < 3; i++)
		live = fit_rings(s, rules, hits, rings, live);
	which = nearest(s, hits, rings, live, rules.limits.window);
	for (i = 0; i < rings; i++) {
		struct sl_rings_circle c = ring_of(s, i);
		struct members m;

		own = (sl_u32)sl_popcount(sl_team_ballot(&s->word, which == (sl_i32)i));
		member = sl_team_ballot(&s->word, is_near(s, hits, c, rules.limits.window));
		m = measure(s, hits, member, c);
		if ((live >> i & 1) && own >= rules.min_own && m.hits >= (float)rules.min_hits)
			keep_ring(s, kept++, c, m);
		sl_team_barrier();
	}
	return kept + (found > SL_KERNEL_RINGS_MOST && kept == SL_KERNEL_RINGS_MOST);
}

/* ---- an event ---- */

SL_DEVICE sl_u32 find(SL_LOCAL struct team *s, struct sl_kernel_rings rules, sl_u32 hits,
		      SL_GLOBAL const sl_u8 *triplet, int *alone)
{
	sl_u32 left = hits, rings = 0, round, others;

	*alone = 0;
	if (hits >= rules.min_hits)
		*alone = find_single(s, rules, hits);
	if (hits >= rules.min_hits && !*alone) {
		sort_hits(s, hits);
		for (round = 0; round < LOOKED_FOR; round++) {
			if (left >= rules.min_own) {
				others = search(s, rules, left, rings, triplet);
				rings += others < left;
				left = others < left ? others : 0;
			}
		}
		rings = share(s, rules, hits, rings);
	}
	return *alone ? 1 : rings;
}

/* All rings of the event in a form that goes into the table; a bit for each that matches. */
SL_DEVICE sl_u32 store(SL_LOCAL const struct team *s, struct sl_kernel_rings rules, sl_u32 rings, SL_GLOBAL float *to)
{
	sl_u32 matched = 0, i;

	for (i = 0; i < SL_KERNEL_RINGS_MOST && i < rings; i++) {
		float x = s->found[i][0], y = s->found[i][1], radius = sl_sqrt(s->found[i][2]);
		float dx = x - rules.match_x, dy = y - rules.match_y;
		sl_u32 match = radius >= rules.match_least && radius <= rules.match_most &&
			       dx * dx + dy * dy <= rules.match_distance;

		matched += match;
		to[0] = x;
		to[1] = y;
		to[2] = radius;
		to[3] = s->found[i][3];
		to[4] = sl_sqrt(s->found[i][4]);
		to[5] = (float)match;
		to += SL_KERNEL_RINGS_STORED;
	}
	return matched;
}

SL_DEVICE SL_GLOBAL const sl_u8 *event_of(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_view *view,
					  struct sl_kernel_rings rules, sl_u32 f, sl_u32 item)
{
	sl_u32 m = f * rules.modules + item / rules.events;
	sl_u64 at = rules.is_raw ? view[m].at : (sl_u64)m * rules.events * EVENT_BYTES;

	return raw + at + (sl_u64)(item % rules.events) * EVENT_BYTES;
}

/* 32 threads have an event. Group 0: of events of a frame, 1: of frames. */
SL_KERNEL SL_GROUP(32, 32) void rings_find(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_view *view,
			  SL_GLOBAL struct sl_kernel_verdict *verdict, SL_GLOBAL const sl_u32 *look,
			  SL_GLOBAL const float *x, SL_GLOBAL const float *y, SL_GLOBAL const sl_u8 *triplet,
			  struct sl_kernel_rings rules, SL_GLOBAL sl_u32 *word, SL_GLOBAL float *ring)
{
	SL_SHARED struct team s;
	sl_u32 item = sl_group(0), f = sl_group(1), hits, all, rings, matched;
	sl_u32 e = f * rules.modules * rules.events + item;
	int alone = 0;
	int is_there = look[f] && !view[f * rules.modules + item / rules.events].missing;

	hits = load_hits(&s, event_of(raw, view, rules, f, item), x, y, &all);
	rings = find(&s, rules, is_there ? hits : 0, triplet, &alone);
	if (sl_thread() == 0) {
		matched = store(&s, rules, rings,
				ring + (sl_u64)e * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		word[e] = is_there ? rings | (alone ? ALONE : 0) | LOOKED_AT | (all - hits) << ODD : 0;
		/* Events that did not arrive are rejected, too. */
		if (look[f])
			sl_kernel_decide(&verdict[e],
					 is_there && rings >= rules.min_rings && rings <= rules.max_rings &&
						 matched >= rules.min_matches,
					 (float)rings, SL_KERNEL_RINGS);
	}
}

/* ---- the table ---- */

SL_DEVICE sl_u32 rows_of(sl_u32 word)
{
	sl_u32 rings = word & RINGS;

	return rings < SL_KERNEL_RINGS_MOST ? rings : SL_KERNEL_RINGS_MOST;
}

/* All counts of a frame. */
SL_DEVICE void count_events(SL_LOCAL sl_u32 *shared, SL_GLOBAL const sl_u32 *word, sl_u32 items, SL_GLOBAL sl_u32 *found)
{
	sl_u32 n[SL_KERNEL_RINGS_COUNTS] = {0, 0, 0, 0, 0, 0, 0, 0}, i, k;

	for (i = sl_thread(); i < items; i += sl_threads()) {
		sl_u32 w = word[i], looked = w & LOOKED_AT ? 1 : 0, rings = w & RINGS;

		n[0] += rings;
		for (k = 0; k <= LOOKED_FOR; k++)
			n[1 + k] += looked & (rings == k);
		n[6] += w & ALONE ? 1 : 0;
		n[7] += w >> ODD;
	}
	for (k = 0; k < SL_KERNEL_RINGS_COUNTS; k++) {
		sl_u32 sum = sl_group_sum(shared, n[k]);

		if (sl_thread() == 0)
			found[k] = sum;
	}
}

SL_DEVICE void write_rows(SL_GLOBAL float *table, sl_u32 rows, sl_u32 at, sl_u32 n, sl_u32 item,
			  SL_GLOBAL const float *ring)
{
	sl_u32 i, k;

	for (i = 0; i < n && at < rows; i++, at++) {
		SL_GLOBAL float *row = table + (sl_u64)at * SL_KERNEL_RINGS_COLUMNS;

		row[0] = (float)item;
		for (k = 0; k < SL_KERNEL_RINGS_STORED; k++)
			row[1 + k] = *ring++;
	}
}

/* A thread has some events in a row. Group 0: of events of a frame, 1: of frames. Each group adds up what
 * the events before its own have, the last one all counts. */
SL_KERNEL SL_GROUP(256, 4) void rings_list(struct sl_kernel_rings rules, SL_GLOBAL const sl_u32 *word, SL_GLOBAL const float *ring,
			  SL_GLOBAL float *table, SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows, sl_u64 rows_at)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	SL_SHARED sl_u32 base;
	sl_u32 t = sl_thread(), f = sl_group(1), items = rules.modules * rules.events, n = 0, total, i;
	sl_u32 first = sl_group(0) * sl_threads() * SL_KERNEL_RINGS_RUN, at;
	int is_last = sl_group(0) + 1 == sl_groups(0);

	word += (sl_u64)f * items;
	ring += (sl_u64)f * items * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED;
	for (i = t; i < first; i += sl_threads())
		n += rows_of(word[i]);
	n = sl_group_sum(shared, n);
	if (t == 0)
		base = n;
	first += t * SL_KERNEL_RINGS_RUN;
	n = 0;
	for (i = first; i < first + SL_KERNEL_RINGS_RUN && i < items; i++)
		n += rows_of(word[i]);
	at = sl_group_before(shared, n, &total) + base;
	for (i = first; i < first + SL_KERNEL_RINGS_RUN && i < items; i++) {
		n = rows_of(word[i]);
		write_rows(table + (sl_u64)f * rules.rows * SL_KERNEL_RINGS_COLUMNS, rules.rows, at, n, i,
			   ring + (sl_u64)i * SL_KERNEL_RINGS_MOST * SL_KERNEL_RINGS_STORED);
		at += n;
	}
	if (!is_last)
		return;
	count_events(shared, word, items, found + f * SL_KERNEL_RINGS_COUNTS);
	total += base;
	if (t == 0)
		rows[rows_at + f] = total < rules.rows ? total : rules.rows;
}
