/* oracle.h - rings in double precision, by all triplets of hits: what the stage `rings` is
 * compared with by its test, and beside what it is measured by `sluice bench trigger`.
 *
 * Model:     the definition of docs/reference/rings.md written anew, with no thought of speed:
 *            every circle through three hits is tried, and Taubin's circle is an eigenvector
 *            rather than a root by Newton's method.
 * Threads:   pure functions.
 * Cost:      a hundred microseconds an event. */
#ifndef SL_STAGE_RINGS_ORACLE_H
#define SL_STAGE_RINGS_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "stage/rings/find.h"

struct rings_oracle_circle {
	double x, y, r;
};

struct rings_oracle {
	const struct sl_rings_settings *set;
	double x[SL_RICH_HITS], y[SL_RICH_HITS];
	int hits, ring_of[SL_RICH_HITS]; /* -1: none */
	struct rings_oracle_circle ring[4];
	int rings;
};

static inline bool rings_oracle_accepts(const struct sl_rings_settings *set,
					struct rings_oracle_circle c)
{
	return c.r >= set->radius_min && c.r <= set->radius_max && hypot(c.x, c.y) <= set->reach;
}

/* How far a hit is off, as the definition has it: by its power. */
static inline double rings_oracle_off(struct rings_oracle_circle c, double x, double y)
{
	return fabs(pow(x - c.x, 2) + pow(y - c.y, 2) - c.r * c.r) / (2 * c.r);
}

