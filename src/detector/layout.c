/* layout.c - from raw pixels of modules to pixels of the image and back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sluice/detector.h>

/* One direction of a module: `asics` pieces of `length` raw pixels with `gap` image pixels between
 * them, half of which belong to the last pixel of the one and half to the first of the other. */
struct axis {
	uint32_t asics, length, gap;
};

static struct axis axis_of(uint32_t raw, uint32_t asic, uint32_t gap)
{
	if (!asic || asic >= raw)
		return (struct axis){1, raw, 0};
	return (struct axis){raw / asic, asic, gap};
}

static struct axis rows_of(const struct sl_geometry *g)
{
	return axis_of(g->rows, g->layout.asic_rows, g->layout.gap);
}

static struct axis columns_of(const struct sl_geometry *g)
{
	return axis_of(g->columns, g->layout.asic_columns, g->layout.gap);
}

static uint32_t extent(struct axis a)
{
	return a.asics * a.length + (a.asics - 1) * a.gap;
}

/* The raw pixel that covers image pixel `at` of the module. */
static uint32_t raw_at(struct axis a, uint32_t at)
{
	uint32_t asic = (at + a.gap / 2) / (a.length + a.gap), first, inside;

	if (asic == a.asics) /* at the end there is no half gap */
		asic--;
	first = asic * (a.length + a.gap);
	inside = at < first ? 0 : at - first;
	return asic * a.length + (inside < a.length ? inside : a.length - 1);
}

/* The image pixels that a raw pixel covers. */
static void span_of(struct axis a, uint32_t raw, uint32_t *first, uint32_t *count)
{
	uint32_t asic = raw / a.length, inside = raw % a.length;
	uint32_t before = inside == 0 && asic > 0 ? a.gap / 2 : 0;
	uint32_t after = inside == a.length - 1 && asic + 1 < a.asics ? a.gap / 2 : 0;

	*first = asic * (a.length + a.gap) + inside - before;
	*count = 1 + before + after;
}

void sl_layout_resolve(const struct sl_geometry *g, struct sl_layout *layout)
{
	uint32_t rows = extent(rows_of(g)), columns = extent(columns_of(g));

	*layout = g->layout;
	if (layout->rows)
		return;
	layout->rows = rows * g->modules;
	layout->columns = columns;
	layout->beam_row = layout->rows / 2.0;
	layout->beam_column = layout->columns / 2.0;
	for (uint32_t m = 0; m < g->modules && m < SL_LAYOUT_MODULES; m++)
		layout->module[m] = (struct sl_layout_module){.row = m * rows};
}

void sl_layout_extent(const struct sl_geometry *g, uint32_t module, uint32_t *rows,
		      uint32_t *columns)
{
	bool lies = g->layout.module[module].turns & 1;

	*rows = extent(lies ? columns_of(g) : rows_of(g));
	*columns = extent(lies ? rows_of(g) : columns_of(g));
}

static bool overlap(const struct sl_geometry *g, uint32_t a, uint32_t b)
{
	const struct sl_layout_module *p = &g->layout.module[a], *q = &g->layout.module[b];
	uint32_t rows[2], columns[2];

	sl_layout_extent(g, a, &rows[0], &columns[0]);
	sl_layout_extent(g, b, &rows[1], &columns[1]);
	return p->row < q->row + rows[1] && q->row < p->row + rows[0] &&
	       p->column < q->column + columns[1] && q->column < p->column + columns[0];
}

static int check_asics(const struct sl_geometry *g, char *why, size_t why_bytes)
{
	const struct sl_layout *l = &g->layout;

	if ((l->asic_rows && g->rows % l->asic_rows) ||
	    (l->asic_columns && g->columns % l->asic_columns) || l->gap % 2) {
		snprintf(why, why_bytes,
			 "ASICs of %u x %u with gaps of %u do not make a module of %u x %u",
			 l->asic_rows, l->asic_columns, l->gap, g->rows, g->columns);
		return -EINVAL;
	}
	return 0;
}

