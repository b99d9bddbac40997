/* geom_planes.c - panels of CrystFEL on modules and ASICs of a detector.
 *
 * A panel is a rectangle of the data, which are the assembled image, the modules one below the
 * other, or an array with a dimension for modules. It gives a plane to each piece (ASIC) that it
 * covers. A piece that several panels cover must be in one plane all the same. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "geometry/geom.h"

/* Metres by which two panels may differ about a piece. */
#define SAME 1e-6

enum data { ASSEMBLED, STACK, MODULES };

struct fit {
	const char *file;
	const struct sl_geom *geom;
	const struct sl_geometry *g;
	enum data data;
	double clen;
};

/* The rectangle of the data that a piece is, ends excluded. */
struct box {
	double row, column, rows, columns;
};

static struct box box_of(const struct fit *f, uint32_t module, uint32_t index)
{
	uint32_t turns = f->g->layout.module[module].turns;
	struct sl_layout_piece p;
	struct box b;

	sl_layout_piece(f->g, module, index, &p);
	if (f->data != ASSEMBLED)
		return (struct box){p.first_row + (f->data == STACK ? module * f->g->rows : 0),
				    p.first_column, p.rows, p.columns};
	b.rows = turns & 1 ? p.columns : p.rows;
	b.columns = turns & 1 ? p.rows : p.columns;
	b.row = p.row - (turns == 2 || turns == 3 ? b.rows : 0);
	b.column = p.column - (turns == 1 || turns == 2 ? b.columns : 0);
	return b;
}

static bool covers(const struct fit *f, const struct sl_geom_panel *p, uint32_t module,
		   const struct box *b)
{
	return (f->data != MODULES || p->module == module) && p->min_ss < b->row + b->rows &&
	       p->max_ss >= b->row && p->min_fs < b->column + b->columns && p->max_fs >= b->column;
}

/* A point of the panel's data, in metres. */
static void place_of(const struct fit *f, const struct sl_geom_panel *p, double ss, double fs,
		     double out[3])
{
	const double corner[3] = {p->corner_x, p->corner_y, 0};
	const double shift[3] = {f->geom->shift_x, f->geom->shift_y, f->clen + p->coffset};

	for (int i = 0; i < 3; i++)
		out[i] = (corner[i] + (fs - p->min_fs) * p->fs[i] + (ss - p->min_ss) * p->ss[i]) /
				 p->res +
			 shift[i];
}

/* The plane with the image's grid on it, as the panel places this piece. */
static void plane_of(const struct fit *f, const struct sl_geom_panel *p, uint32_t module,
		     uint32_t index, const struct box *b, struct sl_plane *plane)
{
	uint32_t turns = f->data == ASSEMBLED ? 0 : f->g->layout.module[module].turns;
	struct sl_layout_piece at;
	double corner[3];

	sl_layout_piece(f->g, module, index, &at);
	if (f->data == ASSEMBLED) {
		at.row = b->row;
		at.column = b->column;
	}
	place_of(f, p, b->row, b->column, corner);
	for (int i = 0; i < 3; i++) {
		const double fast = p->fs[i] / p->res, slow = p->ss[i] / p->res;
		const double right[] = {fast, -slow, -fast, slow};
		const double down[] = {slow, fast, -slow, -fast};

		plane->right[i] = right[turns];
		plane->down[i] = down[turns];
		plane->corner[i] = corner[i] - at.row * down[turns] - at.column * right[turns];
	}
}

/* How far apart two planes put the corners of a piece. */
static double apart(const struct sl_plane *a, const struct sl_plane *b, const struct sl_geometry *g,
		    uint32_t module, uint32_t index)
{
	struct sl_layout_piece p;
	double worst = 0;

	sl_layout_piece(g, module, index, &p);
	for (int corner = 0; corner < 4; corner++) {
		double row = p.row + (corner & 1 ? p.rows : 0);
		double column = p.column + (corner & 2 ? p.columns : 0), far = 0;

		for (int i = 0; i < 3; i++) {
			double d = a->corner[i] - b->corner[i] + row * (a->down[i] - b->down[i]) +
				   column * (a->right[i] - b->right[i]);

			far += d * d;
		}
		worst = fmax(worst, sqrt(far));
	}
	return worst;
}

