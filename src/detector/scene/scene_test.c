/* scene_test.c - spots are those of a lattice and lie where the layout has pixels; the background
 * has the factors that physics gives it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detector/places.h"
#include "detector/scene/scene.h"

static const struct sl_scene_options usual = {
	.photon_energy_keV = 12.398419843, /* 1 Angstrom */
	.distance_m = 0.1,
	.beam_stop = 30,
	.hit_fraction = 1,
	.spots = 200,
	.spot_photons = 300,
	.resolution_A = 2,
	.background_photons = 0.5,
	.pool = 3,
};

static void scene_new(struct sl_scene *scene, const struct sl_scene_options *options,
		      uint32_t modules, uint64_t seed)
{
	struct sl_geometry g = {
		.modules = modules, .rows = 512, .columns = 1024, .pixel_size_m = 75e-6};

	sl_places_fill(&sl_places_jungfrau, &g);
	assert_int_equal(sl_scene_open(options, seed, &g, scene), 0);
	assert_true(g.photon_energy_keV == options->photon_energy_keV);
	assert_true(g.layout.beam_row == g.layout.rows / 2.0 + options->beam_y);
}

/* Of an image pixel, in shares of the highest level. */
static double mean_at(const struct sl_scene *scene, int64_t row, int64_t column)
{
	uint32_t pixel;
	int module = sl_layout_find(&scene->geometry, row, column, &pixel);
	double below, above, fraction, last = SL_SCENE_LEVELS - 1;
	uint16_t level;

	assert_true(module >= 0);
	level = scene->level[(size_t)module * 512 * 1024 + pixel];
	below = level >> SL_SCENE_FRACTION_BITS;
	above = below + 1;
	fraction = (level & ((1 << SL_SCENE_FRACTION_BITS) - 1)) /
		   (double)(1 << SL_SCENE_FRACTION_BITS);
	return (below * below * (1 - fraction) + above * above * fraction) / (last * last) /
	       sl_layout_share(&scene->geometry, pixel);
}

/* The scattering vector of a place in the image, 1 / Angstrom. */
static void vector_of(const struct sl_scene *scene, double row, double column, double *q)
{
	double x = column - scene->geometry.layout.beam_column;
	double y = row - scene->geometry.layout.beam_row, z = 0.1 / 75e-6;
	double length = sqrt(x * x + y * y + z * z);

	q[0] = x / length;
	q[1] = y / length;
	q[2] = z / length - 1;
}

/* Solve a x = b for three unknowns (Cramer). */
static double det3(double a[3][3])
{
	return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
	       a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
	       a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* The matrix that takes indices to vectors, by least squares over all spots: its columns are the
 * lattice. Only if the spots are nodes of one are they orthogonal and as long as the cell says, and
 * is every spot where it should be. */
static void fit_lattice(struct sl_scene *scene, uint32_t exposure, double lattice[3][3])
{
	double hh[3][3] = {{0}}, hq[3][3] = {{0}};

	for (uint32_t i = 0; i < scene->spots[exposure]; i++) {
		const struct sl_spot *s = &scene->spot[i];
		double q[3];

		vector_of(scene, s->row, s->column, q);
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++) {
				hh[a][b] += (double)s->index[a] * s->index[b];
				hq[a][b] += s->index[a] * q[b];
			}
	}
	for (int b = 0; b < 3; b++)
		for (int a = 0; a < 3; a++) {
			double m[3][3];

			memcpy(m, hh, sizeof(m));
			for (int i = 0; i < 3; i++)
				m[i][a] = hq[i][b];
			lattice[a][b] = det3(m) / det3(hh);
		}
}

