/* sink_pace_test.c - when a sink is full, which frames it is not given, and when the run ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "receiver/sink_pace.h"

enum { POOL = 48, SLOTS = 3, HIGH = 36 };
#define SECOND UINT64_C(1000000000)

static void hold(struct sl_sink_pace *pace, uint32_t held)
{
	while (pace->held < held)
		sl_sink_pace_take(pace);
	while (pace->held > held)
		sl_sink_pace_give_back(pace);
}

/* Whatever the pool and the workers are, the mark is in the pool, some of which is left to others,
 * and workers that are all busy do not make a sink slow where the pool is large enough. */
static void marks_leave_room(void **state)
{
	for (uint32_t pool = 17; pool < 400; pool++)
		for (unsigned workers = 0; workers <= SL_SINK_WORKERS; workers++) {
			uint32_t slots = sl_sink_slots(workers);
			struct sl_sink_pace pace;

			sl_sink_pace_init(&pace, SL_ON_SLOW_WAIT, pool, slots);
			assert_in_range(pace.high, pool / 8, pool - 2);
			assert_true(pace.low < pace.high);
			if (pool >= 2 * slots + 16)
				assert_true(pace.high > slots && pace.low >= slots);
		}
}

static void a_sink_that_keeps_pace_is_given_everything(void **state)
{
	struct sl_sink_pace pace;

	sl_sink_pace_init(&pace, SL_ON_SLOW_PRESCALE, POOL, SLOTS);
	assert_int_equal(pace.high, HIGH);
	for (uint32_t i = 0; i < 10 * POOL; i++) {
		hold(&pace, i % HIGH); /* bursts below the mark */
		assert_false(sl_sink_pace_leaves_out(&pace));
	}
	assert_int_equal(pace.factor, 1);
	assert_int_equal(pace.changes, 0);
	assert_int_equal(pace.most, HIGH - 1);
}

static void only_prescale_leaves_out(void **state)
{
	for (enum sl_on_slow on_slow = SL_ON_SLOW_WAIT; on_slow <= SL_ON_SLOW_STOP; on_slow++) {
		struct sl_sink_pace pace;

		sl_sink_pace_init(&pace, on_slow, POOL, SLOTS);
		hold(&pace, POOL);
		assert_int_equal(sl_sink_pace_leaves_out(&pace), on_slow == SL_ON_SLOW_PRESCALE);
		assert_int_equal(pace.left_out, on_slow == SL_ON_SLOW_PRESCALE);
	}
}

/* The sink stands still: nothing is given, and the factor doubles once in a period, up to its
 * limit. */
static void the_factor_doubles_and_comes_back(void **state)
{
	struct sl_sink_pace pace;

	sl_sink_pace_init(&pace, SL_ON_SLOW_PRESCALE, POOL, SLOTS);
	hold(&pace, HIGH);
	for (uint32_t i = 0; i < 10 * POOL; i++) {
		uint32_t doubled = i / POOL + 1;

		assert_true(sl_sink_pace_leaves_out(&pace));
		assert_int_equal(pace.factor,
				 doubled < 6 ? 1u << doubled : SL_SINK_PACE_FACTOR_MOST);
	}
	assert_int_equal(pace.changes, 6);
	assert_int_equal(pace.left_out, 10 * POOL);
	/* Between the marks nothing changes: one of 64. */
	hold(&pace, HIGH - 1);
	for (uint32_t i = 0, given = 0; i < 10 * SL_SINK_PACE_FACTOR_MOST; i++) {
		given += !sl_sink_pace_leaves_out(&pace);
		assert_in_range(given, i / SL_SINK_PACE_FACTOR_MOST,
				i / SL_SINK_PACE_FACTOR_MOST + 1);
	}
	hold(&pace, SLOTS);
	for (uint32_t i = 0; i < 6 * POOL; i++)
		sl_sink_pace_leaves_out(&pace);
	assert_int_equal(pace.factor, 1);
	assert_int_equal(pace.changes, 12);
	assert_false(sl_sink_pace_leaves_out(&pace));
}

/* A sink that puts one frame while `slower` come, for a long time: it is busy all the time, never
 * has more than the mark, and is given what it can take. */
