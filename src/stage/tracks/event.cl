/* event.cl - candidates of all sectors of an event: duplicates between sectors, the verdict, the tables; GPU side
 * of src/stage/tracks/event.c and of the end of tracks.c.
 *
 * Model: tracks_relate has 32 threads for a sector, and finds which candidates in sectors beside it each of its own
 * would be a duplicate of, if they are kept: a bit for each, of those that the CPU judges before. tracks_judge has a
 * group for an event, and goes on until all are judged: a candidate is kept when all of those are duplicates, and is a
 * duplicate when one of them is kept. tracks_list writes tables, in the order of sectors.
 *
 * Angles of tracks are added in doubles, as the CPU does. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/double.clh"
#include "gpu/dialect/team.clh"
#include "stage/tracks/kernel.h"
#include "stage/tracks/set.clh"

enum {
	SL_KERNEL_TRACKS = 9, /* SL_REASON_TRACKS */
	SECTORS = SL_KERNEL_PHIS * SL_KERNEL_ETAS,
	MOST_SETS = 32, /* words of 1024 candidates */
	SECTOR_STEPS = 4096,
	CIRCLE_STEPS = SECTOR_STEPS * SL_KERNEL_PHIS,
};
#define PI 3.14159265358979323846

/* ---- which are the same ---- */

struct team {
	sl_u32 end[SL_KERNEL_NEIGHBOURS + 1]; /* candidates of sectors beside, one sector after the other */
	sl_u32 beside[SL_KERNEL_NEIGHBOURS];
	sl_u32 like[SL_KERNEL_NEIGHBOURS * MOST_SETS];
	sl_u32 layers, word;
};

/* The q-th sector beside one, or SECTORS. */
SL_DEVICE sl_u32 sector_beside(sl_u32 sector, sl_u32 q, sl_u32 all)
{
	sl_i32 eta = (sl_i32)(sector % SL_KERNEL_ETAS + q % 5) - 2;
	sl_u32 phi = (sector / SL_KERNEL_ETAS + q / 5 + SL_KERNEL_PHIS - 1) % SL_KERNEL_PHIS;
	sl_u32 other = phi * SL_KERNEL_ETAS + (sl_u32)(eta < 0 ? 0 : eta);

	return eta < 0 || eta >= SL_KERNEL_ETAS || other >= all || q == SL_KERNEL_NEIGHBOURS / 2 ? SECTORS : other;
}

/* A stub as a number that is the same in all sectors. */
SL_DEVICE sl_u64 key_of(SL_GLOBAL const sl_u8 *row, sl_u32 i, sl_u32 sector)
{
	SL_GLOBAL const sl_u16 *at = (SL_GLOBAL const sl_u16 *)(row + i * SL_KERNEL_STUB_BYTES);
	sl_u32 low = at[0] | (sl_u32)at[1] << 16, high = at[2];
	sl_u32 phi = (sl_u32)((sl_i32)(high << 16) >> 18) + sector / SL_KERNEL_ETAS * SECTOR_STEPS;

	return low | (sl_u64)(high & 3) << 32 | (sl_u64)(phi % CIRCLE_STEPS) << 34;
}

SL_DEVICE int are_near(struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_track *a,
		       SL_GLOBAL const struct sl_kernel_track *b, sl_u32 q)
{
	return sl_fabs(a->x - b->x) <= rules.x_window && sl_fabs(a->phi - b->phi + rules.turns[q / 5]) <= rules.y_window;
}

/* Does the CPU judge b before a? q: b is in the q-th sector beside. */
SL_DEVICE int is_before(SL_GLOBAL const struct sl_kernel_track *a, SL_GLOBAL const struct sl_kernel_track *b, sl_u32 sector,
			sl_u32 other)
{
	int more = (int)sl_popcount(b->layers) - (int)sl_popcount(a->layers);

	return more > 0 || (!more && other < sector);
}