static void test_spots_are_nodes_of_a_lattice(void **arg)
{
	static const double edges[3] = {79.1, 79.1, 37.9};
	struct sl_scene_options o = usual;
	struct sl_scene scene;
	double lattice[3][3], other[3][3];

	o.spots = 60; /* fewer are nearer to the sphere */
	scene_new(&scene, &o, 8, 1);
	for (uint32_t exposure = 0; exposure < 2; exposure++) {
		sl_scene_find_spots(&scene, exposure);
		fit_lattice(&scene, exposure, exposure ? other : lattice);
		if (exposure)
			continue;
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++) {
				double product = 0;

				for (int i = 0; i < 3; i++)
					product += lattice[a][i] * lattice[b][i];
				product *= edges[a] * edges[b];
				assert_true(fabs(product - (a == b)) < 0.03);
			}
		for (uint32_t i = 0; i < scene.spots[exposure]; i++) {
			const struct sl_spot *s = &scene.spot[i];
			double q[3], off = 0;

			vector_of(&scene, s->row, s->column, q);
			for (int k = 0; k < 3; k++) {
				double at = 0;

				for (int n = 0; n < 3; n++)
					at += s->index[n] * lattice[n][k];
				off += (at - q[k]) * (at - q[k]);
			}
			assert_true(sqrt(off) < 0.002); /* nodes are 0.0126 apart */
		}
	}
	/* Another hit has it turned another way. */
	assert_true(fabs(lattice[0][0] - other[0][0]) + fabs(lattice[1][1] - other[1][1]) > 1e-3);
	sl_scene_close(&scene);
}

static void test_every_spot_is_on_a_pixel_and_another_one(void **arg)
{
	struct sl_scene_options o = usual;
	struct sl_scene scene;

	o.spots = 2000;
	scene_new(&scene, &o, 8, 3);
	sl_scene_find_spots(&scene, 1);
	for (uint32_t i = 0; i < scene.spots[1]; i++) {
		const struct sl_spot *s = &scene.spot[i];
		uint32_t pixel;

		assert_int_equal(sl_layout_find(&scene.geometry, (int64_t)s->row,
						(int64_t)s->column, &pixel),
				 s->module);
		assert_int_equal(pixel, s->pixel);
		assert_true(s->radius > 30 && s->radius <= scene.limit);
		assert_true(s->inverse_d <= 0.5 + 1e-9);
		/* Farther out spots are longer. */
		assert_true(s->radial >= s->across);
		for (uint32_t k = 0; k < i; k++)
			assert_true(memcmp(s->index, scene.spot[k].index, sizeof(s->index)) != 0);
	}
	sl_scene_close(&scene);
}

/* 2 Angstrom at 1 Angstrom: sin theta = 1/4. */
static void test_resolution_and_distance_go_together(void **arg)
{
	struct sl_scene scene;

	scene_new(&scene, &usual, 1, 1);
	assert_true(fabs(scene.limit - 0.1 / 75e-6 * tan(2 * asin(0.25))) < 1e-6);
	assert_true(fabs(sl_scene_inverse_d(&scene, scene.limit) - 0.5) < 1e-9);
	sl_scene_close(&scene);
}

static void touch(void *arg, uint32_t pixel)
{
	++*(uint32_t *)arg;
}

/* What modules get is what falls onto the image there: nothing is lost at edges of ASICs, where
 * wide pixels take it, nor counted twice. */
static void test_spots_go_over_edges(void **arg)
{
	struct sl_scene scene;
	double got = 0, want = 0;
	float *mean = calloc(512 * 1024, sizeof(*mean));
	const struct sl_layout *l = &scene.geometry.layout;
	uint32_t pixel, touched = 0, nonzero = 0;

	scene_new(&scene, &usual, 8, 1);
	sl_scene_find_spots(&scene, 0);
	for (uint32_t i = 0; i < scene.spots[0]; i++) {
		const struct sl_spot *s = &scene.spot[i];
		double y = (s->row - l->beam_row) / s->radius;
		double x = (s->column - l->beam_column) / s->radius;

		for (int r = (int)s->row - 20; r <= (int)s->row + 20; r++)
			for (int c = (int)s->column - 20; c <= (int)s->column + 20; c++) {
				double down = r + 0.5 - s->row, right = c + 0.5 - s->column;
				double out = down * y + right * x, aside = down * x - right * y;

				if (r >= 0 && r < (int)l->rows && c >= 0 && c < (int)l->columns &&
				    sl_layout_find(&scene.geometry, r, c, &pixel) >= 0)
					want += s->peak *
						exp(-out * out / (2 * s->radial * s->radial) -
						    aside * aside / (2 * s->across * s->across));
			}
	}
	for (uint32_t m = 0; m < 8; m++) {
		memset(mean, 0, 512 * 1024 * sizeof(*mean));
		sl_scene_spots(&scene, 0, m, mean, touch, &touched);
		for (int i = 0; i < 512 * 1024; i++) {
			got += mean[i];
			nonzero += mean[i] > 0;
		}
	}
	assert_int_equal(touched, nonzero);
	assert_true(fabs(got / want - 1) < 1e-3);
	free(mean);
	sl_scene_close(&scene);
}

