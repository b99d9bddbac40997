/* plan.c - the constants of a Hough map, rounded once. */
#include <math.h>
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"

/* How well a bend tells q/pT, per GeV: by strips, and by the digits it is written with. */
static const double BEND_CM_PER_GEV = 1.7, BEND_DIGIT = SL_STUB_BEND_PER_GeV / 2;

static int32_t fixed(double rows)
{
	return (int32_t)lrint(rows * SL_TRACKS_ONE);
}

/* Columns that come within the tolerance of a bend; half: of the width of one. */
static void bends(struct sl_tracks_plan *p, double half)
{
	for (int b = 0; b < 16; b++)
		for (int k = 0; k < SL_TRACKS_BEND_R; k++) {
			double r_cm = k * (4096. / SL_TRACKS_BEND_R) * SL_STUB_R_CM;
			double x = (b < 8 ? b : b - 16) * SL_STUB_BEND_PER_GeV;
			double off = p->set.bend * BEND_CM_PER_GEV / r_cm + BEND_DIGIT + half;
			uint32_t first = 0, last = p->set.columns - 1;

			/* At the beam nothing is known; the last column always stays. */
			if (p->set.bend > 0 && k > 0) {
				while (first < last && (double)p->x[first] < x - off)
					first++;
				while (last > first && (double)p->x[last] > x + off)
					last--;
			}
			p->first[b][k] = (uint8_t)first;
			p->after[b][k] = (uint8_t)(last - first);
		}
}

void sl_tracks_plan(struct sl_tracks_plan *p, const struct sl_tracks_settings *set)
{
	bool hexagons = set->cells != SL_TRACKS_RECTANGLES;
	double x_max = 1 / set->min_pt_GeV, y_max = SL_PI / SL_TRACKER_PHI_SECTORS;
	double dx = 2 * x_max / (hexagons ? set->columns - 1 : set->columns);
	double dy = 2 * y_max / (hexagons ? set->rows - 1 / 6. : set->rows);
	double turn = SL_TRACKER_K * SL_STUB_R_CM / dy; /* rows per unit of r and 1 / GeV */
	double r_at = SL_TRACKER_R_PHI / SL_STUB_R_CM;
	double half = hexagons ? dx : dx / 2;

	memset(p, 0, sizeof(*p));
	p->set = *set;
	p->words = (set->rows + 31) / 32;
	p->padded = (set->columns + SL_TRACKS_VECTOR - 1) / SL_TRACKS_VECTOR * SL_TRACKS_VECTOR;
	p->turn = fixed(SL_STUB_PHI_RAD / dy);
	p->reach = fixed(turn * half);
	p->reach_at = fixed(turn * half * r_at);
	for (uint32_t i = 0; i < set->columns; i++) {
		double x = -x_max + (hexagons ? i : i + 0.5) * dx;
		double y = y_max / dy - turn * x * r_at;

		p->x[i] = (float)x;
		p->slope[i] = fixed(turn * x);
		/* Rows count from the bottom of a rectangle; from the middle of a hexagon, or, for
		 * one, from where it begins on the middle of the column, 1/3 below. */
		if (set->cells == SL_TRACKS_HEXAGONS)
			y -= i % 2 ? 2 / 3. : 1 / 6.;
		if (set->cells == SL_TRACKS_ONE_HEXAGON)
			y -= i % 2 ? 1 / 3. : -1 / 6.;
		p->offset[i] = fixed(y);
		p->side[i] = fixed(y - 1 / 6.); /* and 1/6 below at the sides */
	}
	p->row = (float)dy;
	p->y[0] = (float)(-y_max + dy * (hexagons ? 1 / 6. : 1 / 2.));
	p->y[1] = (float)(-y_max + dy * (hexagons ? 2 / 3. : 1 / 2.));
	p->x_window = (float)(x_max / 4);
	p->y_window = (float)(y_max / 4);
	bends(p, half);
}
