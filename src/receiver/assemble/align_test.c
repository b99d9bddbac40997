/* align_test.c - modules that miss triggers, lag, wrap, or are ahead by an offset: frames are put
 * together by number or by time, each module-frame has one outcome, and what was lost has a place.
 * Time is a parameter, so every case is exact. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "receiver/assemble/testing.h"

enum { NOTHING = -1 };

/* The module-frame arrives with this frame number and timestamp. */
static void arrive(struct fixture *f, uint32_t module, uint64_t k, uint64_t number, uint64_t time)
{
	struct sl_record record = record_of(k, module);
	uint8_t *block = sl_ring_block(&f->ring, k, module);

	record.frame = number;
	record.timestamp = time;
	sl_record_seal(&record);
	for (size_t i = 0; i < PIXEL_BYTES; i++)
		block[i] = pixel_of(number, module, i);
	memcpy(block + PIXEL_BYTES, &record, sizeof(record));
	sl_ring_reach(&f->ring, k, module);
	sl_ring_progress(&f->ring, k, module, PACKETS);
	sl_ring_raise(&f->ring, k, module, 1);
}

static void numbered(struct fixture *f, uint32_t module, uint64_t k, uint64_t number)
{
	arrive(f, module, k, number, 1000 * number);
}

static void by(struct fixture *f, enum sl_align_by what)
{
	f->a.options.align.by = what;
}

static bool pixels_are(const struct sl_view *view, uint64_t number)
{
	for (size_t i = 0; i < PIXEL_BYTES; i++)
		if (((const uint8_t *)view->pixels.host)[i] != pixel_of(number, view->module, i))
			return false;
	return true;
}

/* The unit gives it back. */
static void give_back(struct fixture *f)
{
	for (uint32_t m = 0; m < MODULES; m++)
		if (f->view[m].held)
			sl_ring_release(&f->ring, f->view[m].sequence, m);
	sl_ring_open(&f->ring, UINT64_MAX);
}

/* The next frame has this number, and its modules are these of their streams; NOTHING: none. */
static void expect(struct fixture *f, uint64_t number, int64_t first, int64_t second)
{
	const int64_t sequence[MODULES] = {first, second};

	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.number, number);
	for (uint32_t m = 0; m < MODULES; m++) {
		if (sequence[m] == NOTHING) {
			assert_int_equal(f->view[m].outcome, SL_NO_OUTCOME);
			assert_true(sl_frame_misses(&f->frame, m));
			continue;
		}
		assert_int_equal(f->view[m].sequence, sequence[m]);
		if (f->frame.flags & SL_FRAME_COMPLETE)
			assert_true(pixels_are(&f->view[m], number));
	}
	assert_int_equal(!!(f->frame.flags & SL_FRAME_COMPLETE), f->frame.missing == 0);
	give_back(f);
}

#define assert_decided(f, module, what, why)                       \
	do {                                                       \
		assert_int_equal((f)->view[module].outcome, what); \
		assert_int_equal((f)->view[module].cause, why);    \
	} while (0)

static void a_missed_trigger_shifts_the_stream_and_no_frame(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k < 4; k++)
		numbered(f, 0, k, 100 + k);
	numbered(f, 1, 0, 100);
	numbered(f, 1, 1, 102); /* missed 101 */
	numbered(f, 1, 2, 103);
	expect(f, 100, 0, 0);
	expect(f, 101, 1, NOTHING);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	expect(f, 102, 2, 1);
	expect(f, 103, 3, 2);
	assert_int_equal(next(f, 1), 0);
}

static void frames_are_counted_whatever_their_modules_are(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	numbered(f, 0, 0, 7);
	numbered(f, 1, 0, 9);
	expect(f, 7, 0, NOTHING);
	assert_int_equal(f->frame.sequence, 0);
	numbered(f, 0, 1, 9);
	expect(f, 9, 1, 0);
	assert_int_equal(f->frame.sequence, 1);
}

static void a_module_may_lag_by_more_than_the_ring(void **state)
{
	struct fixture *f = *state;
	uint64_t lagging = 0;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k < 10 * SLOTS; k++) {
		bool both = k % 3 == 0; /* the other misses two triggers of three */

		numbered(f, 0, k, k);
		if (both)
			numbered(f, 1, lagging, k);
		else
			numbered(f, 1, lagging, (k / 3 + 1) * 3);
		expect(f, k, (int64_t)k, both ? (int64_t)lagging : NOTHING);
		lagging += both;
	}
}

