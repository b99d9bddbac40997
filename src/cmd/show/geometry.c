/* geometry.c - a detector as the beam sees it: its parts, the gaps between them, where the beam is,
 * and rings of equal resolution.
 *
 * The view is along the beam, from the sample: up is y, left is x. Rings are where what is
 * scattered by one angle hits the parts, and between them the plane that fits all parts best: on a
 * tilted detector they are ellipses, and not about the beam. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/show/show.h"

#define KEV_A 12.398419843320026

enum { RINGS = 8 };

struct view {
	const struct sl_described *d;
	uint32_t rows, columns;
	double left, top, size; /* metres: of the upper left corner (x, y), and of a pixel */
	double ring[RINGS];	/* angles, growing */
	char label[RINGS][12];
	uint32_t rings;
	uint8_t *rgb;
};

static const uint8_t night[3] = {13, 16, 27}, line[3] = {255, 214, 102}, red[3] = {255, 92, 92};
static const uint8_t white[3] = {235, 240, 248};

static void corner_of(const struct sl_panel *p, int corner, double place[3])
{
	for (int i = 0; i < 3; i++)
		place[i] = p->origin[i] + (corner & 1 ? p->rows : 0) * p->slow[i] +
			   (corner & 2 ? p->columns : 0) * p->fast[i];
}

/* All parts, and the beam if it is not far from them, with a border. */
static void choose_view(struct view *v, uint32_t height)
{
	double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, wide, tall;

	for (uint32_t i = 0; i < 4 * v->d->parts; i++) {
		double place[3];

		corner_of(&v->d->part[i / 4], i % 4, place);
		for (int k = 0; k < 2; k++) {
			low[k] = fmin(low[k], place[k]);
			high[k] = fmax(high[k], place[k]);
		}
	}
	for (int k = 0; k < 2; k++) {
		double reach = (high[k] - low[k]) / 2;

		if (low[k] > 0 && low[k] < reach)
			low[k] = 0;
		if (high[k] < 0 && high[k] > -reach)
			high[k] = 0;
		reach = (high[k] - low[k]) * 0.03;
		low[k] -= reach;
		high[k] += reach;
	}
	wide = high[0] - low[0];
	tall = high[1] - low[1];
	v->rows = height;
	v->size = tall / height;
	v->columns = (uint32_t)fmin(8192, fmax(16, wide / v->size));
	v->left = high[0];
	v->top = high[1];
}

/* Where a plane is met by what goes along the beam at (x, y): in steps of its two directions. */
static bool meet(const double origin[3], const double fast[3], const double slow[3], double x,
		 double y, double *u, double *w)
{
	double det = fast[0] * slow[1] - fast[1] * slow[0];

	x -= origin[0];
	y -= origin[1];
	*u = (x * slow[1] - y * slow[0]) / det;
	*w = (fast[0] * y - fast[1] * x) / det;
	return isfinite(*u) && isfinite(*w);
}

static double angle_at(const double origin[3], const double fast[3], const double slow[3], double x,
		       double y)
{
	double u, w;

	if (!meet(origin, fast, slow, x, y, &u, &w))
		return NAN;
	return atan2(hypot(x, y), origin[2] + u * fast[2] + w * slow[2]);
}

static double mean_angle(const struct view *v, double x, double y)
{
	return angle_at(v->d->mean.corner, v->d->mean.right, v->d->mean.down, x, y);
}

static double resolution(const struct view *v, double angle)
{
	return KEV_A / v->d->energy_keV / 2 / sin(angle / 2);
}

