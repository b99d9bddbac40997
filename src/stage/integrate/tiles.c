/* tiles.c - entries of each tile are collected, sorted by cell and cut into pieces. */
#include "stage/integrate/tiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* An entry on its way; `order` keeps those of a cell in the order of pixels. */
struct draft {
	uint32_t cell, order, share;
	uint16_t place;
	uint64_t pixel;
};

struct making {
	struct sl_integrate_tiles *tiles;
	const struct sl_shares *shares;
	uint32_t rows, columns;
	uint64_t module_pixels;
	struct draft *draft;
	uint64_t drafts, draft_room, entry_room, piece_room;
};

/* Room for `n` of `bytes` each, twice as much as before when it is short. */
static int grow(void *array, uint64_t *room, uint64_t n, size_t bytes)
{
	void **at = array, *more;
	uint64_t want = *room ? *room : 4096;

	while (want < n)
		want *= 2;
	if (want == *room)
		return 0;
	more = realloc(*at, want * bytes);
	if (!more)
		return -ENOMEM;
	*at = more;
	*room = want;
	return 0;
}

/* ---- a tile ---- */

static int add_draft(struct making *m, uint64_t pixel, uint32_t place, uint32_t cell,
		     uint32_t share)
{
	int err = grow(&m->draft, &m->draft_room, m->drafts + 1, sizeof(*m->draft));

	if (err || cell >= m->shares->cells || !share)
		return err;
	m->draft[m->drafts] = (struct draft){.cell = cell,
					     .order = (uint32_t)m->drafts,
					     .share = share,
					     .place = (uint16_t)place,
					     .pixel = pixel};
	m->drafts++;
	return 0;
}

static int collect(struct making *m, const struct sl_kernel_tile *tile)
{
	const struct sl_shares *s = m->shares;
	int err = 0;

	m->drafts = 0;
	for (uint32_t y = 0; y < SL_TILE_ROWS && tile->row + y < m->rows; y++)
		for (uint32_t x = 0; x < SL_TILE_COLUMNS && tile->column + x < m->columns; x++) {
			uint64_t pixel = tile->module * m->module_pixels +
					 (uint64_t)(tile->row + y) * m->columns + tile->column + x;
			uint32_t place = sl_tile_place(y, x);

			if (s->cell && !err)
				err = add_draft(m, pixel, place, s->cell[pixel], 1);
			for (uint32_t e = s->cell ? 0 : s->first[pixel];
			     !s->cell && e < s->first[pixel + 1] && !err; e++)
				err = add_draft(m, pixel, place, s->share[e].cell,
						sl_share_part(s->share[e]));
		}
	return err;
}

static int by_cell(const void *a, const void *b)
{
	const struct draft *x = a, *y = b;

	return x->cell != y->cell ? (x->cell < y->cell ? -1 : 1) : (x->order < y->order ? -1 : 1);
}

/* ---- pieces ---- */

static int room_for_entries(struct making *m, uint64_t n)
{
	struct sl_integrate_tiles *t = m->tiles;
	uint64_t room[4] = {m->entry_room, m->entry_room, m->entry_room, m->entry_room};
	int err = grow(&t->place, &room[0], n, sizeof(*t->place));

	if (!err)
		err = grow(&t->norm, &room[1], n, sizeof(*t->norm));
	if (!err && !m->shares->cell)
		err = grow(&t->share, &room[2], n, sizeof(*t->share));
	if (!err && m->shares->dark)
		err = grow(&t->dark, &room[3], n, sizeof(*t->dark));
	m->entry_room = err ? m->entry_room : room[0];
	return err;
}

/* Until all pieces are known, `rank` is the cell. What fills up the last eight is never used. */
static int add_piece(struct making *m, const struct draft *draft, uint32_t count)
{
	struct sl_integrate_tiles *t = m->tiles;
	uint64_t first = t->entries, next = first + (count + 7) / 8 * 8;
	int err = room_for_entries(m, next);

	if (!err)
		err = grow(&t->piece, &m->piece_room, t->pieces + 1ull, sizeof(*t->piece));
	if (err)
		return err;
	for (uint64_t e = first; e < next; e++) {
		const struct draft *d = &draft[e - first < count ? e - first : 0];

		t->place[e] = d->place;
		t->norm[e] = sl_shares_norm(m->shares, d->pixel, d->share);
		if (t->share)
			t->share[e] = d->share;
		if (t->dark)
			t->dark[e] = sl_shares_dark(m->shares, d->pixel, d->share);
	}
	t->piece[t->pieces] = (struct sl_kernel_piece){(uint32_t)(first / 8), count, draft->cell};
	t->entries = next;
	t->pieces++;
	return next / 8 > UINT32_MAX || t->pieces == UINT32_MAX ? -EINVAL : 0;
}

