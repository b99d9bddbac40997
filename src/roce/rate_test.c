/* rate_test.c - the controller step by step: cuts, calm, recovery, pacing, measuring. That it works
 * in a loop is in rate_loop_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rate.h"

#include <string.h>

enum { US = 1000, MS = 1000000, PACKET = 4096 };
#define LINE  UINT64_C(5000000000)
#define START UINT64_C(1000000000)

static struct sl_roce_rate rate;
static uint64_t now;

static void fresh_line(uint64_t line)
{
	memset(&rate, 0, sizeof(rate));
	rate.line = line;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	now = START;
}

static int fresh(void **state)
{
	fresh_line(LINE);
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
	return 0;
}

static void cnp(void)
{
	sl_roce_rate_on_cnp(&rate, now);
}

/* So many cuts; now is the time of the last. */
static void cuts(int count)
{
	cnp();
	while (--count) {
		now += 50 * US;
		cnp();
	}
}

/* Send all that may be sent while it is limited, looking every microsecond; the bytes. */
static uint64_t send_for(uint64_t ns)
{
	uint64_t bytes = 0;

	for (uint64_t end = now + ns; now < end; now += US) {
		while (rate.active && sl_roce_rate_allow(&rate, now, PACKET) == 0)
			bytes += PACKET;
	}
	return bytes;
}

/* A sender that has this much to send. */
static void send_at(uint64_t per_second, uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += PACKET * UINT64_C(1000000000) / per_second)
		assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
}

static void expect_near(uint64_t got, uint64_t wanted, unsigned percent)
{
	if (got * 100 < wanted * (100 - percent) || got * 100 > wanted * (100 + percent))
		fail_msg("%llu, expected %llu", (unsigned long long)got,
			 (unsigned long long)wanted);
}

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

/* However often it is told, it never stops: a thousandth of the line is left, or what was set. */
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

/* The later the next CNP, the smaller the cut. */
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

/* 10 MB are a step, as the timer is; hyper increase needs both to have passed five. */
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

/* After a burst, packets leave at the rate, however often the sender asks. */
static void paces_at_the_rate(void **state)
{
	uint64_t bytes;

	rate.timer_ns = UINT64_C(1) << 40; /* stays where it is */
	rate.stage_bytes = UINT64_C(1) << 40;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cuts(5);
	bytes = send_for(10 * MS);
	expect_near(bytes, rate.rate / 100 + SL_ROCE_RATE_BURST, 1);
}

/* A microsecond is worth a tenth of a byte here: nothing is lost by asking often. */
static void paces_at_a_slow_rate(void **state)
{
	uint64_t bytes = 0;

	rate.least = 100000;
	rate.burst_bytes = 1;
	rate.timer_ns = UINT64_C(1) << 40;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cuts(100);
	assert_int_equal(rate.rate, 100000);
	for (uint64_t end = now + 500 * MS; now < end; now += US) {
		while (sl_roce_rate_allow(&rate, now, 100) == 0)
			bytes += 100;
	}
	expect_near(bytes, 50000, 1);
}

/* And by asking every nanosecond nothing is gained. */
static void paces_whoever_asks_often(void **state)
{
	uint64_t bytes = 0, end;

	rate.timer_ns = UINT64_C(1) << 40;
	rate.stage_bytes = UINT64_C(1) << 40;
	rate.burst_bytes = 64;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cnp();
	for (end = now + MS; now < end; now++) {
		while (sl_roce_rate_allow(&rate, now, 64) == 0)
			bytes += 64;
	}
	assert_true(bytes >= LINE / 2000 && bytes <= LINE / 2000 + 128);
}

static void burst_is_bounded(void **state)
{
	uint64_t bytes = 0;

	cnp();
	for (; sl_roce_rate_allow(&rate, now, PACKET) == 0; bytes += PACKET)
		;
	assert_int_equal(bytes, SL_ROCE_RATE_BURST + PACKET);
	now += 200 * MS; /* however long it waits */
	cnp();
	for (bytes = 0; sl_roce_rate_allow(&rate, now, PACKET) == 0; bytes += PACKET)
		;
	assert_int_equal(bytes, SL_ROCE_RATE_BURST + PACKET);
}

static void says_when_to_ask_again(void **state)
{
	uint64_t when;

	rate.timer_ns = UINT64_C(1) << 40;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	sl_roce_rate_allow(&rate, now, PACKET);
	cnp();
	while ((when = sl_roce_rate_allow(&rate, now, PACKET)) == 0)
		;
	assert_true(when > now);
	assert_true(sl_roce_rate_allow(&rate, when - 1, PACKET) > 0);
	assert_int_equal(sl_roce_rate_allow(&rate, when, PACKET), 0);
}

/* A slow rate must not bind the sender for longer than the rate lasts. */
static void asks_again_when_the_rate_changes(void **state)
{
	cuts(40);
	while (sl_roce_rate_allow(&rate, now, 1000000) == 0)
		;
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), rate.raise_at);
}

