/* series_test.c - samples of many counters in a ring of fixed size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "flight/series.h"

static void sample(struct sl_series_ring *ring, uint64_t at, unsigned names)
{
	sl_series_begin(ring);
	for (unsigned i = 0; i < names; i++)
		sl_series_put(ring, SL_SERIES_COUNTER, "ns", at + i, "thread.%u", i);
	sl_series_commit(ring, at);
}

static void samples_are_kept_in_order(void **state)
{
	struct sl_series_ring *ring = sl_series_open();

	assert_non_null(ring);
	assert_int_equal(sl_series_count(ring), 0);
	for (uint64_t at = 1; at <= 10; at++)
		sample(ring, at, 3);
	assert_int_equal(ring->n, 3);
	assert_string_equal(ring->series[2].name, "thread.2");
	assert_int_equal(sl_series_count(ring), 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(sl_series_at(ring, i), i + 1);
		assert_int_equal(sl_series_value(ring, i, 2), i + 3);
	}
	sl_series_close(ring);
}

static void the_oldest_goes_when_it_is_full(void **state)
{
	struct sl_series_ring *ring = sl_series_open();

	for (uint64_t at = 1; at <= SL_SERIES_SAMPLES + 7; at++)
		sample(ring, at, 1);
	assert_int_equal(sl_series_count(ring), SL_SERIES_SAMPLES);
	for (unsigned i = 0; i < SL_SERIES_SAMPLES; i++) {
		assert_int_equal(sl_series_at(ring, i), i + 8);
		assert_int_equal(sl_series_value(ring, i, 0), i + 8);
	}
	sl_series_close(ring);
}

/* A thread that begins later, one that ends, and names in another order. */
static void what_was_not_put_is_absent(void **state)
{
	struct sl_series_ring *ring = sl_series_open();

	sample(ring, 1, 2);
	sample(ring, 2, 4);
	sample(ring, 3, 1);
	sl_series_begin(ring);
	sl_series_put(ring, SL_SERIES_GAUGE, "", 30, "thread.3");
	sl_series_put(ring, SL_SERIES_GAUGE, "", 10, "thread.1");
	sl_series_commit(ring, 4);
	assert_int_equal(ring->n, 4);
	assert_int_equal(sl_series_value(ring, 0, 3), SL_SERIES_ABSENT);
	assert_int_equal(sl_series_value(ring, 1, 3), 5);
	assert_int_equal(sl_series_value(ring, 2, 3), SL_SERIES_ABSENT);
	assert_int_equal(sl_series_value(ring, 3, 3), 30);
	assert_int_equal(sl_series_value(ring, 3, 1), 10);
	assert_int_equal(sl_series_value(ring, 3, 0), SL_SERIES_ABSENT);
	sl_series_close(ring);
}

static void names_without_room_are_left_out(void **state)
{
	struct sl_series_ring *ring = sl_series_open();

	sample(ring, 1, SL_SERIES_MOST + 20);
	assert_int_equal(ring->n, SL_SERIES_MOST);
	assert_int_equal(sl_series_value(ring, 0, SL_SERIES_MOST - 1), SL_SERIES_MOST);
	sl_series_clear(ring);
	assert_int_equal(sl_series_count(ring), 0);
	sample(ring, 5, 1);
	assert_int_equal(ring->n, 1);
	assert_int_equal(sl_series_value(ring, 0, 0), 5);
	sl_series_close(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_kept_in_order),
		cmocka_unit_test(the_oldest_goes_when_it_is_full),
		cmocka_unit_test(what_was_not_put_is_absent),
		cmocka_unit_test(names_without_room_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
