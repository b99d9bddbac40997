/* calibration_test.c - dark frames into a calibration file. */
#include "calibration/tables.h"
#include "hdf5/testing.h"
#include "sink/conformance.h"

extern const struct sl_sink sl_sink_calibration;

static char scratch[256], path[512];

static void set_path(struct bench *bench)
{
	bench_set(bench, "path", path);
}

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/c.h5", scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

/* Each case begins without a file. */
static int clean(void **state)
{
	unlink(path);
	return 0;
}

static void begin(struct bench *bench, const char *gain)
{
	bench_init(bench, &sl_sink_calibration);
	set_path(bench);
	bench_set(bench, "gain", gain);
}

/* Eight dark frames among others; the file has their means, and nothing of the others. */
static void only_dark_frames_count(void **state)
{
	double mean = 0;
	struct bench bench;
	struct sl_tables tables;

	begin(&bench, "plain");
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 8 * KINDS; k++) {
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
		if (k % KINDS == DARK)
			mean += true_pixel(bench.frame.number, 1, 5, true) / 8.;
	}
	assert_int_equal(bench_figure(&bench, "frames"), 8);
	assert_int_equal(bench_figure(&bench, "frames_left_out"), 16);
	assert_int_equal(bench_close(&bench), 0);
	sl_tables_init(&tables, &bench.geometry);
	assert_int_equal(sl_calibration_read(path, &tables), 0);
	assert_int_equal(tables.frames[0], 8);
	assert_true(tables.pedestal[0][MODULE_PIXELS + 5] == (float)mean);
	assert_non_null(tables.mask);
	assert_null(tables.gain[0]);
	sl_tables_free(&tables);
	bench_fini(&bench);
}

static void all_frames_count_when_told_so(void **state)
{
	struct bench bench;

	begin(&bench, "plain");
	bench_set(&bench, "all", "true");
	bench_set(&bench, "frames_max", "10");
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 8 * KINDS; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_figure(&bench, "frames"), 10);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* What the run has of gains, and what an earlier file has of other gains' pedestals, is kept. */
static void gains_and_other_pedestals_are_kept(void **state)
{
	static float gain[3][PIXELS];
	struct sl_calibration calibration = {.gain = {gain[0], gain[1], gain[2]}};
	struct bench bench;
	struct sl_tables tables;

	for (int i = 0; i < PIXELS; i++) {
		gain[0][i] = 41;
		gain[1][i] = -1.4f;
		gain[2][i] = -0.1f;
	}
	for (int g = 0; g < 2; g++) {
		begin(&bench, g ? "g1" : "g0");
		bench.env.calibration = &calibration;
		if (g)
			bench_set(&bench, "base", path);
		assert_int_equal(bench_open(&bench), 0);
		for (uint64_t k = 0; k < 40; k++)
			assert_int_equal(bench_feed(&bench, k, DARK), 0);
		assert_int_equal(bench_close(&bench), 0);
		if (!g)
			bench_fini(&bench);
	}
	sl_tables_init(&tables, &bench.geometry);
	assert_int_equal(sl_calibration_read(path, &tables), 0);
	assert_non_null(tables.pedestal[0]);
	assert_non_null(tables.pedestal[1]);
	assert_null(tables.pedestal[2]);
	assert_int_equal(tables.frames[0], 40);
	assert_int_equal(tables.frames[1], 40);
	assert_true(tables.gain[1][3] == -1.4f);
	sl_tables_free(&tables);
	bench_fini(&bench);
}

static void no_file_without_dark_frames_or_when_the_run_never_began(void **state)
{
	struct bench bench;

	begin(&bench, "plain");
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
	assert_int_equal(access(path, F_OK), -1);
	begin(&bench, "plain");
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, DARK), 0);
	assert_int_equal(bench.sink->close(bench.state, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	bench_fini(&bench);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct bench bench;

	begin(&bench, "g0");
	bench_set(&bench, "base", "/nothing/there");
	assert_true(bench_open(&bench) < 0);
	bench_close(&bench);
	bench_fini(&bench);
	begin(&bench, "g0");
	bench.geometry.dtype = SL_U8;
	assert_true(bench_open(&bench) < 0);
	bench_close(&bench);
	bench_fini(&bench);
	begin(&bench, "plain");
	bench_set(&bench, "path", "/proc/no/such.h5");
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, DARK), 0);
	assert_true(bench_close(&bench) < 0);
	bench_fini(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test_setup_teardown(only_dark_frames_count, clean, NULL),
		cmocka_unit_test_setup_teardown(all_frames_count_when_told_so, clean, NULL),
		cmocka_unit_test_setup_teardown(gains_and_other_pedestals_are_kept, clean, NULL),
		cmocka_unit_test_setup_teardown(
			no_file_without_dark_frames_or_when_the_run_never_began, clean, NULL),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, clean, NULL),
	};

	conforming = &sl_sink_calibration;
	prepare = set_path;
	return cmocka_run_group_tests_name("calibration", tests, setup, teardown);
}