/* A packet of 2 GiB at the slowest rate, and times far in the future: nothing overflows. */
static void extremes(void **state)
{
	memset(&rate, 0, sizeof(rate));
	rate.line = SL_ROCE_RATE_MAX;
	rate.least = 1;
	rate.timer_ns = UINT64_C(1) << 40;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	now = UINT64_C(1) << 62;
	for (int i = 0; i < 4; i++)
		assert_int_equal(sl_roce_rate_allow(&rate, now, UINT32_MAX), 0);
	cuts(100);
	assert_int_equal(rate.rate, 1);
	assert_int_equal(sl_roce_rate_allow(&rate, now, UINT32_MAX), 0);
	assert_true(sl_roce_rate_allow(&rate, now, 1) > now);
	now += 240 * MS;
	assert_true(sl_roce_rate_allow(&rate, now, 1) > now);
	assert_int_equal(rate.debt, UINT32_MAX);
}

/* At 2^37 bytes per second, 2^27 ns are worth 2^64: more than enough, not nothing. */
static void long_waits_at_high_rates(void **state)
{
	memset(&rate, 0, sizeof(rate));
	rate.line = SL_ROCE_RATE_MAX;
	rate.timer_ns = UINT64_C(1) << 40;
	rate.stage_bytes = UINT64_C(1) << 40;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
	cnp();
	assert_int_equal(rate.rate, UINT64_C(1) << 37);
	assert_int_equal(sl_roce_rate_allow(&rate, now, UINT32_MAX), 0);
	assert_int_equal(sl_roce_rate_allow(&rate, now + (UINT64_C(1) << 27), PACKET), 0);
	assert_int_equal(rate.debt, PACKET);
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

static void unknown_line_starts_from_what_is_sent(void **state)
{
	fresh_line(0);
	send_at(800000000, 5 * MS);
	cnp();
	expect_near(rate.target, 800000000, 2);
	expect_near(rate.rate, 400000000, 2);
	expect_near(rate.ceiling, 1600000000, 2);
}

static void unknown_line_measures_a_sender_that_just_began(void **state)
{
	fresh_line(0);
	send_at(2000000000, 100 * US);
	cnp();
	expect_near(rate.target, 2000000000, 10);
}

static void unknown_line_that_sent_nothing_is_not_meant(void **state)
{
	fresh_line(0);
	cnp();
	assert_false(rate.active);
	assert_int_equal(rate.cnps, 1);
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
}

/* It hardly sends now, but did before: that is what the bounds are made of. */
static void unknown_line_of_a_sender_gone_quiet(void **state)
{
	fresh_line(0);
	send_at(800000000, 5 * MS);
	now += 200 * MS;
	sl_roce_rate_allow(&rate, now, 10);
	now += 10 * MS;
	sl_roce_rate_allow(&rate, now, 10);
	cnp();
	assert_int_equal(rate.target, rate.floor);
	for (int i = 0; i < 10; i++) {
		sl_roce_rate_tick(&rate, now += 55 * US);
		assert_true(rate.rate >= rate.floor);
	}
}

/* Above what it ever sent it is free again. */
static void unknown_line_recovers(void **state)
{
	fresh_line(0);
	send_at(800000000, 5 * MS);
	cnp();
	for (int i = 0; i < 100000 && rate.active; i++, now += 10 * US)
		sl_roce_rate_allow(&rate, now, PACKET);
	assert_false(rate.active);
	assert_true(now < START + 200 * MS);
}

/* The same story told ten times slower: the same rates. */
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

/* A window of ten seconds, and what a fast line carries in it. */
static void scale_and_a_fast_line(void **state)
{
	fresh_line(0);
	rate.scale = SL_ROCE_RATE_SCALE_MAX;
	for (uint64_t end = now + UINT64_C(25000000000); now < end; now += 100 * US)
		assert_int_equal(sl_roce_rate_allow(&rate, now, 2000000), 0);
	cnp();
	expect_near(rate.target, UINT64_C(20000000000), 1);
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

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inactive_until_told),
		TEST(first_cut_halves_the_line_rate),
		TEST(cuts_are_40_us_apart),
		TEST(never_below_the_least),
		TEST(calm_lowers_alpha),
		TEST(alpha_decides_how_deep_a_cut_is),
		TEST(five_steps_of_fast_recovery_then_additive),
		TEST(late_tick_is_as_many_small_ones),
		TEST(bytes_are_steps_too),
		TEST(hyper_increase_when_both_agree),
		TEST(back_at_the_line_rate_it_is_inactive),
		TEST(paces_at_the_rate),
		TEST(paces_at_a_slow_rate),
		TEST(paces_whoever_asks_often),
		TEST(burst_is_bounded),
		TEST(says_when_to_ask_again),
		TEST(asks_again_when_the_rate_changes),
		TEST(extremes),
		TEST(long_waits_at_high_rates),
		TEST(silence_begins_anew),
		TEST(unknown_line_starts_from_what_is_sent),
		TEST(unknown_line_measures_a_sender_that_just_began),
		TEST(unknown_line_that_sent_nothing_is_not_meant),
		TEST(unknown_line_of_a_sender_gone_quiet),
		TEST(unknown_line_recovers),
		TEST(scale_stretches_the_clocks),
		TEST(scale_and_a_fast_line),
		TEST(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
