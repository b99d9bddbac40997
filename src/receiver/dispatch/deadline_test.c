/* deadline_test.c - batches go when one more frame would be too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "receiver/dispatch/deadline.h"

static struct sl_frame frame_of(uint64_t emit, uint64_t event)
{
	struct sl_frame frame = {.items = 1};

	frame.hop_ns[SL_HOP_EMIT] = emit;
	frame.hop_ns[SL_HOP_EVENT] = event;
	return frame;
}

static void join(const struct sl_deadline *d, struct sl_batch *batch, uint64_t emit, bool same)
{
	struct sl_frame frame = frame_of(emit, emit + 100);

	batch->frames++;
	sl_deadline_join(d, batch, &frame, same);
}

static void without_one_nothing_presses(void **state)
{
	struct sl_deadline d = {0};
	struct sl_batch batch = {0};
	struct sl_frame frame = frame_of(1000, 1100);

	(void)state;
	sl_deadline_learn(&d, 1, 1000000);
	join(&d, &batch, 1000, true);
	assert_false(sl_deadline_presses(&d, &batch, 0, UINT64_MAX / 2));
	frame.hop_ns[SL_HOP_PROCESSED] = UINT64_MAX;
	assert_false(sl_deadline_missed(&d, &frame, true));
}

static void a_batch_goes_before_one_more_makes_it_late(void **state)
{
	struct sl_deadline d = {.ns = 10000};
	struct sl_batch batch = {0};

	(void)state;
	sl_deadline_learn(&d, 4, 8000);				   /* 2000 each */
	assert_false(sl_deadline_presses(&d, &batch, 0, 1000000)); /* it is empty */
	join(&d, &batch, 1000, true);				   /* due at 11000 */
	assert_int_equal(batch.deadline_ns, 11000);
	assert_false(sl_deadline_presses(&d, &batch, 0, 2000)); /* two would be done at 6000 */
	join(&d, &batch, 1500, true);
	join(&d, &batch, 1600, true);
	assert_int_equal(batch.deadline_ns, 11000);		/* of the first */
	assert_false(sl_deadline_presses(&d, &batch, 0, 2900)); /* four at 10900 */
	assert_true(sl_deadline_presses(&d, &batch, 0, 3000));
	assert_true(sl_deadline_presses(&d, &batch, 0, 10999));
	assert_false(sl_deadline_presses(&d, &batch, 0, 11000)); /* late already: haste is waste */
	/* Two more in the unit: six at 12000 + 1. */
	assert_true(sl_deadline_presses(&d, &batch, 2, 1));
	assert_false(sl_deadline_presses(&d, &batch, 1, 999));
}

static void a_frame_without_a_time_does_not_hide_the_others(void **state)
{
	struct sl_deadline d = {.ns = 10000};
	struct sl_batch batch = {0};

	(void)state;
	join(&d, &batch, 0, true);
	assert_int_equal(batch.deadline_ns, 0);
	assert_false(sl_deadline_presses(&d, &batch, 0, 1000000));
	join(&d, &batch, 5000, true);
	assert_int_equal(batch.deadline_ns, 15000);
	join(&d, &batch, 0, true);
	assert_int_equal(batch.deadline_ns, 15000);
}

static void the_oldest_frame_counts_whatever_its_place(void **state)
{
	struct sl_deadline d = {.ns = 10000};
	struct sl_batch batch = {0};

	(void)state;
	join(&d, &batch, 5000, true);
	join(&d, &batch, 4000, true);
	assert_int_equal(batch.deadline_ns, 14000);
}

static void without_a_shared_clock_events_count(void **state)
{
	struct sl_deadline d = {.ns = 10000};
	struct sl_batch batch = {0};
	struct sl_frame frame = frame_of(99999999, 2000);

	(void)state;
	join(&d, &batch, 1000, false);
	assert_int_equal(batch.deadline_ns, 11100);
	frame.hop_ns[SL_HOP_PROCESSED] = 12000;
	assert_false(sl_deadline_missed(&d, &frame, false));
	frame.hop_ns[SL_HOP_PROCESSED] = 12001;
	assert_true(sl_deadline_missed(&d, &frame, false));
}

static void what_the_unit_takes_is_a_running_mean(void **state)
{
	struct sl_deadline d = {.ns = 1};

	(void)state;
	sl_deadline_learn(&d, 0, 5);
	assert_true(d.ns_per_frame == 0);
	sl_deadline_learn(&d, 2, 2000);
	assert_true(d.ns_per_frame == 1000);
	sl_deadline_learn(&d, 1, 2000);
	assert_true(d.ns_per_frame == 1250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_one_nothing_presses),
		cmocka_unit_test(a_batch_goes_before_one_more_makes_it_late),
		cmocka_unit_test(a_frame_without_a_time_does_not_hide_the_others),
		cmocka_unit_test(the_oldest_frame_counts_whatever_its_place),
		cmocka_unit_test(without_a_shared_clock_events_count),
		cmocka_unit_test(what_the_unit_takes_is_a_running_mean),
	};

	return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
