/* look_test.c - when everything that came has been taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/look.h"

static void test_an_empty_queue_counts_from_the_beginning_of_the_pass(void **state)
{
	struct sl_look look = {0};

	(void)state;
	assert_int_equal(sl_look_pass(&look, 100, 0, true), 100);
	assert_int_equal(sl_look_pass(&look, 200, 255, true), 200);
}

static void test_a_pass_that_left_something_says_nothing(void **state)
{
	struct sl_look look = {0};

	(void)state;
	assert_int_equal(sl_look_pass(&look, 100, 256, false), 0);
	assert_int_equal(sl_look_pass(&look, 200, 256, false), 0);
	assert_int_equal(sl_look_pass(&look, 300, 7, true), 300);
}

/* A flood must not keep a frame from ever being late: what was there when the first pass began has
 * been taken once more packets came after it than any buffer holds. */
static void test_a_queue_that_is_never_empty(void **state)
{
	struct sl_look look = {0};
	uint64_t now = 1000, taken = 0, known;

	(void)state;
	assert_int_equal(sl_look_pass(&look, now, 256, false), 0);
	for (taken = 256; taken + 256 < SL_LOOK_PACKETS; taken += 256)
		assert_int_equal(sl_look_pass(&look, ++now, 256, false), 0);
	known = sl_look_pass(&look, ++now, 256, false);
	assert_int_equal(known, 1000);
	/* Then it is counted anew, from that pass on. */
	assert_int_equal(sl_look_pass(&look, now + 1, SL_LOOK_PACKETS - 1, false), 0);
	assert_int_equal(sl_look_pass(&look, now + 2, 1, false), now);
}

static void test_an_empty_queue_ends_the_count(void **state)
{
	struct sl_look look = {0};

	(void)state;
	assert_int_equal(sl_look_pass(&look, 100, SL_LOOK_PACKETS - 1, false), 0);
	assert_int_equal(sl_look_pass(&look, 200, 0, true), 200);
	assert_int_equal(sl_look_pass(&look, 300, SL_LOOK_PACKETS - 1, false), 0);
	assert_int_equal(sl_look_pass(&look, 400, 1, false), 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_queue_counts_from_the_beginning_of_the_pass),
		cmocka_unit_test(test_a_pass_that_left_something_says_nothing),
		cmocka_unit_test(test_a_queue_that_is_never_empty),
		cmocka_unit_test(test_an_empty_queue_ends_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
