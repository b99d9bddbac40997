/* rate_pace_test.c - the rate as packets feel it: bursts, waiting, extremes; and measuring it where
 * the line rate is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rate.h"

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

static void asks_again_when_the_rate_changes(void **state)
{
	cuts(40);
	while (sl_roce_rate_allow(&rate, now, 1000000) == 0)
		;
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), rate.raise_at);
}

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

static void scale_and_a_fast_line(void **state)
{
	fresh_line(0);
	rate.scale = SL_ROCE_RATE_SCALE_MAX;
	for (uint64_t end = now + UINT64_C(25000000000); now < end; now += 100 * US)
		assert_int_equal(sl_roce_rate_allow(&rate, now, 2000000), 0);
	cnp();
	expect_near(rate.target, UINT64_C(20000000000), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(paces_at_the_rate),
		TEST(paces_at_a_slow_rate),
		TEST(paces_whoever_asks_often),
		TEST(burst_is_bounded),
		TEST(says_when_to_ask_again),
		TEST(asks_again_when_the_rate_changes),
		TEST(extremes),
		TEST(long_waits_at_high_rates),
		TEST(unknown_line_starts_from_what_is_sent),
		TEST(unknown_line_measures_a_sender_that_just_began),
		TEST(unknown_line_that_sent_nothing_is_not_meant),
		TEST(unknown_line_of_a_sender_gone_quiet),
		TEST(unknown_line_recovers),
		TEST(scale_and_a_fast_line),
	};

	return cmocka_run_group_tests_name("rate pace", tests, NULL, NULL);
}