/* The longest first. */
static int by_length(const void *a, const void *b)
{
	const struct sl_kernel_piece *x = a, *y = b;

	return x->count != y->count ? (x->count > y->count ? -1 : 1)
				    : (x->first < y->first ? -1 : 1);
}

static int cut(struct making *m, struct sl_kernel_tile *tile)
{
	struct sl_integrate_tiles *t = m->tiles;
	int err = 0;

	tile->first = t->pieces;
	for (uint64_t at = 0, end; at < m->drafts && !err; at = end) {
		uint64_t parts;

		for (end = at; end < m->drafts && m->draft[end].cell == m->draft[at].cell;)
			end++;
		/* As long as each other: 50 entries are 25 and 25, not 32 and 18. */
		parts = (end - at + SL_PIECE_MOST - 1) / SL_PIECE_MOST;
		for (uint64_t i = 0; i < parts && !err; i++) {
			uint64_t from = at + (end - at) * i / parts;

			err = add_piece(m, m->draft + from,
					(uint32_t)(at + (end - at) * (i + 1) / parts - from));
		}
	}
	tile->pieces = t->pieces - tile->first;
	if (!err && tile->pieces)
		qsort(t->piece + tile->first, tile->pieces, sizeof(*t->piece), by_length);
	return err;
}

/* Pieces of a cell one behind the other, in the order of tiles. */
static void give_ranks(struct sl_integrate_tiles *t, uint32_t cells)
{
	for (uint32_t p = 0; p < t->pieces; p++)
		t->rank[t->piece[p].rank + 1]++;
	for (uint32_t c = 0; c < cells; c++)
		t->rank[c + 1] += t->rank[c];
	for (uint32_t p = 0; p < t->pieces; p++)
		t->piece[p].rank = t->rank[t->piece[p].rank]++;
	/* Each is now where the next begins. */
	memmove(t->rank + 1, t->rank, cells * sizeof(*t->rank));
	t->rank[0] = 0;
}

static int make_tiles(struct making *m, uint32_t modules)
{
	struct sl_integrate_tiles *t = m->tiles;
	struct sl_kernel_tile tile;
	int err = 0;

	for (tile.module = 0; tile.module < modules; tile.module++)
		for (tile.row = 0; tile.row < m->rows; tile.row += SL_TILE_ROWS)
			for (tile.column = 0; tile.column < m->columns && !err;
			     tile.column += SL_TILE_COLUMNS) {
				err = collect(m, &tile);
				if (!err && m->drafts)
					qsort(m->draft, m->drafts, sizeof(*m->draft), by_cell);
				if (!err)
					err = cut(m, &tile);
				if (!err && tile.pieces)
					t->tile[t->tiles++] = tile;
			}
	return err;
}

int sl_integrate_tiles_open(struct sl_integrate_tiles *tiles, const struct sl_shares *shares,
			    uint32_t modules, uint32_t rows, uint32_t columns)
{
	struct making m = {.tiles = tiles,
			   .shares = shares,
			   .rows = rows,
			   .columns = columns,
			   .module_pixels = (uint64_t)rows * columns};
	uint64_t most = (uint64_t)modules * ((rows + SL_TILE_ROWS - 1) / SL_TILE_ROWS) *
			((columns + SL_TILE_COLUMNS - 1) / SL_TILE_COLUMNS);
	int err = -ENOMEM;

	*tiles = (struct sl_integrate_tiles){
		.tile = calloc(most, sizeof(*tiles->tile)),
		.rank = calloc(shares->cells + 1ull, sizeof(*tiles->rank)),
	};
	if (tiles->tile && tiles->rank)
		err = make_tiles(&m, modules);
	if (!err)
		give_ranks(tiles, shares->cells);
	else
		sl_error("integrate: %s for %llu entries of tiles",
			 err == -ENOMEM ? "no memory" : "no table is large enough",
			 (unsigned long long)tiles->entries);
	free(m.draft);
	return err;
}

void sl_integrate_tiles_close(struct sl_integrate_tiles *t)
{
	free(t->tile);
	free(t->piece);
	free(t->rank);
	free(t->place);
	free(t->share);
	free(t->norm);
	free(t->dark);
	*t = (struct sl_integrate_tiles){0};
}
