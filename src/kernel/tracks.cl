/* tracks.cl - candidates of sectors of the tracker, a group of 160 threads for each; twin of src/stage/tracks_map.c,
 * tracks_sector.c and tracks_fit.c.
 *
 * Model: thread s has stub s. It puts it into the map, which is bits in the memory of the group: a word for each
 * layer, column and 32 rows. Cells with enough layers are listed in the order in which the CPU looks at them, and
 * worked on 32 at a time: which stubs each has, which it would be a duplicate of among these and among candidates that
 * there are. What depends on the order is then a loop over bits. With a fit, whether a cell is a duplicate depends
 * on what helices leave of those before it: so those go first that are a duplicate of none that waits.
 *
 * Cost: 960 bytes are read of a sector, 56 written for each candidate. */
#include "kernel/batch.h"
#include "kernel/dialect.clh"
#include "kernel/team.clh"
#include "kernel/tracks.h"
#include "kernel/tracks_fit.clh"
#include "kernel/tracks_set.clh"

enum { MAP_WORDS = 2, CELLS = SL_KERNEL_TRACK_CELLS * SL_KERNEL_TRACK_CELLS };

struct group {
	sl_u32 map[MAP_WORDS][LAYERS][SL_KERNEL_TRACK_CELLS];
	sl_u32 of_layer[LAYERS][SL_KERNEL_STUB_WORDS];
	sl_u32 scan[SL_KERNEL_STUBS];
	sl_u16 list[CELLS];		       /* column << 8 | row */
	sl_u32 set[CHUNK][SL_KERNEL_STUB_WORDS]; /* of the cells that are worked on */
	sl_u32 like[CHUNK];		       /* cells before it that it shares too much with */
	sl_u32 taken[CHUNK];		       /* the same of what fits leave of them */
	sl_u32 old;			       /* a bit for each that is like a candidate that there is */
	sl_u32 stubs, kept;
};

/* What a thread knows of its stub. */
struct mine {
	struct stub stub;
	sl_u32 is_used; /* it is there, and has a layer */
	sl_u32 first, after;
	sl_i32 turned, reach;
};

struct rows {
	sl_i32 low, high;
};

/* ---- the map ---- */

/* The rows that the stub is in at a column. */
SL_DEVICE struct rows rows_at(struct mine m, struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan,
			      sl_u32 c)
{
	sl_i32 line = sl_tracks_line(m.turned, (sl_i32)m.stub.r, plan->slope[c]), most = (sl_i32)rules.rows - 1;
	sl_i32 middle = line + plan->offset[c];
	struct rows rows;

	if (rules.cells == SL_TRACKS_ONE_HEXAGON) {
		sl_i32 side = line + plan->side[c];

		rows.low = rows.high = sl_tracks_one_hexagon(middle, side - m.reach, side + m.reach);
	} else {
		rows.low = sl_tracks_row(middle - m.reach) + (rules.cells == SL_TRACKS_HEXAGONS);
		rows.high = sl_tracks_row(middle + m.reach);
	}
	rows.high = rows.high < most ? rows.high : most;
	return rows;
}

SL_DEVICE void fill_map(SL_LOCAL struct group *g, struct mine m, struct sl_kernel_tracks rules,
			SL_GLOBAL const struct sl_kernel_tracks_plan *plan)
{
	sl_u32 c, w;

	for (c = m.first; m.is_used && c <= m.first + m.after; c++) {
		struct rows rows = rows_at(m, rules, plan, c);

		for (w = 0; w < rules.words; w++) {
			sl_u32 bits = sl_tracks_bits(rows.low, rows.high, (sl_i32)w * 32);

			if (bits)
				sl_or(&g->map[w][m.stub.layer][c], bits);
		}
	}
}

/* Cells of a column with so many layers, 32 rows of it. */
SL_DEVICE sl_u32 cells_with(SL_LOCAL const struct group *g, sl_u32 layers, sl_u32 c, sl_u32 w)
{
	struct sl_tracks_count n =
		sl_tracks_count(g->map[w][1][c], g->map[w][2][c], g->map[w][3][c], g->map[w][4][c], g->map[w][5][c],
				g->map[w][6][c], g->map[w][7][c]);

	return (layers & 1 ? n.ones : ~n.ones) & (layers & 2 ? n.twos : ~n.twos) & (layers & 4 ? n.fours : ~n.fours);
}

