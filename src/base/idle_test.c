/* idle_test.c - how long a thread looks before it sleeps, at times that the test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/idle.h"

enum { US = 1000, LIMIT = 100 * US };

static uint64_t now = 1; /* 0 means that there is work */

/* Without work for so long, looking every microsecond; then work. How long it looked. */
static uint64_t gap(struct sl_idle *idle, uint64_t ns)
{
	uint64_t start = now, slept_ns = 0;

	for (; now < start + ns; now += US)
		if (sl_idle_sleep_at(idle, now) && !slept_ns)
			slept_ns = now - start + 1;
	now = start + ns;
	sl_idle_work_at(idle, now);
	now += US;
	return slept_ns ? slept_ns - 1 : ns;
}

static void short_gaps_are_looked_through(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	for (int i = 0; i < 100; i++)
		assert_int_equal(gap(&idle, 60 * US), 60 * US);
}

static void long_gaps_are_slept_through(void **state)
{
	struct sl_idle idle;
	uint64_t looked = 0;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	for (int i = 0; i < 1000; i++)
		looked += gap(&idle, 1000 * US);
	/* One second: the first gaps cost the limit, a half, a quarter; then nothing. */
	assert_true(looked <= 3 * LIMIT);
	assert_int_equal(gap(&idle, 1000 * US), 0);
}

static void one_long_wait_costs_one_look(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	assert_int_equal(gap(&idle, 3000000 * (uint64_t)US), LIMIT);
}

static void who_slept_too_early_looks_longer(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	for (int i = 0; i < 20; i++)
		gap(&idle, 1000 * US);
	assert_int_equal(idle.while_ns, 0);
	for (int i = 0; i < 20; i++)
		gap(&idle, 60 * US);
	assert_int_equal(gap(&idle, 60 * US), 60 * US);
	assert_true(idle.while_ns >= 60 * US && idle.while_ns <= LIMIT);
}

static void what_lies_just_beyond_the_limit_is_not_worth_a_look(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	for (int i = 0; i < 20; i++)
		gap(&idle, LIMIT + US);
	assert_int_equal(idle.while_ns, 0);
}

static void a_limit_of_nothing_sleeps_at_once(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, 0, true);
	for (int i = 0; i < 10; i++)
		assert_int_equal(gap(&idle, 5 * US), 0);
	assert_true(sl_idle_sleep(&idle));
	sl_idle_work(&idle);
	assert_true(sl_idle_sleep(&idle));
}

static void latency_never_sleeps(void **state)
{
	for (int crowded = 0; crowded < 2; crowded++) {
		struct sl_idle idle;

		sl_idle_init(&idle, SL_POLLING_LATENCY, LIMIT, crowded);
		assert_int_equal(gap(&idle, 2000 * US), 2000 * US);
		for (int i = 0; i < 1000; i++)
			assert_false(sl_idle_sleep(&idle));
		sl_idle_work(&idle);
		assert_false(sl_idle_sleep(&idle));
	}
}

static void cores_always_sleeps(void **state)
{
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_CORES, LIMIT, false);
	assert_int_equal(gap(&idle, 5 * US), 0);
	assert_true(sl_idle_sleep(&idle));
	sl_idle_work(&idle);
	assert_true(sl_idle_sleep(&idle));
}

static void the_clock_ends_a_look(void **state)
{
	struct sl_idle idle;
	unsigned looks = 0;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, LIMIT, false);
	while (!sl_idle_sleep(&idle))
		looks++;
	assert_true(looks > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_gaps_are_looked_through),
		cmocka_unit_test(long_gaps_are_slept_through),
		cmocka_unit_test(one_long_wait_costs_one_look),
		cmocka_unit_test(who_slept_too_early_looks_longer),
		cmocka_unit_test(what_lies_just_beyond_the_limit_is_not_worth_a_look),
		cmocka_unit_test(a_limit_of_nothing_sleeps_at_once),
		cmocka_unit_test(latency_never_sleeps),
		cmocka_unit_test(cores_always_sleeps),
		cmocka_unit_test(the_clock_ends_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