int sl_layout_check(const struct sl_geometry *g, char *why, size_t why_bytes)
{
	if (g->modules > SL_LAYOUT_MODULES) {
		snprintf(why, why_bytes, "%u modules: at most %d", g->modules, SL_LAYOUT_MODULES);
		return -EINVAL;
	}
	for (uint32_t m = 0; m < g->modules; m++) {
		const struct sl_layout_module *at = &g->layout.module[m];
		uint32_t rows, columns;

		sl_layout_extent(g, m, &rows, &columns);
		if (at->turns > 3 || (uint64_t)at->row + rows > g->layout.rows ||
		    (uint64_t)at->column + columns > g->layout.columns) {
			snprintf(why, why_bytes, "module %u is not inside the image", m);
			return -EINVAL;
		}
		for (uint32_t other = 0; other < m; other++)
			if (overlap(g, m, other)) {
				snprintf(why, why_bytes, "module %u lies on module %u", m, other);
				return -EINVAL;
			}
	}
	return check_asics(g, why, why_bytes);
}

/* A place on the module as it lies in the image to one on the module as it was read, and back. */
static void turn_back(uint32_t turns, uint32_t rows, uint32_t columns, uint32_t *row,
		      uint32_t *column)
{
	uint32_t r = *row, c = *column;

	switch (turns) { /* rows, columns: as it was read */
	case 1:
		*row = rows - 1 - c;
		*column = r;
		break;
	case 2:
		*row = rows - 1 - r;
		*column = columns - 1 - c;
		break;
	case 3:
		*row = c;
		*column = columns - 1 - r;
		break;
	default:
		break;
	}
}

static void turn(uint32_t turns, double rows, double columns, double *row, double *column)
{
	double r = *row, c = *column;

	switch (turns) {
	case 1:
		*row = c;
		*column = rows - r;
		break;
	case 2:
		*row = rows - r;
		*column = columns - c;
		break;
	case 3:
		*row = columns - c;
		*column = r;
		break;
	default:
		break;
	}
}

bool sl_layout_raw(const struct sl_geometry *g, uint32_t module, int64_t row, int64_t column,
		   uint32_t *pixel)
{
	const struct sl_layout_module *at = &g->layout.module[module];
	struct axis down = rows_of(g), across = columns_of(g);
	uint32_t rows, columns, r, c;

	sl_layout_extent(g, module, &rows, &columns);
	row -= at->row;
	column -= at->column;
	if (row < 0 || row >= rows || column < 0 || column >= columns)
		return false;
	r = (uint32_t)row;
	c = (uint32_t)column;
	turn_back(at->turns, extent(down), extent(across), &r, &c);
	*pixel = raw_at(down, r) * g->columns + raw_at(across, c);
	return true;
}

int sl_layout_find(const struct sl_geometry *g, int64_t row, int64_t column, uint32_t *pixel)
{
	for (uint32_t m = 0; m < g->modules; m++)
		if (sl_layout_raw(g, m, row, column, pixel))
			return (int)m;
	return -1;
}

uint32_t sl_layout_share(const struct sl_geometry *g, uint32_t pixel)
{
	uint32_t first, rows, columns;

	span_of(rows_of(g), pixel / g->columns, &first, &rows);
	span_of(columns_of(g), pixel % g->columns, &first, &columns);
	return rows * columns;
}

void sl_layout_size(const struct sl_geometry *g, uint32_t module, uint32_t pixel, uint32_t *rows,
		    uint32_t *columns)
{
	bool lies = g->layout.module[module].turns & 1;
	uint32_t first;

	span_of(rows_of(g), pixel / g->columns, &first, lies ? columns : rows);
	span_of(columns_of(g), pixel % g->columns, &first, lies ? rows : columns);
}

void sl_layout_centre(const struct sl_geometry *g, uint32_t module, uint32_t pixel, double *row,
		      double *column)
{
	const struct sl_layout_module *at = &g->layout.module[module];
	struct axis down = rows_of(g), across = columns_of(g);
	uint32_t first, count;

	span_of(down, pixel / g->columns, &first, &count);
	*row = first + count / 2.0;
	span_of(across, pixel % g->columns, &first, &count);
	*column = first + count / 2.0;
	turn(at->turns, extent(down), extent(across), row, column);
	*row += at->row;
	*column += at->column;
}

uint32_t sl_layout_pieces(const struct sl_geometry *g)
{
	return rows_of(g).asics * columns_of(g).asics;
}

void sl_layout_piece(const struct sl_geometry *g, uint32_t module, uint32_t index,
		     struct sl_layout_piece *piece)
{
	const struct sl_layout_module *at = &g->layout.module[module];
	struct axis down = rows_of(g), across = columns_of(g);
	uint32_t r = index / across.asics, c = index % across.asics;

	*piece = (struct sl_layout_piece){.first_row = r * down.length,
					  .first_column = c * across.length,
					  .rows = down.length,
					  .columns = across.length,
					  .row = r * (down.length + down.gap),
					  .column = c * (across.length + across.gap)};
	turn(at->turns, extent(down), extent(across), &piece->row, &piece->column);
	piece->row += at->row;
	piece->column += at->column;
}