SL_DEVICE void put_cells(SL_LOCAL struct group *g, sl_u32 bits, sl_u32 c, sl_u32 row, sl_u32 at)
{
	for (; bits; bits &= bits - 1)
		g->list[at++] = (sl_u16)(c << 8 | (row + sl_first_bit(bits)));
}

/* Those with the most layers first, then by columns; how many. A thread has two columns of one number of layers. */
SL_DEVICE sl_u32 list_cells(SL_LOCAL struct group *g, struct sl_kernel_tracks rules)
{
	sl_u32 entries = (LAYERS - rules.min_layers) * SL_KERNEL_TRACK_CELLS, e = 2 * sl_thread(), n = 0, i, total;
	sl_u32 bits[4];

	for (i = 0; i < 4; i++) {
		sl_u32 at = e + i / 2, c = at % SL_KERNEL_TRACK_CELLS, layers = LAYERS - 1 - at / SL_KERNEL_TRACK_CELLS;

		bits[i] = at < entries && c < rules.columns && i % 2 < rules.words ? cells_with(g, layers, c, i % 2) : 0;
		n += (sl_u32)sl_popcount(bits[i]);
	}
	n = sl_group_before(g->scan, n, &total);
	for (i = 0; i < 4; i++) {
		put_cells(g, bits[i], (e + i / 2) % SL_KERNEL_TRACK_CELLS, i % 2 * 32, n);
		n += (sl_u32)sl_popcount(bits[i]);
	}
	sl_barrier();
	return total;
}

/* ---- duplicates ---- */

SL_DEVICE sl_u32 layers_of(SL_LOCAL const struct group *g, struct set set)
{
	sl_u32 layers = 0, k, w;

	for (k = 1; k < LAYERS; k++) {
		sl_u32 any = 0;

		for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
			any |= set.word[w] & g->of_layer[k][w];
		layers |= any ? 1u << k : 0;
	}
	return layers;
}

SL_DEVICE struct set local_set(SL_LOCAL const sl_u32 *from)
{
	struct set set;
	sl_u32 w;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		set.word[w] = from[w];
	return set;
}

SL_DEVICE sl_u32 ones_of(struct set set)
{
	sl_u32 n = 0, w;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		n += (sl_u32)sl_popcount(set.word[w]);
	return n;
}

/* Do they share stubs of too many layers? Most share too few stubs to look at layers. */
SL_DEVICE int are_alike(SL_LOCAL const struct group *g, struct set a, struct set b, sl_u32 common)
{
	sl_u32 w;

	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		a.word[w] &= b.word[w];
	return ones_of(a) >= common && (sl_u32)sl_popcount(layers_of(g, a)) >= common;
}

/* Among cells, and with candidates that there are. */
SL_DEVICE void compare_cells(SL_LOCAL struct group *g, struct sl_kernel_tracks rules, sl_u32 cells,
			     SL_GLOBAL const struct sl_kernel_track *track, sl_u32 tracks)
{
	sl_u32 i, w;

	for (i = sl_thread(); i < cells * CHUNK; i += SL_KERNEL_STUBS) {
		sl_u32 a = i / CHUNK, b = i % CHUNK;

		if (b < a && are_alike(g, local_set(g->set[a]), local_set(g->set[b]), rules.common))
			sl_or(&g->like[a], 1u << b);
	}
	for (i = sl_thread(); i < CHUNK * tracks; i += SL_KERNEL_STUBS) {
		sl_u32 a = i % CHUNK;
		struct set set;

		for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
			set.word[w] = track[i / CHUNK].set[w];
		if (a < cells && are_alike(g, local_set(g->set[a]), set, rules.common))
			sl_or(&g->old, 1u << a);
	}
}

