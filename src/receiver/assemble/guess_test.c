/* guess_test.c - blocks that were lost have no time of their own: where they are put must not hurt
 * those that have one. Time is a parameter, so every case is exact. */
#include <errno.h>
#include <string.h>

#include "receiver/assemble/testing.h"

enum { NONE = -1 };

static void timed(struct fixture *f, uint32_t module, uint64_t k, uint64_t time)
{
	struct sl_record record = record_of(k, module);

	record.timestamp = time;
	sl_record_seal(&record);
	memcpy(sl_ring_record(&f->ring, k, module), &record, sizeof(record));
	sl_ring_reach(&f->ring, k, module);
	sl_ring_progress(&f->ring, k, module, PACKETS);
	sl_ring_raise(&f->ring, k, module, 1);
}

/* The next frame has these of their streams. */
static void expect(struct fixture *f, int64_t first, int64_t second)
{
	const int64_t sequence[MODULES] = {first, second};

	assert_int_equal(next(f, 1), 1);
	for (uint32_t m = 0; m < MODULES; m++) {
		const struct sl_view *view = &f->view[m];

		if (sequence[m] == NONE)
			assert_true(view->outcome == SL_NO_OUTCOME &&
				    sl_frame_misses(&f->frame, m));
		else
			assert_int_equal(view->sequence, sequence[m]);
		if (view->held)
			sl_ring_release(&f->ring, view->sequence, m);
	}
	sl_ring_open(&f->ring, UINT64_MAX);
}

static void by_time(struct fixture *f, uint64_t window)
{
	f->a.options.align.by = SL_ALIGN_TIMESTAMP;
	f->a.options.align.window = window;
}

/* Of what follows it nothing is known: it is as early as it can be, which is near enough. */
static void a_lost_block_does_not_set_the_time_of_a_frame(void **state)
{
	struct fixture *f = *state;

	by_time(f, 600);
	for (uint32_t m = 0; m < MODULES; m++)
		timed(f, m, 0, 5000);
	timed(f, 0, 1, 6000);
	sl_ring_reach(&f->ring, 1 + LATE, 1);
	expect(f, 0, 0);
	expect(f, 1, 1);
	assert_int_equal(f->frame.timestamp, 6000);
	assert_int_equal(f->view[1].outcome, SL_LOST);
}

/* It was of a trigger that the other module missed. What follows it, by a clock that is ahead, is
 * nearer to the next one than the window is long. */
static void a_lost_block_does_not_take_the_place_of_what_follows_it(void **state)
{
	struct fixture *f = *state;

	by_time(f, 50);
	timed(f, 0, 0, 1000);
	timed(f, 1, 0, 1030);
	timed(f, 0, 1, 3000);
	timed(f, 1, 2, 3030); /* sequence 1, at 2030, is lost */
	sl_ring_reach(&f->ring, 1 + LATE, 1);
	expect(f, 0, 0);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
	expect(f, NONE, 1);
	assert_int_equal(f->view[1].outcome, SL_LOST);
	expect(f, 1, 2);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
	assert_int_equal(f->frame.timestamp, 3000);
}

static void what_was_lost_before_any_time_was_known_takes_nobodys_place(void **state)
{
	struct fixture *f = *state;

	by_time(f, 50);
	timed(f, 0, 0, 3000); /* it missed two triggers */
	timed(f, 1, 2, 3000); /* of which the other lost what it had */
	sl_ring_reach(&f->ring, 1 + LATE, 1);
	expect(f, NONE, 0);
	expect(f, NONE, 1);
	expect(f, 0, 2);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
}

/* ---- a module that comes back ---- */

/* The frame that it was of was given out while the module was away. */
static void a_lost_block_of_who_comes_back_is_of_no_later_frame(void **state)
{
	struct fixture *f = *state;

	f->a.options.align.by = SL_ALIGN_FRAME; /* 100 + sequence */
	for (uint32_t m = 0; m < MODULES; m++) {
		sl_assembler_begin(&f->a, m, 0, 100);
		timed(f, m, 0, 0);
	}
	expect(f, 0, 0);
	sl_assembler_end(&f->a, 1, 1);
	timed(f, 0, 1, 0);
	expect(f, 1, NONE);
	sl_assembler_begin(&f->a, 1, 1, 101); /* of which it loses its block */
	timed(f, 0, 2, 0);
	timed(f, 1, 2, 0);
	sl_ring_reach(&f->ring, 1 + LATE, 1);
	expect(f, NONE, 1);
	assert_int_equal(f->view[1].outcome, SL_LOST);
	expect(f, 2, 2);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
	assert_int_equal(f->frame.number, 102);
}

static void who_is_late_takes_nobody_along(void **state)
{
	struct fixture *f = *state;

	by_time(f, 600);
	sl_assembler_end(&f->a, 1, 0);
	timed(f, 0, 0, 1000);
	expect(f, 0, NONE);
	sl_assembler_begin(&f->a, 1, 0, 0);
	timed(f, 1, 0, 1500); /* near enough to 1000, and to 2000 */
	timed(f, 0, 1, 2000);
	timed(f, 1, 1, 2500);
	expect(f, NONE, 0);
	assert_int_equal(f->view[1].cause, SL_CAUSE_LATE);
	expect(f, 1, 1);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
}

/* Blocks of different triggers, both late: neither is the reason why the other is. */
static void those_who_are_late_are_not_together_for_that(void **state)
{
	struct fixture *f = *state;

	by_time(f, 50);
	sl_assembler_end(&f->a, 1, 0);
	for (uint64_t k = 0; k < 2; k++) {
		timed(f, 0, k, 1000 + 1000 * k);
		expect(f, (int64_t)k, NONE);
	}
	sl_assembler_begin(&f->a, 1, 0, 0);
	sl_assembler_begin(&f->a, 0, 2, 0);
	timed(f, 0, 2, 1000); /* its clock was set back */
	timed(f, 1, 0, 2000);
	expect(f, 2, NONE);
	assert_int_equal(f->view[0].cause, SL_CAUSE_LATE);
	expect(f, NONE, 0);
	assert_int_equal(f->view[1].cause, SL_CAUSE_LATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(a_lost_block_does_not_set_the_time_of_a_frame),
		CASE(a_lost_block_does_not_take_the_place_of_what_follows_it),
		CASE(what_was_lost_before_any_time_was_known_takes_nobodys_place),
		CASE(a_lost_block_of_who_comes_back_is_of_no_later_frame),
		CASE(who_is_late_takes_nobody_along),
		CASE(those_who_are_late_are_not_together_for_that),
	};

	return cmocka_run_group_tests_name("guess", tests, NULL, NULL);
}
