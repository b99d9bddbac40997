/* clock_test.c - time moves forward and is written the right way. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void time_does_not_go_back(void **state)
{
	uint64_t last = sl_clock_ns();

	for (int i = 0; i < 100000; i++) {
		uint64_t now = sl_clock_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void sleeps_until(void **state)
{
	uint64_t until = sl_clock_ns() + 5000000;

	sl_clock_sleep_until(until);
	assert_true(sl_clock_ns() >= until);
}

static void does_not_sleep_until_the_past(void **state)
{
	uint64_t start = sl_clock_ns();

	sl_clock_sleep_until(start - 1000000000);
	sl_clock_sleep_until(0);
	assert_true(sl_clock_ns() - start < 5000000000u);
}

static void iso8601_is_now_in_utc(void **state)
{
	struct tm tm = {0};
	char text[64], zone;
	int ms;
	time_t then;

	sl_clock_iso8601(sl_clock_unix_ns(), text, sizeof(text));
	assert_int_equal(strlen(text), strlen("2024-01-31T12:34:56.789Z"));
	assert_int_equal(sscanf(text, "%d-%d-%dT%d:%d:%d.%d%c", &tm.tm_year, &tm.tm_mon,
				&tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &zone),
			 8);
	assert_int_equal(zone, 'Z');
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	then = timegm(&tm);
	assert_true(then <= time(NULL) && then + 60 > time(NULL));
}

static void iso8601_does_not_overflow(void **state)
{
	char text[16] = "0123456789abcde";

	sl_clock_iso8601(sl_clock_unix_ns(), text, 8);
	assert_int_equal(strlen(text), 7);
	assert_int_equal(text[8], '8');
}

static void the_host_stays_the_same(void **state)
{
	assert_int_equal(sl_clock_host(), sl_clock_host());
	assert_int_not_equal(sl_clock_host(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(sleeps_until),
		cmocka_unit_test(does_not_sleep_until_the_past),
		cmocka_unit_test(iso8601_is_now_in_utc),
		cmocka_unit_test(iso8601_does_not_overflow),
		cmocka_unit_test(the_host_stays_the_same),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
