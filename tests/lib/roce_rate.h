/* roce_rate.h - for tests: a rate controller, its clock, and senders. Include cmocka.h before. */
#ifndef TESTS_LIB_ROCE_RATE_H
#define TESTS_LIB_ROCE_RATE_H

#include "roce/rate.h"

#include <string.h>

enum { US = 1000, MS = 1000000, PACKET = 4096 };
#define LINE  UINT64_C(5000000000)
#define START UINT64_C(1000000000)

static struct sl_roce_rate rate;
static uint64_t now;

static inline void fresh_line(uint64_t line)
{
	memset(&rate, 0, sizeof(rate));
	rate.line = line;
	assert_int_equal(sl_roce_rate_init(&rate), SL_ROCE_OK);
	now = START;
}

static inline int fresh(void **state)
{
	fresh_line(LINE);
	assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
	return 0;
}

static inline void cnp(void)
{
	sl_roce_rate_on_cnp(&rate, now);
}

/* So many cuts; now is the time of the last. */
static inline void cuts(int count)
{
	cnp();
	while (--count) {
		now += 50 * US;
		cnp();
	}
}

/* Send all that may be sent while it is limited, looking every microsecond; the bytes. */
static inline uint64_t send_for(uint64_t ns)
{
	uint64_t bytes = 0;

	for (uint64_t end = now + ns; now < end; now += US) {
		while (rate.active && sl_roce_rate_allow(&rate, now, PACKET) == 0)
			bytes += PACKET;
	}
	return bytes;
}

/* A sender that has this much to send. */
static inline void send_at(uint64_t per_second, uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += PACKET * UINT64_C(1000000000) / per_second)
		assert_int_equal(sl_roce_rate_allow(&rate, now, PACKET), 0);
}

static inline void expect_near(uint64_t got, uint64_t wanted, unsigned percent)
{
	if (got * 100 < wanted * (100 - percent) || got * 100 > wanted * (100 + percent))
		fail_msg("%llu, expected %llu", (unsigned long long)got,
			 (unsigned long long)wanted);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