/* Which stubs each of the cells has. */
SL_DEVICE void find_sets(SL_LOCAL struct group *g, struct mine m, struct sl_kernel_tracks rules,
			 SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_LOCAL const sl_u16 *list, sl_u32 cells)
{
	sl_u32 column = 0xffffffffu, j;
	struct rows rows;

	rows.low = rows.high = -1;
	for (j = 0; j < cells; j++) {
		sl_u32 c = list[j] >> 8;
		sl_i32 row = list[j] & 255;

		if (c != column) {
			rows = rows_at(m, rules, plan, c);
			column = c;
		}
		sl_vote(&g->set[j][sl_thread() / 32],
			m.is_used && c - m.first <= m.after && rows.low <= row && row <= rows.high);
	}
}

/* ---- fits ---- */

/* Of cells that wait, those that are like none before them that waits, as many as there are slots. */
SL_DEVICE sl_u32 next_cells(SL_LOCAL const struct group *g, sl_u32 waits)
{
	sl_u32 next = 0, n = 0, j;

	for (j = 0; j < CHUNK; j++)
		if ((waits >> j & 1) && !(g->like[j] & waits) && n < SLOTS) {
			next |= 1u << j;
			n++;
		}
	return next;
}

/* The i-th of the bits that are set, or CHUNK. */
SL_DEVICE sl_u32 nth_bit(sl_u32 bits, sl_u32 i)
{
	for (; i && bits; i--)
		bits &= bits - 1;
	return bits ? sl_first_bit(bits) : CHUNK;
}

/* Helices through the next cells, and which of the cells behind they make duplicates of. */
SL_DEVICE void fit_cells(SL_LOCAL struct group *g, SL_LOCAL struct fits *fits, struct mine m, struct sl_kernel_tracks rules,
			 SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_LOCAL const sl_u16 *list, sl_u32 next,
			 sl_u32 cells)
{
	sl_u32 t = sl_thread(), lane = t % SL_TEAM, mine = nth_bit(next, t / SL_TEAM), has = mine < CHUNK, i;
	SL_LOCAL struct slot *slot = &fits->slot[t / SL_TEAM];
	float limit = rules.fit_limit * SL_TRACKS_LOOSE;
	sl_u32 points;

	mine = has ? mine : 0; /* slots without a cell do as one that has */
	open_slot(slot, g->set[mine], g->of_layer);
	sl_barrier();
	for (i = 0; i < SLOTS; i++) {
		sl_u32 j = nth_bit(next, i);

		if (j < CHUNK && (fits->slot[i].set[t / 32] >> lane & 1))
			put_point(&fits->slot[i], g->of_layer[m.stub.layer], rules, m.stub, plan->x[list[j] >> 8]);
	}
	sl_barrier();
	points = has ? slot->start[LAYERS] : 0;
	count_pairs(slot, points);
	sl_barrier();
	list_pairs(slot, points);
	sl_barrier();
	try_pairs(slot, pairs_of(slot, points), limit);
	sl_barrier();
	choose_points(slot, limit);
	sl_barrier();
	if (lane == 0 && has && fit_helix(slot, rules, &fits->of[mine]))
		sl_or(&fits->good, 1u << mine);
	sl_barrier();
	if (rules.common && has && lane < cells && lane > mine && (fits->good >> mine & 1) &&
	    are_alike(g, local_set(g->set[lane]), local_set(fits->of[mine].set), rules.common))
		sl_or(&g->taken[lane], 1u << mine);
	sl_barrier();
}

SL_DEVICE void fit_chunk(SL_LOCAL struct group *g, SL_LOCAL struct fits *fits, struct mine m, struct sl_kernel_tracks rules,
			 SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_LOCAL const sl_u16 *list, sl_u32 cells)
{
	sl_u32 waits = (cells < CHUNK ? sl_below(cells) : ~0u) & ~g->old, j;

	while (waits) {
		sl_u32 next = next_cells(g, waits);

		fit_cells(g, fits, m, rules, plan, list, next, cells);
		waits &= ~next;
		for (j = 0; j < CHUNK; j++)
			waits &= g->taken[j] ? ~(1u << j) : ~0u;
	}
}

/* ---- candidates ---- */

