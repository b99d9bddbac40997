/* ledger_test.c - outcomes add up, each is written once, and the ledger closes only when nothing is
 * left to say. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/ledger.h"
#include "lib/ledger_sums.h"

enum { MODULES = 3 };

static int setup(void **state)
{
	static struct sl_ledger ledger;

	*state = &ledger;
	return sl_ledger_init(&ledger, MODULES);
}

static int teardown(void **state)
{
	sl_ledger_fini(*state);
	return 0;
}

/* Every module sent and stored `frames`. */
static void store(struct sl_ledger *ledger, uint64_t frames)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		for (uint64_t k = 0; k < frames; k++)
			sl_ledger_settle(ledger, m, k, SL_STORED, SL_CAUSE_NONE);
		sl_ledger_report(ledger, m, frames);
	}
}

static void an_empty_ledger_is_closed(void **state)
{
	assert_true(ledger_closed(*state));
	assert_int_equal(ledger_sent(*state), 0);
}

static void what_came_before_this_run_is_neither_sent_nor_settled(void **state)
{
	struct sl_ledger *ledger = *state;

	for (uint32_t m = 0; m < MODULES; m++)
		sl_ledger_begin(ledger, m, 100 + m);
	sl_ledger_report(ledger, 0, 50); /* all of it before */
	assert_int_equal(ledger->tally[0].sent, 0);
	assert_true(ledger_closed(ledger));
	for (uint32_t m = 0; m < MODULES; m++) {
		sl_ledger_report(ledger, m, 102 + m);
		assert_int_equal(ledger->tally[m].sent, 2);
		assert_false(ledger_closed(ledger));
		sl_ledger_settle(ledger, m, 100 + m, SL_STORED, SL_CAUSE_NONE);
		sl_ledger_settle(ledger, m, 101 + m, SL_LOST, SL_CAUSE_NO_ARRIVAL);
		sl_ledger_report(ledger, m, 101 + m); /* it never goes back */
	}
	assert_int_equal(ledger_sent(ledger), 2 * MODULES);
	assert_true(ledger_closed(ledger));
	sl_ledger_settle(ledger, 1, 100, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(ledger->misuse, 1);
}

static void outcomes_are_counted_by_module_and_cause(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle(ledger, 0, 0, SL_STORED, SL_CAUSE_NONE);
	sl_ledger_settle(ledger, 0, 1, SL_VETOED, SL_CAUSE_DARK);
	sl_ledger_settle(ledger, 0, 2, SL_VETOED, SL_CAUSE_STAGE);
	sl_ledger_settle(ledger, 2, 0, SL_VETOED, SL_CAUSE_DARK);
	assert_int_equal(ledger->tally[0].outcome[SL_STORED], 1);
	assert_int_equal(ledger->tally[0].outcome[SL_VETOED], 2);
	assert_int_equal(ledger->tally[0].cause[SL_CAUSE_DARK], 1);
	assert_int_equal(ledger->tally[0].cause[SL_CAUSE_STAGE], 1);
	assert_int_equal(ledger->tally[1].outcome[SL_VETOED], 0);
	assert_int_equal(ledger->tally[2].outcome[SL_VETOED], 1);
	assert_int_equal(ledger->misuse, 0);
}

static void totals_are_over_all_modules(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 5);
	sl_ledger_settle(ledger, 1, 5, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	sl_ledger_report(ledger, 1, 6);
	assert_int_equal(ledger_total(ledger, SL_STORED), 5 * MODULES);
	assert_int_equal(ledger_total(ledger, SL_LOST), 1);
	assert_int_equal(ledger_total(ledger, SL_VETOED), 0);
	assert_int_equal(ledger_sent(ledger), 5 * MODULES + 1);
	assert_true(ledger_closed(ledger));
}

static void every_kind_of_outcome_closes_it(void **state)
{
	struct sl_ledger *ledger = *state;

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		sl_ledger_settle(ledger, 0, o - SL_STORED, o, SL_CAUSE_NONE);
	sl_ledger_report(ledger, 0, SL_OUTCOMES - SL_STORED);
	assert_true(ledger_closed(ledger));
}

static void it_stays_open_while_one_module_frame_has_no_outcome(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 4);
	sl_ledger_report(ledger, 2, 5);
	assert_false(ledger_closed(ledger));
	sl_ledger_settle(ledger, 2, 4, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_true(ledger_closed(ledger));
}

static void more_outcomes_than_were_sent_keep_it_open(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 4);
	sl_ledger_settle(ledger, 0, 4, SL_STORED, SL_CAUSE_NONE);
	assert_false(ledger_closed(ledger));
}

static void one_module_does_not_make_up_for_another(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle(ledger, 0, 0, SL_STORED, SL_CAUSE_NONE);
	sl_ledger_report(ledger, 1, 1);
	assert_int_equal(ledger_total(ledger, SL_STORED), ledger_sent(ledger));
	assert_false(ledger_closed(ledger));
}

