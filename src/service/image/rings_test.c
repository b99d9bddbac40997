/* rings_test.c - beam and rings on planes that are square to the beam, and tilted: Bragg's law
 * holds for every point. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "geometry/plane.h"
#include "service/image/rings.h"

enum { ROWS = 1000, COLUMNS = 800 };
#define PIXEL	 75e-6
#define DISTANCE 0.1
#define KEV	 12.4
#define KEV_A	 12.398419843320026

/* Square to the beam, which is at row 400, column 300; then turned about the row of the beam. */
static void make(double tilt, double to[11])
{
	struct sl_plane plane = {.corner = {300 * PIXEL, 400 * PIXEL, 0},
				 .down = {0, -PIXEL, 0},
				 .right = {-PIXEL, 0, 0}};
	const double about[3] = {tilt, 0, 0};

	sl_vector_rotate(about, plane.corner);
	sl_vector_rotate(about, plane.down);
	sl_vector_rotate(about, plane.right);
	plane.corner[2] += DISTANCE;
	memcpy(to, plane.corner, sizeof(plane.corner));
	memcpy(to + 3, plane.down, sizeof(plane.down));
	memcpy(to + 6, plane.right, sizeof(plane.right));
	to[9] = ROWS;
	to[10] = COLUMNS;
}

/* The resolution at a point of the image, by the definition. */
static double resolution(const double p[11], const double point[2])
{
	double place[3], angle;

	for (int i = 0; i < 3; i++)
		place[i] = p[i] + point[0] * p[3 + i] + point[1] * p[6 + i];
	angle = atan2(hypot(place[0], place[1]), place[2]);
	return KEV_A / KEV / 2 / sin(angle / 2);
}

static void circles_about_the_beam(void **state)
{
	struct sl_image_rings rings;
	double plane[11];

	make(0, plane);
	assert_true(sl_image_rings_find(plane, KEV, &rings));
	assert_true(rings.has_beam && fabs(rings.beam[0] - 400) < 1e-6 &&
		    fabs(rings.beam[1] - 300) < 1e-6);
	assert_true(fabs(rings.distance_m - DISTANCE) < 1e-9);
	assert_true(fabs(rings.pixel_size_m - PIXEL) < 1e-12);
	assert_true(fabs(rings.wavelength_A - KEV_A / KEV) < 1e-9);
	assert_in_range(rings.rings, 3, SL_IMAGE_RINGS);
	for (uint32_t i = 0; i < rings.rings; i++) {
		const struct sl_image_ring *ring = &rings.ring[i];
		double angle = 2 * asin(rings.wavelength_A / 2 / ring->d_A);

		assert_true(ring->circle);
		assert_true(fabs(ring->radius - tan(angle) * DISTANCE / PIXEL) < 0.01);
		assert_true(!i || ring->d_A < rings.ring[i - 1].d_A);
	}
}

static void lines_of_points_on_a_tilted_plane(void **state)
{
	struct sl_image_rings rings;
	unsigned circles = 0;
	double plane[11];

	make(0.35, plane);
	assert_true(sl_image_rings_find(plane, KEV, &rings));
	assert_true(rings.has_beam && fabs(rings.beam[0] - 400) < 1e-6);
	assert_true(fabs(rings.distance_m - DISTANCE * cos(0.35)) < 1e-9);
	assert_in_range(rings.rings, 3, SL_IMAGE_RINGS);
	for (uint32_t i = 0; i < rings.rings; i++) {
		circles += rings.ring[i].circle;
		for (int k = 0; k < SL_IMAGE_RING_POINTS; k++)
			assert_true(fabs(resolution(plane, rings.ring[i].point[k]) -
					 rings.ring[i].d_A) < 1e-6 * rings.ring[i].d_A);
	}
	assert_int_equal(circles, 0);
}

static void without_energy_there_is_a_beam_alone(void **state)
{
	struct sl_image_rings rings;
	double plane[11];

	make(0, plane);
	assert_true(sl_image_rings_find(plane, 0, &rings));
	assert_true(rings.has_beam && !rings.rings && rings.wavelength_A == 0);
	assert_true(sl_image_rings_find(plane, NAN, &rings));
	assert_int_equal(rings.rings, 0);
	make(M_PI / 2, plane); /* along the beam */
	assert_true(sl_image_rings_find(plane, KEV, &rings));
	assert_false(rings.has_beam);
	assert_int_equal(rings.rings, 0);
}

static void planes_that_make_no_sense(void **state)
{
	struct sl_image_rings rings;
	double plane[11];

	memset(plane, 0, sizeof(plane));
	assert_false(sl_image_rings_find(plane, KEV, &rings));
	for (int i = 0; i < 9; i++) {
		make(0, plane);
		plane[i] = NAN;
		if (sl_image_rings_find(plane, KEV, &rings))
			assert_true(!rings.has_beam && !rings.rings);
		make(0, plane);
		plane[i] = INFINITY;
		if (sl_image_rings_find(plane, KEV, &rings))
			assert_true(!rings.has_beam || isfinite(rings.beam[0]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circles_about_the_beam),
		cmocka_unit_test(lines_of_points_on_a_tilted_plane),
		cmocka_unit_test(without_energy_there_is_a_beam_alone),
		cmocka_unit_test(planes_that_make_no_sense),
	};

	return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