/* A cell of the chunk becomes a candidate. */
SL_DEVICE void make_track(SL_LOCAL const struct group *g, SL_LOCAL const struct fits *fits, struct sl_kernel_tracks rules,
			  SL_GLOBAL const struct sl_kernel_tracks_plan *plan, sl_u32 cell, sl_u32 j,
			  SL_GLOBAL struct sl_kernel_track *track)
{
	struct set set = local_set(g->set[j]);
	sl_u32 column = cell >> 8, row = cell & 255, w;

	track->column = column;
	track->row = row;
	track->stubs = ones_of(set);
	track->layers = layers_of(g, set);
	track->x = plan->x[column];
	track->phi = rules.y[column % 2] + (float)row * rules.row;
	track->z0 = track->cot = track->chi2 = 0;
	if (fits) {
		set = local_set(fits->of[j].set);
		track->layers = fits->of[j].layers;
		track->x = fits->of[j].x;
		track->phi = fits->of[j].phi;
		track->z0 = fits->of[j].z0;
		track->cot = fits->of[j].cot;
		track->chi2 = fits->of[j].chi2;
	}
	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		track->set[w] = set.word[w];
}

/* In order: duplicates, those that are too many, misfits; the rest are candidates, a bit for each. */
SL_DEVICE sl_u32 settle(SL_LOCAL const sl_u32 *like, sl_u32 old, sl_u32 good, sl_u32 cells, sl_u32 limit,
			struct sl_kernel_sector *found)
{
	sl_u32 made = 0, n = found->candidates, j;

	for (j = 0; j < cells; j++) {
		if ((old >> j & 1) || (like[j] & made))
			found->duplicates++;
		else if (n == limit)
			found->crowded++;
		else if (!(good >> j & 1))
			found->misfits++;
		else {
			made |= 1u << j;
			n++;
		}
	}
	return made;
}

SL_DEVICE void do_chunk(SL_LOCAL struct group *g, SL_LOCAL struct fits *fits, struct mine m, struct sl_kernel_tracks rules,
			SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_LOCAL const sl_u16 *list, sl_u32 cells,
			SL_GLOBAL struct sl_kernel_track *track, struct sl_kernel_sector *found)
{
	sl_u32 t = sl_thread(), n = found->candidates, made;

	g->set[t / SL_KERNEL_STUB_WORDS][t % SL_KERNEL_STUB_WORDS] = 0;
	if (t < CHUNK)
		g->like[t] = g->taken[t] = 0;
	if (t == 0)
		g->old = 0;
	if (fits && t == 0)
		fits->good = 0;
	sl_barrier();
	find_sets(g, m, rules, plan, list, cells);
	sl_barrier();
	if (rules.common)
		compare_cells(g, rules, cells, track, n);
	sl_barrier();
	if (fits) {
		if (n < rules.limit)
			fit_chunk(g, fits, m, rules, plan, list, cells);
		made = settle(g->taken, g->old, fits->good, cells, rules.limit, found);
	} else
		made = settle(g->like, g->old, ~0u, cells, rules.limit, found);
	if (t < CHUNK && (made >> t & 1))
		make_track(g, fits, rules, plan, list[t], t, track + n + sl_popcount(made & sl_below(t)));
	found->candidates = n + (sl_u32)sl_popcount(made);
	sl_barrier_all();
}

/* ---- a sector ---- */

SL_DEVICE struct mine take_stub(SL_LOCAL struct group *g, SL_GLOBAL const sl_u8 *row, int is_there,
				struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan)
{
	sl_u32 t = sl_thread(), k, step;
	sl_i32 steep;
	struct mine m;

	m.stub = read_stub(row, t);
	step = m.stub.bend * SL_KERNEL_BEND_R + m.stub.r * SL_KERNEL_BEND_R / 4096;
	m.first = plan->first[step];
	m.after = plan->after[step];
	m.turned = m.stub.phi * rules.turn;
	steep = (sl_i32)m.stub.r * rules.reach - rules.reach_at;
	m.reach = sl_tracks_reach(rules.cells, steep < 0 ? -steep : steep);
	if (!is_there || !m.stub.valid)
		sl_min(&g->stubs, t);
	sl_barrier();
	m.is_used = t < g->stubs && m.stub.layer;
	for (k = 1; k < LAYERS; k++)
		sl_vote(&g->of_layer[k][t / 32], m.is_used && m.stub.layer == k);
	sl_vote(&g->of_layer[0][t / 32], t < g->stubs && !m.stub.layer);
	return m;
}

