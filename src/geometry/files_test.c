/* files_test.c - PONI and CrystFEL files: what they say, what is wrong with them, and that what is
 * written is read again. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/random.h>

#include "base/log.h"
#include "geometry/described.h"
#include "geometry/geom.h"
#include "geometry/poni.h"
#include "geometry/refine.h"
#include "lib/capture.h"

/* Two modules of 2 x 3 ASICs with wide pixels, the second turned. */
static const struct sl_geometry two = {
	.detector = "two",
	.modules = 2,
	.rows = 8,
	.columns = 12,
	.dtype = SL_U16,
	.pixel_size_m = 75e-6,
	.distance_m = 0.1,
	.photon_energy_keV = 12,
	.layout = {.rows = 30,
		   .columns = 40,
		   .asic_rows = 4,
		   .asic_columns = 4,
		   .gap = 2,
		   .beam_row = 14.25,
		   .beam_column = 17.5,
		   .module = {{.row = 1, .column = 2}, {.row = 9, .column = 20, .turns = 1}}},
};

static const char poni_1[] = "# a comment\nPixelSize1: 7.5e-05\nPixelSize2: 7.5e-05\n"
			     "Distance: 0.2\nPoni1: 0.001\nPoni2: -0.002\nRot1: 0.1\nRot2: -0.2\n"
			     "Rot3: 0.3\nSplineFile: None\nWavelength: 1e-10\n";
static const char poni_2[] = "poni_version: 2\nDetector: Detector\nDetector_config: "
			     "{\"pixel1\": 7.5e-05, \"pixel2\": 7.5e-05, \"max_shape\": [30, 40]}\n"
			     "Distance: 0.2\nPoni1: 0.001\nPoni2: -0.002\nRot1: 0.1\nRot2: -0.2\n"
			     "Rot3: 0.3\nWavelength: 1e-10\n";

static int parse_poni(const char *text, struct sl_poni_file *poni)
{
	return sl_poni_parse("a.poni", text, strlen(text), poni);
}

static void poni_of_both_versions(void **state)
{
	struct sl_poni_file a, b;
	struct sl_plane plane[2];

	(void)state;
	assert_int_equal(parse_poni(poni_1, &a), 0);
	assert_int_equal(parse_poni(poni_2, &b), 0);
	assert_memory_equal(&a.poni, &b.poni, sizeof(a.poni));
	assert_true(a.poni.distance == 0.2 && a.poni.rot3 == 0.3 && a.wavelength_m == 1e-10);
	assert_true(b.rows == 30 && b.columns == 40 && a.rows == 0 && a.orientation == 3);
	assert_int_equal(sl_poni_plane("a.poni", &a, &two, &plane[0]), 0);
	assert_int_equal(sl_poni_plane("a.poni", &b, &two, &plane[1]), 0);
	assert_memory_equal(&plane[0], &plane[1], sizeof(plane[0]));
}

/* pyFAI 0.21.3: AzimuthalIntegrator(0.2, 0.001, -0.002, 0.1, -0.2, 0.3, pixels of 75 um)
 * .calc_pos_zyx(d1=[3.5], d2=[7.25]), its axes 3, 1, 2. */
/* Four modules like the fields of a chessboard, black ones nearer than white ones: the plane in the
 * middle fits best, and every corner is that far from it. */
static void the_plane_that_fits_is_the_middle_and_says_how_far_it_is(void **state)
{
	enum { SIDE = 10 };
	const double size = 75e-6, near = 0.1, step = 0.0004;
	struct sl_geometry g = {.detector = "board",
				.modules = 4,
				.rows = SIDE,
				.columns = SIDE,
				.dtype = SL_U16,
				.pixel_size_m = size,
				.distance_m = near,
				.layout = {.rows = 2 * SIDE, .columns = 2 * SIDE}};
	struct sl_plane plane[4], fitted;
	double worst = -1, place[3];

	for (uint32_t m = 0; m < 4; m++) {
		g.layout.module[m].row = m / 2 * SIDE;
		g.layout.module[m].column = m % 2 * SIDE;
		plane[m] = (struct sl_plane){.corner = {SIDE * size, SIDE * size,
							near + (m == 1 || m == 2 ? step : -step)},
					     .down = {0, -size, 0},
					     .right = {-size, 0, 0}};
	}
	g.plane = plane;
	g.planes = 4;
	sl_plane_fit(&g, &fitted, &worst);
	assert_true(fabs(worst - step) < 1e-9);
	sl_plane_point(&fitted, 2, 3, place);
	assert_true(fabs(place[0] - (SIDE - 3) * size) < 1e-9);
	assert_true(fabs(place[1] - (SIDE - 2) * size) < 1e-9);
	assert_true(fabs(place[2] - near) < 1e-9);
	g.planes = 1; /* there is nothing to fit */
	sl_plane_fit(&g, &fitted, &worst);
	assert_true(worst == 0);
	assert_memory_equal(&fitted, &plane[0], sizeof(fitted));
}

