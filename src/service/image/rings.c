/* rings.c - rings of round numbers of resolution, and the points of them on a plane. */
#include "service/image/rings.h"

#include <math.h>
#include <string.h>

#include "geometry/plane.h"

#define KEV_A 12.398419843320026
#define ROUND 0.3 /* pixels that the points of a circle may be off */

static double angle_of(const struct sl_plane *plane, double row, double column)
{
	double place[3];

	sl_plane_point(plane, row, column, place);
	return atan2(hypot(place[0], place[1]), place[2]);
}

static double widest_angle(const struct sl_plane *plane, double rows, double columns)
{
	double widest = 0;

	for (int i = 0; i < 4; i++)
		widest = fmax(widest, angle_of(plane, i & 1 ? rows : 0, i & 2 ? columns : 0));
	return widest;
}

/* Where the plane is met by what goes in a direction: corner + row * down + column * right = t *
 * direction, by Cramer's rule. */
static bool meet(const struct sl_plane *plane, const double direction[3], double point[2])
{
	double across[3], from[3], det, t;

	sl_vector_cross(plane->down, plane->right, across);
	det = sl_vector_dot(across, direction);
	t = sl_vector_dot(across, plane->corner) / det;
	if (!isfinite(t) || t <= 0)
		return false;
	for (int i = 0; i < 3; i++)
		from[i] = t * direction[i] - plane->corner[i];
	point[0] = sl_vector_dot(from, plane->down) / sl_vector_dot(plane->down, plane->down);
	point[1] = sl_vector_dot(from, plane->right) / sl_vector_dot(plane->right, plane->right);
	return isfinite(point[0]) && isfinite(point[1]);
}

static bool draw(const struct sl_plane *plane, double angle, const double beam[2],
		 struct sl_image_ring *ring)
{
	double sum = 0, least = INFINITY, most = 0;
	unsigned met = 0;

	for (int i = 0; i < SL_IMAGE_RING_POINTS; i++) {
		double phi = 2 * M_PI * i / SL_IMAGE_RING_POINTS, radius;
		const double direction[3] = {sin(angle) * cos(phi), sin(angle) * sin(phi),
					     cos(angle)};

		if (!meet(plane, direction, ring->point[i])) {
			ring->point[i][0] = ring->point[i][1] = NAN;
			continue;
		}
		radius = hypot(ring->point[i][0] - beam[0], ring->point[i][1] - beam[1]);
		sum += radius;
		least = fmin(least, radius);
		most = fmax(most, radius);
		met++;
	}
	ring->radius = met ? sum / met : 0;
	ring->circle = met == SL_IMAGE_RING_POINTS && most - least < ROUND;
	return met > 0 && isfinite(ring->radius);
}

/* Round numbers, at least a seventh of the widest angle apart. */
static void choose(const struct sl_plane *plane, double widest, struct sl_image_rings *rings)
{
	static const double nice[] = {100, 50,	30,  20,  15,  10,  8,	 7,   6,   5,	4.5,
				      4,   3.5, 3,   2.8, 2.5, 2.2, 2,	 1.8, 1.6, 1.5, 1.4,
				      1.3, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3};
	double before = 0;

	for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]) && rings->rings < SL_IMAGE_RINGS;
	     i++) {
		double sine = rings->wavelength_A / 2 / nice[i];
		double angle = 2 * asin(fmin(1, sine));

		if (sine > 1 || angle - before < widest / 7.5 || angle > widest)
			continue;
		rings->ring[rings->rings] = (struct sl_image_ring){.d_A = nice[i]};
		if (!draw(plane, angle, rings->beam, &rings->ring[rings->rings]))
			continue;
		rings->rings++;
		before = angle;
	}
}

bool sl_image_rings_find(const double p[11], double energy_keV, struct sl_image_rings *rings)
{
	struct sl_plane plane;
	double widest;

	memset(rings, 0, sizeof(*rings));
	memcpy(plane.corner, p, sizeof(plane.corner));
	memcpy(plane.down, p + 3, sizeof(plane.down));
	memcpy(plane.right, p + 6, sizeof(plane.right));
	rings->pixel_size_m = sl_vector_length(plane.right);
	rings->distance_m = sl_plane_distance(&plane);
	if (!(rings->pixel_size_m > 0) || !(sl_vector_length(plane.down) > 0) ||
	    !isfinite(rings->distance_m) || !isfinite(rings->pixel_size_m))
		return false;
	sl_plane_beam(&plane, &rings->beam[0], &rings->beam[1]);
	rings->has_beam = isfinite(rings->beam[0]) && isfinite(rings->beam[1]);
	widest = widest_angle(&plane, p[9], p[10]);
	if (energy_keV > 0 && isfinite(energy_keV) && widest > 0 && rings->has_beam) {
		rings->wavelength_A = KEV_A / energy_keV;
		choose(&plane, widest, rings);
	}
	return true;
}
