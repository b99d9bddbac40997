/* oracle.h - a Hough transform in double precision, one stub and one cell at a time, written
 * by the words of docs/reference/tracks.md: what the stage `tracks` is compared with by its test,
 * and beside what it is measured by `sluice bench trigger`.
 *
 * Where a line comes so near to the edge of a cell that rounding decides, the cell is unsure: how
 * near that is follows from half a unit in the last place of every constant of the stage, which are
 * integers in 2^-22 of a row. */
#ifndef SL_STAGE_TRACKS_ORACLE_H
#define SL_STAGE_TRACKS_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/events.h>

enum { ORACLE_CELLS = 64 };

struct oracle {
	uint32_t kind; /* 0 rectangles, 1 hexagons, 2 one hexagon of a column at most */
	int columns, rows;
	double x_max, bend;
	uint8_t layer[SL_STUBS];
	/* A bit per stub, and layers of all stubs that are in it for sure, or perhaps. */
	uint64_t stubs[ORACLE_CELLS][ORACLE_CELLS][3], unsure[ORACLE_CELLS][ORACLE_CELLS][3];
	uint8_t layers[ORACLE_CELLS][ORACLE_CELLS], perhaps[ORACLE_CELLS][ORACLE_CELLS];
	uint64_t touched, doubtful; /* pairs of stub and cell, and those that are unsure */
};

/* The one cell that a line meets in a column of hexagons, by thirds of a row; -1: none. */
static inline int oracle_one_hexagon(const struct oracle *o, double middle, double low, double high)
{
	long third = (long)floor(3 * middle);
	long below = (long)floor(3 * low), above = (long)floor(3 * high);
	long at;

	if ((third % 3 + 3) % 3 != 2)
		at = third;
	else if ((below % 3 + 3) % 3 == 0)
		at = below;
	else if ((above % 3 + 3) % 3 == 0)
		at = above;
	else
		return -1;
	at = (long)floor((double)at / 3);
	return at >= 0 && at < o->rows ? (int)at : -1;
}

/* Does the line, `y` above the middle of a hexagon on the middle of its column, touch it? It does
 * unless all six corners are on one side of it. In rows and widths of a column; rise: of the line
 * from one column to the next. */
static inline bool oracle_touches(double y, double rise)
{
	static const double corner[6][2] = {{0, 1 / 3.},  {1, 1 / 6.},	 {1, -1 / 6.},
					    {0, -1 / 3.}, {-1, -1 / 6.}, {-1, 1 / 6.}};
	int above = 0, below = 0;

	for (int k = 0; k < 6; k++) {
		double off = corner[k][1] - (y + rise * corner[k][0]);

		above += off > 0;
		below += off < 0;
	}
	return above < 6 && below < 6;
}

/* votes[row]: in how many of the trials the line is in that cell; how many trials. */
static inline int oracle_column(const struct oracle *o, const struct sl_stub *stub, int column,
				int *votes)
{
	const double y_max = SL_PI / 32, unit = 0.5 / (1 << 22);
	bool hexagons = o->kind != 0;
	double dx = 2 * o->x_max / (hexagons ? o->columns - 1 : o->columns);
	double dy = 2 * y_max / (hexagons ? o->rows - 1. / 6 : o->rows);
	double x = hexagons ? -o->x_max + column * dx : -o->x_max + (column + 0.5) * dx;
	double lever = SL_TRACKER_K * (stub->r * SL_STUB_R_CM - SL_TRACKER_R_PHI);
	double y = (stub->phi * SL_STUB_PHI_RAD + lever * x + y_max) / dy;
	double off_line = unit * (abs(stub->phi) + stub->r + 6);
	double off_end = off_line + unit * (stub->r + 6);
	double reach = fabs(lever) * (hexagons ? dx : dx / 2) / dy;
	int trials = 0, far = 3 + (int)reach;

	for (int k = 0; k < 27; k++) {
		double middle = y + (k % 3 - 1) * off_line;
		double low = y - reach + (k / 3 % 3 - 1) * off_end;
		double high = y + reach + (k / 9 - 1) * off_end;

		trials++;
		if (o->kind == 1) {
			double rise = lever * dx / dy + (k / 3 % 3 - 1) * off_end;
			int near = (int)floor(y);

			/* Rows so far away that no line gets there are left out. */
			for (int at = near - far; at <= near + far; at++)
				if (at >= 0 && at < o->rows)
					votes[at] += oracle_touches(
						middle - at - (column % 2 ? 2 / 3. : 1 / 6.), rise);
			continue;
		}
		if (o->kind == 2) {
			double up = column % 2 ? 1. / 2 : 0;
			int at = oracle_one_hexagon(o, middle + 1. / 6 - up, low - up, high - up);

			if (at >= 0)
				votes[at]++;
			continue;
		}
		for (int at = (int)fmax(floor(low), 0); at <= floor(high) && at < o->rows; at++)
			votes[at]++;
	}
	return trials;
}