static void planes_are_pyfais(void **state)
{
	struct sl_poni_file poni;
	struct sl_plane plane;
	double place[3];

	(void)state;
	assert_int_equal(parse_poni(poni_1, &poni), 0);
	sl_plane_from_poni(&poni.poni, 75e-6, 75e-6, &plane);
	/* pixel coordinates are of corners here: (d + 0.5). */
	sl_plane_point(&plane, 4, 7.75, place);
	assert_true(fabs(place[2] - 0.19492057570855725) < 1e-12);
	assert_true(fabs(-place[1] - 0.0304057003567779) < 1e-12);
	assert_true(fabs(-place[0] - 0.032994172255429305) < 1e-12);
}

static void tilts_come_back(void **state)
{
	uint64_t key = sl_key(7, 1);

	(void)state;
	for (uint64_t i = 0; i < 200; i++) {
		double x[6], row, column, place[3];
		struct sl_plane plane;
		struct sl_poni poni, again;
		char why[100];

		for (int k = 0; k < 6; k++)
			x[k] = sl_uniform(sl_draw(key, 6 * i + (uint64_t)k)) - 0.5;
		poni = (struct sl_poni){x[0] + 0.6,	 x[1] * 0.2, x[2] * 0.2,
					x[3] * M_PI / 2, x[4] * 2,   x[5] * 6};
		sl_plane_from_poni(&poni, 75e-6, 75e-6, &plane);
		assert_int_equal(sl_plane_to_poni(&plane, &again, why, sizeof(why)), 0);
		assert_true(fabs(poni.distance - again.distance) < 1e-14);
		assert_true(fabs(poni.poni1 - again.poni1) < 1e-14);
		assert_true(fabs(poni.poni2 - again.poni2) < 1e-14);
		assert_true(fabs(poni.rot1 - again.rot1) < 1e-12);
		assert_true(fabs(poni.rot2 - again.rot2) < 1e-12);
		assert_true(fabs(poni.rot3 - again.rot3) < 1e-12);
		assert_true(fabs(sl_plane_distance(&plane) - poni.distance) < 1e-14);
		sl_plane_beam(&plane, &row, &column);
		sl_plane_point(&plane, row, column, place);
		assert_true(fabs(place[0]) < 1e-12 && fabs(place[1]) < 1e-12 && place[2] > 0);
	}
}

struct wrong {
	const char *text, *message;
};

static void expect_wrong(const struct wrong *wrong, size_t n, bool poni)
{
	for (size_t i = 0; i < n; i++) {
		struct sl_poni_file file;
		struct sl_geom geom;
		const char *message;
		int err;

		capture_begin();
		if (poni) {
			err = parse_poni(wrong[i].text, &file);
			if (!err) {
				struct sl_plane plane;

				err = sl_poni_plane("a.poni", &file, &two, &plane);
			}
		} else {
			struct sl_plane plane[12];
			uint8_t mask[192];

			err = sl_geom_parse("a.geom", wrong[i].text, strlen(wrong[i].text), &geom);
			if (!err)
				err = sl_geom_planes("a.geom", &geom, 0, &two, plane, mask);
			sl_geom_free(&geom);
		}
		message = capture_end();
		if (err != -EINVAL || !strstr(message, wrong[i].message))
			fail_msg("%zu: %d, '%s' instead of '%s'", i, err, message,
				 wrong[i].message);
	}
}

