/* redis_test.c - the sink without a server: it opens, counts, and closes like any other. With one,
 * tests/system/redis_test.py has it. */
#include "sink/conformance.h"

extern const struct sl_sink sl_sink_redis;

static void without_a_server(struct bench *bench)
{
	bench_set(bench, "address", "/nowhere/redis.sock");
}

static void rows_are_missed_and_the_run_is_well(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_redis);
	without_a_server(&bench);
	bench_set(&bench, "queue", "3");
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 10; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_figure(&bench, "rows_waiting"), 3);
	assert_int_equal(bench_figure(&bench, "rows_missed"), 7);
	assert_int_equal(bench_close(&bench), 0);
	assert_int_equal(bench_figure(&bench, "rows_waiting"), 0);
	assert_int_equal(bench_figure(&bench, "rows_missed"), 10);
	bench_fini(&bench);
}

static void required_needs_a_server(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_redis);
	without_a_server(&bench);
	bench_set(&bench, "required", "true");
	assert_true(bench_open(&bench) < 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void a_password_file_must_be_there(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_redis);
	bench_set(&bench, "password_file", "/nowhere/password");
	assert_int_equal(bench_open(&bench), -ENOENT);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void what_it_wants_of_rejected_frames(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_redis);
	assert_true(sl_sink_wants(&sl_sink_redis, bench.state) & SL_WANT_REJECTED_RESULTS);
	bench_set(&bench, "results_of", "kept");
	assert_false(sl_sink_wants(&sl_sink_redis, bench.state) & SL_WANT_REJECTED_RESULTS);
	bench_set(&bench, "results_of", "all");
	bench_set(&bench, "results", "none");
	assert_false(sl_sink_wants(&sl_sink_redis, bench.state) & SL_WANT_REJECTED_RESULTS);
	bench_fini(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(rows_are_missed_and_the_run_is_well),
		cmocka_unit_test(required_needs_a_server),
		cmocka_unit_test(a_password_file_must_be_there),
		cmocka_unit_test(what_it_wants_of_rejected_frames),
	};

	conforming = &sl_sink_redis;
	prepare = without_a_server;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