/* Layers of a that have a stub of b: each thread looks at some of a's. */
SL_DEVICE sl_u32 layers_of_both(SL_GLOBAL const struct sl_kernel_track *a, SL_GLOBAL const sl_u8 *row_a, sl_u32 sector_a,
				SL_GLOBAL const struct sl_kernel_track *b, SL_GLOBAL const sl_u8 *row_b, sl_u32 sector_b)
{
	sl_u64 key[SL_KERNEL_STUB_WORDS];
	sl_u32 t = sl_thread(), same = 0, layers = 0, w, v;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		key[w] = a->set[w] >> t & 1 ? key_of(row_a, w * 32 + t, sector_a) : 0; /* no stub is 0: a bit says valid */
	for (v = 0; v < SL_KERNEL_STUB_WORDS; v++) {
		sl_u32 bits = b->set[v];

		for (; bits; bits &= bits - 1) {
			sl_u64 other = key_of(row_b, v * 32 + sl_first_bit(bits), sector_b);

			for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
				same |= key[w] == other ? 1u << w : 0;
		}
	}
	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		layers |= same >> w & 1 ? 1u << ((sl_u32)key[w] >> 1 & 7) : 0;
	return layers;
}

/* How many candidates the sectors beside have. */
SL_DEVICE void look_around(SL_LOCAL struct team *s, sl_u32 i, struct sl_kernel_tracks rules,
			   SL_GLOBAL const struct sl_kernel_sector *sector)
{
	sl_u32 t = sl_thread(), q, sum = 0;

	if (t < SL_KERNEL_NEIGHBOURS)
		s->beside[t] = sector_beside(i, t, rules.all);
	sl_team_barrier();
	if (t < SL_KERNEL_NEIGHBOURS + 1) {
		for (q = 0; q < t; q++)
			sum += s->beside[q] < SECTORS ? sector[s->beside[q]].candidates : 0;
		s->end[t] = sum;
	}
	sl_team_barrier();
}

/* Group 0: of sectors, 1: of events, 2: of frames. */
SL_KERNEL SL_GROUP(32, 32) void tracks_relate(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_view *view,
			     struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_sector *sector,
			     SL_GLOBAL const struct sl_kernel_track *track, SL_GLOBAL sl_u32 *like)
{
	SL_SHARED struct team s;
	sl_u32 t = sl_thread(), i = sl_group(0), e = sl_group(1), f = sl_group(2), k, a, first;
	sl_u64 event = (sl_u64)(f * rules.events + e) * rules.all;
	SL_GLOBAL const sl_u8 *row = row_of(raw, view, rules, f, e, i);

	sector += event;
	track += event * rules.limit;
	like += (event + i) * rules.limit * SL_KERNEL_NEIGHBOURS * rules.sets;
	look_around(&s, i, rules, sector);
	for (a = 0; a < sector[i].candidates; a++) {
		SL_GLOBAL const struct sl_kernel_track *own = &track[(sl_u64)i * rules.limit + a];

		for (k = t; k < SL_KERNEL_NEIGHBOURS * rules.sets; k += SL_TEAM)
			s.like[k] = 0;
		for (first = 0; first < s.end[SL_KERNEL_NEIGHBOURS]; first += SL_TEAM) {
			sl_u32 q = 0, b = first + t, other = 0, near;
			int is_near = 0;

			if (b < s.end[SL_KERNEL_NEIGHBOURS]) {
				while (b >= s.end[q + 1])
					q++;
				b -= s.end[q];
				other = s.beside[q];
				is_near = is_before(own, &track[(sl_u64)other * rules.limit + b], i, other) &&
					  are_near(rules, own, &track[(sl_u64)other * rules.limit + b], q);
			}
			near = sl_team_ballot(&s.word, is_near);
			for (; near; near &= near - 1) {
				sl_u32 n = first + sl_first_bit(near), layers, at = 0, is_in;

				while (n >= s.end[at + 1])
					at++;
				n -= s.end[at];
				is_in = s.beside[at];
				if (t == 0)
					s.layers = 0;
				sl_team_barrier();
				layers = layers_of_both(own, row, i, &track[(sl_u64)is_in * rules.limit + n],
							row_of(raw, view, rules, f, e, is_in), is_in);
				if (layers)
					sl_or(&s.layers, layers);
				sl_team_barrier();
				if (t == 0 && (sl_u32)sl_popcount(s.layers) >= rules.common)
					s.like[at * rules.sets + n / 32] |= 1u << n % 32;
				sl_team_barrier();
			}
		}
		sl_team_barrier();
		for (k = t; k < SL_KERNEL_NEIGHBOURS * rules.sets; k += SL_TEAM)
			like[(sl_u64)a * SL_KERNEL_NEIGHBOURS * rules.sets + k] = s.like[k];
		sl_team_barrier();
	}
}

/* ---- who is kept ---- */

/* Of each sector: bits of candidates that are kept, and that are judged; as they are, and as they will be. */
enum { KEPT, JUDGED, NOW_KEPT, NOW_JUDGED, STATES };