#define KEYS "Distance: 0.2\nPoni1: 0\nPoni2: 0\nRot1: 0\nRot2: 0\nRot3: 0\n"

static void wrong_poni_files_are_refused_with_the_line(void **state)
{
	static const struct wrong wrong[] = {
		{"", "a.poni:0: the file ends without Distance"},
		{"Distance: 0.2\nPoni1: 0\nPoni2: 0\nRot1: 0\nRot3: 0\n", "a.poni:5: the file ends "
									  "without Rot2"},
		{"poni_version: 3\n" KEYS, "a.poni:1: poni_version: 3 is not known"},
		{"poni_version: 2\nDetector: Detector\n" KEYS, "ends without Detector_config"},
		{"poni_version: 2\nDetector_config: {}\n" KEYS, "ends without Detector"},
		{KEYS "Rot1: nan\n", "a.poni:7: Rot1: 'nan' is not finite"},
		{KEYS "Distance: inf\n", "a.poni:7: Distance: 'inf' is not finite"},
		{KEYS "Distance: -1\n", "a.poni:7: Distance: -1 is out of range"},
		{KEYS "Poni1: a\n", "a.poni:7: Poni1: 'a' is no number"},
		{KEYS "Wavelength: 1.0\n", "a.poni:7: Wavelength: 1 is out of range"},
		{KEYS "Detector_config: {\"pixel1\" 3}\n", "a.poni:7: Detector_config"},
		{KEYS "Detector_config: {\"pixel1\": 1e-4, \"pixel2\": 1e-4}\n",
		 "a.poni:7: pixels of 100 x 100 um; the detector's have 75 um"},
		{KEYS "Detector_config: {\"max_shape\": [30, 41]}\n",
		 "a.poni:7: an image of 30 x 41 pixels; the detector's, assembled, has 30 x 40"},
		{KEYS "Detector_config: {\"splineFile\": \"a\"}\n", "a.poni:7: a spline"},
	};

	(void)state;
	expect_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), true);
}

#define TOP "clen = 100 mm ; a comment\nres = 13333.333333333334\n"
#define ONE                                                                          \
	"p/min_fs = 0\np/max_fs = 11\np/min_ss = 0\np/max_ss = 15\np/corner_x = 0\n" \
	"p/corner_y = 0\np/fs = x\np/ss = y\n"

static void wrong_geom_files_are_refused_with_the_line(void **state)
{
	static const struct wrong wrong[] = {
		{"", "a.geom:0: the file ends without a panel"},
		{TOP "p/min_fs = 1\n", "a.geom:3: panel 'p' has no max_fs"},
		{TOP "p/min_fs 1\n", "a.geom:3: 'p/min_fs 1' is no line"},
		{TOP ONE "q/min_fs = 4\nq/max_fs = 4\nq/min_ss = 3\nq/max_ss = 3\nq/corner_x = 0\n"
			 "q/corner_y = 0\n",
		 "a.geom:11: panel 'q' has pixels of the data that panel 'p' (line 3)"},
		{TOP ONE "p/ss = nanx\n", "a.geom:11: ss: 'nanx' is no direction"},
		{TOP ONE "p/corner_x = nan\n", "a.geom:11: corner_x: 'nan' is not finite"},
		{TOP ONE "p/ss = 2x\n", "a.geom:3: panel 'p': fs and ss have the same direction"},
		{TOP ONE "p/what = 2\n", "a.geom:11: 'what' is no key that CrystFEL knows"},
		{TOP ONE "p/min_fs = 0.5\n", "a.geom:11: min_fs: 0.5 is no whole number"},
		{TOP ONE "p/min_fs = 12\n", "a.geom:3: panel 'p': min_fs and min_ss"},
		{TOP ONE "rigid_group_a = p,z\n", "a.geom:11: group 'a': no panel or group is "
						  "called 'z'"},
		{TOP ONE "clen = 3 ft\n", "a.geom:11: clen: 'ft' is no unit"},
		{ONE "res = 13333.3\n", "a.geom:1: panel 'p' has no res"},
		{TOP ONE "p/res = 10000\n", "a.geom:3: panel 'p': pixels of 100 x 100 um"},
		{"res = 13333.3\n" ONE, "a.geom:0: the file has no clen; set geometry.distance_m"},
		{"res = 13333.3\nclen = /a/b\n" ONE, "a.geom:2: clen is a place in the data"},
		{TOP ONE "p/max_ss = 99\n", "a.geom:3: panel 'p' is not in the data"},
		{TOP ONE "p/max_ss = 11\n", "no panel for module 1, ASIC 3"},
		{TOP ONE "bad/min_fs = 3\n", "a.geom:11: bad region 'bad' needs"},
		{TOP ONE "bad/min_fs = 3\nbad/max_fs = 3\nbad/min_ss = 3\nbad/max_ss = 3\n"
			 "bad/panel = q\n",
		 "a.geom:11: bad region 'bad' is of a panel that is not there"},
		{TOP "p/max_fs = 11\np/min_ss = 0\np/min_fs = 0\np/max_ss = 1\np/corner_x = 0\n"
		     "p/corner_y = 0\nq/max_fs = 11\nq/min_ss = 2\nq/min_fs = 0\nq/max_ss = 15\n"
		     "q/corner_x = 90\nq/corner_y = 0\n",
		 "a.geom:9: panels 'q' and 'p' (line 3) place parts of one ASIC"},
	};

	(void)state;
	expect_wrong(wrong, sizeof(wrong) / sizeof(wrong[0]), false);
}

