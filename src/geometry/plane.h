/* plane.h - planes in space: from tilts, to tilts, and the one that fits a detector best.
 *
 * Model:     a plane carries the image's grid (sluice/layout.h). pyFAI describes it by the point of
 *            normal incidence (PONI), in metres along rows and columns, the distance along the
 *            normal, and three rotations.
 * Threads:   functions of their arguments.
 * Ownership: plain data. */
#ifndef SL_GEOMETRY_PLANE_H
#define SL_GEOMETRY_PLANE_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/detector.h>

/* pyFAI's parameters. Its axes 1, 2 and 3 are down the rows of the image, along its columns, and
 * along the beam: -y, -x and z of sl_plane. Metres and radians. */
struct sl_poni {
	double distance, poni1, poni2, rot1, rot2, rot3;
};

/* pixel1, pixel2: height and width of a pixel of the image. */
void sl_plane_from_poni(const struct sl_poni *poni, double pixel1, double pixel2,
			struct sl_plane *plane);

/* -EINVAL, with a reason: rows and columns are not at right angles, or mirrored. */
int sl_plane_to_poni(const struct sl_plane *plane, struct sl_poni *poni, char *why,
		     size_t why_bytes);

/* Where the beam hits it, in pixels of the image; NaN: nowhere, or behind the sample. */
void sl_plane_beam(const struct sl_plane *plane, double *row, double *column);

/* From the sample, along the normal. */
double sl_plane_distance(const struct sl_plane *plane);

/* The plane that fits the corners of all pieces best; worst_m: how far one of them is from it. */
void sl_plane_fit(const struct sl_geometry *geometry, struct sl_plane *plane, double *worst_m);

/* The same out of points: where each is in the image, and in space. */
struct sl_plane_sums { /* of products of (1, row, column), and of these with x, y, z */
	double square[3][3], place[3][3];
	double row, column; /* set first: what is taken for the origin, for the sums' sake */
	double size;	    /* set first: of a pixel */
};
void sl_plane_sums_add(struct sl_plane_sums *sums, double row, double column,
		       const double place[3]);
void sl_plane_sums_solve(struct sl_plane_sums *sums, struct sl_plane *plane);
/* A point of the image in space. */
void sl_plane_point(const struct sl_plane *plane, double row, double column, double place[3]);

/* ---- vectors ---- */

double sl_vector_dot(const double a[3], const double b[3]);
void sl_vector_cross(const double a[3], const double b[3], double out[3]);
double sl_vector_length(const double a[3]);
/* By its length in radians, about its direction. */
void sl_vector_rotate(const double about[3], double a[3]);

#endif
