/* canvas.c - dots, lines and circles, plainly. */
#include "detector/canvas.h"

#include <math.h>

#include "detector/trig.h"

static double scale(const struct sl_canvas *c)
{
	return (c->rows < c->columns ? c->rows : c->columns) / c->span;
}

static double column(const struct sl_canvas *c, double x)
{
	return c->columns / 2. + (x - c->x) * scale(c);
}

static double row(const struct sl_canvas *c, double y)
{
	return c->rows / 2. - (y - c->y) * scale(c);
}

static void set(const struct sl_canvas *c, long y, long x, uint32_t colour)
{
	uint8_t *at;

	if (y < 0 || x < 0 || y >= (long)c->rows || x >= (long)c->columns)
		return;
	at = c->rgb + ((uint64_t)y * c->columns + (uint64_t)x) * 3;
	at[0] = (uint8_t)(colour >> 16);
	at[1] = (uint8_t)(colour >> 8);
	at[2] = (uint8_t)colour;
}

void sl_canvas_clear(const struct sl_canvas *c, uint32_t colour)
{
	for (long y = 0; y < (long)c->rows; y++)
		for (long x = 0; x < (long)c->columns; x++)
			set(c, y, x, colour);
}

void sl_canvas_dot(const struct sl_canvas *c, double x, double y, double radius, uint32_t colour)
{
	double cx = column(c, x), cy = row(c, y), r = fmax(radius * scale(c), 0.5);

	for (long py = (long)floor(cy - r); py <= (long)(cy + r); py++)
		for (long px = (long)floor(cx - r); px <= (long)(cx + r); px++) {
			double dx = (double)px + 0.5 - cx, dy = (double)py + 0.5 - cy;

			if (dx * dx + dy * dy <= r * r)
				set(c, py, px, colour);
		}
}

/* The shares of the line, from 0 to 1, between which p + t d is within 0 .. limit. */
static void clip(double p, double d, double limit, double *from, double *to)
{
	double a = (0 - p) / d, b = (limit - p) / d;

	if (d == 0) {
		if (p < 0 || p > limit)
			*to = -1;
		return;
	}
	*from = fmax(*from, fmin(a, b));
	*to = fmin(*to, fmax(a, b));
}

void sl_canvas_line(const struct sl_canvas *c, double x0, double y0, double x1, double y1,
		    uint32_t colour)
{
	double px = column(c, x0), py = row(c, y0);
	double dx = column(c, x1) - px, dy = row(c, y1) - py, from = 0, to = 1, steps;

	clip(px, dx, c->columns, &from, &to);
	clip(py, dy, c->rows, &from, &to);
	if (from > to)
		return;
	steps = fmax(ceil(fmax(fabs(dx), fabs(dy)) * (to - from)), 1);
	for (double i = 0; i <= steps; i++) {
		double t = from + (to - from) * i / steps;

		set(c, (long)floor(py + t * dy), (long)floor(px + t * dx), colour);
	}
}

void sl_canvas_circle(const struct sl_canvas *c, double x, double y, double radius, uint32_t colour)
{
	enum { SIDES = 360 };
	double before_x = x + radius, before_y = y;

	for (int i = 1; i <= SIDES; i++) {
		double cosine, sine;

		sl_cos_sin((double)i / SIDES, &cosine, &sine);
		sl_canvas_line(c, before_x, before_y, x + radius * cosine, y + radius * sine,
			       colour);
		before_x = x + radius * cosine;
		before_y = y + radius * sine;
	}
}