static void a_frame_waits_for_a_module_that_may_still_come(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	numbered(f, 0, 0, 5);
	numbered(f, 0, 1, 6);
	assert_int_equal(next(f, 1), 0);
	numbered(f, 1, 0, 6);
	expect(f, 5, 0, NOTHING);
	expect(f, 6, 1, 0);
}

static void order_within_the_window_does_not_matter(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	numbered(f, 1, 2, 52);
	numbered(f, 0, 1, 51);
	numbered(f, 1, 1, 51);
	assert_int_equal(next(f, 1), 0); /* nothing of 0 is there, and it is not late */
	numbered(f, 0, 2, 52);
	numbered(f, 1, 0, 50);
	assert_int_equal(next(f, 1), 0);
	numbered(f, 0, 0, 50);
	for (int64_t k = 0; k < 3; k++)
		expect(f, 50 + (uint64_t)k, k, k);
}

/* Its number is not known, and that is no reason to shift what comes after it. */
static void a_lost_module_frame_is_taken_for_the_one_that_it_can_be(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k <= LATE + 1; k++) {
		numbered(f, 0, k, 30 + k);
		if (k != 1)
			numbered(f, 1, k, 30 + k);
	}
	expect(f, 30, 0, 0);
	expect(f, 31, 1, 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect(f, 32, 2, 2);
}

static void a_lost_module_frame_after_a_missed_trigger_is_placed_by_what_follows(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k < 6; k++)
		numbered(f, 0, k, 10 + k);
	numbered(f, 1, 0, 10);
	sl_ring_progress(&f->ring, 1, 1, 2); /* sequence 1 is damaged, of 11 or 12 */
	for (uint64_t k = 2; k <= LATE + 1; k++)
		numbered(f, 1, k, 11 + k);
	expect(f, 10, 0, 0);
	expect(f, 11, 1, 1); /* the earliest that it can be */
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
	expect(f, 12, 2, NOTHING);
	expect(f, 13, 3, 2);
}

static void what_nobody_else_has_is_a_frame_of_its_own(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	sl_assembler_begin(&f->a, 0, 0, 20);
	sl_assembler_begin(&f->a, 1, 0, 20);
	for (uint64_t k = 1; k <= LATE + 1; k++) { /* sequence 0 must have been 20 */
		numbered(f, 1, k, 20 + k);
		numbered(f, 0, k - 1, 20 + k); /* missed 20 */
	}
	expect(f, 20, NOTHING, 0);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect(f, 21, 0, 1);
}

static void all_modules_lost_make_a_frame_with_a_number(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k <= LATE + 1; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			if (k != 1)
				numbered(f, m, k, 60 + k);
	expect(f, 60, 0, 0);
	expect(f, 61, 1, 1);
	assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect(f, 62, 2, 2);
}

static void several_in_a_row_of_which_nothing_came_are_counted(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint32_t m = 0; m < MODULES; m++) {
		numbered(f, m, 0, 60);
		for (uint64_t k = 1; k < 4; k++)
			sl_ring_reach(&f->ring, k, m);
		numbered(f, m, 7, 67);
	}
	expect(f, 60, 0, 0);
	for (int64_t k = 1; k < 4; k++) {
		expect(f, 60 + (uint64_t)k, k, k);
		assert_decided(f, 0, SL_LOST, SL_CAUSE_NO_ARRIVAL);
		assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	}
}

static void a_record_that_is_wrong_has_no_number(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	for (uint64_t k = 0; k < 3; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			numbered(f, m, k, 80 + k);
	sl_ring_block(&f->ring, 1, 1)[PIXEL_BYTES + 8] ^= 1;
	expect(f, 80, 0, 0);
	expect(f, 81, 1, 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_RECORD);
	expect(f, 82, 2, 2);
}

static void the_clock_leaves_a_module_out_and_what_comes_later_is_late(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	numbered(f, 0, 0, 40);
	assert_int_equal(next(f, 50000), 0);
	assert_int_equal(next(f, 50000 + TIMEOUT_NS), 0);
	assert_int_equal(next(f, 50000 + TIMEOUT_NS + 1), 1);
	assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_decided(f, 1, SL_NO_OUTCOME, SL_CAUSE_NONE);
	give_back(f);
	numbered(f, 1, 0, 40);
	expect(f, 40, NOTHING, 0); /* at once: nobody can complete it */
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_LATE);
	numbered(f, 1, 1, 41);
	numbered(f, 0, 1, 41);
	expect(f, 41, 1, 1);
}