SL_DEVICE SL_GLOBAL sl_u32 *state_of(SL_GLOBAL sl_u32 *state, sl_u32 sector, sl_u32 kind, sl_u32 sets)
{
	return state + ((sl_u64)sector * STATES + kind) * sets;
}

/* 1: kept, 2: a duplicate, 0: nobody knows yet. Most are like none: so all of these words are asked for at once. */
SL_DEVICE sl_u32 judge(struct sl_kernel_tracks rules, SL_GLOBAL const sl_u32 *like, SL_GLOBAL sl_u32 *state, sl_u32 sector)
{
	sl_u32 waits = 0, kept = 0, bits[SL_KERNEL_NEIGHBOURS], q, w;

	for (w = 0; w < rules.sets; w++) {
		for (q = 0; q < SL_KERNEL_NEIGHBOURS; q++)
			bits[q] = like[q * rules.sets + w];
		for (q = 0; q < SL_KERNEL_NEIGHBOURS; q++)
			if (bits[q]) {
				sl_u32 other = sector_beside(sector, q, rules.all);

				kept |= bits[q] & state_of(state, other, KEPT, rules.sets)[w];
				waits |= bits[q] & ~state_of(state, other, JUDGED, rules.sets)[w];
			}
	}
	return kept ? 2 : waits ? 0 : 1;
}

/* What can be said now of the candidates of a sector; how many wait still. */
SL_DEVICE sl_u32 judge_sector(struct sl_kernel_tracks rules, SL_GLOBAL const sl_u32 *like, SL_GLOBAL sl_u32 *state,
			      sl_u32 sector, sl_u32 candidates)
{
	sl_u32 waits = 0, w, i;

	for (w = 0; w < rules.sets; w++) {
		sl_u32 kept = state_of(state, sector, KEPT, rules.sets)[w];
		sl_u32 judged = state_of(state, sector, JUDGED, rules.sets)[w];

		for (i = w * 32; i < candidates && i < w * 32 + 32; i++) {
			sl_u32 says = 0, bit = 1u << i % 32;

			if (judged & bit)
				continue;
			if (rules.between)
				says = judge(rules,
					     like + ((sl_u64)sector * rules.limit + i) * SL_KERNEL_NEIGHBOURS * rules.sets,
					     state, sector);
			else
				says = 1;
			kept |= says == 1 ? bit : 0;
			judged |= says ? bit : 0;
			waits += !says;
		}
		state_of(state, sector, NOW_KEPT, rules.sets)[w] = kept;
		state_of(state, sector, NOW_JUDGED, rules.sets)[w] = judged;
	}
	return waits;
}

SL_DEVICE void resolve(SL_LOCAL sl_u32 *more, struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_sector *sector,
		       SL_GLOBAL const sl_u32 *like, SL_GLOBAL sl_u32 *state)
{
	sl_u32 t = sl_thread(), i, w, left;

	for (i = t; i < rules.all * STATES * rules.sets; i += sl_threads())
		state[i] = 0;
	if (t == 0)
		*more = 1;
	sl_barrier_all();
	for (left = 1; left;) {
		sl_u32 waits = 0;

		sl_barrier_all();
		if (t == 0)
			*more = 0;
		for (i = t; i < rules.all; i += sl_threads())
			waits += judge_sector(rules, like, state, i, sector[i].candidates);
		sl_barrier_all();
		for (i = t; i < rules.all; i += sl_threads())
			for (w = 0; w < 2 * rules.sets; w++)
				state_of(state, i, KEPT, rules.sets)[w] = state_of(state, i, NOW_KEPT, rules.sets)[w];
		if (waits)
			sl_add(more, waits);
		sl_barrier_all();
		left = *more;
	}
}

/* ---- counts ---- */

/* Of an event: what sectors have, added up. */
enum { SUM_KEPT, SUM_LISTED, SUM_FAST, SUM_CANDIDATES, SUM_CELLS, SUM_DUPLICATES, SUM_MISFITS, SUM_CROWDED, SUM_STRANGE,
       SUM_FULL, SUM_LOOKED_AT, SUMS };

SL_DEVICE void add(SL_LOCAL sl_u32 *sum, sl_u32 n)
{
	if (n)
		sl_add(sum, n);
}

SL_DEVICE sl_u32 stubs_of(SL_GLOBAL const struct sl_kernel_track *track, sl_u32 most)
{
	sl_u32 n = 0, w;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		n += (sl_u32)sl_popcount(track->set[w]);
	return n < most ? n : most;
}

