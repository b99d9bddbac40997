/* tracks_sector.c - candidates of one sector: cells with stubs of enough layers, those with the
 * most layers first, each only if it is no duplicate of one before it. */
#include <stdlib.h>
#include <string.h>

#include "maths/tracks.h"
#include "stage/tracks.h"

/* Stubs of layer 0 are of no layer: they are counted, and left out. Indices stay those of the row:
 * such a stub is there, in no column. */
static void place(const struct sl_tracks_plan *plan, const struct sl_stub *stub, uint32_t s,
		  struct sl_tracks_stubs *stubs)
{
	uint32_t bend = (uint32_t)stub->bend & 15, step = stub->r * SL_TRACKS_BEND_R / 4096;

	stubs->turned[s] = stub->phi * plan->turn;
	stubs->r[s] = (int32_t)stub->r;
	stubs->reach[s] = sl_tracks_reach(plan->set.cells,
					  abs((int32_t)stub->r * plan->reach - plan->reach_at));
	stubs->first[s] = plan->first[bend][step];
	stubs->after[s] = plan->after[bend][step];
	stubs->layer[s] = (uint8_t)stub->layer;
	stubs->of_layer[stub->layer][s / 64] |= 1ull << s % 64;
}

void sl_tracks_unpack(const struct sl_tracks_plan *plan, const uint8_t *row,
		      struct sl_tracks_stubs *stubs, struct sl_tracks_found *found)
{
	struct sl_stub stub;
	uint32_t s;

	memset(stubs->of_layer, 0, sizeof(stubs->of_layer));
	for (s = 0; s < SL_STUBS && sl_stub_unpack(row + s * SL_STUB_BYTES, &stub); s++) {
		place(plan, &stub, s, stubs);
		found->strange += !stub.layer;
	}
	stubs->n = s;
	stubs->lanes = (s + SL_TRACKS_LANES - 1) / SL_TRACKS_LANES * SL_TRACKS_LANES;
	found->full += s == SL_STUBS;
	for (; s < stubs->lanes; s++) {
		stubs->turned[s] = stubs->r[s] = stubs->reach[s] = 0;
		stubs->first[s] = stubs->after[s] = 0;
	}
}

uint8_t sl_tracks_layers(const struct sl_tracks_stubs *stubs, const sl_tracks_set set)
{
	uint32_t layers = 0;

	for (uint32_t k = 1; k < SL_TRACKS_LAYERS; k++) {
		const uint64_t *of = stubs->of_layer[k];

		layers |= (uint32_t)(((set[0] & of[0]) | (set[1] & of[1]) | (set[2] & of[2])) != 0)
			  << k;
	}
	return (uint8_t)layers;
}

/* The stubs of a cell that are there and have a layer. */
static void note_cell(const struct sl_tracks_calls *calls, const struct sl_tracks_work *work,
		      uint32_t column, uint32_t row, struct sl_tracks_cell *cell)
{
	const struct sl_tracks_stubs *stubs = &work->stubs;

	cell->column = (uint8_t)column;
	cell->row = (uint8_t)row;
	cell->stubs = 0;
	calls->cell(&work->map, row, stubs->lanes, cell->set);
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++) {
		uint32_t before = k * 64;
		uint64_t used = stubs->n >= before + 64 ? ~0ull
				: stubs->n > before	? (1ull << (stubs->n - before)) - 1
							: 0;

		cell->set[k] &= used & ~stubs->of_layer[0][k];
		cell->stubs += (uint8_t)sl_tracks_ones(cell->set[k]);
	}
	cell->layers = sl_tracks_layers(stubs, cell->set);
}

static uint32_t list_cells(const struct sl_tracks_plan *plan, const struct sl_tracks_calls *calls,
			   struct sl_tracks_work *work)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < plan->set.columns; c++) {
		uint64_t rows = work->map.found[0][c];

		if (plan->words > 1)
			rows |= (uint64_t)work->map.found[1][c] << 32;
		if (rows)
			calls->column(plan, &work->stubs, c, &work->map);
		for (; rows; rows &= rows - 1)
			note_cell(calls, work, c, (uint32_t)__builtin_ctzll(rows),
				  &work->cell[n++]);
	}
	return n;
}

/* Does it share stubs of too many layers with a candidate that is there already? Most share too few
 * stubs to look at layers. */
static bool is_duplicate(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs,
			 const struct sl_tracks_cell *cell, const struct sl_track *track,
			 uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		sl_tracks_set both;
		uint32_t shared = 0;

		for (uint32_t k = 0; k < SL_TRACKS_SET; k++) {
			both[k] = cell->set[k] & track[i].set[k];
			shared += sl_tracks_ones(both[k]);
		}
		if (shared < plan->set.common)
			continue;
		if (sl_tracks_ones(sl_tracks_layers(stubs, both)) >= plan->set.common)
			return true;
	}
	return false;
}

static void make_track(const struct sl_tracks_plan *plan, const struct sl_tracks_cell *cell,
		       struct sl_track *track)
{
	*track = (struct sl_track){
		.column = cell->column,
		.row = cell->row,
		.layers = cell->layers,
		.stubs = cell->stubs,
		.x = plan->x[cell->column],
		.phi = sl_tracks_cell_phi(plan, cell->column, cell->row),
	};
	memcpy(track->set, cell->set, sizeof(track->set));
}

/* Cells of so many layers, in the order of the map. */
static uint32_t choose(const struct sl_tracks_plan *plan, const uint8_t *row,
		       struct sl_tracks_work *work, uint32_t cells, uint32_t layers,
		       struct sl_track *track, uint32_t n, struct sl_tracks_found *found)
{
	for (uint32_t i = 0; i < cells; i++) {
		const struct sl_tracks_cell *cell = &work->cell[i];

		if (sl_tracks_ones(cell->layers) != layers)
			continue;
		if (plan->set.common && is_duplicate(plan, &work->stubs, cell, track, n)) {
			found->duplicates++;
			continue;
		}
		if (n == plan->set.sector_tracks) {
			found->crowded++;
			continue;
		}
		make_track(plan, cell, &track[n]);
		if (plan->set.fit && !sl_tracks_fit(plan, row, &track[n]))
			found->misfits++;
		else
			n++;
	}
	return n;
}

uint32_t sl_tracks_sector(const struct sl_tracks_plan *plan, const struct sl_tracks_calls *calls,
			  const uint8_t *row, struct sl_tracks_work *work, struct sl_track *track,
			  struct sl_tracks_found *found)
{
	uint32_t cells, n = 0;

	sl_tracks_unpack(plan, row, &work->stubs, found);
	if (work->stubs.n < plan->set.min_layers)
		return 0;
	calls->fill(plan, &work->stubs, &work->map);
	cells = list_cells(plan, calls, work);
	found->cells += cells;
	for (uint32_t layers = 7; cells && layers >= plan->set.min_layers; layers--)
		n = choose(plan, row, work, cells, layers, track, n, found);
	return n;
}
