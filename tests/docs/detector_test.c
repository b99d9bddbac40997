/* detector_test.c - the detector that docs/tutorials/write-a-detector.md builds shows the spot
 * where its truth says it is. Its code is taken from the page. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sluice/plugin.h>

#define spot (sl_plugin.detectors[0])

enum { MODULES = 2, ROWS = 128, COLUMNS = 128, FRAMES = 40 };

static void *open_spot(struct sl_geometry *geometry)
{
	struct sl_detector_options run = {.modules = MODULES, .frames = FRAMES, .seed = 4};
	void *state = calloc(1, spot->state_bytes);

	sl_options_defaults(spot->options, state);
	assert_int_equal(spot->open(state, &run, geometry), 0);
	return state;
}

static void close_spot(void *state)
{
	spot->close(state);
	free(state);
}

/* Photons above the background, and where their middle is. */
static double centroid(void *state, uint64_t frame, uint32_t module, uint32_t flags, double *x,
		       double *y)
{
	static uint16_t buffer[ROWS * COLUMNS];
	const void *pixels;
	double sum = 0, sx = 0, sy = 0;

	assert_int_equal(spot->render(state, frame, module, flags, buffer, &pixels), 0);
	for (int i = 0; i < ROWS * COLUMNS; i++) {
		double n = ((const uint16_t *)pixels)[i] - 3.;

		if (n < 15) /* background */
			continue;
		sum += n;
		sx += n * (i % COLUMNS + 0.5);
		sy += n * (i / COLUMNS + 0.5);
	}
	*x = sx / sum;
	*y = sy / sum;
	return sum;
}

static void test_the_spot_is_where_the_truth_says(void **arg)
{
	struct sl_geometry g;
	void *state = open_spot(&g);
	double x, y, table[MODULES * 3];

	for (uint64_t frame = 0; frame < FRAMES; frame++) {
		assert_int_equal(spot->truth_rows(state, frame, 0, table, MODULES), MODULES);
		for (uint32_t m = 0; m < MODULES; m++) {
			/* The integral of a round bell of 2000 photons, 4 pixels wide. */
			assert_true(
				fabs(centroid(state, frame, m, 0, &x, &y) / (2000 * 2 * M_PI * 16) -
				     1) < 0.03);
			assert_true(table[m * 3] == m);
			assert_true(fabs(x - table[m * 3 + 1]) < 0.1);
			assert_true(fabs(y - table[m * 3 + 2]) < 0.1);
		}
	}
	close_spot(state);
}

static void test_dark_frames_have_no_spot(void **arg)
{
	struct sl_geometry g;
	void *state = open_spot(&g);
	struct sl_truth truth;
	double x, y;

	assert_true(centroid(state, 0, 0, SL_RECORD_DARK, &x, &y) < 100);
	spot->truth(state, 0, SL_RECORD_DARK, &truth);
	assert_false(truth.hit);
	assert_int_equal(spot->truth_rows(state, 0, SL_RECORD_DARK, NULL, 0), 0);
	close_spot(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_spot_is_where_the_truth_says),
		cmocka_unit_test(test_dark_frames_have_no_spot),
	};

	return cmocka_run_group_tests_name("docs/spot", tests, NULL, NULL);
}
