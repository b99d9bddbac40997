/* nxmx_plane.c - the parts of a file as one plane. */
#include <math.h>
#include <stdlib.h>

#include "geometry/nxmx.h"
#include "geometry/plane.h"

static void corner_of(const struct sl_panel *p, int corner, double *row, double *column,
		      double place[3])
{
	double down = corner & 1 ? p->rows : 0, right = corner & 2 ? p->columns : 0;

	*row = p->first_row + down;
	*column = p->first_column + right;
	for (int i = 0; i < 3; i++)
		place[i] = p->origin[i] + down * p->slow[i] + right * p->fast[i];
}

void sl_nxmx_plane(const struct sl_nxmx_geometry *g, struct sl_plane *plane, double *worst_m)
{
	struct sl_plane_sums sums = {
		.row = g->rows / 2.0, .column = g->columns / 2.0, .size = g->pixel_size_m};
	double row, column, place[3], fitted[3];

	for (uint32_t i = 0; i < 4 * g->parts; i++) {
		corner_of(&g->part[i / 4], i % 4, &row, &column, place);
		sl_plane_sums_add(&sums, row, column, place);
	}
	sl_plane_sums_solve(&sums, plane);
	*worst_m = 0;
	for (uint32_t i = 0; i < 4 * g->parts; i++) {
		double far = 0;

		corner_of(&g->part[i / 4], i % 4, &row, &column, place);
		sl_plane_point(plane, row, column, fitted);
		for (int k = 0; k < 3; k++)
			far += (place[k] - fitted[k]) * (place[k] - fitted[k]);
		*worst_m = fmax(*worst_m, sqrt(far));
	}
}

void sl_nxmx_geometry_free(struct sl_nxmx_geometry *geometry)
{
	free(geometry->part);
	*geometry = (struct sl_nxmx_geometry){.parts = 0};
}