/* The middle of a raw pixel as CrystFEL has it: the panel's corner, plus pixels along fs and ss. */
static void a_panel_places_its_pixels(void **state)
{
	static const char text[] =
		"photon_energy = 9000 eV\nclen = 80 mm\nres = 13333.333333333334\n"
		"rigid_group_q0 = p,q\nrigid_group_collection_all = q0\nadu_per_photon = 1\n"
		"dim0 = %\ndim2 = ss\ndim3 = fs\nmin_fs = 0\nmax_fs = 11\nmin_ss = 0\nmax_ss = 7\n"
		"p/dim1 = 0\np/corner_x = -3\np/corner_y = 2.5\np/fs = +0.6x -0.8y\n"
		"p/ss = 0.8x + 0.6y\n"
		"q/dim1 = 1\nq/corner_x = 30\nq/corner_y = 1\nq/coffset = 0.001\n"
		"q/fs = -y\nq/ss = +0.8x +0.6z\nq/no_index = 1\n"
		"bad_a/min_fs = 5\nbad_a/max_fs = 5\nbad_a/min_ss = 2\nbad_a/max_ss = 3\n"
		"bad_a/panel = p\n";
	struct sl_geometry g = two;
	struct sl_plane plane[12];
	struct sl_geom geom;
	uint8_t mask[192] = {0};
	double place[3], size = 75e-6;
	int bad = 0;

	(void)state;
	assert_int_equal(sl_geom_parse("a.geom", text, strlen(text), &geom), 0);
	assert_true(geom.panels == 2 && fabs(geom.energy_keV - 9) < 1e-9);
	assert_int_equal(sl_geom_planes("a.geom", &geom, 0, &g, plane, mask), 0);
	g.plane = plane;
	g.planes = 12;
	/* Pixel (1, 2) of module 0, which is not wide. */
	sl_layout_place(&g, 0, 1 * 12 + 2, 0, 0, place);
	assert_true(fabs(place[0] - (-3 + 2.5 * 0.6 + 1.5 * 0.8) * size) < 1e-12);
	assert_true(fabs(place[1] - (2.5 - 2.5 * 0.8 + 1.5 * 0.6) * size) < 1e-12);
	assert_true(fabs(place[2] - 0.08) < 1e-12);
	/* Pixel (6, 9) of module 1, which is turned in the image. */
	sl_layout_place(&g, 1, 6 * 12 + 9, 0, 0, place);
	assert_true(fabs(place[0] - (30 + 6.5 * 0.8) * size) < 1e-12);
	assert_true(fabs(place[1] - (1 - 9.5) * size) < 1e-12);
	assert_true(fabs(place[2] - (0.081 + 6.5 * 0.6 * size)) < 1e-12);
	for (int i = 0; i < 192; i++)
		bad += mask[i];
	assert_true(bad == 96 + 2 && mask[2 * 12 + 5] && mask[3 * 12 + 5] && mask[96]);
	sl_geom_free(&geom);
}

