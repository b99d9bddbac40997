/* null_test.c - the sink that keeps nothing still counts. */
#include "sink/conformance.h"

extern const struct sl_sink sl_sink_null;

static void counts_frames_and_bytes_of_results(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_null);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 2 * KINDS; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_figure(&bench, "frames"), 2 * KINDS);
	/* Of the five kinds three have results: raw and image. */
	assert_int_equal(bench_figure(&bench, "bytes"), 2 * 3 * 2 * PIXELS * 2);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void wants_every_frame_but_no_raw_pixels(void **state)
{
	(void)state;
	assert_int_equal(sl_sink_null.wants, SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(counts_frames_and_bytes_of_results),
		cmocka_unit_test(wants_every_frame_but_no_raw_pixels),
	};

	conforming = &sl_sink_null;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
