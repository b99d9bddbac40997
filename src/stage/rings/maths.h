/* maths.h - circles through hits: through three of them, or as near to many as can be.
 *
 * Model: sl_vector is a number of each of several events side by side, or of one (a float), so that
 * one text serves vectors of every width, CUDA and OpenCL. Whoever wants vectors defines
 * SL_RINGS_VECTOR, sl_vector, sl_vector_mask and the functions below on them before. Lengths
 * are in mm.
 *
 * A point at distance d from the centre of a circle has the power p = d^2 - r^2 with regard to it.
 * Of four points on one circle p is 0, which is the same as Ptolemy's theorem (of a quadrangle in a
 * circle, the product of the diagonals is the sum of those of opposite sides), but needs no
 * root. Off the circle by e, p is 2 r e + e^2, so that p / 2r measures how far off. */
#ifndef SL_STAGE_RINGS_MATHS_H
#define SL_STAGE_RINGS_MATHS_H

#include "gpu/dialect/language.h"

#ifndef SL_RINGS_VECTOR
#define SL_RINGS_VECTOR 1
typedef float sl_vector;
typedef sl_i32 sl_vector_mask; /* of comparisons; & and | work on it */

SL_FN sl_vector sl_vector_all(float value)
{
	return value;
}

SL_FN sl_vector sl_vector_pick(sl_vector_mask yes, sl_vector a, sl_vector b)
{
	return yes ? a : b;
}

/* Where it is a number. */
SL_FN sl_vector sl_vector_above_zero(sl_vector a)
{
	return a > 0 ? a : 0;
}
#endif

struct sl_rings_circle {
	sl_vector x, y, square; /* of the radius */
};

/* Of a circle that is accepted. */
struct sl_rings_limits {
	float least, most; /* square of the radius */
	float reach;	   /* square of the centre's distance from the middle */
	float window;	   /* square of the distance up to which hits belong to it */
};

/* Through three points. What lies on a line makes no number of it, or one that is beyond all
 * limits. */
SL_FN struct sl_rings_circle sl_rings_through(sl_vector x0, sl_vector y0, sl_vector x1,
					      sl_vector y1, sl_vector x2, sl_vector y2)
{
	sl_vector u1 = x1 - x0, v1 = y1 - y0, u2 = x2 - x0, v2 = y2 - y0;
	sl_vector n1 = u1 * u1 + v1 * v1, n2 = u2 * u2 + v2 * v2;
	sl_vector scale = 0.5f / (u1 * v2 - u2 * v1);
	sl_vector x = (v2 * n1 - v1 * n2) * scale, y = (u1 * n2 - u2 * n1) * scale;
	struct sl_rings_circle circle;

	circle.x = x0 + x;
	circle.y = y0 + y;
	circle.square = x * x + y * y;
	return circle;
}

SL_FN sl_vector_mask sl_rings_is_within(struct sl_rings_circle c, struct sl_rings_limits limits)
{
	return (c.square >= limits.least) & (c.square <= limits.most) &
	       (c.x * c.x + c.y * c.y <= limits.reach);
}

SL_FN sl_vector sl_rings_power(struct sl_rings_circle c, sl_vector x, sl_vector y)
{
	sl_vector dx = x - c.x, dy = y - c.y;

	return dx * dx + dy * dy - c.square;
}

/* The most that the square of a member's power may be. */
SL_FN sl_vector sl_rings_bound(struct sl_rings_circle c, float window)
{
	return c.square * (4 * window);
}

/* What a hit says for a circle: most when it is on it, nothing from the window's edge on. */
SL_FN sl_vector sl_rings_credit(struct sl_rings_circle c, sl_vector bound, sl_vector x, sl_vector y)
{
	sl_vector power = sl_rings_power(c, x, y);

	return sl_vector_above_zero(bound - power * power);
}

/* Means over points whose centroid is the origin, in a unit that makes them about 1;
 * z = x^2 + y^2. */
struct sl_rings_moments {
	sl_vector xx, yy, xy, xz, yz, zz;
};

/* Taubin's fit (1991): of all circles the one with the least sum of squares of powers over the mean
 * square of their gradient, by Newton's method from 0 on, as N. Chernov (Circular and Linear
 * Regression, 2010, 5.9) gives the polynomial. Five steps are more than floats need. Points on a
 * line, or in two places, are near to any number of circles: they get one that is within no
 * limits. */
SL_FN struct sl_rings_circle sl_rings_taubin(struct sl_rings_moments m)
{
	sl_vector mean = m.xx + m.yy, spread = m.zz - mean * mean, area = m.xx * m.yy - m.xy * m.xy;
	sl_vector a3 = 4 * mean, a2 = -3 * mean * mean - m.zz;
	sl_vector a1 = spread * mean + 4 * area * mean - m.xz * m.xz - m.yz * m.yz;
	sl_vector a0 = m.xz * (m.xz * m.yy - m.yz * m.xy) + m.yz * (m.yz * m.xx - m.xz * m.xy) -
		       spread * area;
	sl_vector root = sl_vector_all(0), scale;
	struct sl_rings_circle circle;

	for (int i = 0; i < 5; i++)
		root = root - (a0 + root * (a1 + root * (a2 + root * a3))) /
				      (a1 + root * (2 * a2 + root * (3 * a3)));
	scale = 0.5f / (root * root - root * mean + area);
	circle.x = (m.xz * (m.yy - root) - m.yz * m.xy) * scale;
	circle.y = (m.yz * (m.xx - root) - m.xz * m.xy) * scale;
	circle.square = sl_vector_pick(area > 1e-4f * mean * mean,
				       circle.x * circle.x + circle.y * circle.y + mean,
				       sl_vector_all(-1));
	return circle;
}

/* The square of a ring's radius, in mm, for light of a particle of mass m (GeV) and momentum p in
 * neon: focal length 17 m, n - 1 = 62.8e-6. Not above 0: there is no light. */
SL_FN float sl_rings_light(float mass, float momentum)
{
	float ratio = mass / momentum;

	return 17000.f * 17000.f * (2 * 62.8e-6f - ratio * ratio);
}

#endif