/* Is the column within the tolerance of the stub's bend? The nearest one always is. */
static inline bool oracle_bends(const struct oracle *o, const struct sl_stub *stub, int column)
{
	double dx = 2 * o->x_max / (o->kind ? o->columns - 1 : o->columns);
	double first = o->kind ? -o->x_max : -o->x_max + dx / 2, last = -first;
	double r_cm = stub->r / 64 * 64 * SL_STUB_R_CM, x = stub->bend / 14.;
	double off = o->bend * 1.7 / r_cm + 1 / 28. + (o->kind ? dx : dx / 2);

	if (!(o->bend > 0) || stub->r < 64)
		return true;
	if (x - off > last)
		return column == o->columns - 1;
	if (x + off < first)
		return column == 0;
	return fabs(first + column * dx - x) <= off;
}

static inline void oracle_add(struct oracle *o, const struct sl_stub *stub, int index)
{
	for (int c = 0; c < o->columns; c++) {
		int votes[ORACLE_CELLS] = {0};
		int trials = oracle_column(o, stub, c, votes);

		if (!oracle_bends(o, stub, c))
			continue;
		for (int row = 0; row < o->rows; row++) {
			if (!votes[row])
				continue;
			o->touched++;
			o->perhaps[c][row] |= (uint8_t)(1 << stub->layer);
			if (votes[row] < trials) {
				o->doubtful++;
				o->unsure[c][row][index / 64] |= 1ull << index % 64;
				continue;
			}
			o->stubs[c][row][index / 64] |= 1ull << index % 64;
			o->layers[c][row] |= (uint8_t)(1 << stub->layer);
		}
	}
}

/* kind, columns, rows, x_max and bend are set. */
static inline void oracle_fill(struct oracle *o, const uint8_t *row)
{
	struct sl_stub stub;

	memset(o->stubs, 0, sizeof(o->stubs));
	memset(o->unsure, 0, sizeof(o->unsure));
	memset(o->layers, 0, sizeof(o->layers));
	memset(o->perhaps, 0, sizeof(o->perhaps));
	for (int i = 0; i < SL_STUBS && sl_stub_unpack(row + i * SL_STUB_BYTES, &stub); i++)
		if (stub.layer) {
			o->layer[i] = (uint8_t)stub.layer;
			oracle_add(o, &stub, i);
		}
}

/* ---- candidates ---- */

/* Cells in the order of the stage, by brute force; false where rounding decides one. */
static inline bool oracle_candidates(const struct oracle *o, uint32_t common, uint8_t (*kept)[2],
				     uint32_t *n)
{
	*n = 0;
	for (int layers = 7; layers >= 5; layers--)
		for (int c = 0; c < o->columns; c++)
			for (int row = 0; row < o->rows; row++) {
				bool is_new = true;

				if (__builtin_popcount(o->perhaps[c][row]) < 5)
					continue;
				if (o->unsure[c][row][0] | o->unsure[c][row][1] |
				    o->unsure[c][row][2])
					return false;
				if (__builtin_popcount(o->layers[c][row]) != layers)
					continue;
				for (uint32_t i = 0; i < *n && is_new; i++) {
					const uint64_t *a = o->stubs[c][row];
					const uint64_t *b = o->stubs[kept[i][0]][kept[i][1]];
					uint32_t both = 0;

					for (int s = 0; s < SL_STUBS; s++)
						if (a[s / 64] & b[s / 64] & 1ull << s % 64)
							both |= 1u << o->layer[s];
					is_new = !common ||
						 (uint32_t)__builtin_popcount(both) < common;
				}
				if (!is_new)
					continue;
				kept[*n][0] = (uint8_t)c;
				kept[(*n)++][1] = (uint8_t)row;
			}
	return true;
}

#endif