/* The tracks of a sector: how many, how many stubs they list, how many are fast enough. */
SL_DEVICE void count_sector(struct sl_kernel_tracks rules, SL_GLOBAL struct sl_kernel_sector *sector,
			    SL_GLOBAL const struct sl_kernel_track *track, SL_GLOBAL const sl_u32 *kept,
			    SL_LOCAL sl_u32 *sum)
{
	sl_u32 n = 0, listed = 0, fast = 0, i;

	for (i = 0; i < sector->candidates; i++)
		if (kept[i / 32] >> i % 32 & 1) {
			n++;
			listed += stubs_of(&track[i], rules.max_stubs);
			fast += sl_fabs(track[i].x) <= rules.x_fast;
		}
	sector->kept = n;
	sector->listed = listed;
	add(&sum[SUM_KEPT], n);
	add(&sum[SUM_LISTED], listed);
	add(&sum[SUM_FAST], fast);
	add(&sum[SUM_CANDIDATES], sector->candidates);
	add(&sum[SUM_CELLS], sector->cells);
	add(&sum[SUM_DUPLICATES], sector->duplicates);
	add(&sum[SUM_MISFITS], sector->misfits);
	add(&sum[SUM_CROWDED], sector->crowded);
	add(&sum[SUM_STRANGE], sector->strange);
	add(&sum[SUM_FULL], sector->full);
	add(&sum[SUM_LOOKED_AT], sector->looked_at);
}

/* A group has an event. Group 0: of events, 1: of frames. */
SL_KERNEL SL_GROUP(256, 2) void tracks_judge(SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL struct sl_kernel_verdict *verdict,
			    struct sl_kernel_tracks rules, SL_GLOBAL struct sl_kernel_sector *sector,
			    SL_GLOBAL const struct sl_kernel_track *track, SL_GLOBAL const sl_u32 *like,
			    SL_GLOBAL sl_u32 *state, SL_GLOBAL struct sl_kernel_event *event, SL_GLOBAL sl_u32 *found)
{
	SL_SHARED sl_u32 sum[SUMS];
	SL_SHARED sl_u32 more;
	sl_u32 e = sl_group(0), f = sl_group(1), at = f * rules.events + e, i;

	sector += (sl_u64)at * rules.all;
	track += (sl_u64)at * rules.all * rules.limit;
	like += (sl_u64)at * rules.all * rules.limit * SL_KERNEL_NEIGHBOURS * rules.sets;
	state += (sl_u64)at * rules.all * STATES * rules.sets;
	if (sl_thread() < SUMS)
		sum[sl_thread()] = 0;
	resolve(&more, rules, sector, like, state);
	for (i = sl_thread(); i < rules.all; i += sl_threads())
		count_sector(rules, &sector[i], track + (sl_u64)i * rules.limit, state_of(state, i, KEPT, rules.sets), sum);
	sl_barrier();
	if (sl_thread() == 0) {
		event[at].kept = sum[SUM_KEPT];
		event[at].listed = sum[SUM_LISTED];
		found += at * SL_KERNEL_TRACK_COUNTS;
		found[0] = sum[SUM_KEPT];
		found[1] = sum[SUM_CELLS];
		found[2] = sum[SUM_DUPLICATES] + sum[SUM_CANDIDATES] - sum[SUM_KEPT];
		found[3] = sum[SUM_MISFITS];
		found[4] = sum[SUM_CROWDED];
		found[5] = 0; /* tracks_list knows */
		found[6] = sum[SUM_STRANGE];
		found[7] = sum[SUM_FULL];
		if (sum[SUM_LOOKED_AT] && rules.min_tracks && e < frame[f].items)
			sl_kernel_decide(&verdict[at], sum[SUM_FAST] >= rules.min_tracks, (float)sum[SUM_FAST],
					 SL_KERNEL_TRACKS);
	}
}

/* ---- tables ---- */

SL_DEVICE float wrapped(double phi)
{
	return (float)(phi - 2 * PI * floor(phi / (2 * PI) + 0.5));
}

SL_DEVICE sl_u32 write_stubs(SL_GLOBAL const struct sl_kernel_track *track, sl_u32 most, SL_GLOBAL sl_u16 *to)
{
	sl_u32 n = 0, w;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++) {
		sl_u32 bits = track->set[w];

		for (; bits && n < most; bits &= bits - 1)
			to[n++] = (sl_u16)(w * 32 + sl_first_bit(bits));
	}
	return n;
}