/* ---- round trips ---- */

static void refine_to(struct sl_geometry *g, const char *file, struct sl_refined *refined)
{
	struct sl_refine_options o;

	sl_options_defaults(sl_refine_options, &o);
	o.modules = 0;
	snprintf(o.file, sizeof(o.file), "%s", file);
	*g = two;
	assert_int_equal(sl_refine(&o, g, refined), 0);
}

static void write_to(const char *path, const struct sl_geometry *g, bool assembled, bool poni)
{
	struct sl_described d;
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(sl_describe(g, assembled, NULL, &d), 0);
	if (poni)
		assert_int_equal(sl_described_poni(out, &d), 0);
	else
		sl_described_crystfel(out, &d);
	sl_described_free(&d);
	fclose(out);
}

static void expect_same(const struct sl_geometry *a, const struct sl_geometry *b)
{
	uint64_t key = sl_key(3, 9);

	for (uint64_t i = 0; i < 1000; i++) {
		uint32_t module = (uint32_t)(sl_draw(key, 2 * i) >> 63);
		uint32_t pixel = (uint32_t)(sl_uniform(sl_draw(key, 2 * i + 1)) * 96);
		double p[3], q[3];

		sl_layout_place(a, module, pixel, 0.5, -0.25, p);
		sl_layout_place(b, module, pixel, 0.5, -0.25, q);
		for (int k = 0; k < 3; k++)
			assert_true(fabs(p[k] - q[k]) < 1e-10);
	}
	assert_true(fabs(a->distance_m - b->distance_m) < 1e-9);
	assert_true(fabs(a->layout.beam_row - b->layout.beam_row) < 1e-4);
}

static void what_is_written_is_read_again(void **state)
{
	struct sl_refine_options o;
	char folder[] = "/tmp/sluice-test-XXXXXX", poni[64], geom[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(poni, sizeof(poni), "%s/a.poni", folder);
	snprintf(geom, sizeof(geom), "%s/a.geom", folder);
	for (int moved = 0; moved < 2; moved++) {
		struct sl_refined refined = {0}, again = {0};
		struct sl_geometry g = two, back;

		sl_options_defaults(sl_refine_options, &o);
		o.rot1 = 0.3;
		o.rot2 = -0.5;
		o.rot3 = 1.1;
		o.beam_row = 3.5;
		o.distance_m = 0.15;
		o.modules = (unsigned)moved;
		o.module[0] = (struct sl_refine_module){.module = 1,
							.right_m = 1e-3,
							.away_m = -2e-4,
							.rot_right = 0.01,
							.rot_away = 0.1};
		assert_int_equal(sl_refine(&o, &g, &refined), 0);
		assert_int_equal(g.planes, moved ? 2 : 1);
		for (int assembled = 0; assembled < 2; assembled++) {
			write_to(geom, &g, assembled, false);
			refine_to(&back, geom, &again);
			assert_int_equal(back.planes, g.planes);
			expect_same(&g, &back);
		}
		if (!moved) {
			assert_true(fabs(g.layout.beam_row - 3.5) < 1e-9);
			assert_true(fabs(g.distance_m - 0.15) < 1e-12);
			write_to(poni, &g, true, true);
			refine_to(&back, poni, &again);
			expect_same(&g, &back);
		}
		sl_refined_free(&refined);
		sl_refined_free(&again);
	}
	unlink(poni);
	unlink(geom);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poni_of_both_versions),
		cmocka_unit_test(the_plane_that_fits_is_the_middle_and_says_how_far_it_is),
		cmocka_unit_test(planes_are_pyfais),
		cmocka_unit_test(tilts_come_back),
		cmocka_unit_test(wrong_poni_files_are_refused_with_the_line),
		cmocka_unit_test(wrong_geom_files_are_refused_with_the_line),
		cmocka_unit_test(a_panel_places_its_pixels),
		cmocka_unit_test(what_is_written_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