static void simulate(uint32_t slower)
{
	uint32_t frames = 200 * POOL, given = 0, idle = 0;
	struct sl_sink_pace pace;

	sl_sink_pace_init(&pace, SL_ON_SLOW_PRESCALE, POOL, SLOTS);
	for (uint32_t i = 0; i < frames; i++) {
		if (i % slower == 0 && pace.held)
			sl_sink_pace_give_back(&pace);
		else if (i % slower == 0)
			idle++;
		if (!sl_sink_pace_leaves_out(&pace)) {
			sl_sink_pace_take(&pace);
			given++;
		}
		assert_in_range(pace.held, 0, HIGH);
	}
	assert_int_equal(given + pace.left_out, frames);
	assert_true(given <= frames / slower + HIGH);
	/* It is not starved: of the frames that it could put, it gets half at the least. */
	assert_true(idle <= frames / slower / 2);
	assert_true(slower == 1 ? pace.changes == 0 : pace.changes > 0);
}

static void the_sink_gets_what_it_can_take(void **state)
{
	static const uint32_t slower[] = {1, 2, 3, 7, 20, 50};

	for (unsigned i = 0; i < sizeof(slower) / sizeof(slower[0]); i++)
		simulate(slower[i]);
}

static void a_run_ends_when_it_has_been_slow_for_a_while(void **state)
{
	struct sl_sink_pace pace;

	sl_sink_pace_init(&pace, SL_ON_SLOW_STOP, POOL, SLOTS);
	hold(&pace, HIGH);
	assert_false(sl_sink_pace_ends_run(&pace, true, SECOND));
	assert_false(sl_sink_pace_ends_run(&pace, true, SECOND + SL_SINK_PACE_STOP_NS));
	hold(&pace, HIGH - 1); /* a break: it begins anew */
	assert_false(sl_sink_pace_ends_run(&pace, true, 3 * SECOND));
	hold(&pace, HIGH);
	assert_false(sl_sink_pace_ends_run(&pace, true, 4 * SECOND));
	assert_false(sl_sink_pace_ends_run(&pace, false, 6 * SECOND)); /* nothing waits */
	assert_false(sl_sink_pace_ends_run(&pace, true, 7 * SECOND));
	assert_true(sl_sink_pace_ends_run(&pace, true, 7 * SECOND + SL_SINK_PACE_STOP_NS + 1));
	sl_sink_pace_init(&pace, SL_ON_SLOW_WAIT, POOL, SLOTS);
	hold(&pace, POOL);
	assert_false(sl_sink_pace_ends_run(&pace, true, SECOND));
	assert_false(sl_sink_pace_ends_run(&pace, true, 100 * SECOND));
}

static void waiting_is_told_once_in_a_minute(void **state)
{
	unsigned told = 0;
	struct sl_sink_pace pace;

	sl_sink_pace_init(&pace, SL_ON_SLOW_WAIT, POOL, SLOTS);
	assert_true(sl_sink_pace_tells(&pace, SECOND) == 0);
	pace.waited_ns += SECOND / 10; /* a twentieth */
	assert_true(sl_sink_pace_tells(&pace, 3 * SECOND) == 0);
	pace.waited_ns += SECOND;
	assert_true(sl_sink_pace_tells(&pace, 4 * SECOND) == 0); /* too early to look */
	assert_true(sl_sink_pace_tells(&pace, 5 * SECOND) == 0.5);
	for (unsigned s = 6; s < 5 + 180; s++) {
		pace.waited_ns += 2 * SECOND; /* more than there was: clocks of two threads */
		told += sl_sink_pace_tells(&pace, s * SECOND) == 1;
	}
	assert_int_equal(told, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_leave_room),
		cmocka_unit_test(a_sink_that_keeps_pace_is_given_everything),
		cmocka_unit_test(only_prescale_leaves_out),
		cmocka_unit_test(the_factor_doubles_and_comes_back),
		cmocka_unit_test(the_sink_gets_what_it_can_take),
		cmocka_unit_test(a_run_ends_when_it_has_been_slow_for_a_while),
		cmocka_unit_test(waiting_is_told_once_in_a_minute),
	};

	return cmocka_run_group_tests_name("sink_pace", tests, NULL, NULL);
}