static int fit_piece(const struct fit *f, uint32_t module, uint32_t index, struct sl_plane *plane)
{
	const struct sl_geom_panel *first = NULL;
	struct box b = box_of(f, module, index);

	for (uint32_t i = 0; i < f->geom->panels; i++) {
		const struct sl_geom_panel *p = &f->geom->panel[i];
		struct sl_plane other;

		if (!covers(f, p, module, &b))
			continue;
		plane_of(f, p, module, index, &b, first ? &other : plane);
		if (first && apart(plane, &other, f->g, module, index) > SAME) {
			sl_error("%s:%u: panels '%s' and '%s' (line %u) place parts of one ASIC "
				 "(module %u, ASIC %u) differently; it is one piece here",
				 f->file, p->line, p->name, first->name, first->line, module,
				 index);
			return -EINVAL;
		}
		first = first ? first : p;
	}
	if (first)
		return 0;
	sl_error("%s:%u: the file has no panel for module %u, ASIC %u: rows %.0f to %.0f, columns "
		 "%.0f to %.0f of the data",
		 f->file, f->geom->panel[f->geom->panels - 1].line, module, index, b.row,
		 b.row + b.rows - 1, b.column, b.column + b.columns - 1);
	return -EINVAL;
}

/* ---- bad pixels ---- */

/* The row and column of the data that a raw pixel is in; a wide one by its part on the grid. */
static void data_of(const struct fit *f, uint32_t module, uint32_t pixel, double *ss, double *fs)
{
	const struct sl_geometry *g = f->g;
	uint32_t turns = g->layout.module[module].turns, index = sl_layout_piece_of(g, pixel);
	struct box b = box_of(f, module, index);
	struct sl_layout_piece p;
	double r, c;

	sl_layout_piece(g, module, index, &p);
	r = pixel / g->columns - p.first_row;
	c = pixel % g->columns - p.first_column;
	if (f->data != ASSEMBLED)
		turns = 0;
	*ss = b.row + (turns == 0   ? r
		       : turns == 1 ? c
		       : turns == 2 ? b.rows - 1 - r
				    : b.rows - 1 - c);
	*fs = b.column + (turns == 0   ? c
			  : turns == 1 ? b.columns - 1 - r
			  : turns == 2 ? b.columns - 1 - c
				       : r);
}

static bool is_in(double x, double from, double to)
{
	return x >= from && x <= to;
}

static bool is_bad(const struct fit *f, const struct sl_geom_panel *p, double ss, double fs)
{
	double x = p->corner_x + (fs - p->min_fs) * p->fs[0] + (ss - p->min_ss) * p->ss[0];
	double y = p->corner_y + (fs - p->min_fs) * p->fs[1] + (ss - p->min_ss) * p->ss[1];

	if (p->no_index || !is_in(fs, p->min_fs + p->edge, p->max_fs - p->edge) ||
	    !is_in(ss, p->min_ss + p->edge, p->max_ss - p->edge))
		return true;
	for (uint32_t i = 0; i < f->geom->bads; i++) {
		const struct sl_geom_bad *b = &f->geom->bad[i];

		/* As CrystFEL has it: by the pixel's corner, without the borders. */
		if (!isnan(b->min_x) && x > b->min_x && x < b->max_x && y > b->min_y &&
		    y < b->max_y)
			return true;
		if (isnan(b->min_x) && !strcmp(b->panel, p->name) &&
		    is_in(fs, b->min_fs, b->max_fs) && is_in(ss, b->min_ss, b->max_ss))
			return true;
	}
	return false;
}

