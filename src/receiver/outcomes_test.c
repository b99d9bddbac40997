/* outcomes_test.c - the outcome log names every module-frame once, also when what is pending has no
 * room in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiver/private.h"

enum { MODULES = 2, SEQUENCES = 100000 };

static struct sl_receiver *with_log(void)
{
	struct sl_receiver *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);

	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	assert_int_equal(sl_ledger_init(&r->ledger, MODULES), 0);
	r->outcomes = tmpfile();
	assert_non_null(r->outcomes);
	return r;
}

static void without_log(struct sl_receiver *r)
{
	sl_outcomes_close(r);
	sl_ledger_fini(&r->ledger);
	free(r);
}

/* Which of three kinds a module-frame is: every span is one frame long. */
static unsigned kind_of(uint64_t sequence, uint32_t module)
{
	return (unsigned)(sequence + module) % 3;
}

static void fill(struct sl_receiver *r)
{
	for (uint64_t k = 0; k < SEQUENCES; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			if (kind_of(k, m) == 0)
				sl_outcomes_log(r, k, m, SL_VETOED, SL_CAUSE_NONE);
			else
				sl_outcomes_pend(r, k, m, kind_of(k, m) == 2);
}

/* Every line; each module-frame once, with its outcome. */
static void check_log(struct sl_receiver *r, const char *const *outcome)
{
	char *seen = calloc(SEQUENCES, MODULES), name[32], cause[32];
	unsigned long long k;
	unsigned m, lines = 0;

	assert_non_null(seen);
	rewind(r->outcomes);
	while (fscanf(r->outcomes, "%llu %u %31s %31s", &k, &m, name, cause) == 4) {
		assert_true(k < SEQUENCES && m < MODULES);
		assert_int_equal(seen[k * MODULES + m]++, 0);
		assert_string_equal(name, outcome[kind_of(k, m)]);
		lines++;
	}
	assert_int_equal(lines, SEQUENCES * MODULES);
	free(seen);
}

static void a_long_log_is_whole(void **state)
{
	static const char *const stored[] = {"vetoed", "stored", "prescaled"};
	struct sl_receiver *r = with_log();

	fill(r);
	assert_non_null(r->spilled); /* or the test shows nothing */
	sl_settle_pending(r, SL_STORED, SL_CAUSE_NONE);
	assert_null(r->spilled);
	check_log(r, stored);
	assert_false(r->outcomes_failed);
	without_log(r);
}

static void a_sink_that_failed_at_its_end_takes_back_all_of_it(void **state)
{
	static const char *const unwritten[] = {"vetoed", "unwritten", "unwritten"};
	struct sl_receiver *r = with_log();

	fill(r);
	sl_settle_pending(r, SL_UNWRITTEN, SL_CAUSE_SINK);
	check_log(r, unwritten);
	without_log(r);
}

static void consecutive_frames_are_one_span(void **state)
{
	struct sl_receiver *r = with_log();

	for (uint64_t k = 0; k < SEQUENCES; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			sl_outcomes_pend(r, k, m, false);
	assert_int_equal(r->pending_spans, MODULES);
	without_log(r);
}

static void without_a_log_nothing_is_kept(void **state)
{
	struct sl_receiver *r = with_log();

	fclose(r->outcomes);
	r->outcomes = NULL;
	fill(r);
	assert_null(r->pending);
	without_log(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_log_is_whole),
		cmocka_unit_test(a_sink_that_failed_at_its_end_takes_back_all_of_it),
		cmocka_unit_test(consecutive_frames_are_one_span),
		cmocka_unit_test(without_a_log_nothing_is_kept),
	};

	return cmocka_run_group_tests_name("outcomes", tests, NULL, NULL);
}
