/* place.c - where pixels lie in space. The one place that computes it. */
#include <sluice/detector.h>

uint32_t sl_layout_piece_of(const struct sl_geometry *g, uint32_t pixel)
{
	const struct sl_layout *l = &g->layout;
	uint32_t rows = l->asic_rows && l->asic_rows < g->rows ? l->asic_rows : g->rows;
	uint32_t columns = l->asic_columns && l->asic_columns < g->columns ? l->asic_columns
									   : g->columns;

	return pixel / g->columns / rows * (g->columns / columns) + pixel % g->columns / columns;
}

/* Square to the beam, which is at the layout's place. */
static struct sl_plane square(const struct sl_geometry *g)
{
	double size = g->pixel_size_m;

	return (struct sl_plane){
		.corner = {g->layout.beam_column * size, g->layout.beam_row * size, g->distance_m},
		.down = {0, -size, 0},
		.right = {-size, 0, 0}};
}

void sl_layout_plane(const struct sl_geometry *g, uint32_t module, uint32_t piece,
		     struct sl_plane *plane)
{
	if (!g->planes)
		*plane = square(g);
	else if (g->planes == 1)
		*plane = g->plane[0];
	else if (g->planes == g->modules)
		*plane = g->plane[module];
	else
		*plane = g->plane[module * sl_layout_pieces(g) + piece];
}

void sl_layout_place(const struct sl_geometry *g, uint32_t module, uint32_t pixel, double down,
		     double right, double place[3])
{
	struct sl_plane plane;
	uint32_t rows, columns;
	double row, column;

	sl_layout_plane(g, module, sl_layout_piece_of(g, pixel), &plane);
	sl_layout_centre(g, module, pixel, &row, &column);
	sl_layout_size(g, module, pixel, &rows, &columns);
	row += down * rows;
	column += right * columns;
	for (int i = 0; i < 3; i++)
		place[i] = plane.corner[i] + row * plane.down[i] + column * plane.right[i];
}