static void offsets_are_taken_off(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	f->a.options.align.offset[1] = 120;
	for (uint64_t k = 0; k < 3; k++) {
		numbered(f, 0, k, 5 + k);
		arrive(f, 1, k, 125 + k, 0);
	}
	for (uint64_t k = 0; k < 3; k++) {
		assert_int_equal(next(f, 1), 1);
		assert_true(f->frame.flags & SL_FRAME_COMPLETE);
		assert_int_equal(f->frame.number, 5 + k);
		give_back(f);
	}
}

static void counters_go_on_where_they_wrap(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	f->a.options.align.wrap_bits = 8;
	f->a.options.align.offset[1] = -3;
	for (uint64_t k = 0; k < 1000; k++) {
		uint64_t number = 250 + k;

		arrive(f, 0, k, number & 255, 0);
		arrive(f, 1, k, (number - 3) & 255, 0);
		assert_int_equal(next(f, 1), 1);
		assert_true(f->frame.flags & SL_FRAME_COMPLETE);
		assert_int_equal(f->frame.number, number);
		give_back(f);
	}
}

/* The module that is seen first may be the one that has wrapped already. */
static void a_wrap_between_the_first_two_modules_is_none(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_TIMESTAMP);
	f->a.options.align.wrap_bits = 16;
	f->a.options.align.window = 10;
	arrive(f, 0, 0, 1, 2); /* 65536 + 2 */
	arrive(f, 1, 0, 1, 65533);
	assert_int_equal(next(f, 1), 1);
	assert_true(f->frame.flags & SL_FRAME_COMPLETE);
}

static void timestamps_need_not_be_equal(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_TIMESTAMP);
	f->a.options.align.window = 50;
	arrive(f, 0, 0, 700, 10000);
	arrive(f, 1, 0, 900, 10050); /* numbers need not agree */
	arrive(f, 0, 1, 701, 11030);
	arrive(f, 1, 1, 901, 11000);
	arrive(f, 0, 2, 702, 12000);
	arrive(f, 1, 2, 902, 12051); /* another trigger */
	arrive(f, 0, 3, 703, 12051);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(next(f, 1), 1);
		assert_true(f->frame.flags & SL_FRAME_COMPLETE);
		assert_int_equal(f->frame.timestamp, 10000 + 1000 * i);
		assert_int_equal(f->frame.number, 900 + i); /* one module's word */
		give_back(f);
	}
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.missing, 2);
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.missing, 0);
	assert_int_equal(f->view[0].sequence, 3);
	assert_int_equal(f->view[1].sequence, 2);
}

static void dark_and_bright_are_no_frame(void **state)
{
	struct fixture *f = *state;
	struct sl_record record = record_of(0, 1);

	by(f, SL_ALIGN_FRAME);
	numbered(f, 0, 0, 100);
	numbered(f, 1, 0, 100);
	record.flags = SL_RECORD_DARK;
	sl_record_seal(&record);
	memcpy(sl_ring_block(&f->ring, 0, 1) + PIXEL_BYTES, &record, sizeof(record));
	expect(f, 100, 0, 0);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_RECORD);
}

/* ---- a module that goes and comes back ---- */

