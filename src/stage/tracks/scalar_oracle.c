/* scalar_oracle.c - tracks of a sector by plain loops: one stub and one column at a time, only
 * columns that the stub's bend allows, and the stubs of a cell from lists that were kept while the
 * map was filled. Built with -O3 and without vectors. All integers are those of the stage. The
 * tests of the stage compare the two, and `sluice bench trigger` measures them side by side. */
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/scalar_oracle.h"

enum { COLUMNS = 32 }; /* and rows, at most: what is measured */

struct entry { /* the rows of a column that a stub is in */
	uint32_t rows;
	uint8_t stub, layer;
};

struct column {
	uint32_t n, layer[SL_TRACKS_LAYERS];
	struct entry entry[SL_STUBS];
};

static uint32_t rows_of(const struct sl_tracks_plan *plan, int32_t line, int32_t reach, uint32_t c)
{
	int32_t at = line + plan->offset[c], most = (int32_t)plan->set.rows - 1, low, high;

	if (plan->set.cells == SL_TRACKS_ONE_HEXAGON) {
		line += plan->side[c];
		low = sl_tracks_one_hexagon(at, line - reach, line + reach);
		return low <= most ? sl_tracks_bit(low, 0) : 0;
	}
	low = sl_tracks_row(at - reach) + (plan->set.cells == SL_TRACKS_HEXAGONS);
	high = sl_tracks_row(at + reach);
	return sl_tracks_bits(low, high < most ? high : most, 0);
}

static void add(const struct sl_tracks_plan *plan, const struct sl_stub *stub, uint32_t s,
		struct column *column)
{
	uint32_t bend = (uint32_t)stub->bend & 15, step = stub->r * SL_TRACKS_BEND_R / 4096;
	uint32_t first = plan->first[bend][step], last = first + plan->after[bend][step];
	int32_t r = (int32_t)stub->r, steep = r * plan->reach - plan->reach_at;
	int32_t reach = sl_tracks_reach(plan->set.cells, steep < 0 ? -steep : steep);
	int32_t turned = stub->phi * plan->turn;

	for (uint32_t c = first; c <= last; c++) {
		int32_t line = sl_tracks_line(turned, r, plan->slope[c]);
		uint32_t rows = rows_of(plan, line, reach, c);
		struct column *to = &column[c];

		if (!rows)
			continue;
		to->layer[stub->layer] |= rows;
		to->entry[to->n++] = (struct entry){rows, (uint8_t)s, (uint8_t)stub->layer};
	}
}

/* The cells of a column with enough layers, in the order of their rows: each stub is put into those
 * of them that it is in. */
static uint32_t list_cells(const struct sl_tracks_plan *plan, const struct column *column,
			   uint32_t c, struct sl_tracks_cell *cell)
{
	const uint32_t *l = column->layer;
	uint32_t found = sl_tracks_at_least(
		sl_tracks_count(l[1], l[2], l[3], l[4], l[5], l[6], l[7]), plan->set.min_layers);
	uint8_t index[32];
	uint32_t n = 0;

	for (uint32_t rows = found; rows; rows &= rows - 1, n++) {
		uint32_t row = (uint32_t)__builtin_ctz(rows);

		index[row] = (uint8_t)n;
		cell[n] = (struct sl_tracks_cell){.column = (uint8_t)c, .row = (uint8_t)row};
	}
	for (uint32_t i = 0; n && i < column->n; i++) {
		const struct entry *e = &column->entry[i];

		for (uint32_t rows = e->rows & found; rows; rows &= rows - 1) {
			struct sl_tracks_cell *to = &cell[index[__builtin_ctz(rows)]];

			to->set[e->stub / 64] |= 1ull << e->stub % 64;
			to->layers |= (uint8_t)(1u << e->layer);
		}
	}
	return n;
}

/* owner: a bit for each candidate, 32 at most, for those that have the stub. */
static bool is_duplicate(const struct sl_tracks_plan *plan, const struct sl_tracks_cell *cell,
			 const uint8_t *layer, const uint32_t *owner)
{
	uint32_t of[SL_TRACKS_LAYERS] = {0};

	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		for (uint64_t bits = cell->set[k]; bits; bits &= bits - 1) {
			uint32_t s = k * 64 + (uint32_t)__builtin_ctzll(bits);

			of[layer[s]] |= owner[s];
		}
	return sl_tracks_at_least(sl_tracks_count(of[1], of[2], of[3], of[4], of[5], of[6], of[7]),
				  plan->set.common) != 0;
}

static uint32_t choose(const struct sl_tracks_plan *plan, const struct sl_tracks_cell *cell,
		       uint32_t cells, const uint8_t *layer)
{
	uint32_t owner[SL_STUBS] = {0}, n = 0;

	for (uint32_t layers = 7; cells && layers >= plan->set.min_layers; layers--)
		for (uint32_t i = 0; i < cells; i++) {
			if (sl_tracks_ones(cell[i].layers) != layers ||
			    is_duplicate(plan, &cell[i], layer, owner) ||
			    n == plan->set.sector_tracks)
				continue;
			for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
				for (uint64_t bits = cell[i].set[k]; bits; bits &= bits - 1)
					owner[k * 64 + (uint32_t)__builtin_ctzll(bits)] |= 1u << n;
			n++;
		}
	return n;
}

/* The cells of a sector with enough layers, column after column; layer: of its stubs. */
static uint32_t find_cells(const struct sl_tracks_plan *plan, const uint8_t *row,
			   uint8_t layer[SL_STUBS], struct sl_tracks_cell *cell)
{
	struct column column[COLUMNS];
	struct sl_stub stub;
	uint32_t n = 0;

	for (uint32_t c = 0; c < COLUMNS; c++) {
		column[c].n = 0;
		memset(column[c].layer, 0, sizeof(column[c].layer));
	}
	for (uint32_t s = 0; s < SL_STUBS && sl_stub_unpack(row + s * SL_STUB_BYTES, &stub); s++) {
		layer[s] = (uint8_t)stub.layer;
		if (stub.layer)
			add(plan, &stub, s, column);
	}
	for (uint32_t c = 0; c < plan->set.columns; c++)
		n += list_cells(plan, &column[c], c, cell + n);
	return n;
}

struct sl_scalar_sector sl_scalar_sector(const struct sl_tracks_plan *plan, const uint8_t *row)
{
	struct sl_tracks_cell cell[COLUMNS * COLUMNS];
	uint8_t layer[SL_STUBS];
	struct sl_scalar_sector found = {.cells = find_cells(plan, row, layer, cell)};

	found.tracks = choose(plan, cell, found.cells, layer);
	return found;
}

uint32_t sl_scalar_cells(const struct sl_tracks_plan *plan, const uint8_t *row, uint8_t (*list)[3],
			 uint32_t most)
{
	struct sl_tracks_cell cell[COLUMNS * COLUMNS];
	uint8_t layer[SL_STUBS];
	uint32_t cells = find_cells(plan, row, layer, cell), n = 0;

	for (uint32_t layers = 7; layers >= plan->set.min_layers; layers--)
		for (uint32_t i = 0; i < cells && n < most; i++) {
			if (sl_tracks_ones(cell[i].layers) != layers)
				continue;
			list[n][0] = cell[i].column;
			list[n][1] = cell[i].row;
			list[n++][2] = cell[i].layers;
		}
	return n;
}
