/* parts.c - the stored image as flat rectangles. */
#include "geometry/parts.h"

#include <string.h>

/* Pieces that lie in one plane are one part of an assembled image, with the gaps between them. */
enum kind { WHOLE, MODULES, PIECES };

static enum kind kind_of(const struct sl_geometry *g, bool assembled)
{
	if (!assembled)
		return PIECES;
	return g->planes < 2 ? WHOLE : g->planes == g->modules ? MODULES : PIECES;
}

uint32_t sl_panels(const struct sl_geometry *g, bool assembled)
{
	switch (kind_of(g, assembled)) {
	case WHOLE:
		return 1;
	case MODULES:
		return g->modules;
	default:
		return g->modules * sl_layout_pieces(g);
	}
}

static void point(const struct sl_plane *p, double row, double column, double out[3])
{
	for (int i = 0; i < 3; i++)
		out[i] = p->corner[i] + row * p->down[i] + column * p->right[i];
}

/* The upper left corner of a piece, as it lies in the image. */
static void image_corner(const struct sl_geometry *g, struct sl_panel *part)
{
	uint32_t turns = g->layout.module[part->module].turns;
	struct sl_layout_piece piece;

	sl_layout_piece(g, part->module, part->piece, &piece);
	part->rows = turns & 1 ? piece.columns : piece.rows;
	part->columns = turns & 1 ? piece.rows : piece.columns;
	part->first_row = (uint32_t)piece.row - (turns == 2 || turns == 3 ? part->rows : 0);
	part->first_column = (uint32_t)piece.column -
			     (turns == 1 || turns == 2 ? part->columns : 0);
}

static void place_in_image(const struct sl_geometry *g, enum kind kind, struct sl_panel *part)
{
	const struct sl_layout_module *at = &g->layout.module[part->module];
	struct sl_plane plane;

	sl_layout_plane(g, part->module, part->piece, &plane);
	if (kind == WHOLE) {
		part->rows = g->layout.rows;
		part->columns = g->layout.columns;
	} else if (kind == MODULES) {
		part->first_row = at->row;
		part->first_column = at->column;
		sl_layout_extent(g, part->module, &part->rows, &part->columns);
	} else {
		image_corner(g, part);
	}
	point(&plane, part->first_row, part->first_column, part->origin);
	memcpy(part->fast, plane.right, sizeof(part->fast));
	memcpy(part->slow, plane.down, sizeof(part->slow));
}

/* A module as it was read: along its rows by quarter turns; down its columns it is one more. */
static void place_in_stack(const struct sl_geometry *g, struct sl_panel *part)
{
	uint32_t turns = g->layout.module[part->module].turns;
	struct sl_layout_piece piece;
	struct sl_plane plane;

	sl_layout_piece(g, part->module, part->piece, &piece);
	sl_layout_plane(g, part->module, part->piece, &plane);
	part->first_row = part->module * g->rows + piece.first_row;
	part->first_column = piece.first_column;
	part->rows = piece.rows;
	part->columns = piece.columns;
	point(&plane, piece.row, piece.column, part->origin);
	for (int i = 0; i < 3; i++) {
		const double way[] = {plane.right[i], plane.down[i], -plane.right[i],
				      -plane.down[i]};

		part->fast[i] = way[turns];
		part->slow[i] = way[(turns + 1) % 4];
	}
}

void sl_panel_at(const struct sl_geometry *g, bool assembled, uint32_t index, struct sl_panel *part)
{
	enum kind kind = kind_of(g, assembled);
	uint32_t pieces = kind == PIECES ? sl_layout_pieces(g) : 1;

	*part = (struct sl_panel){.module = index / pieces, .piece = index % pieces};
	if (assembled)
		place_in_image(g, kind, part);
	else
		place_in_stack(g, part);
}
