/* log_limit_test.c - one place cannot flood the log, and a stderr that is not read stops
 * nothing. */
#include "base/log_limit.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/capture.h"

static void a_place_has_so_many_lines_in_a_period(void **state)
{
	static const char here[] = "here", there[] = "there";
	uint64_t now = sl_clock_ns(), left_out;
	unsigned said = 0;

	for (unsigned i = 0; i < 1000; i++)
		said += sl_log_may(here, now, &left_out);
	assert_int_equal(said, SL_LOG_LIMIT_LINES);
	assert_true(sl_log_may(there, now, &left_out)); /* another is not affected */
	assert_int_equal(left_out, 0);
	assert_true(sl_log_may(here, now + SL_LOG_LIMIT_NS, &left_out));
	assert_int_equal(left_out, 1000 - SL_LOG_LIMIT_LINES);
	assert_true(sl_log_may(here, now + SL_LOG_LIMIT_NS, &left_out));
	assert_int_equal(left_out, 0);
	assert_int_equal(sl_log_take_left_out(), 0);
}

static void a_place_that_goes_on_for_hours_has_one_line_in_a_period(void **state)
{
	static const char here[] = "for hours";
	uint64_t now = sl_clock_ns(), left_out, all = 0;
	unsigned said = 0;

	for (unsigned period = 0; period < 100; period++)
		for (unsigned i = 0; i < 1000; i++) {
			said += sl_log_may(here, now + period * SL_LOG_LIMIT_NS, &left_out);
			all += left_out;
		}
	assert_in_range(said, SL_LOG_LIMIT_TOTAL, SL_LOG_LIMIT_TOTAL + 100);
	assert_int_equal(said + all + sl_log_take_left_out(), 100 * 1000);
	assert_true(sl_log_may(here, now, &left_out)); /* the next run begins anew */
	sl_log_take_left_out();
}

static void more_places_than_the_table_has_are_not_limited(void **state)
{
	static char formats[1000];
	uint64_t left_out;

	for (unsigned i = 0; i < sizeof(formats); i++)
		assert_true(sl_log_may(&formats[i], sl_clock_ns(), &left_out));
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void what_is_left_out_is_counted_and_said(void **state)
{
	const char *text;

	capture_begin();
	for (unsigned i = 0; i < 5000; i++)
		sl_warn("a stranger, %u", i);
	sl_info("something else");
	sl_log_left_out();
	sl_log_left_out(); /* once */
	text = capture_end();
	assert_int_equal(count(text, "a stranger"), SL_LOG_LIMIT_LINES);
	assert_int_equal(count(text, "something else"), 1);
	assert_int_equal(count(text, "4800 lines like earlier ones were left out"), 1);
}

static void errors_are_all_told(void **state)
{
	const char *text;

	capture_begin();
	for (unsigned i = 0; i < 300; i++)
		sl_error("a mistake, %u", i);
	text = capture_end();
	assert_int_equal(count(text, "a mistake"), 300);
}

/* 100,000 lines into a pipe of 64 KiB: would wait for ever. */
static void a_pipe_that_is_not_read_stops_nothing(void **state)
{
	int saved = dup(STDERR_FILENO), ends[2];
	char text[131072];
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	for (unsigned i = 0; i < 100000; i++)
		sl_error("line %u of many that are not read", i);
	n = read(ends[0], text, sizeof(text) - 1);
	sl_error("the pipe is read again");
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(n > 4096);
	text[n] = 0;
	assert_non_null(strstr(text, "line 0 of many"));
	assert_int_equal(text[n - 1], '\n'); /* lines are whole */
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	assert_non_null(strstr(text, "lines were left out here: stderr was not read"));
	assert_non_null(strstr(text, "the pipe is read again"));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_has_so_many_lines_in_a_period),
		cmocka_unit_test(what_is_left_out_is_counted_and_said),
		cmocka_unit_test(errors_are_all_told),
		cmocka_unit_test(a_pipe_that_is_not_read_stops_nothing),
		cmocka_unit_test(a_place_that_goes_on_for_hours_has_one_line_in_a_period),
		cmocka_unit_test(more_places_than_the_table_has_are_not_limited),
	};

	return cmocka_run_group_tests_name("log_limit", tests, NULL, NULL);
}