static inline double rings_oracle_determinant(double a[3][3])
{
	return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
	       a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
	       a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* Taubin's circle A z + B x + C y + D = 0: least sum of squares where the mean of 4 A^2 z + 4 A B x
 * + 4 A C y + B^2 + C^2 is 1. About the centroid D is -A mean(z), and what is left is the least
 * root of a cubic, found by bisection between 0 and where the determinant changes its sign. */
static inline struct rings_oracle_circle rings_oracle_fit(const struct rings_oracle *o,
							  const bool *member)
{
	double n = 0, mx = 0, my = 0, mz = 0, m[3][3] = {{0}}, low = 0, high, a[3][3], v[3];
	struct rings_oracle_circle c = {0, 0, -1};

	for (int i = 0; i < o->hits; i++)
		if (member[i]) {
			n++;
			mx += o->x[i];
			my += o->y[i];
		}
	if (n < 3)
		return c;
	mx /= n;
	my /= n;
	for (int i = 0; i < o->hits; i++)
		if (member[i])
			mz += (pow(o->x[i] - mx, 2) + pow(o->y[i] - my, 2)) / n;
	/* The unit of z is such that the constraint is A'^2 + B^2 + C^2 = 1, A' = 2 A sqrt(mz). */
	for (int i = 0; i < o->hits; i++) {
		double x = o->x[i] - mx, y = o->y[i] - my;
		double row[3] = {(x * x + y * y - mz) / (2 * sqrt(mz)), x, y};

		for (int j = 0; j < 3 && member[i]; j++)
			for (int k = 0; k < 3; k++)
				m[j][k] += row[j] * row[k] / n;
	}
	/* The least eigenvalue: where det(m - t) first crosses zero; it is below the least diagonal
	 * element. */
	high = fmin(m[0][0], fmin(m[1][1], m[2][2]));
	for (int step = 0; step < 100; step++) {
		double t = (low + high) / 2;

		/* m - t is positive definite below it: all leading minors are above zero. */
		memcpy(a, m, sizeof(a));
		for (int j = 0; j < 3; j++)
			a[j][j] -= t;
		if (a[0][0] > 0 && a[0][0] * a[1][1] - a[0][1] * a[1][0] > 0 &&
		    rings_oracle_determinant(a) > 0)
			low = t;
		else
			high = t;
	}
	memcpy(a, m, sizeof(a));
	for (int j = 0; j < 3; j++)
		a[j][j] -= low;
	/* Its vector is at right angles to two rows: with A' = 1, rows 1 and 2 give B and C. */
	v[0] = a[1][1] * a[2][2] - a[1][2] * a[2][1];
	v[1] = -(a[1][0] * a[2][2] - a[1][2] * a[2][0]);
	v[2] = -(a[1][1] * a[2][0] - a[1][0] * a[2][1]);
	c.x = -v[1] / v[0] * sqrt(mz);
	c.y = -v[2] / v[0] * sqrt(mz);
	c.r = sqrt(c.x * c.x + c.y * c.y + mz);
	c.x += mx;
	c.y += my;
	return c;
}

static inline struct rings_oracle_circle rings_oracle_through(const struct rings_oracle *o, int i,
							      int j, int k)
{
	double ux = o->x[j] - o->x[i], uy = o->y[j] - o->y[i];
	double vx = o->x[k] - o->x[i], vy = o->y[k] - o->y[i];
	double area = ux * vy - uy * vx, u = ux * ux + uy * uy, v = vx * vx + vy * vy;
	double x = (u * vy - v * uy) / (2 * area), y = (v * ux - u * vx) / (2 * area);

	return (struct rings_oracle_circle){o->x[i] + x, o->y[i] + y,
					    fabs(area) > 1 ? hypot(x, y) : -1};
}

static inline struct rings_oracle_circle rings_oracle_best(const struct rings_oracle *o,
							   const bool *is_left)
{
	struct rings_oracle_circle best = {0, 0, -1};
	double most = 0;

	for (int i = 0; i < o->hits; i++)
		for (int j = i + 1; j < o->hits; j++)
			for (int k = j + 1; k < o->hits; k++) {
				struct rings_oracle_circle c;
				double credit = 0;

				if (!is_left[i] || !is_left[j] || !is_left[k])
					continue;
				c = rings_oracle_through(o, i, j, k);
				if (!rings_oracle_accepts(o->set, c))
					continue;
				for (int h = 0; h < o->hits; h++)
					if (is_left[h])
						credit +=
							fmax(0, 1 - pow(rings_oracle_off(c, o->x[h],
											 o->y[h]) /
										o->set->window,
									2));
				if (credit > most) {
					most = credit;
					best = c;
				}
			}
	return best;
}

static inline int rings_oracle_members(const struct rings_oracle *o, const bool *of,
				       struct rings_oracle_circle c, double window, bool *member)
{
	int n = 0;

	for (int i = 0; i < o->hits; i++) {
		member[i] = of[i] && c.r > 0 && rings_oracle_off(c, o->x[i], o->y[i]) < window;
		n += member[i];
	}
	return n;
}

static inline void rings_oracle_search(struct rings_oracle *o)
{
	static const double windows[] = {1.5, 1.224744871, 1};
	bool is_left[SL_RICH_HITS], member[SL_RICH_HITS];

	for (int i = 0; i < o->hits; i++)
		is_left[i] = true;
	for (o->rings = 0; o->rings < 3; o->rings++) {
		struct rings_oracle_circle c = rings_oracle_best(o, is_left);

		for (int i = 0; i < 3; i++) {
			rings_oracle_members(o, is_left, c, windows[i] * o->set->window, member);
			c = rings_oracle_fit(o, member);
		}
		if (rings_oracle_members(o, is_left, c, o->set->window, member) <
			    (int)o->set->min_own ||
		    !rings_oracle_accepts(o->set, c))
			break;
		o->ring[o->rings] = c;
		for (int i = 0; i < o->hits; i++)
			is_left[i] &= !member[i];
	}
}

static inline void rings_oracle_assign(struct rings_oracle *o, const bool *live)
{
	for (int i = 0; i < o->hits; i++) {
		double least = o->set->window;

		o->ring_of[i] = -1;
		for (int r = 0; r < o->rings; r++) {
			double off = rings_oracle_off(o->ring[r], o->x[i], o->y[i]);

			if (live[r] && off < least) {
				least = off;
				o->ring_of[i] = r;
			}
		}
	}
}

static inline int rings_oracle_own(const struct rings_oracle *o, int ring, bool *member)
{
	int n = 0;

	for (int i = 0; i < o->hits; i++) {
		member[i] = o->ring_of[i] == ring;
		n += member[i];
	}
	return n;
}

static inline void rings_oracle_share(struct rings_oracle *o)
{
	bool live[3] = {true, true, true}, member[SL_RICH_HITS], all[SL_RICH_HITS];
	int n = 0;

	memset(all, true, sizeof(all));
	for (int step = 0; step < 3; step++) {
		rings_oracle_assign(o, live);
		for (int r = 0; r < o->rings; r++) {
			struct rings_oracle_circle c;

			if (rings_oracle_own(o, r, member) < (int)o->set->min_own)
				live[r] = false;
			c = rings_oracle_fit(o, member);
			if (rings_oracle_accepts(o->set, c))
				o->ring[r] = c;
		}
	}
	rings_oracle_assign(o, live);
	for (int r = 0; r < o->rings; r++)
		if (live[r] && rings_oracle_own(o, r, member) >= (int)o->set->min_own &&
		    rings_oracle_members(o, all, o->ring[r], o->set->window, member) >=
			    (int)o->set->min_hits)
			o->ring[n++] = o->ring[r];
	o->rings = n;
}

static inline void rings_oracle_event(const struct sl_rings_settings *set, const uint8_t *event,
				      struct rings_oracle *o)
{
	*o = (struct rings_oracle){.set = set, .hits = (int)sl_rich_hits(event)};
	for (int i = 0; i < o->hits; i++)
		sl_rich_position(sl_rich_hit(event, (uint32_t)i), &o->x[i], &o->y[i]);
	if (o->hits < (int)o->set->min_hits)
		return;
	rings_oracle_search(o);
	rings_oracle_share(o);
}

#endif