/* Round numbers, at least a seventh of the widest apart. */
static void choose_rings(struct view *v)
{
	static const double nice[] = {100, 50,	30,  20,  15,  10,  8,	 7,   6,   5,	4.5,
				      4,   3.5, 3,   2.8, 2.5, 2.2, 2,	 1.8, 1.6, 1.5, 1.4,
				      1.3, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3};
	double widest = 0, before = 0;

	for (uint32_t i = 0; i < 4 * v->d->parts; i++) {
		double place[3];

		corner_of(&v->d->part[i / 4], i % 4, place);
		widest = fmax(widest, atan2(hypot(place[0], place[1]), place[2]));
	}
	for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]) && v->rings < RINGS; i++) {
		bool known = v->d->energy_keV > 0;
		double sine = known ? KEV_A / v->d->energy_keV / 2 / nice[i] : 0;
		double angle = known ? 2 * asin(fmin(1, sine)) : widest * (double)(i + 1) / 7;

		if (angle - before < widest / 7.5 || angle > widest || sine > 1)
			continue;
		if (known)
			snprintf(v->label[v->rings], sizeof(v->label[0]), "%.3g A", nice[i]);
		else
			snprintf(v->label[v->rings], sizeof(v->label[0]), "%.1f deg",
				 angle * 180 / M_PI);
		v->ring[v->rings++] = before = angle;
	}
}

/* How much of a pixel a ring covers, 0 to 1: by its angle and how fast that changes there. */
static double ring_at(const struct view *v, double angle, double slope)
{
	double most = 0;

	for (uint32_t i = 0; i < v->rings && slope > 0; i++)
		most = fmax(most, 1.4 - fabs(angle - v->ring[i]) / slope);
	return fmin(1, fmax(0, most));
}

static void blend(uint8_t *at, const uint8_t colour[3], double share)
{
	for (int i = 0; i < 3; i++)
		at[i] = (uint8_t)(at[i] + share * (colour[i] - at[i]) + 0.5);
}

/* The part at a place, and how near its edge that is, in pixels of the picture. */
static const struct sl_panel *part_at(const struct view *v, double x, double y, double *edge)
{
	for (uint32_t i = 0; i < v->d->parts; i++) {
		const struct sl_panel *p = &v->d->part[i];
		double u, w, nearest;

		if (!meet(p->origin, p->fast, p->slow, x, y, &u, &w) || u < 0 || w < 0 ||
		    u >= p->columns || w >= p->rows)
			continue;
		nearest = fmin(fmin(u, p->columns - u), fmin(w, p->rows - w));
		*edge = nearest * v->d->pixel_size_m / v->size;
		return p;
	}
	return NULL;
}

static void paint(struct view *v, uint32_t row, uint32_t column)
{
	double x = v->left - (column + 0.5) * v->size, y = v->top - (row + 0.5) * v->size;
	uint8_t *at = v->rgb + ((size_t)row * v->columns + column) * 3;
	double edge = 0, angle, slope;
	const struct sl_panel *p = part_at(v, x, y, &edge);
	const double *origin = p ? p->origin : v->d->mean.corner;
	const double *fast = p ? p->fast : v->d->mean.right;
	const double *slow = p ? p->slow : v->d->mean.down;

	memcpy(at, night, 3);
	if (p) {
		uint8_t shade = p->module % 2 ? 12 : 0;
		const uint8_t metal[3] = {(uint8_t)(52 + shade), (uint8_t)(70 + shade),
					  (uint8_t)(98 + shade)};

		memcpy(at, metal, 3);
		blend(at, night, edge < 1 ? 0.55 * (1 - edge) : 0);
	}
	angle = angle_at(origin, fast, slow, x, y);
	slope = hypot(angle_at(origin, fast, slow, x + v->size, y) - angle,
		      angle_at(origin, fast, slow, x, y + v->size) - angle);
	blend(at, line, ring_at(v, angle, slope) * (p ? 0.9 : 0.45));
}

static double row_of(const struct view *v, double y)
{
	return (v->top - y) / v->size;
}

static double column_of(const struct view *v, double x)
{
	return (v->left - x) / v->size;
}

