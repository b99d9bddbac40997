/* flight_test.c - taps: how often they take a packet, what is read of them, and readers beside a
 * writer. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/flight.h"

static struct sl_flight_packet packet_at(uint64_t at_ns, uint32_t number)
{
	struct sl_flight_packet packet = {.at_ns = at_ns};

	sl_flight_keep(&packet, &number, sizeof(number), sizeof(number));
	return packet;
}

static void a_burst_and_then_none_for_an_interval(void **state)
{
	struct sl_flight_tap *tap;
	uint64_t now = 1000000;
	unsigned taken = 0;

	assert_int_equal(sl_flight_open(1, &tap), 0);
	for (unsigned i = 0; i < 100; i++) {
		struct sl_flight_packet packet = packet_at(now, i);

		if (!sl_flight_due(tap, now))
			break;
		sl_flight_take(tap, &packet);
		taken++;
	}
	assert_int_equal(taken, SL_FLIGHT_BURST);
	assert_false(sl_flight_due(tap, now + tap->interval_ns - 1));
	assert_true(sl_flight_due(tap, now + tap->interval_ns));
	assert_false(sl_flight_due(NULL, now));
	sl_flight_close(tap);
}

/* However many taps there are, all of them together reach back a minute. */
static void a_ring_reaches_back_a_minute(void **state)
{
	for (unsigned taps = 1; taps <= 8; taps++) {
		struct sl_flight_tap *tap;
		uint64_t room;

		assert_int_equal(sl_flight_open(taps, &tap), 0);
		room = (uint64_t)tap[taps - 1].mask + 1;
		assert_true(room * taps <= SL_FLIGHT_PACKETS);
		assert_true(room / SL_FLIGHT_BURST * tap[0].interval_ns >= 59000000000);
		sl_flight_close(tap);
	}
}

static void the_newest_are_read_in_order(void **state)
{
	static struct sl_flight_packet got[SL_FLIGHT_PACKETS];
	struct sl_flight_tap *tap;
	uint32_t number = 0, room;
	size_t n;

	assert_int_equal(sl_flight_open(8, &tap), 0);
	room = tap->mask + 1;
	for (uint64_t now = 1; number < 2 * room + 5; now += tap->interval_ns)
		while (sl_flight_due(tap, now)) {
			struct sl_flight_packet packet = packet_at(now, number++);

			sl_flight_take(tap, &packet);
		}
	n = sl_flight_read(tap, got, SL_FLIGHT_PACKETS);
	assert_int_equal(n, room);
	for (size_t i = 0; i < n; i++) {
		uint32_t is;

		memcpy(&is, got[i].payload, sizeof(is));
		assert_int_equal(is, number - room + i);
	}
	assert_int_equal(sl_flight_read(tap, got, 3), 3);
	assert_memory_equal(got[2].payload, &(uint32_t){number - 1}, 4);
	sl_flight_clear(tap, 8);
	assert_int_equal(sl_flight_read(tap, got, SL_FLIGHT_PACKETS), 0);
	sl_flight_close(tap);
}

static void the_first_bytes_are_kept(void **state)
{
	uint8_t bytes[200];
	struct sl_flight_packet packet = {.at_ns = 1};

	memset(bytes, 7, sizeof(bytes));
	sl_flight_keep(&packet, bytes, sizeof(bytes), 4000);
	assert_int_equal(packet.bytes, 4000);
	assert_int_equal(packet.kept, SL_FLIGHT_HEADER);
	sl_flight_keep(&packet, bytes, 28, 4000);
	assert_int_equal(packet.kept, 28);
	sl_flight_keep(&packet, bytes, 28, 5);
	assert_int_equal(packet.kept, 5);
	sl_flight_keep(&packet, bytes, 0, 0);
	assert_int_equal(packet.kept, 0);
}

struct race {
	struct sl_flight_tap *tap;
	_Atomic bool stop;
};

/* Each payload is one number again and again. */
static void *write_all(void *arg)
{
	struct race *race = arg;
	uint32_t number[SL_FLIGHT_HEADER / 4];

	for (uint32_t n = 1; !race->stop; n++) {
		struct sl_flight_packet packet = {.at_ns = n, .bytes = n};

		for (size_t i = 0; i < SL_FLIGHT_HEADER / 4; i++)
			number[i] = n;
		sl_flight_keep(&packet, number, sizeof(number), sizeof(number));
		race->tap->next_ns = 0;
		sl_flight_take(race->tap, &packet);
	}
	return NULL;
}

static void no_reader_sees_half_of_one(void **state)
{
	static struct sl_flight_packet got[SL_FLIGHT_PACKETS];
	struct race race = {.stop = false};
	pthread_t thread;

	assert_int_equal(sl_flight_open(8, &race.tap), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_all, &race), 0);
	for (unsigned round = 0; round < 200; round++) {
		size_t n = sl_flight_read(race.tap, got, SL_FLIGHT_PACKETS);

		for (size_t i = 0; i < n; i++) {
			uint32_t number[SL_FLIGHT_HEADER / 4];

			memcpy(number, got[i].payload, sizeof(number));
			for (size_t k = 0; k < SL_FLIGHT_HEADER / 4; k++)
				assert_int_equal(number[k], got[i].at_ns);
			assert_true(!i || got[i].at_ns > got[i - 1].at_ns);
		}
	}
	race.stop = true;
	pthread_join(thread, NULL);
	sl_flight_close(race.tap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_and_then_none_for_an_interval),
		cmocka_unit_test(a_ring_reaches_back_a_minute),
		cmocka_unit_test(the_newest_are_read_in_order),
		cmocka_unit_test(the_first_bytes_are_kept),
		cmocka_unit_test(no_reader_sees_half_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
