/* plane.c - planes, and pyFAI's parameters of them. */
#include "geometry/plane.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double sl_vector_dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void sl_vector_cross(const double a[3], const double b[3], double out[3])
{
	const double c[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
			     a[0] * b[1] - a[1] * b[0]};

	memcpy(out, c, sizeof(c));
}

double sl_vector_length(const double a[3])
{
	return sqrt(sl_vector_dot(a, a));
}

/* Rodrigues' formula. */
void sl_vector_rotate(const double about[3], double a[3])
{
	double angle = sl_vector_length(about), axis[3], across[3], along;

	if (!(angle > 0))
		return;
	for (int i = 0; i < 3; i++)
		axis[i] = about[i] / angle;
	sl_vector_cross(axis, a, across);
	along = sl_vector_dot(axis, a) * (1 - cos(angle));
	for (int i = 0; i < 3; i++)
		a[i] = a[i] * cos(angle) + across[i] * sin(angle) + axis[i] * along;
}

/* pyFAI's rotation: from (rows, columns, normal) of the detector to its axes 1, 2, 3. */
static void rotation(const struct sl_poni *p, double m[3][3])
{
	double c1 = cos(p->rot1), s1 = sin(p->rot1), c2 = cos(p->rot2), s2 = sin(p->rot2);
	double c3 = cos(p->rot3), s3 = sin(p->rot3);
	const double r[3][3] = {
		{c2 * c3, c3 * s1 * s2 - c1 * s3, -(c1 * c3 * s2 + s1 * s3)},
		{c2 * s3, c1 * c3 + s1 * s2 * s3, c3 * s1 - c1 * s2 * s3},
		{s2, -c2 * s1, c1 * c2},
	};

	memcpy(m, r, sizeof(r));
}

/* Axes 1, 2, 3 of pyFAI are -y, -x, z. */
static void to_space(const double m[3][3], const double p[3], double out[3])
{
	double t[3];

	for (int i = 0; i < 3; i++)
		t[i] = sl_vector_dot(m[i], p);
	out[0] = -t[1];
	out[1] = -t[0];
	out[2] = t[2];
}

void sl_plane_from_poni(const struct sl_poni *poni, double pixel1, double pixel2,
			struct sl_plane *plane)
{
	double m[3][3];

	rotation(poni, m);
	to_space(m, (const double[3]){-poni->poni1, -poni->poni2, poni->distance}, plane->corner);
	to_space(m, (const double[3]){pixel1, 0, 0}, plane->down);
	to_space(m, (const double[3]){0, pixel2, 0}, plane->right);
}

/* Away from the sample where rows go down and columns to the right. */
static void normal_of(const struct sl_plane *plane, double normal[3])
{
	double length;

	sl_vector_cross(plane->down, plane->right, normal);
	length = -sl_vector_length(normal);
	for (int i = 0; i < 3; i++)
		normal[i] /= length;
	/* down = -y and right = -x: their product is -z. */
}

int sl_plane_to_poni(const struct sl_plane *plane, struct sl_poni *poni, char *why,
		     size_t why_bytes)
{
	double height = sl_vector_length(plane->down), width = sl_vector_length(plane->right);
	double normal[3], r[3][2], distance;

	normal_of(plane, normal);
	distance = sl_vector_dot(normal, plane->corner);
	if (!(height > 0 && width > 0) ||
	    fabs(sl_vector_dot(plane->down, plane->right)) > 1e-5 * height * width) {
		snprintf(why, why_bytes, "rows and columns are not at right angles");
		return -EINVAL;
	}
	if (!(distance > 0)) {
		snprintf(why, why_bytes,
			 "the image is mirrored, seen from the sample: a PONI file "
			 "cannot say so");
		return -EINVAL;
	}
	for (int i = 0; i < 3; i++) { /* axes 1, 2, 3 of the two directions */
		int axis = i == 0 ? 1 : i == 1 ? 0 : 2;
		double sign = i == 2 ? 1 : -1;

		r[i][0] = sign * plane->down[axis] / height;
		r[i][1] = sign * plane->right[axis] / width;
	}
	*poni = (struct sl_poni){
		.distance = distance,
		.poni1 = -sl_vector_dot(plane->corner, plane->down) / height,
		.poni2 = -sl_vector_dot(plane->corner, plane->right) / width,
		.rot1 = atan2(-r[2][1], normal[2]),
		.rot2 = asin(fmax(-1, fmin(1, r[2][0]))),
		.rot3 = atan2(r[1][0], r[0][0]),
	};
	return 0;
}

void sl_plane_beam(const struct sl_plane *p, double *row, double *column)
{
	double det = p->down[0] * p->right[1] - p->down[1] * p->right[0], z;
	double size = sl_vector_length(p->down) * sl_vector_length(p->right);

	*row = (p->corner[1] * p->right[0] - p->corner[0] * p->right[1]) / det;
	*column = (p->corner[0] * p->down[1] - p->corner[1] * p->down[0]) / det;
	z = p->corner[2] + *row * p->down[2] + *column * p->right[2];
	if (!(fabs(det) > 1e-6 * size && z > 0))
		*row = *column = NAN;
}

double sl_plane_distance(const struct sl_plane *plane)
{
	double normal[3];

	normal_of(plane, normal);
	return fabs(sl_vector_dot(normal, plane->corner));
}

/* ---- the best one ---- */