/* As far above the beam as beside it, where the polarisation leaves less; solid angle in both. */
static void test_polarisation_and_solid_angle(void **arg)
{
	struct sl_scene_options o = usual;
	struct sl_scene scene;
	double up, side, sine2;

	scene_new(&scene, &o, 8, 1);
	up = mean_at(&scene, 1082 - 800, 1034 - 30);
	side = mean_at(&scene, 1082 - 30, 1034 - 800);
	sine2 = 800. * 800 / (800. * 800 + 30 * 30 + pow(0.1 / 75e-6, 2));
	assert_true(fabs(side / up - (1 - 0.99 * sine2) / (1 - 0.01 * sine2)) < 0.01);
	assert_true(fabs(sl_scene_factors(&scene, 0, 0) - 1) < 1e-12);
	assert_true(fabs(sl_scene_factors(&scene, 1000, 0) -
			 pow(cos(atan(0.75)), 3) * (1 - 0.01 * 0.36)) < 1e-9);
	sl_scene_close(&scene);
}

static void test_beam_stop_and_its_holder(void **arg)
{
	struct sl_scene scene;
	struct sl_scene_options o = usual;

	o.beam_y = 200; /* off the gap */
	o.beam_x = 300;
	scene_new(&scene, &o, 8, 1);
	assert_true(mean_at(&scene, 1282, 1334) < 0.1 * mean_at(&scene, 1282, 1334 + 40));
	assert_true(sl_scene_transmission(&scene, 1282 + 100, 1334 + 9) < 0.4);
	assert_true(sl_scene_transmission(&scene, 1282 - 100, 1334 - 9) == 1);
	sl_scene_close(&scene);
	o.beam_stop = 0;
	scene_new(&scene, &o, 8, 1);
	assert_true(sl_scene_transmission(&scene, 1282, 1334) == 1);
	sl_scene_close(&scene);
}

/* 3.90, 3.67, 3.44 Angstrom: rings where ice has them. */
static void test_ice_has_its_rings(void **arg)
{
	struct sl_scene_options o = usual;
	struct sl_scene scene;
	double ring, aside;
	int64_t at = (int64_t)(0.1 / 75e-6 * tan(2 * asin(1 / 3.897 / 2)));

	o.ice = 3;
	scene_new(&scene, &o, 8, 1);
	ring = mean_at(&scene, 1082 - at, 1000);
	aside = mean_at(&scene, 1082 - at + 12, 1000);
	assert_true(ring > 2 * aside);
	sl_scene_close(&scene);
}

/* The mix of two levels has the mean between them. */
static void test_background_draws_have_the_level_s_mean(void **arg)
{
	struct sl_scene_options o = usual;
	struct sl_scene scene;
	double sum = 0, squares = 0;
	const int n = 200000;

	o.background_photons = 3;
	scene_new(&scene, &o, 1, 1);
	for (int i = 0; i < n; i++) {
		unsigned x = sl_scene_draw(&scene, 100 * 1024 + 100, sl_draw(5, (uint64_t)i));

		sum += x;
		squares += (double)x * x;
	}
	/* Poisson: variance and mean agree. */
	assert_true(fabs(squares / n - sum / n * (sum / n) - sum / n) < 0.05);
	assert_true(sum / n > 1 && sum / n < 6);
	sl_scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spots_are_nodes_of_a_lattice),
		cmocka_unit_test(test_every_spot_is_on_a_pixel_and_another_one),
		cmocka_unit_test(test_resolution_and_distance_go_together),
		cmocka_unit_test(test_spots_go_over_edges),
		cmocka_unit_test(test_polarisation_and_solid_angle),
		cmocka_unit_test(test_beam_stop_and_its_holder),
		cmocka_unit_test(test_ice_has_its_rings),
		cmocka_unit_test(test_background_draws_have_the_level_s_mean),
	};

	return cmocka_run_group_tests_name("scene", tests, NULL, NULL);
}