static double clamp(double x, double from, double to)
{
	return x < from ? from : x >= to ? to - 1 : x;
}

void sl_layout_beam_in_stack(const struct sl_geometry *g, double *row, double *column)
{
	const struct sl_layout *l = &g->layout;
	double nearest = -1;

	for (uint32_t m = 0; m < g->modules; m++) {
		const struct sl_layout_module *at = &l->module[m];
		uint32_t rows, columns, pixel = 0;
		double r, c, far;

		sl_layout_extent(g, m, &rows, &columns);
		r = clamp(l->beam_row, at->row, (double)at->row + rows);
		c = clamp(l->beam_column, at->column, (double)at->column + columns);
		far = (r - l->beam_row) * (r - l->beam_row) +
		      (c - l->beam_column) * (c - l->beam_column);
		if (nearest >= 0 && far >= nearest)
			continue;
		nearest = far;
		sl_layout_raw(g, m, (int64_t)r, (int64_t)c, &pixel);
		*row = (double)m * g->rows + pixel / g->columns + r - (double)(int64_t)r;
		*column = pixel % g->columns + c - (double)(int64_t)c;
	}
}

/* One line of the image on a module: raw pixels that lie `pitch` bytes apart, in runs that the
 * ASICs' edges end. */
struct line {
	const uint8_t *from; /* raw pixel 0 of the direction in which the line runs */
	int64_t pitch;	     /* bytes between two of them */
	struct axis axis;
	bool backwards;
};

static void copy_pixel(uint32_t bytes, const uint8_t *from, uint8_t *to)
{
	if (bytes == 2)
		memcpy(to, from, 2);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		*to = *from;
}

static void copy_line(const struct line *line, uint32_t bytes, uint8_t *to)
{
	uint32_t count = extent(line->axis);

	for (uint32_t i = 0; i < count;) {
		uint32_t at = line->backwards ? count - 1 - i : i;
		uint32_t raw = raw_at(line->axis, at), inside = raw % line->axis.length;
		uint32_t run = 1;

		/* Between an ASIC's edges raw pixels follow each other. */
		if (!line->backwards && inside > 0)
			run = line->axis.length - inside;
		if (run > 1 && line->pitch == bytes) {
			memcpy(to + (size_t)i * bytes, line->from + (size_t)raw * bytes,
			       (size_t)run * bytes);
		} else {
			run = 1;
			copy_pixel(bytes, line->from + raw * line->pitch, to + (size_t)i * bytes);
		}
		i += run;
	}
}

static void place_module(const struct sl_geometry *g, uint32_t module, uint32_t bytes,
			 const uint8_t *from, uint8_t *image)
{
	const struct sl_layout_module *at = &g->layout.module[module];
	uint32_t rows, columns, turns = at->turns;
	struct axis down = rows_of(g), across = columns_of(g);
	int64_t pitch = (int64_t)g->columns * bytes;

	sl_layout_extent(g, module, &rows, &columns);
	for (uint32_t r = 0; r < rows; r++) {
		uint8_t *to = image +
			      ((uint64_t)(at->row + r) * g->layout.columns + at->column) * bytes;
		struct line line = {.backwards = turns == 1 || turns == 2};

		if (turns & 1) { /* the line runs down the module */
			uint32_t c = raw_at(across, turns == 1 ? r : rows - 1 - r);

			line.axis = down;
			line.pitch = pitch;
			line.from = from + (uint64_t)c * bytes;
		} else {
			uint32_t raw = raw_at(down, turns == 0 ? r : rows - 1 - r);

			line.axis = across;
			line.pitch = bytes;
			line.from = from + raw * pitch;
		}
		copy_line(&line, bytes, to);
	}
}

void sl_layout_assemble(const struct sl_geometry *g, uint32_t bytes, const void *modules,
			uint64_t missing, const void *fill, void *image)
{
	uint64_t pixels = (uint64_t)g->layout.rows * g->layout.columns;
	uint64_t module_bytes = sl_geometry_pixels(g) * bytes;

	for (uint64_t i = 0; i < pixels; i++)
		copy_pixel(bytes, fill, (uint8_t *)image + i * bytes);
	for (uint32_t m = 0; m < g->modules; m++)
		if (!(missing >> m & 1))
			place_module(g, m, bytes, (const uint8_t *)modules + m * module_bytes,
				     image);
}
