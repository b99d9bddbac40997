/* sector.c - candidates of one sector: cells with stubs of enough layers, those with the
 * most layers first, each only if it is no duplicate of one before it. */
#include <stdlib.h>
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"

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
}

void sl_tracks_unpack(const struct sl_tracks_plan *plan, const uint8_t *row,
		      struct sl_tracks_stubs *stubs, struct sl_tracks_found *found)
{
	struct sl_stub stub;
	uint32_t s = 0, strange = 0;
	bool more = true;

	for (uint32_t k = 0; k < SL_TRACKS_SET; k++) {
		uint32_t end = k * 64 + 64 < SL_STUBS ? k * 64 + 64 : SL_STUBS;
		uint64_t used = 0;

		for (; more && s < end; s++) {
			more = sl_stub_unpack(row + s * SL_STUB_BYTES, &stub);
			if (!more)
				break;
			place(plan, &stub, s, stubs);
			used |= (uint64_t)(stub.layer != 0) << s % 64;
			strange += !stub.layer;
		}
		stubs->used[k] = used;
	}
	stubs->n = s;
	stubs->padded = (s + SL_TRACKS_VECTOR - 1) / SL_TRACKS_VECTOR * SL_TRACKS_VECTOR;
	found->strange += strange;
	found->full += s == SL_STUBS;
	for (; s < stubs->padded; s++) {
		stubs->turned[s] = stubs->r[s] = stubs->reach[s] = 0;
		stubs->first[s] = stubs->after[s] = 0;
	}
}

/* A stub goes into those cells of the column, `rows`, that it is in; index: of a row's cell. */
static void put_stub(struct sl_tracks_work *work, uint32_t s, uint64_t rows, const uint8_t *index,
		     struct sl_tracks_cell *cell)
{
	for (; rows; rows &= rows - 1) {
		struct sl_tracks_cell *to = &cell[index[__builtin_ctzll(rows)]];

		to->set[s / 64] |= 1ull << s % 64;
		to->layers |= (uint8_t)(1u << work->stubs.layer[s]);
		to->stubs++;
	}
}

/* The cells of a column, which has them in these rows; how many. */
static uint32_t list_column(const struct sl_tracks_plan *plan, const struct sl_tracks_calls *calls,
			    struct sl_tracks_work *work, uint32_t c, uint64_t rows,
			    struct sl_tracks_cell *cell)
{
	uint8_t index[SL_TRACKS_CELLS];
	sl_tracks_set set;
	uint32_t n = 0;

	for (uint64_t left = rows; left; left &= left - 1, n++) {
		uint32_t row = (uint32_t)__builtin_ctzll(left);

		index[row] = (uint8_t)n;
		cell[n] = (struct sl_tracks_cell){.column = (uint8_t)c, .row = (uint8_t)row};
	}
	calls->column(plan, &work->stubs, c, &work->map);
	calls->within(&work->map, rows, work->stubs.padded, set);
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		for (uint64_t bits = set[k] & work->stubs.used[k]; bits; bits &= bits - 1) {
			uint32_t s = k * 64 + (uint32_t)__builtin_ctzll(bits);
			uint64_t is_in = work->map.column[0][s];

			if (plan->words > 1)
				is_in |= (uint64_t)work->map.column[1][s] << 32;
			put_stub(work, s, is_in & rows, index, cell);
		}
	return n;
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
			n += list_column(plan, calls, work, c, rows, &work->cell[n]);
	}
	return n;
}

/* Does it share stubs of too many layers with one of the n candidates that are there already?
 * Thirty-two of them at a time: layers are counted as they are in the map. */
static bool is_duplicate(const struct sl_tracks_plan *plan, const struct sl_tracks_work *work,
			 const struct sl_tracks_cell *cell, uint32_t n)
{
	for (uint32_t w = 0; w * 32 < n; w++) {
		uint32_t of[SL_TRACKS_LAYERS] = {0};

		for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
			for (uint64_t bits = cell->set[k]; bits; bits &= bits - 1) {
				uint32_t s = k * 64 + (uint32_t)__builtin_ctzll(bits);

				of[work->stubs.layer[s]] |= work->owner[w][s];
			}
		if (sl_tracks_at_least(
			    sl_tracks_count(of[1], of[2], of[3], of[4], of[5], of[6], of[7]),
			    plan->set.common))
			return true;
	}
	return false;
}

/* The n-th candidate has these stubs. */
static void own(struct sl_tracks_work *work, const struct sl_track *track, uint32_t n)
{
	uint32_t *owner = work->owner[n / 32];

	if (n % 32 == 0)
		memset(owner, 0, sizeof(work->owner[0]));
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		for (uint64_t bits = track->set[k]; bits; bits &= bits - 1)
			owner[k * 64 + (uint32_t)__builtin_ctzll(bits)] |= 1u << n % 32;
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
		if (plan->set.common && is_duplicate(plan, work, cell, n)) {
			found->duplicates++;
			continue;
		}
		if (n == plan->set.sector_tracks) {
			found->crowded++;
			continue;
		}
		make_track(plan, cell, &track[n]);
		if (plan->set.fit && !sl_tracks_fit(plan, row, &track[n])) {
			found->misfits++;
			continue;
		}
		own(work, &track[n], n);
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