static void no_outcome_is_no_outcome(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle(ledger, 0, 0, SL_NO_OUTCOME, SL_CAUSE_NONE);
	sl_ledger_report(ledger, 0, 1);
	assert_false(ledger_closed(ledger));
}

static void it_stays_open_while_a_source_is_alive(void **state)
{
	struct sl_ledger *ledger = *state;

	atomic_store(&ledger->source_alive, 1);
	store(ledger, 2);
	assert_false(ledger_closed(ledger));
	atomic_store(&ledger->source_alive, 0);
	assert_true(ledger_closed(ledger));
}

static void an_outcome_is_written_once(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 2);
	sl_ledger_settle(ledger, 0, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_int_equal(ledger->misuse, 1);
	assert_int_equal(ledger_total(ledger, SL_LOST), 0);
	assert_int_equal(ledger_total(ledger, SL_STORED), 2 * MODULES);
	assert_false(ledger_closed(ledger));
}

static void sequences_come_in_order(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle(ledger, 0, 1, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(ledger->misuse, 1);
	assert_int_equal(ledger->tally[0].next, 0);
	sl_ledger_settle_pending(ledger, 0, 2, false);
	assert_int_equal(ledger->misuse, 2);
	assert_int_equal(ledger->tally[0].pending, 0);
	sl_ledger_settle(ledger, 0, 0, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(ledger->misuse, 2);
	assert_int_equal(ledger->tally[0].next, 1);
}

static void a_module_that_does_not_exist_is_misuse(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle(ledger, MODULES, 0, SL_STORED, SL_CAUSE_NONE);
	sl_ledger_settle_pending(ledger, UINT32_MAX, 0, false);
	assert_int_equal(ledger->misuse, 2);
	assert_int_equal(ledger_total(ledger, SL_STORED), 0);
	assert_false(ledger_closed(ledger));
}

static void what_is_pending_keeps_it_open_until_resolved(void **state)
{
	struct sl_ledger *ledger = *state;

	for (uint64_t k = 0; k < 3; k++)
		sl_ledger_settle_pending(ledger, 0, k, false);
	sl_ledger_report(ledger, 0, 3);
	assert_false(ledger_closed(ledger));
	sl_ledger_resolve(ledger, 0, 2, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(ledger->tally[0].pending, 1);
	assert_false(ledger_closed(ledger));
	sl_ledger_resolve(ledger, 0, 1, SL_UNWRITTEN, SL_CAUSE_SINK);
	assert_true(ledger_closed(ledger));
	assert_int_equal(ledger_total(ledger, SL_STORED), 2);
	assert_int_equal(ledger_total(ledger, SL_UNWRITTEN), 1);
	assert_int_equal(ledger->tally[0].cause[SL_CAUSE_SINK], 1);
}

static void samples_of_the_rejected_become_prescaled(void **state)
{
	struct sl_ledger *ledger = *state;

	for (uint64_t k = 0; k < 5; k++)
		sl_ledger_settle_pending(ledger, 0, k, k % 2);
	sl_ledger_report(ledger, 0, 5);
	sl_ledger_resolve(ledger, 0, 5, SL_STORED, SL_CAUSE_NONE);
	assert_true(ledger_closed(ledger));
	assert_int_equal(ledger_total(ledger, SL_STORED), 3);
	assert_int_equal(ledger_total(ledger, SL_PRESCALED), 2);
	assert_int_equal(ledger->tally[0].cause[SL_CAUSE_NONE], 5);
	/* Where the file was lost they are, too. */
	sl_ledger_settle_pending(ledger, 0, 5, true);
	sl_ledger_resolve(ledger, 0, 1, SL_UNWRITTEN, SL_CAUSE_SINK);
	assert_int_equal(ledger_total(ledger, SL_PRESCALED), 2);
	assert_int_equal(ledger_total(ledger, SL_UNWRITTEN), 1);
}

static void what_is_pending_counts_even_if_the_source_denies_it(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 2);
	sl_ledger_settle_pending(ledger, 0, 2, false);
	assert_false(ledger_closed(ledger));
}

static void pending_and_settled_share_one_order(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle_pending(ledger, 0, 0, false);
	sl_ledger_settle(ledger, 0, 1, SL_VETOED, SL_CAUSE_STAGE);
	sl_ledger_settle_pending(ledger, 0, 2, false);
	sl_ledger_settle(ledger, 0, 0, SL_STORED, SL_CAUSE_NONE); /* resolve() is the way */
	assert_int_equal(ledger->misuse, 1);
	assert_int_equal(ledger->tally[0].pending, 2);
}

static void more_than_is_pending_cannot_be_resolved(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_settle_pending(ledger, 1, 0, false);
	sl_ledger_resolve(ledger, 1, 2, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(ledger->misuse, 1);
	assert_int_equal(ledger->tally[1].pending, 1);
	assert_int_equal(ledger_total(ledger, SL_STORED), 0);
}

static void a_report_never_goes_back(void **state)
{
	struct sl_ledger *ledger = *state;

	sl_ledger_report(ledger, 0, 10);
	sl_ledger_report(ledger, 0, 7);
	assert_int_equal(ledger->tally[0].sent, 10);
	sl_ledger_report(ledger, 0, 11);
	assert_int_equal(ledger->tally[0].sent, 11);
	assert_int_equal(ledger->tally[1].sent, 0);
}

static void what_the_source_left_out_is_not_sent_and_has_an_outcome(void **state)
{
	struct sl_ledger *ledger = *state;

	store(ledger, 3);
	sl_ledger_settle(ledger, 1, 3, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_false(ledger_closed(ledger));
	sl_ledger_skip(ledger, 1, 1);
	assert_true(ledger_closed(ledger));
	assert_int_equal(ledger->tally[1].sent, 3);
	sl_ledger_skip(ledger, 1, 2);
	assert_false(ledger_closed(ledger));
}

static void outcomes_and_causes_have_names_of_their_own(void **state)
{
	for (unsigned i = 0; i < SL_OUTCOMES; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(sl_outcome_name(i), sl_outcome_name(j));
	for (unsigned i = 0; i < SL_CAUSES; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(sl_cause_name(i), sl_cause_name(j));
	assert_string_equal(sl_outcome_name(SL_UNWRITTEN), "unwritten");
	assert_string_equal(sl_cause_name(SL_CAUSE_NO_SLOT), "no_slot");
	assert_string_equal(sl_outcome_name(SL_OUTCOMES), "?");
	assert_string_equal(sl_cause_name(SL_CAUSES), "?");
}

/* ---- read while it is written ---- */

enum { READINGS = 20000 };

struct writer {
	struct sl_ledger *ledger;
	_Atomic bool stop;
};

/* Settles without a pause: every third is pending, and resolved a little later. */
static void *write_outcomes(void *arg)
{
	struct writer *w = arg;

	for (uint64_t k = 7; !atomic_load_explicit(&w->stop, memory_order_relaxed); k++) {
		if (k % 3)
			sl_ledger_settle(w->ledger, 0, k, k % 2 ? SL_VETOED : SL_LOST,
					 k % 2 ? SL_CAUSE_STAGE : SL_CAUSE_NO_ARRIVAL);
		else
			sl_ledger_settle_pending(w->ledger, 0, k, k % 2);
		if (k % 9 == 8)
			sl_ledger_resolve(w->ledger, 0, 2, SL_STORED, SL_CAUSE_NONE);
	}
	return NULL;
}

static uint64_t sum_of(const uint64_t *value, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += value[i];
	return sum;
}

static void a_column_is_of_one_moment_while_it_is_written(void **state)
{
	struct writer writer = {.ledger = *state};
	uint64_t before = 0, moved = 0;
	pthread_t thread;

	sl_ledger_begin(*state, 0, 7);
	assert_int_equal(pthread_create(&thread, NULL, write_outcomes, &writer), 0);
	/* The writer may begin late; it never ends by itself. */
	for (unsigned i = 0; i < READINGS || moved < READINGS / 100; i++) {
		const struct sl_status_column *c = &ledger_status(*state)->column[0];
		uint64_t outcomes = sum_of(c->outcome, SL_STATUS_OUTCOMES);

		assert_int_equal(c->settled, outcomes + c->pending);
		assert_int_equal(sum_of(c->cause, SL_STATUS_CAUSES), outcomes);
		assert_true(c->samples <= c->pending && c->settled >= before);
		moved += c->settled != before;
		before = c->settled;
	}
	atomic_store(&writer.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(an_empty_ledger_is_closed),
		CASE(what_came_before_this_run_is_neither_sent_nor_settled),
		CASE(outcomes_are_counted_by_module_and_cause),
		CASE(totals_are_over_all_modules),
		CASE(every_kind_of_outcome_closes_it),
		CASE(it_stays_open_while_one_module_frame_has_no_outcome),
		CASE(more_outcomes_than_were_sent_keep_it_open),
		CASE(one_module_does_not_make_up_for_another),
		CASE(no_outcome_is_no_outcome),
		CASE(it_stays_open_while_a_source_is_alive),
		CASE(an_outcome_is_written_once),
		CASE(sequences_come_in_order),
		CASE(a_module_that_does_not_exist_is_misuse),
		CASE(what_is_pending_keeps_it_open_until_resolved),
		CASE(samples_of_the_rejected_become_prescaled),
		CASE(what_is_pending_counts_even_if_the_source_denies_it),
		CASE(pending_and_settled_share_one_order),
		CASE(more_than_is_pending_cannot_be_resolved),
		CASE(a_report_never_goes_back),
		CASE(what_the_source_left_out_is_not_sent_and_has_an_outcome),
		CASE(outcomes_and_causes_have_names_of_their_own),
		CASE(a_column_is_of_one_moment_while_it_is_written),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
