/* verify_test.c - one wrong pixel or record is found, and nothing else is called wrong. */
#include "lib/capture.h"
#include "sink/conformance.h"

extern const struct sl_sink sl_sink_verify;

static void begin(struct bench *bench)
{
	bench_init(bench, &sl_sink_verify);
	bench_set(bench, "max_reports", "1");
	assert_int_equal(bench_open(bench), 0);
}

static void end(struct bench *bench)
{
	assert_int_equal(bench_close(bench), 0);
	bench_fini(bench);
}

/* With a thread for each of the two modules. */
static void begin_parallel(struct bench *bench, struct sl_detector *detector)
{
	bench_init(bench, &sl_sink_verify);
	*detector = *bench->env.detector;
	detector->parallel = 1;
	bench->env.detector = detector;
	bench_set(bench, "threads", "2");
	bench_set(bench, "max_reports", "1");
	assert_int_equal(bench_open(bench), 0);
}

static int put(struct bench *bench)
{
	return sl_sink_verify.put(bench->state, &bench->frame);
}

static void true_frames_are_intact_dark_or_not(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	for (uint64_t k = 0; k < 300; k++)
		assert_int_equal(bench_feed(&bench, k, k % 3), 0);
	assert_int_equal(bench_figure(&bench, "frames_compared"), 300);
	assert_int_equal(bench_figure(&bench, "frames_mismatched"), 0);
	assert_int_equal(bench_figure(&bench, "pixels_mismatched"), 0);
	end(&bench);
}

/* First, last, and both sides of the border between modules. */
static void one_wrong_bit_is_found_wherever_it_is(void **state)
{
	static const uint32_t at[] = {0, 1, MODULE_PIXELS - 1, MODULE_PIXELS, PIXELS - 1};
	struct bench bench;

	(void)state;
	begin(&bench);
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		bench_frame(&bench, i, KEPT);
		bench.raw[at[i]] ^= 0x8000;
		assert_int_equal(put(&bench), -EBADMSG);
		assert_int_equal(bench_figure(&bench, "frames_mismatched"), i + 1);
		assert_int_equal(bench_figure(&bench, "pixels_mismatched"), i + 1);
		bench_frame(&bench, i, KEPT);
		assert_int_equal(put(&bench), 0);
	}
	assert_int_equal(bench_figure(&bench, "frames_with_wrong_records"), 0);
	end(&bench);
}

/* Several threads find what one does, and describe no more. */
static void several_threads_find_the_same(void **state)
{
	static const uint32_t at[] = {0, MODULE_PIXELS - 1, MODULE_PIXELS, PIXELS - 1};
	struct sl_detector detector;
	struct bench bench;
	const char *said;

	(void)state;
	begin_parallel(&bench, &detector);
	for (uint64_t k = 0; k < 300; k++)
		assert_int_equal(bench_feed(&bench, k, k % 3), 0);
	capture_begin();
	for (unsigned i = 0; i < 4; i++) {
		bench_frame(&bench, i, KEPT);
		bench.raw[at[i]] ^= 1;
		bench.raw[at[3 - i]] ^= 2;
		assert_int_equal(put(&bench), -EBADMSG);
	}
	said = strstr(capture_end(), "wrong pixels");
	assert_true(said && !strstr(said + 1, "wrong pixels"));
	assert_int_equal(bench_figure(&bench, "frames_compared"), 304);
	assert_int_equal(bench_figure(&bench, "frames_mismatched"), 4);
	assert_int_equal(bench_figure(&bench, "pixels_mismatched"), 8);
	end(&bench);
}

static void pixels_of_another_frame_are_found(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	bench_frame(&bench, 5, KEPT);
	fill_pixels(&bench, 4, false); /* stale */
	assert_int_equal(put(&bench), -EBADMSG);
	assert_int_equal(bench_figure(&bench, "pixels_mismatched"), PIXELS);
	bench_frame(&bench, 5, KEPT);
	fill_pixels(&bench, 5, true); /* dark, not bright */
	assert_int_equal(put(&bench), -EBADMSG);
	end(&bench);
}

static void swapped_modules_are_found(void **state)
{
	struct bench bench;
	uint16_t half[MODULE_PIXELS];

	(void)state;
	begin(&bench);
	bench_frame(&bench, 5, KEPT);
	memcpy(half, bench.raw, sizeof(half));
	memcpy(bench.raw, bench.raw + MODULE_PIXELS, sizeof(half));
	memcpy(bench.raw + MODULE_PIXELS, half, sizeof(half));
	assert_int_equal(put(&bench), -EBADMSG);
	end(&bench);
}