SL_DEVICE void clear(SL_LOCAL struct group *g, SL_GLOBAL const struct sl_kernel_frame *frame,
		     SL_GLOBAL const struct sl_kernel_verdict *verdict, struct sl_kernel_tracks rules)
{
	sl_u32 t = sl_thread(), i;

	for (i = t; i < MAP_WORDS * LAYERS * SL_KERNEL_TRACK_CELLS; i += SL_KERNEL_STUBS)
		(&g->map[0][0][0])[i] = 0;
	for (i = t; i < LAYERS * SL_KERNEL_STUB_WORDS; i += SL_KERNEL_STUBS)
		(&g->of_layer[0][0])[i] = 0;
	if (t == 0) {
		g->stubs = SL_KERNEL_STUBS;
		g->kept = rules.looks_at_all;
	}
	sl_barrier();
	for (i = t; i < frame->items; i += SL_KERNEL_STUBS)
		if (verdict[i].keep)
			sl_or(&g->kept, 1u);
	sl_barrier();
}

/* Group 0: of sectors, 1: of events, 2: of frames. fits: NULL without. */
SL_DEVICE void find(SL_LOCAL struct group *g, SL_LOCAL struct fits *fits, SL_GLOBAL const sl_u8 *raw,
		    SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_view *view,
		    SL_GLOBAL const struct sl_kernel_verdict *verdict, struct sl_kernel_tracks rules,
		    SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_GLOBAL struct sl_kernel_sector *sector,
		    SL_GLOBAL struct sl_kernel_track *track)
{
	sl_u32 i = sl_group(0), e = sl_group(1), f = sl_group(2), at = (f * rules.events + e) * rules.all + i, base, w;
	struct sl_kernel_sector found = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	struct mine m;

	clear(g, &frame[f], verdict + f * rules.events, rules);
	found.looked_at = g->kept && !(frame[f].flags & SL_KERNEL_DARK);
	m = take_stub(g, row_of(raw, view, rules, f, e, i),
		      found.looked_at && !view[f * rules.modules + i / rules.sectors].missing, rules, plan);
	if (g->stubs < rules.min_layers)
		m.is_used = 0;
	fill_map(g, m, rules, plan);
	sl_barrier();
	found.cells = list_cells(g, rules);
	for (base = 0; base < found.cells; base += CHUNK)
		do_chunk(g, fits, m, rules, plan, g->list + base, found.cells - base < CHUNK ? found.cells - base : CHUNK,
			 track + (sl_u64)at * rules.limit, &found);
	found.full = g->stubs == SL_KERNEL_STUBS;
	for (w = 0; w < SL_KERNEL_STUB_WORDS; w++)
		found.strange += (sl_u32)sl_popcount(g->of_layer[0][w]);
	if (sl_thread() == 0)
		sector[at] = found;
}

#define FIND_PARAMETERS                                                                                              \
	(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_frame *frame,                                  \
	 SL_GLOBAL const struct sl_kernel_view *view, SL_GLOBAL const struct sl_kernel_verdict *verdict,             \
	 struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan,                          \
	 SL_GLOBAL struct sl_kernel_sector *sector, SL_GLOBAL struct sl_kernel_track *track)

SL_KERNEL SL_GROUP(160, 6) void tracks_find FIND_PARAMETERS
{
	SL_SHARED struct group g;

	find(&g, 0, raw, frame, view, verdict, rules, plan, sector, track);
}

SL_KERNEL SL_GROUP(160, 4) void tracks_fit FIND_PARAMETERS
{
	SL_SHARED struct group g;
	SL_SHARED struct fits fits;

	find(&g, &fits, raw, frame, view, verdict, rules, plan, sector, track);
}
