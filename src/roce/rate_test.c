/* rate_test.c - the controller step by step: cuts, calm, recovery. Pacing and measuring are in
 * rate_pace_test.c; that it works in a loop, in rate_loop_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rate.h"

static void inactive_until_told(void **state)
{
	for (int i = 0; i < 100000; i++)
		assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
	assert_false(rate.active);
	assert_int_equal(sl_roce_rate_limit(&rate), 0);
}

static void first_cut_halves_the_line_rate(void **state)
{
	cnp();
	assert_true(rate.active);
	assert_int_equal(sl_roce_rate_limit(&rate), LINE / 2);
	assert_int_equal(rate.target, LINE);
	assert_int_equal(rate.alpha, SL_ROCE_RATE_ALPHA);
}

static void cuts_are_40_us_apart(void **state)
{
	cnp();
	now += 39999;
	cnp();
	assert_int_equal(rate.rate, LINE / 2);
	now += 1;
	cnp();
	assert_int_equal(rate.rate, LINE / 4);
	assert_int_equal(rate.target, LINE / 2);
	assert_int_equal(rate.cnps, 3);
	assert_int_equal(rate.cuts, 2);
}

/* A CNP every microsecond for a second, whatever is sent: the sender goes on at its least rate, and
 * is back at the line rate soon after. */
static void a_flood_does_not_stop_a_sender(void **state)
{
	uint64_t bytes = 0, end = now + 1000 * MS, again = 0;

	for (; now < end; now += US) {
		if (again <= now && (again = sl_roce_rate_allow(&rate, now, PACKET)) == 0)
			bytes += PACKET;
		sl_roce_rate_on_cnp(&rate, now);
		assert_true(rate.rate >= rate.floor);
	}
	assert_true(bytes > LINE / 1000);
	assert_true(rate.cuts <= 1000 * MS / SL_ROCE_RATE_CUT_NS + 1);
	for (end = now + 200 * MS; now < end && rate.active; now += US)
		if (again <= now)
			again = sl_roce_rate_allow(&rate, now, PACKET);
	assert_false(rate.active);
}

static void never_below_the_least(void **state)
{
	cuts(100);
	expect_near(rate.rate, LINE / 1000, 1);
	memset(&rate, 0, sizeof(rate));
	rate.line = LINE;
	rate.least = 1000000000;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cuts(100);
	assert_int_equal(rate.rate, 1000000000);
}

static void calm_lowers_alpha(void **state)
{
	cuts(9);
	now += 54999;
	sl_roce_rate_tick(&rate, now);
	assert_int_equal(rate.alpha, SL_ROCE_RATE_ALPHA);
	now += 1;
	sl_roce_rate_tick(&rate, now);
	assert_int_equal(rate.alpha, SL_ROCE_RATE_ALPHA / 256 * 255);
	for (int i = 0; i < 176; i++)
		sl_roce_rate_tick(&rate, now += 55 * US);
	expect_near(rate.alpha, SL_ROCE_RATE_ALPHA / 2, 1); /* (255/256)^177 */
}

static void alpha_decides_how_deep_a_cut_is(void **state)
{
	uint64_t before;

	cuts(9);
	for (int i = 0; i < 177; i++)
		sl_roce_rate_tick(&rate, now += 55 * US);
	before = rate.rate;
	cnp();
	assert_int_equal(rate.target, before);
	expect_near(rate.rate, before / 4 * 3, 1);
	expect_near(rate.alpha, SL_ROCE_RATE_ALPHA / 512 * 257, 1);
}

static void five_steps_of_fast_recovery_then_additive(void **state)
{
	uint64_t expected = LINE / 4;

	cuts(2);
	for (int i = 0; i < 5; i++) {
		sl_roce_rate_tick(&rate, now += 55 * US);
		expected = (expected + LINE / 2) / 2;
		assert_int_equal(rate.target, LINE / 2);
		assert_int_equal(rate.rate, expected);
	}
	for (uint64_t i = 1; i <= 10; i++) {
		sl_roce_rate_tick(&rate, now += 55 * US);
		assert_int_equal(rate.target, LINE / 2 + i * (LINE / 1000 + 1));
	}
}

static void late_tick_is_as_many_small_ones(void **state)
{
	struct sl_roce_rate steps;

	cuts(2);
	steps = rate;
	for (uint64_t t = now; t <= now + 5 * MS; t += 7 * US)
		sl_roce_rate_tick(&steps, t);
	sl_roce_rate_tick(&steps, now + 5 * MS);
	sl_roce_rate_tick(&rate, now + 5 * MS);
	assert_memory_equal(&rate, &steps, sizeof(rate));
}

