/* pace_test.c - periods that do not drift, and a limit that holds over any stretch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulator/pace.h"

static void a_late_frame_does_not_shift_the_next(void **state)
{
	static struct sl_pace pace;

	(void)state;
	sl_pace_begin(&pace, 3, 1000);
	assert_int_equal(sl_pace_due(&pace, 0), 1000);
	assert_int_equal(sl_pace_due(&pace, 3), 1000001000);
	assert_int_equal(sl_pace_due(&pace, 3000000000), UINT64_C(1000000000000001000));
	sl_pace_note(&pace, 0, 1000);
	sl_pace_note(&pace, 3, 1000001000 + 500);
	sl_pace_note(&pace, 6, 2000000000); /* a little early counts as on time */
	assert_int_equal(sl_histogram_count(&pace.late), 3);
	assert_int_equal(sl_histogram_max(&pace.late), 500);
	assert_int_equal(sl_histogram_min(&pace.late), 0);
}

static void without_a_rate_nothing_is_due(void **state)
{
	static struct sl_pace pace;

	(void)state;
	sl_pace_begin(&pace, 0, 1000);
	assert_int_equal(sl_pace_due(&pace, 17), 0);
	sl_pace_note(&pace, 17, 5000);
	assert_int_equal(sl_histogram_count(&pace.late), 0);
}

/* A sender that tries all the time, in bursts of any size, gets the rate and not more. */
static void the_limit_holds(void **state)
{
	struct sl_limit limit = {.ns_per_byte = 8}; /* 1 Gbit/s */
	uint64_t now, sent = 0, burst = 1;

	(void)state;
	for (now = 0; now < 100000000; now += 100)
		if (sl_limit_allows(&limit, now)) {
			burst = burst * 7 % 30011;
			sl_limit_spend(&limit, burst, now);
			sent += burst;
		}
	assert_in_range(sent * 8, 99000000, 100000000 + 30011 * 8 + SL_LIMIT_SAVED_NS);
}

static void silence_is_hardly_saved_up(void **state)
{
	struct sl_limit limit = {.ns_per_byte = 8};

	(void)state;
	sl_limit_spend(&limit, 1000, 0);
	assert_false(sl_limit_allows(&limit, 7999));
	assert_true(sl_limit_allows(&limit, 8000));
	sl_limit_spend(&limit, 1000 + SL_LIMIT_SAVED_NS / 8, 1000000000);
	assert_false(sl_limit_allows(&limit, 1000007999));
	assert_true(sl_limit_allows(&limit, 1000008000));
}

static void no_limit_never_waits(void **state)
{
	struct sl_limit limit = {0};

	(void)state;
	sl_limit_spend(&limit, UINT32_MAX, 5);
	assert_true(sl_limit_allows(&limit, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_frame_does_not_shift_the_next),
		cmocka_unit_test(without_a_rate_nothing_is_due),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(silence_is_hardly_saved_up),
		cmocka_unit_test(no_limit_never_waits),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
