/* bell_test.c - no wake-up is lost, and nobody sleeps longer than asked. */
#include "base/bell.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

/* Long enough that a lost wake-up shows as a time-out, on a busy machine too. */
enum { LONG_US = 20000000, ROUNDS = 20000 };

static bool slept_through(uint64_t since_ns)
{
	return sl_clock_ns() - since_ns >= (uint64_t)LONG_US * 1000;
}

static void wait_ends_at_its_timeout(void **state)
{
	struct sl_bell bell = {0};
	uint64_t start = sl_clock_ns();

	sl_bell_wait(&bell, sl_bell_read(&bell), 20000);
	assert_true(sl_clock_ns() - start >= 19000000);
	assert_int_equal(atomic_load(&bell.sleepers), 0);
}

static void a_timeout_of_zero_returns(void **state)
{
	struct sl_bell bell = {0};

	sl_bell_wait(&bell, sl_bell_read(&bell), 0);
}

static void a_ring_before_the_wait_counts(void **state)
{
	struct sl_bell bell = {0};
	uint32_t seen = sl_bell_read(&bell);
	uint64_t start = sl_clock_ns();

	sl_bell_ring(&bell);
	sl_bell_wait(&bell, seen, LONG_US);
	assert_false(slept_through(start));
}

static void the_counter_may_wrap(void **state)
{
	struct sl_bell bell = {0};
	uint32_t seen;
	uint64_t start = sl_clock_ns();

	atomic_store(&bell.count, UINT32_MAX);
	seen = sl_bell_read(&bell);
	sl_bell_ring(&bell);
	assert_int_equal(sl_bell_read(&bell), 0);
	sl_bell_wait(&bell, seen, LONG_US);
	assert_false(slept_through(start));
}

static void *ring_later(void *argument)
{
	usleep(20000);
	sl_bell_ring(argument);
	return NULL;
}

static void a_sleeper_is_woken(void **state)
{
	struct sl_bell bell = {0};
	uint32_t seen = sl_bell_read(&bell);
	uint64_t start = sl_clock_ns();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ring_later, &bell), 0);
	while (sl_bell_read(&bell) == seen && !slept_through(start))
		sl_bell_wait(&bell, seen, LONG_US);
	pthread_join(thread, NULL);
	assert_false(slept_through(start));
}

/* Two threads hand a plain counter to and fro; every hand-over is a chance to lose a wake-up, and
 * TSan sees whether the bell orders the plain accesses. */
struct table {
	struct sl_bell ball[2];
	unsigned hits; /* not atomic on purpose */
	bool late;
};

static void play(struct table *table, int side)
{
	uint32_t turn = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = sl_clock_ns();

		while (sl_bell_read(&table->ball[side]) == turn)
			sl_bell_wait(&table->ball[side], turn, LONG_US);
		turn++;
		if (slept_through(start))
			table->late = true;
		table->hits++;
		sl_bell_ring(&table->ball[!side]);
	}
}

static void *other_player(void *argument)
{
	play(argument, 1);
	return NULL;
}

static void no_wakeup_is_lost_in_ping_pong(void **state)
{
	static struct table table;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, other_player, &table), 0);
	sl_bell_ring(&table.ball[0]);
	play(&table, 0);
	pthread_join(thread, NULL);
	assert_int_equal(table.hits, 2 * ROUNDS);
	assert_false(table.late);
}

/* Several ringers, several waiters, one bell: the waiters leave when all rings were seen. */
enum { RINGERS = 3, WAITERS = 3, RINGS = 2000 };

static struct sl_bell crowd;
static _Atomic unsigned late_waiters;

static void *crowd_ringer(void *argument)
{
	for (int i = 0; i < RINGS; i++) {
		sl_bell_ring(&crowd);
		if (i % 64 == 0)
			usleep(1); /* let the waiters fall asleep */
	}
	return NULL;
}

static void *crowd_waiter(void *argument)
{
	uint64_t start = sl_clock_ns();
	uint32_t seen;

	while ((seen = sl_bell_read(&crowd)) < RINGERS * RINGS)
		sl_bell_wait(&crowd, seen, LONG_US);
	if (slept_through(start))
		late_waiters++;
	return NULL;
}

static void one_ring_wakes_all(void **state)
{
	pthread_t threads[RINGERS + WAITERS];

	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_waiter, NULL), 0);
	for (int i = 0; i < RINGERS; i++)
		assert_int_equal(pthread_create(&threads[WAITERS + i], NULL, crowd_ringer, NULL),
				 0);
	for (int i = 0; i < RINGERS + WAITERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(late_waiters, 0);
	assert_int_equal(atomic_load(&crowd.sleepers), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait_ends_at_its_timeout),
		cmocka_unit_test(a_timeout_of_zero_returns),
		cmocka_unit_test(a_ring_before_the_wait_counts),
		cmocka_unit_test(the_counter_may_wrap),
		cmocka_unit_test(a_sleeper_is_woken),
		cmocka_unit_test(no_wakeup_is_lost_in_ping_pong),
		cmocka_unit_test(one_ring_wakes_all),
	};

	return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