static void bytes_are_steps_too(void **state)
{
	rate.timer_ns = 100 * MS;
	rate.stage_bytes = 1000000;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cnp();
	send_for(2500 * US); /* at 2.5 GB/s and more */
	assert_true(rate.byte_steps > 5);
	assert_int_equal(rate.time_steps, 0);
	assert_int_equal(rate.target, LINE);
}

static void hyper_increase_when_both_agree(void **state)
{
	uint64_t before;

	cuts(9);
	rate.time_steps = rate.byte_steps = 5;
	before = rate.target;
	now = rate.raise_at;
	sl_roce_rate_tick(&rate, now);
	assert_int_equal(rate.target, before + rate.step_additive);
	rate.byte_steps = 6;
	now = rate.raise_at;
	sl_roce_rate_tick(&rate, now);
	assert_int_equal(rate.target, before + rate.step_additive + rate.step_hyper);
	rate.byte_steps = 9;
	now = rate.raise_at;
	sl_roce_rate_tick(&rate, now);
	assert_int_equal(rate.target, before + rate.step_additive + 4 * rate.step_hyper);
	assert_int_equal(rate.step_hyper, 5 * rate.step_additive);
}

static void back_at_the_line_rate_it_is_inactive(void **state)
{
	cnp();
	send_for(MS);
	assert_false(rate.active);
	assert_int_equal(sl_roce_rate_limit(&rate), 0);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
	cnp(); /* and starts from the beginning */
	assert_int_equal(rate.rate, LINE / 2);
}

static void silence_begins_anew(void **state)
{
	rate.timer_ns = UINT64_C(1) << 40;
	cuts(9);
	now = START + SL_ROCE_RATE_IDLE_NS - 1;
	sl_roce_rate_tick(&rate, now);
	assert_true(rate.active);
	sl_roce_rate_tick(&rate, now + 1);
	assert_false(rate.active);
}

static void scale_stretches_the_clocks(void **state)
{
	static const uint32_t steps_us[] = {0, 39, 1, 50, 54, 1, 55, 55, 54, 1, 500, 45, 9, 1, 300};
	struct sl_roce_rate slow = {.line = LINE, .scale = 10};
	uint64_t t = now, slow_t = now;

	assert_int_equal(sl_roce_rate_init(&slow), SL_ROCE_OK);
	assert_int_equal(sl_roce_rate_allow(&slow, now, PACKET), 0);
	for (int i = 0; i < 60; i++) {
		t += steps_us[i % 15] * US;
		slow_t += steps_us[i % 15] * 10 * US;
		if (i % 2 == 0) {
			sl_roce_rate_on_cnp(&rate, t);
			sl_roce_rate_on_cnp(&slow, slow_t);
		}
		sl_roce_rate_tick(&rate, t);
		sl_roce_rate_tick(&slow, slow_t);
		assert_int_equal(rate.rate, slow.rate);
		assert_int_equal(rate.alpha, slow.alpha);
		assert_int_equal(rate.cuts, slow.cuts);
	}
	assert_true(rate.cuts > 5 && rate.cuts < rate.cnps);
}

static void nonsense_is_refused(void **state)
{
	rate.line = SL_ROCE_RATE_MAX + 1;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_EINVAL);
	rate.line = 0;
	rate.timer_ns = 999;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_EINVAL);
	rate.timer_ns = 0;
	rate.scale = SL_ROCE_RATE_SCALE_MAX + 1;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_EINVAL);
	rate.scale = 0;
	rate.hyper = SL_ROCE_RATE_MAX + 1;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inactive_until_told),
		TEST(first_cut_halves_the_line_rate),
		TEST(cuts_are_40_us_apart),
		TEST(a_flood_does_not_stop_a_sender),
		TEST(never_below_the_least),
		TEST(calm_lowers_alpha),
		TEST(alpha_decides_how_deep_a_cut_is),
		TEST(five_steps_of_fast_recovery_then_additive),
		TEST(late_tick_is_as_many_small_ones),
		TEST(bytes_are_steps_too),
		TEST(hyper_increase_when_both_agree),
		TEST(back_at_the_line_rate_it_is_inactive),
		TEST(silence_begins_anew),
		TEST(scale_stretches_the_clocks),
		TEST(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