static void every_wrong_field_of_a_record_is_found(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	for (unsigned field = 0; field < 6; field++) {
		struct sl_record *record = &bench.view[1].record;

		bench_frame(&bench, 7, KEPT);
		if (field == 0)
			record->sequence++;
		else if (field == 1)
			record->frame++;
		else if (field == 2)
			record->timestamp++;
		else if (field == 3)
			record->module = 0;
		else if (field == 4)
			record->flags ^= SL_RECORD_DARK;
		else
			bench.frame.timestamp++;
		assert_int_equal(put(&bench), -EBADMSG);
		assert_int_equal(bench_figure(&bench, "frames_with_wrong_records"), field + 1);
	}
	assert_int_equal(bench_figure(&bench, "frames_mismatched"), 0);
	end(&bench);
}

/* Their timestamp is the receiver's clock; all the rest must be right. */
static void records_of_the_receiver_have_timestamps_of_their_own(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	for (unsigned field = 0; field < 2; field++) {
		bench_frame(&bench, 7, KEPT);
		for (unsigned m = 0; m < bench.frame.views; m++) {
			bench.view[m].record.flags |= SL_RECORD_BARE;
			bench.view[m].record.timestamp = 1000 + m;
		}
		bench.frame.timestamp = 1001;
		if (field == 1)
			bench.view[1].record.frame++;
		assert_int_equal(put(&bench), field ? -EBADMSG : 0);
	}
	end(&bench);
}

static void mismatches_make_the_run_fail(void **state)
{
	static const char *const names[] = {"frames_mismatched", "pixels_mismatched",
					    "frames_with_wrong_records", "frames_unchecked"};
	struct bench bench;

	(void)state;
	begin(&bench);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wanted_figure wanted = {.name = names[i]};

		sl_sink_verify.figures(bench.state, find_figure, &wanted);
		assert_int_equal(wanted.found, 1);
		assert_int_equal(wanted.failed, 1);
	}
	end(&bench);
}

static void frames_that_are_not_whole_are_left_alone(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	bench_frame(&bench, 0, DAMAGED);
	assert_int_equal(put(&bench), 0);
	assert_int_equal(bench_figure(&bench, "frames_compared"), 0);
	end(&bench);
}

static void a_whole_frame_without_raw_pixels_is_not_called_intact(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	bench_frame(&bench, 0, KEPT);
	bench.frame.results = 0;
	assert_true(put(&bench) < 0);
	assert_int_equal(bench_figure(&bench, "frames_unchecked"), 1);
	assert_int_equal(bench_figure(&bench, "frames_compared"), 0);
	end(&bench);
}

static void asks_for_raw_pixels_and_opens_only_with_them(void **state)
{
	struct bench bench;

	(void)state;
	assert_true(sl_sink_verify.wants & SL_WANT_RAW);
	bench_init(&bench, &sl_sink_verify);
	bench.env.result = &bench.shape[1];
	bench.env.results = 1;
	assert_int_equal(bench_open(&bench), -EINVAL);
	end(&bench);
}

static void a_detector_without_truth_is_an_error_at_open(void **state)
{
	struct sl_detector blind = tiny_detector;
	struct bench bench;

	(void)state;
	blind.render = NULL;
	bench_init(&bench, &sl_sink_verify);
	bench.env.detector = &blind;
	assert_int_equal(bench_open(&bench), -ENOTSUP);
	end(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(true_frames_are_intact_dark_or_not),
		cmocka_unit_test(one_wrong_bit_is_found_wherever_it_is),
		cmocka_unit_test(several_threads_find_the_same),
		cmocka_unit_test(pixels_of_another_frame_are_found),
		cmocka_unit_test(swapped_modules_are_found),
		cmocka_unit_test(every_wrong_field_of_a_record_is_found),
		cmocka_unit_test(records_of_the_receiver_have_timestamps_of_their_own),
		cmocka_unit_test(mismatches_make_the_run_fail),
		cmocka_unit_test(frames_that_are_not_whole_are_left_alone),
		cmocka_unit_test(a_whole_frame_without_raw_pixels_is_not_called_intact),
		cmocka_unit_test(asks_for_raw_pixels_and_opens_only_with_them),
		cmocka_unit_test(a_detector_without_truth_is_an_error_at_open),
	};

	conforming = &sl_sink_verify;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