void sl_plane_point(const struct sl_plane *p, double row, double column, double out[3])
{
	for (int i = 0; i < 3; i++)
		out[i] = p->corner[i] + row * p->down[i] + column * p->right[i];
}

/* Calls for the corners of each piece, as it lies in the image. */
static void each_corner(const struct sl_geometry *g,
			void (*each)(void *arg, const struct sl_plane *plane, double row,
				     double column),
			void *arg)
{
	uint32_t pieces = sl_layout_pieces(g);

	for (uint32_t i = 0; i < g->modules * pieces; i++) {
		bool lies = g->layout.module[i / pieces].turns & 1;
		uint32_t turns = g->layout.module[i / pieces].turns;
		struct sl_layout_piece at;
		struct sl_plane plane;
		double rows, columns;

		sl_layout_piece(g, i / pieces, i % pieces, &at);
		sl_layout_plane(g, i / pieces, i % pieces, &plane);
		rows = lies ? at.columns : at.rows;
		columns = lies ? at.rows : at.columns;
		at.row -= turns == 2 || turns == 3 ? rows : 0;
		at.column -= turns == 1 || turns == 2 ? columns : 0;
		for (int corner = 0; corner < 4; corner++)
			each(arg, &plane, at.row + (corner & 1 ? rows : 0),
			     at.column + (corner & 2 ? columns : 0));
	}
}

void sl_plane_sums_add(struct sl_plane_sums *s, double row, double column, const double place[3])
{
	const double x[3] = {1, row - s->row, column - s->column};

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			s->square[i][k] += x[i] * x[k];
			s->place[i][k] += x[i] * place[k];
		}
}

static void add_corner(void *arg, const struct sl_plane *plane, double row, double column)
{
	double place[3];

	sl_plane_point(plane, row, column, place);
	sl_plane_sums_add(arg, row, column, place);
}

/* Gauss and Jordan, with the largest of each column first. */
static void solve(struct sl_plane_sums *s)
{
	for (int c = 0; c < 3; c++) {
		int best = c;
		double swap[3];

		for (int r = c + 1; r < 3; r++)
			best = fabs(s->square[r][c]) > fabs(s->square[best][c]) ? r : best;
		memcpy(swap, s->square[c], sizeof(swap));
		memcpy(s->square[c], s->square[best], sizeof(swap));
		memcpy(s->square[best], swap, sizeof(swap));
		memcpy(swap, s->place[c], sizeof(swap));
		memcpy(s->place[c], s->place[best], sizeof(swap));
		memcpy(s->place[best], swap, sizeof(swap));
		for (int r = 0; r < 3; r++) {
			double factor = s->square[r][c] / s->square[c][c];

			for (int k = 0; r != c && k < 3; k++) {
				s->square[r][k] -= factor * s->square[c][k];
				s->place[r][k] -= factor * s->place[c][k];
			}
		}
	}
	for (int r = 0; r < 3; r++)
		for (int k = 0; k < 3; k++)
			s->place[r][k] /= s->square[r][r];
}

/* Rows and columns at right angles, with square pixels, as near to the two directions as can be:
 * the shifts of modules would tilt them against each other. */
static void make_square(double size, double down[3], double right[3])
{
	double height = sl_vector_length(down), width = sl_vector_length(right);
	double sum[3], rest[3], a, b;

	for (int i = 0; i < 3; i++) {
		sum[i] = down[i] / height + right[i] / width;
		rest[i] = down[i] / height - right[i] / width;
	}
	a = sl_vector_length(sum);
	b = sl_vector_length(rest);
	for (int i = 0; i < 3; i++) {
		down[i] = (sum[i] / a + rest[i] / b) * M_SQRT1_2 * size;
		right[i] = (sum[i] / a - rest[i] / b) * M_SQRT1_2 * size;
	}
}

void sl_plane_sums_solve(struct sl_plane_sums *s, struct sl_plane *plane)
{
	solve(s);
	for (int i = 0; i < 3; i++) {
		plane->down[i] = s->place[1][i];
		plane->right[i] = s->place[2][i];
	}
	make_square(s->size, plane->down, plane->right);
	for (int i = 0; i < 3; i++)
		plane->corner[i] = s->place[0][i] - s->row * plane->down[i] -
				   s->column * plane->right[i];
}

struct worst {
	const struct sl_plane *plane;
	double far;
};

static void measure_corner(void *arg, const struct sl_plane *plane, double row, double column)
{
	struct worst *w = arg;
	double a[3], b[3], far = 0;

	sl_plane_point(plane, row, column, a);
	sl_plane_point(w->plane, row, column, b);
	for (int i = 0; i < 3; i++)
		far += (a[i] - b[i]) * (a[i] - b[i]);
	w->far = fmax(w->far, sqrt(far));
}

void sl_plane_fit(const struct sl_geometry *g, struct sl_plane *plane, double *worst_m)
{
	struct sl_plane_sums s = {.row = g->layout.rows / 2.0,
				  .column = g->layout.columns / 2.0,
				  .size = g->pixel_size_m};
	struct worst w = {.plane = plane};

	if (g->planes < 2) {
		sl_layout_plane(g, 0, 0, plane);
		*worst_m = 0;
		return;
	}
	each_corner(g, add_corner, &s);
	sl_plane_sums_solve(&s, plane);
	each_corner(g, measure_corner, &w);
	*worst_m = w.far;
}
