/* maths.h - which cells of a Hough map a stub of the tracker is in, and what a helix is.
 *
 * Model: a track from the beam is x = q/pT and y, its phi at r_T = 67.24 cm from the beam. A stub
 * at (r, phi) is on all tracks of the line y = phi + K x (r - r_T), which is cut into cells of a
 * map of columns in x by rows in y. Positions along y are integers, in 2^-22 of a row: phi and r of
 * a stub are integers already, the map's constants (src/stage/tracks/plan.c) are rounded once, and
 * so every processor has the same cells.
 *
 *   rectangles  column i is x_i +- dx/2. A stub is in all rows that its line touches there:
 *               floor(y - reach) to floor(y + reach), reach = K dx/2 |r - r_T|.
 *   hexagons    with a corner above and below: two thirds of a row high on the middle x_i of their
 *               column, one third at their sides, which are the middles of the columns beside it;
 *               every other column is half a row higher. A stub is in all hexagons that its line
 *               touches: those whose middle is less than `reach` above or below the line there, and
 *               reach is 1/3, or 1/6 + K dx |r - r_T| where lines are steep.
 *   one         as above, but one hexagon of a column at most: the one that the line meets on the
 *               middle; if it passes between two there, the one whose side it meets at the lower of
 *               its two ends, K dx |r - r_T| below, else at the upper; else none. */
#ifndef SL_STAGE_TRACKS_MATHS_H
#define SL_STAGE_TRACKS_MATHS_H

#include "gpu/dialect/language.h"

enum sl_tracks_cells { SL_TRACKS_RECTANGLES, SL_TRACKS_HEXAGONS, SL_TRACKS_ONE_HEXAGON };

enum {
	SL_TRACKS_FRACTION = 22, /* bits */
	SL_TRACKS_ONE = 1 << SL_TRACKS_FRACTION,
	SL_TRACKS_SIXTH = SL_TRACKS_ONE / 6,
	SL_TRACKS_THIRD = SL_TRACKS_ONE / 3,
	SL_TRACKS_TWO_THIRDS = 2 * SL_TRACKS_ONE / 3,
	SL_TRACKS_NO_ROW = -1,
	SL_TRACKS_POINTS = 40, /* stubs of a cell that a helix is put through, the first */
	SL_TRACKS_PAIRS = 200, /* of these, that lines are drawn through */
};

#define SL_TRACKS_K	   0.0057128451f /* rad GeV / cm */
#define SL_TRACKS_R_CM	   67.24f
#define SL_TRACKS_EDGE	   60.f /* cm: beyond it modules have strips alone, 5 cm long */
#define SL_TRACKS_APART_CM 20.f /* stubs of a pair are farther from each other */
#define SL_TRACKS_LOOSE	   4.f	/* two stubs tell less of a line than all of them */

/* Where the line is on the middle of a column, but for the column's offset. turned: phi times rows
 * per unit of phi; slope: of the column, per unit of r. */
SL_FN sl_i32 sl_tracks_line(sl_i32 turned, sl_i32 r, sl_i32 slope)
{
	return turned + r * slope;
}

SL_FN sl_i32 sl_tracks_row(sl_i32 y)
{
	return y >> SL_TRACKS_FRACTION;
}

/* How far from the middle of a cell a line may be, on the middle of its column, to touch it. steep:
 * what it rises within the cell, K dx |r - r_T|, or half of it for rectangles, which are asked
 * for the bottom of cells. */
SL_FN sl_i32 sl_tracks_reach(sl_u32 cells, sl_i32 steep)
{
	sl_i32 wide = SL_TRACKS_SIXTH + steep;

	if (cells != SL_TRACKS_HEXAGONS)
		return steep;
	return wide > SL_TRACKS_THIRD ? wide : SL_TRACKS_THIRD;
}

/* middle: of the line where corners are, lower, upper: at the sides, each with the offset of these
 * that makes it count from the bottom of a hexagon. */