SL_DEVICE void write_track(struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_track *track, sl_u32 e,
			   sl_u32 sector, sl_u32 listed, SL_GLOBAL float *row)
{
	double middle = (2. * (double)(sector / SL_KERNEL_ETAS) + 1) * PI / SL_KERNEL_PHIS - PI;
	double turn = (double)(SL_TRACKS_K * SL_TRACKS_R_CM * track->x);
	double phi = (double)track->phi + middle;
	float none = sl_bits_float(0x7fc00000);

	row[0] = (float)e;
	row[1] = (float)sector;
	row[2] = track->x;
	row[3] = wrapped(phi + turn + turn * turn * turn / 6);
	row[4] = wrapped(phi);
	row[5] = (float)sl_popcount(track->layers);
	row[6] = (float)track->stubs;
	row[7] = (float)listed;
	row[8] = (float)track->column;
	row[9] = (float)track->row;
	row[10] = rules.fit ? track->z0 : none;
	row[11] = rules.fit ? track->cot : none;
	row[12] = rules.fit ? track->chi2 : none;
}

/* The tracks of a sector as far as there is room; how many stubs were listed. */
SL_DEVICE sl_u32 write_sector(struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_track *track, sl_u32 candidates,
			      SL_GLOBAL const sl_u32 *kept, sl_u32 e, sl_u32 sector, sl_u32 at, SL_GLOBAL float *table,
			      SL_GLOBAL sl_u16 *stubs)
{
	sl_u32 n = 0, i;

	for (i = 0; i < candidates && at < rules.max_tracks; i++)
		if (kept[i / 32] >> i % 32 & 1) {
			sl_u32 listed = write_stubs(&track[i], rules.max_stubs, stubs + n);

			write_track(rules, &track[i], e, sector, listed, table + (sl_u64)at++ * SL_KERNEL_TRACK_COLUMNS);
			n += listed;
		}
	return n;
}

/* A group has an event. Group 0: of events, 1: of frames. */
SL_KERNEL SL_GROUP(256, 4) void tracks_list(struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_sector *sector,
			   SL_GLOBAL const struct sl_kernel_track *track, SL_GLOBAL sl_u32 *state,
			   SL_GLOBAL const struct sl_kernel_event *event, SL_GLOBAL float *table, SL_GLOBAL sl_u16 *stubs,
			   SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows, sl_u64 rows_at, sl_u64 stubs_at)
{
	SL_SHARED sl_u32 shared[SL_GROUP_MOST];
	sl_u32 e = sl_group(0), f = sl_group(1), at = f * rules.events + e, t = sl_thread(), i;
	sl_u32 row = 0, stub = 0, listed = 0, first, total, kept = event[at].kept, base, base_stub;

	for (i = 0; i < e; i++) {
		row += event[f * rules.events + i].kept;
		stub += event[f * rules.events + i].listed;
	}
	base = row;
	base_stub = stub;
	sector += (sl_u64)at * rules.all;
	track += (sl_u64)at * rules.all * rules.limit;
	state += (sl_u64)at * rules.all * STATES * rules.sets;
	table += (sl_u64)f * rules.max_tracks * SL_KERNEL_TRACK_COLUMNS;
	stubs += (sl_u64)f * rules.max_tracks * rules.max_stubs;
	for (first = 0; first < rules.all; first += sl_threads()) {
		sl_u32 own = 0, own_stubs = 0, before, before_stubs;

		i = first + t;
		if (i < rules.all) {
			own = sector[i].kept;
			own_stubs = sector[i].listed;
		}
		before = row + sl_group_before(shared, own, &total);
		row += total;
		before_stubs = stub + sl_group_before(shared, own_stubs, &total);
		stub += total;
		if (own)
			listed += write_sector(rules, track + (sl_u64)i * rules.limit, sector[i].candidates,
					       state_of(state, i, KEPT, rules.sets), e, i, before, table,
					       stubs + before_stubs);
	}
	listed = sl_group_sum(shared, listed);
	if (t == 0) {
		sl_u32 room = base < rules.max_tracks ? rules.max_tracks - base : 0, rest = kept < room ? kept : room;

		found[at * SL_KERNEL_TRACK_COUNTS + 5] = kept - rest;
		/* The last event of a frame that has room says how much there is in all. */
		if (room && (kept >= room || e + 1 == rules.events)) {
			rows[rows_at + f] = base + rest;
			rows[stubs_at + f] = base_stub + listed;
		}
	}
}