static void mark_module(const struct fit *f, uint32_t module, uint8_t *mask)
{
	uint64_t pixels = sl_geometry_pixels(f->g);
	const struct sl_geom_panel *p = NULL;

	for (uint32_t i = 0; i < pixels; i++) {
		struct box one = {.rows = 1, .columns = 1};

		data_of(f, module, i, &one.row, &one.column);
		if (!p || !covers(f, p, module, &one)) {
			p = NULL;
			for (uint32_t k = 0; k < f->geom->panels && !p; k++)
				if (covers(f, &f->geom->panel[k], module, &one))
					p = &f->geom->panel[k];
		}
		mask[i] |= !p || is_bad(f, p, one.row, one.column);
	}
}

/* ---- which data the panels are of ---- */

static int choose_data(struct fit *f)
{
	const struct sl_geometry *g = f->g;
	const struct sl_geom_panel *far = f->geom->panel, *beyond = NULL;
	double rows = 0, columns = 0, stack = (double)g->modules * g->rows;

	for (uint32_t i = 0; i < f->geom->panels; i++) {
		const struct sl_geom_panel *p = &f->geom->panel[i];

		if (p->module >= 0)
			f->data = MODULES;
		if (p->max_ss + 1 > rows || p->max_fs + 1 > columns)
			far = p;
		if (p->module >= g->modules)
			beyond = p;
		rows = fmax(rows, p->max_ss + 1);
		columns = fmax(columns, p->max_fs + 1);
	}
	if (f->data == MODULES && rows <= g->rows && columns <= g->columns && !beyond)
		return 0;
	far = beyond ? beyond : far;
	if (f->data != MODULES) {
		bool in_stack = rows <= stack && columns <= g->columns;
		bool in_image = rows <= g->layout.rows && columns <= g->layout.columns;
		bool is_image = rows == g->layout.rows && columns == g->layout.columns;
		bool is_stack = rows == stack && columns == g->columns;

		f->data = in_stack && (is_stack || !is_image) ? STACK : ASSEMBLED;
		if (in_stack || in_image)
			return 0;
	}
	sl_error("%s:%u: panel '%s' is not in the data: the detector has %u modules of %u x %u, "
		 "%.0f x %u one below the other, %u x %u assembled",
		 f->file, far->line, far->name, g->modules, g->rows, g->columns, stack, g->columns,
		 g->layout.rows, g->layout.columns);
	return -EINVAL;
}

static int check_pixels(const struct fit *f)
{
	double size = f->g->pixel_size_m;

	for (uint32_t i = 0; i < f->geom->panels; i++) {
		const struct sl_geom_panel *p = &f->geom->panel[i];
		double width = sl_vector_length(p->fs) / p->res;
		double height = sl_vector_length(p->ss) / p->res;

		if (fabs(width - size) <= 0.01 * size && fabs(height - size) <= 0.01 * size)
			continue;
		sl_error("%s:%u: panel '%s': pixels of %g x %g um (res, fs, ss); the detector's "
			 "have %g um",
			 f->file, p->line, p->name, height * 1e6, width * 1e6, size * 1e6);
		return -EINVAL;
	}
	return 0;
}

int sl_geom_planes(const char *file, const struct sl_geom *geom, double distance_m,
		   const struct sl_geometry *g, struct sl_plane *plane, uint8_t *mask)
{
	struct fit f = {.file = file,
			.geom = geom,
			.g = g,
			.clen = distance_m > 0 ? distance_m : geom->clen};
	uint32_t pieces = sl_layout_pieces(g);
	int err;

	if (isnan(f.clen)) {
		sl_error("%s:%u: %s; set geometry.distance_m", file, geom->clen_line,
			 geom->clen_line ? "clen is a place in the data, which is not looked up"
					 : "the file has no clen");
		return -EINVAL;
	}
	err = choose_data(&f);
	if (!err)
		err = check_pixels(&f);
	for (uint32_t i = 0; i < g->modules * pieces && !err; i++)
		err = fit_piece(&f, i / pieces, i % pieces, &plane[i]);
	for (uint32_t m = 0; m < g->modules && !err; m++)
		mark_module(&f, m, mask + m * sl_geometry_pixels(g));
	return err;
}
