/* crew_test.c - every job is done once, and all of them before run() returns. */
#include "sink/verify/crew.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { JOBS = 100, ROUNDS = 300, WAIT_S = 20 };

struct board {
	uint32_t times[JOBS]; /* not atomic: a job is one thread's */
	_Atomic uint32_t workers[SL_CREW_THREADS];
	_Atomic uint32_t inside;
};

static void count(void *arg, unsigned worker, uint32_t n)
{
	struct board *board = arg;

	board->times[n]++;
	atomic_fetch_add(&board->workers[worker], 1);
}

static void check_rounds(unsigned threads)
{
	struct sl_crew crew;
	struct board board = {0};

	assert_int_equal(sl_crew_open(&crew, threads, "crew"), 0);
	assert_int_equal(crew.threads, threads);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t jobs = round % (JOBS + 1);

		memset(&board, 0, sizeof(board));
		sl_crew_run(&crew, jobs, count, &board);
		for (uint32_t n = 0; n < JOBS; n++)
			assert_int_equal(board.times[n], n < jobs);
		for (unsigned w = threads; w < SL_CREW_THREADS; w++)
			assert_int_equal(board.workers[w], 0);
	}
	sl_crew_close(&crew);
}

static void every_job_is_done_once(void **state)
{
	check_rounds(1);
	check_rounds(2);
	check_rounds(7);
}

/* Each job waits until all threads are in one: with a thread less this would not end. */
static void meet(void *arg, unsigned worker, uint32_t n)
{
	struct board *board = arg;
	time_t end = time(NULL) + WAIT_S;

	atomic_fetch_add(&board->inside, 1);
	while (atomic_load(&board->inside) < 4 && time(NULL) < end)
		sched_yield();
	board->times[n] = atomic_load(&board->inside) >= 4;
}

static void all_threads_take_part(void **state)
{
	struct sl_crew crew;
	struct board board = {0};

	assert_int_equal(sl_crew_open(&crew, 4, "crew"), 0);
	sl_crew_run(&crew, 4, meet, &board);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(board.times[n], 1);
	sl_crew_close(&crew);
}

static void nonsense_is_refused(void **state)
{
	struct sl_crew crew;

	assert_int_equal(sl_crew_open(&crew, 0, "crew"), -EINVAL);
	assert_int_equal(sl_crew_open(&crew, SL_CREW_THREADS + 1, "crew"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_job_is_done_once),
		cmocka_unit_test(all_threads_take_part),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