/* Beside a ring, on the first of some ways out from the beam that meets it in the picture. */
static void label_ring(struct view *v, uint32_t ring)
{
	static const double ways[] = {30, -30, 150, -150, 60, -60, 120, -120, 90, -90, 0, 180};
	uint32_t scale = v->rows >= 500 ? 2 : 1;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		double c = cos(ways[i] * M_PI / 180), s = sin(ways[i] * M_PI / 180);

		for (double r = 0; r < 2 * v->size * (v->rows + v->columns); r += v->size) {
			double row = row_of(v, r * s), column = column_of(v, -r * c);
			double room = 32 * scale;

			if (!(mean_angle(v, -r * c, r * s) >= v->ring[ring]))
				continue;
			if (row < 12 || column < room || row > v->rows - 12 ||
			    column > v->columns - room)
				break;
			for (int k = 0; k < 9; k++) /* a dark border, to be read anywhere */
				sl_glyphs_draw(v->rgb, v->rows, v->columns, row + k / 3 - 1,
					       column + k % 3 - 1, v->label[ring], scale, night);
			sl_glyphs_draw(v->rgb, v->rows, v->columns, row, column, v->label[ring],
				       scale, white);
			return;
		}
	}
}

/* The middle of a module's parts. */
static void number_modules(struct view *v)
{
	uint32_t scale = v->rows >= 500 ? 2 : 1;

	for (uint32_t m = 0; v->d->modules && m < v->d->modules; m++) {
		double x = 0, y = 0, n = 0;
		char text[12];

		for (uint32_t i = 0; i < 4 * v->d->parts; i++) {
			double place[3];

			if (v->d->part[i / 4].module != m)
				continue;
			corner_of(&v->d->part[i / 4], i % 4, place);
			x += place[0];
			y += place[1];
			n++;
		}
		snprintf(text, sizeof(text), "%u", m);
		if (n > 0 && v->d->modules > 1)
			sl_glyphs_draw(v->rgb, v->rows, v->columns, row_of(v, y / n),
				       column_of(v, x / n), text, scale,
				       (const uint8_t[3]){150, 170, 205});
	}
}

/* A cross in a circle. */
static void mark_beam(struct view *v)
{
	double row = row_of(v, 0), column = column_of(v, 0), arm = v->rows / 40.0;

	for (long r = (long)(row - arm - 2); r <= (long)(row + arm + 2); r++)
		for (long c = (long)(column - arm - 2); c <= (long)(column + arm + 2); c++) {
			double y = (double)r + 0.5 - row, x = (double)c + 0.5 - column, far;

			if (r < 0 || c < 0 || r >= (long)v->rows || c >= (long)v->columns)
				continue;
			far = fmin(fabs(hypot(x, y) - arm * 0.6),
				   fmin(fabs(x) + 99 * (fabs(y) > arm),
					fabs(y) + 99 * (fabs(x) > arm)));
			blend(v->rgb + ((size_t)r * v->columns + (size_t)c) * 3, red,
			      fmin(1, fmax(0, 1.6 - far)));
		}
}

int sl_show_geometry(const struct sl_described *described, uint32_t height, uint8_t **rgb,
		     uint32_t *columns, char *what, size_t bytes)
{
	struct view v = {.d = described};

	choose_view(&v, height);
	choose_rings(&v);
	v.rgb = malloc((size_t)v.rows * v.columns * 3);
	if (!v.rgb)
		return -ENOMEM;
	for (uint32_t r = 0; r < v.rows; r++)
		for (uint32_t c = 0; c < v.columns; c++)
			paint(&v, r, c);
	number_modules(&v);
	for (uint32_t i = 0; i < v.rings; i++)
		label_ring(&v, i);
	mark_beam(&v);
	*rgb = v.rgb;
	*columns = v.columns;
	snprintf(what, bytes, "%s, geometry, %u parts", described->detector, described->parts);
	if (v.rings && described->energy_keV > 0)
		snprintf(what + strlen(what), bytes - strlen(what), ", rings of %.3g to %.3g A",
			 resolution(&v, v.ring[0]), resolution(&v, v.ring[v.rings - 1]));
	return 0;
}