static void a_module_that_is_gone_is_not_waited_for(void **state)
{
	struct fixture *f = *state;

	by(f, SL_ALIGN_FRAME);
	numbered(f, 0, 0, 1);
	numbered(f, 1, 0, 1);
	sl_assembler_end(&f->a, 1, 1);
	expect(f, 1, 0, 0);
	for (uint64_t k = 1; k < 5; k++) {
		numbered(f, 0, k, 1 + k);
		expect(f, 1 + k, (int64_t)k, NOTHING);
		assert_decided(f, 0, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	}
	/* It says that it begins with frame 8: those before it need not wait. */
	sl_assembler_begin(&f->a, 1, 1, 8);
	numbered(f, 0, 5, 6);
	numbered(f, 0, 6, 7);
	expect(f, 6, 5, NOTHING);
	expect(f, 7, 6, NOTHING);
	numbered(f, 0, 7, 8);
	assert_int_equal(next(f, 1), 0);
	numbered(f, 1, 1, 8);
	expect(f, 8, 7, 1);
	sl_assembler_end(&f->a, 0, 8);
	sl_assembler_end(&f->a, 1, 3);
	expect(f, 9, NOTHING, 2);
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_int_equal(next(f, 1), -ENODATA);
}

/* ---- incomplete: keep ---- */

static void a_frame_that_is_kept_says_what_is_missing(void **state)
{
	static uint8_t fill[PIXEL_BYTES];
	struct fixture *f = *state;

	f->a.options.fill = fill;
	for (uint64_t k = 0; k <= LATE; k++) {
		numbered(f, 0, k, 100 + k);
		if (k)
			numbered(f, 1, k, 100 + k);
	}
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.flags, SL_FRAME_PARTIAL);
	assert_int_equal(f->frame.missing, 2);
	assert_decided(f, 0, SL_NO_OUTCOME, SL_CAUSE_NONE); /* as a whole frame's */
	assert_decided(f, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_true(f->view[0].held && !f->view[1].held);
	assert_true(pixels_are(&f->view[0], 100));
	assert_ptr_equal(f->view[1].pixels.host, fill);
	/* The lost one's cell is free at once, the other's not before the unit is through. */
	assert_int_equal(sl_ring_open(&f->ring, UINT64_MAX), 1);
	assert_int_equal(sl_ring_opened(&f->ring, 0), SLOTS);
	assert_int_equal(sl_ring_opened(&f->ring, 1), SLOTS + 1);
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.flags, SL_FRAME_COMPLETE);
}

static void a_frame_of_which_nothing_is_whole_is_not_kept(void **state)
{
	static uint8_t fill[PIXEL_BYTES];
	struct fixture *f = *state;

	f->a.options.fill = fill;
	for (uint64_t k = 1; k <= LATE; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			numbered(f, m, k, 100 + k);
	assert_int_equal(next(f, 1), 1);
	assert_int_equal(f->frame.flags, 0);
	assert_null(f->view[0].pixels.host);
}

/* ---- a source that cannot be kept out ---- */

static void what_was_written_again_is_overrun_and_what_fits_nothing_is_unproven(void **state)
{
	struct fixture *f = *state;
	struct sl_record later = record_of(SLOTS, 0);

	f->a.options.unguarded = 1;
	for (uint64_t k = 0; k < 2; k++)
		for (uint32_t m = 0; m < MODULES; m++)
			numbered(f, m, k, 100 + k);
	sl_record_seal(&later);
	memcpy(sl_ring_block(&f->ring, 0, 0) + PIXEL_BYTES, &later, sizeof(later));
	sl_ring_block(&f->ring, 1, 0)[PIXEL_BYTES] ^= 1;
	assert_int_equal(next(f, 1), 1);
	assert_decided(f, 0, SL_OVERRUN, SL_CAUSE_OVERWRITTEN);
	assert_decided(f, 1, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	assert_int_equal(next(f, 1), 1);
	assert_decided(f, 0, SL_UNPROVEN, SL_CAUSE_RECORD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(a_missed_trigger_shifts_the_stream_and_no_frame),
		CASE(frames_are_counted_whatever_their_modules_are),
		CASE(a_module_may_lag_by_more_than_the_ring),
		CASE(a_frame_waits_for_a_module_that_may_still_come),
		CASE(order_within_the_window_does_not_matter),
		CASE(a_lost_module_frame_is_taken_for_the_one_that_it_can_be),
		CASE(a_lost_module_frame_after_a_missed_trigger_is_placed_by_what_follows),
		CASE(what_nobody_else_has_is_a_frame_of_its_own),
		CASE(all_modules_lost_make_a_frame_with_a_number),
		CASE(several_in_a_row_of_which_nothing_came_are_counted),
		CASE(a_record_that_is_wrong_has_no_number),
		CASE(the_clock_leaves_a_module_out_and_what_comes_later_is_late),
		CASE(offsets_are_taken_off),
		CASE(counters_go_on_where_they_wrap),
		CASE(a_wrap_between_the_first_two_modules_is_none),
		CASE(timestamps_need_not_be_equal),
		CASE(dark_and_bright_are_no_frame),
		CASE(a_module_that_is_gone_is_not_waited_for),
		CASE(a_frame_that_is_kept_says_what_is_missing),
		CASE(a_frame_of_which_nothing_is_whole_is_not_kept),
		CASE(what_was_written_again_is_overrun_and_what_fits_nothing_is_unproven),
	};

	return cmocka_run_group_tests_name("align", tests, NULL, NULL);
}