SL_FN sl_i32 sl_tracks_one_hexagon(sl_i32 middle, sl_i32 lower, sl_i32 upper)
{
	const sl_i32 part = SL_TRACKS_ONE - 1;
	sl_i32 row = (upper & part) < SL_TRACKS_THIRD ? sl_tracks_row(upper) : SL_TRACKS_NO_ROW;

	row = (lower & part) < SL_TRACKS_THIRD ? sl_tracks_row(lower) : row;
	return (middle & part) < SL_TRACKS_TWO_THIRDS ? sl_tracks_row(middle) : row;
}

/* Rows low to high as bits, of the 32 from `base` on; 0 where there are none. */
SL_FN sl_u32 sl_tracks_bits(sl_i32 low, sl_i32 high, sl_i32 base)
{
	sl_i32 first = low - base > 0 ? low - base : 0;
	sl_i32 last = high - base < 31 ? high - base : 31;
	sl_u32 bits = (0xffffffffu << (first & 31)) & (0xffffffffu >> ((31 - last) & 31));

	return first <= last ? bits : 0;
}

/* Row `row` as a bit, of the 32 from `base` on. */
SL_FN sl_u32 sl_tracks_bit(sl_i32 row, sl_i32 base)
{
	sl_u32 at = (sl_u32)(row - base);

	return at < 32 ? 1u << (at & 31) : 0;
}

/* A digit of how many of seven sets of bits have a bit, for all bits at once. */
struct sl_tracks_count {
	sl_u32 ones, twos, fours;
};

SL_FN sl_u32 sl_tracks_carry(sl_u32 a, sl_u32 b, sl_u32 c)
{
	return (a & b) | (c & (a ^ b));
}

SL_FN struct sl_tracks_count sl_tracks_count(sl_u32 a, sl_u32 b, sl_u32 c, sl_u32 d, sl_u32 e,
					     sl_u32 f, sl_u32 g)
{
	sl_u32 left = a ^ b ^ c, right = d ^ e ^ f;
	sl_u32 x = sl_tracks_carry(a, b, c), y = sl_tracks_carry(d, e, f);
	sl_u32 z = sl_tracks_carry(left, right, g);
	struct sl_tracks_count count;

	count.ones = left ^ right ^ g;
	count.twos = x ^ y ^ z;
	count.fours = sl_tracks_carry(x, y, z);
	return count;
}

/* Where the count is `least` or more, 1 to 7. */
SL_FN sl_u32 sl_tracks_at_least(struct sl_tracks_count n, sl_u32 least)
{
	sl_u32 more_ones = least & 1 ? n.ones : 0xffffffffu;
	sl_u32 low = least & 2 ? n.twos & more_ones : n.twos | more_ones;

	if (!(least & 1) && !(least & 2))
		low = 0xffffffffu;
	return least & 4 ? n.fours & low : n.fours | low;
}

/* ---- helix ---- */

/* phi falls by asin(K x r) along a track, its way grows as asin(K x r) / (K x). By these, stubs lie
 * on straight lines: phi + bow over r, z over r + detour. x: q/pT, about. */
SL_FN float sl_tracks_bow(float x, float r)
{
	float turn = SL_TRACKS_K * x * r;

	return turn * turn * turn / 6;
}

SL_FN float sl_tracks_detour(float x, float r)
{
	float turn = SL_TRACKS_K * x * r;

	return r * turn * turn / 6;
}

/* What a stub is off its track by, squared, on average: strips of 95 um and the rounding of phi;
 * scattering; and where a disk's module has strips alone, how little is known of its r. */
SL_FN float sl_tracks_phi_variance(float x, float r, int disk)
{
	float strip = 0.00274f / r, scatter = 0.0006f * x, along = 0;

	if (disk)
		along = SL_TRACKS_K * x * (r > SL_TRACKS_EDGE ? 1.45f : 0.0423f);
	return strip * strip + scatter * scatter + along * along + 2e-10f;
}

/* z in cm, of macro-pixels (1.5 mm) or strips (5 cm). */
SL_FN float sl_tracks_z_variance(float x, float r, float z, int disk)
{
	float along = r > SL_TRACKS_EDGE ? 1.45f : 0.0423f, slope = z / r;
	float scatter = 0.0006f * x * r * (1 + slope * slope);

	if (disk)
		along *= slope;
	return along * along + scatter * scatter + 4e-4f;
}

#endif
