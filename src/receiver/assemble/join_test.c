/* join_test.c - parts of several detectors: by sequence, number and time, with dividers, offsets,
 * drift and each policy. Every module-frame comes out once, with the outcome that the order of
 * parts or the clock gives it. Time is a parameter, so every case is exact. */
#include <errno.h>
#include <stdbool.h>

#include "receiver/assemble/join_test.h"

enum { NOTHING = -1 };

/* A module-frame arrives. */
static void arrive(struct rig *rig, unsigned d, uint32_t module, uint64_t k, uint64_t number,
		   uint64_t time)
{
	struct sl_ring *ring = &rig->of[d].ring;

	make_block(d, module, k, number, time, sl_ring_block(ring, k, module));
	sl_ring_reach(ring, k, module);
	sl_ring_progress(ring, k, module, PACKETS);
	sl_ring_raise(ring, k, module, 1);
}

/* All modules of a detector do. */
static void part_at(struct rig *rig, unsigned d, uint64_t k, uint64_t number, uint64_t time)
{
	for (uint32_t m = 0; m < shapes[d].modules; m++)
		arrive(rig, d, m, k, number, time);
}

static void part(struct rig *rig, unsigned d, uint64_t k, uint64_t number)
{
	part_at(rig, d, k, number, 1000 * number);
}

/* The frame has these sequences of its detectors. */
static void assert_parts(struct rig *rig, const int64_t *sequence)
{
	for (unsigned d = 0; d < rig->join.detectors; d++)
		for (uint32_t m = 0; m < shapes[d].modules; m++) {
			const struct sl_view *view = &rig->view[shapes[d].first + m];

			assert_int_equal(view->module, shapes[d].first + m);
			if (sequence[d] == NOTHING) {
				assert_int_equal(view->outcome, SL_NO_OUTCOME);
				assert_true(sl_frame_misses(&rig->frame, shapes[d].first + m));
				assert_false(view->held);
				continue;
			}
			assert_int_equal(view->sequence, sequence[d]);
			if (rig->frame.flags & SL_FRAME_COMPLETE && view->outcome == SL_NO_OUTCOME)
				assert_true(pixels_are(d, view));
		}
}

#define expect_at(rig, now, whole, ...)                                              \
	do {                                                                         \
		assert_int_equal(next_event(rig, now), 1);                           \
		assert_int_equal(!!((rig)->frame.flags & SL_FRAME_COMPLETE), whole); \
		assert_parts(rig, (const int64_t[DETECTORS]){__VA_ARGS__});          \
		give_back(rig);                                                      \
	} while (0)
#define expect(rig, ...)	expect_at(rig, 1, true, __VA_ARGS__)
#define expect_broken(rig, ...) expect_at(rig, 1, false, __VA_ARGS__)
#define assert_decided(rig, d, what, why)                                                  \
	do {                                                                               \
		for (uint32_t m_ = 0; m_ < shapes[d].modules; m_++) {                      \
			assert_int_equal((rig)->view[shapes[d].first + m_].outcome, what); \
			assert_int_equal((rig)->view[shapes[d].first + m_].cause, why);    \
		}                                                                          \
	} while (0)
#define assert_unmatched(rig, d) assert_decided(rig, d, SL_UNMATCHED, SL_CAUSE_NO_EVENT)
#define assert_partner(rig, d)	 assert_decided(rig, d, SL_INCOMPLETE, SL_CAUSE_PARTNER)

static const struct sl_join_options by_number = {.by = SL_ALIGN_FRAME};
static const struct sl_join_options by_sequence = {.by = SL_ALIGN_SEQUENCE};

/* ---- the order of parts ---- */

static void parts_with_one_number_are_one_event(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	add(rig, COUNTER, by_sequence);
	for (uint64_t k = 0; k < 10 * SLOTS; k++) {
		part(rig, COUNTER, k, 7);
		part(rig, CAMERA, k, 100 + k);
		assert_int_equal(next_event(rig, 1), 0);
		part(rig, IMAGE, k, 100 + k);
		expect(rig, (int64_t)k, (int64_t)k, (int64_t)k);
		assert_int_equal(rig->frame.sequence, k);
		assert_int_equal(rig->frame.number, 100 + k);
		assert_int_equal(sl_frame_all_views(&rig->frame), MODULES);
		assert_int_equal(rig->frame.missing, 0);
		assert_int_equal(rig->frame.hop_ns[SL_HOP_EMIT], 500 + 10 * k);
		assert_int_equal(rig->part[CAMERA].views, 1);
		assert_ptr_equal(rig->part[CAMERA].view, &rig->view[2]);
	}
}

static void what_is_ahead_says_that_the_event_has_none(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	part(rig, CAMERA, 0, 100);
	part(rig, CAMERA, 1, 102);
	for (uint64_t k = 0; k < 3; k++)
		part(rig, IMAGE, k, 100 + k);
	expect(rig, 0, 0);
	expect_broken(rig, 1, NOTHING);
	assert_partner(rig, IMAGE);
	expect(rig, 2, 1);
}

static void what_may_be_missing_does_not_break_the_event(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){.by = SL_ALIGN_FRAME, .missing = SL_JOIN_OPTIONAL});
	add(rig, COUNTER,
	    (struct sl_join_options){
		    .by = SL_ALIGN_FRAME, .missing = SL_JOIN_WAIT, .wait_ns = 1000000});
	part(rig, CAMERA, 0, 101);
	part(rig, COUNTER, 0, 102);
	for (uint64_t k = 0; k < 3; k++)
		part(rig, IMAGE, k, 100 + k);
	expect(rig, 0, NOTHING, NOTHING);
	assert_int_equal(rig->frame.missing, 0xc);
	expect(rig, 1, 0, NOTHING);
	expect_at(rig, 2, true, 2, NOTHING, 0);
}

static void what_belongs_to_no_event_is_unmatched(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	for (uint64_t k = 0; k < 6; k++)
		part(rig, CAMERA, k, 98 + k);
	part(rig, IMAGE, 0, 100);
	part(rig, IMAGE, 1, 103);
	for (int64_t k = 0; k < 2; k++) {
		expect_broken(rig, NOTHING, k);
		assert_unmatched(rig, CAMERA);
		assert_int_equal(rig->frame.number, 98 + k);
	}
	expect(rig, 0, 2);
	for (int64_t k = 3; k < 5; k++) {
		expect_broken(rig, NOTHING, k);
		assert_unmatched(rig, CAMERA);
	}
	expect(rig, 1, 5);
	assert_int_equal(rig->frame.sequence, 5);
	assert_int_equal(sl_ring_opened(&rig->of[CAMERA].ring, 0), 6 + SLOTS);
}

/* ---- dividers ---- */

static void a_divider_says_which_events_have_a_part(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){.by = SL_ALIGN_FRAME, .divider = 3, .offset = -5});
	for (uint64_t k = 0; k < 12; k++) {
		part(rig, IMAGE, k, 99 + k);
		if (k % 3 == 0)
			part(rig, CAMERA, k / 3, 28 + k / 3); /* (28 + 5) * 3 is 99 */
		expect(rig, (int64_t)k, k % 3 ? NOTHING : (int64_t)k / 3);
	}
	part(rig, IMAGE, 12, 111);
	assert_int_equal(next_event(rig, 1), 0); /* this one waits */
}

static void events_may_be_the_slower_ones(void **state)
{
	struct rig *rig = *state;

	rig->join.detector[IMAGE].options.divider = 4;
	add(rig, CAMERA, by_sequence);
	for (uint64_t k = 0; k < 8; k++)
		part(rig, CAMERA, k, k);
	part(rig, IMAGE, 0, 100);
	part(rig, IMAGE, 1, 101);
	expect(rig, 0, 0);
	for (int64_t k = 1; k < 4; k++) {
		expect_broken(rig, NOTHING, k);
		assert_unmatched(rig, CAMERA);
	}
	expect(rig, 1, 4);
}

static void by_time_the_first_part_says_where_a_divider_counts_from(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){.by = SL_ALIGN_TIMESTAMP, .divider = 2, .window = 10});
	part_at(rig, CAMERA, 0, 1, 0);
	part_at(rig, CAMERA, 1, 77, 103005);
	part(rig, IMAGE, 0, 100);
	part(rig, IMAGE, 1, 101);
	expect_broken(rig, NOTHING, 0);
	expect_broken(rig, 0, NOTHING);
	expect(rig, 1, NOTHING); /* so far it is taken to count from trigger 0 on */
	part(rig, IMAGE, 2, 102);
	expect_broken(rig, 2, NOTHING);
	part(rig, IMAGE, 3, 103);
	expect(rig, 3, 1);
	part(rig, IMAGE, 4, 104);
	expect(rig, 4, NOTHING); /* at once */
	part(rig, IMAGE, 5, 105);
	assert_int_equal(next_event(rig, 1), 0);
	part_at(rig, CAMERA, 2, 78, 104991);
	expect(rig, 5, 2);
}

/* ---- the clock ---- */

static void a_required_part_is_waited_for_and_then_late(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	part(rig, IMAGE, 0, 100);
	assert_int_equal(next_event(rig, 50000), 0);
	assert_int_equal(next_event(rig, 50000 + TIMEOUT_NS), 0);
	expect_at(rig, 50001 + TIMEOUT_NS, false, 0, NOTHING);
	assert_partner(rig, IMAGE);
	part(rig, CAMERA, 0, 100);
	part(rig, IMAGE, 1, 101);
	expect_broken(rig, NOTHING, 0);
	assert_decided(rig, CAMERA, SL_INCOMPLETE, SL_CAUSE_LATE);
	part(rig, CAMERA, 1, 101);
	expect(rig, 1, 1);
}

static void a_detector_that_was_waited_for_in_vain_is_not_waited_for_again(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	part(rig, IMAGE, 0, 100);
	assert_int_equal(next_event(rig, 50000), 0);
	expect_at(rig, 60000, false, 0, NOTHING);
	part(rig, IMAGE, 1, 101);
	expect_at(rig, 60000, false, 1, NOTHING);
	part(rig, CAMERA, 0, 102);
	part(rig, IMAGE, 2, 102);
	expect_at(rig, 60000, true, 2, 0);
	part(rig, IMAGE, 3, 103); /* it is back */
	assert_int_equal(next_event(rig, 60000), 0);
}

static void an_event_goes_on_without_a_part_after_its_wait(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){
		    .by = SL_ALIGN_FRAME, .missing = SL_JOIN_WAIT, .wait_ns = 300});
	part(rig, IMAGE, 0, 100);
	assert_int_equal(next_event(rig, 50000), 0);
	assert_int_equal(next_event(rig, 50300), 0);
	expect_at(rig, 50301, true, 0, NOTHING);
	part(rig, CAMERA, 0, 100);
	sl_assembler_end(&rig->of[IMAGE].a, 0, 1);
	sl_assembler_end(&rig->of[IMAGE].a, 1, 1);
	expect_broken(rig, NOTHING, 0);
	assert_decided(rig, CAMERA, SL_INCOMPLETE, SL_CAUSE_LATE);
}

static void an_optional_part_is_taken_when_it_is_there(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){.by = SL_ALIGN_FRAME, .missing = SL_JOIN_OPTIONAL});
	part(rig, IMAGE, 0, 100);
	expect(rig, 0, NOTHING);
	part(rig, CAMERA, 0, 100);
	expect_broken(rig, NOTHING, 0);
	assert_decided(rig, CAMERA, SL_INCOMPLETE, SL_CAUSE_LATE);
	part(rig, CAMERA, 1, 101);
	part(rig, IMAGE, 1, 101);
	expect(rig, 1, 1);
}

static void time_does_not_pass_while_the_link_has_not_looked(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	sl_ring_looked(&rig->of[CAMERA].ring, 0, 40000);
	part(rig, IMAGE, 0, 100);
	assert_int_equal(next_event(rig, 50000), 0);
	assert_int_equal(next_event(rig, 90000), 0);
	sl_ring_looked(&rig->of[CAMERA].ring, 0, 80000);
	expect_at(rig, 90000, false, 0, NOTHING);
}

static void a_caller_that_is_patient_waits_for_detectors_that_have_yet_to_begin(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	rig->join.patient = true;
	part(rig, IMAGE, 0, 100);
	assert_int_equal(next_event(rig, 50000), 0);
	assert_int_equal(next_event(rig, 90000), 0);
	rig->join.patient = false;
	assert_int_equal(next_event(rig, 90000 + TIMEOUT_NS), 0);
	part(rig, CAMERA, 0, 100);
	expect(rig, 0, 0);
}

static void parts_do_not_wait_for_ever_for_events(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	for (uint64_t k = 0; k < 3; k++)
		part(rig, CAMERA, k, 100 + k);
	assert_int_equal(next_event(rig, 50000), 0);
	assert_int_equal(next_event(rig, 50000 + TIMEOUT_NS), 0);
	for (int64_t k = 0; k < 2; k++) {
		expect_at(rig, 50001 + TIMEOUT_NS, false, NOTHING, k);
		assert_unmatched(rig, CAMERA);
	}
	part(rig, IMAGE, 0, 102);
	expect(rig, 0, 2);
	part(rig, CAMERA, 3, 103);
	assert_int_equal(next_event(rig, 90000), 0); /* the clock begins anew */
}

/* ---- times ---- */

static void times_have_an_offset_a_drift_and_a_window(void **state)
{
	const uint64_t start = UINT64_C(1700000000000000000), step = 1000000;
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){
		    .by = SL_ALIGN_TIMESTAMP, .offset = 777, .drift = 50e-6, .window = 100});
	for (uint64_t k = 0; k < 1000; k++) { /* 50 us at the end */
		uint64_t jitter = k % 3 * 90 - 90;

		part_at(rig, IMAGE, k, k, start + k * step);
		part_at(rig, CAMERA, k, 0, start + 777 + k * step + k * 50 + jitter);
		expect(rig, (int64_t)k, (int64_t)k);
		assert_int_equal(rig->frame.timestamp, start + k * step);
	}
	part_at(rig, IMAGE, 1000, 1000, start + 1000 * step);
	part_at(rig, CAMERA, 1000, 0, start + 777 + 1000 * step + 50000 + 200);
	expect_broken(rig, 1000, NOTHING);
}

static void counters_go_on_where_they_wrap(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, (struct sl_join_options){.by = SL_ALIGN_FRAME, .wrap_bits = 8});
	for (uint64_t k = 0; k < 2000; k++) {
		part(rig, IMAGE, k, 70000 + k);
		part(rig, CAMERA, k, (70000 + k) & 255);
		expect(rig, (int64_t)k, (int64_t)k);
	}
}

static void the_counter_of_events_may_wrap(void **state)
{
	struct rig *rig = *state;

	rig->join.detector[IMAGE].options.by = SL_ALIGN_FRAME;
	rig->join.detector[IMAGE].options.wrap_bits = 8;
	add(rig, CAMERA, by_number);
	for (uint64_t k = 0; k < 2000; k++) {
		part(rig, IMAGE, k, (250 + k) & 255);
		part(rig, CAMERA, k, 250 + k);
		expect(rig, (int64_t)k, (int64_t)k);
	}
}

/* ---- what is lost ---- */

static void a_lost_part_has_the_number_of_its_place(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	for (uint64_t k = 0; k <= LATE + 2; k++) {
		part(rig, IMAGE, k, 900 + k);
		if (k != 1)
			part(rig, CAMERA, k, 900 + k);
	}
	expect(rig, 0, 0);
	expect_broken(rig, 1, 1);
	assert_partner(rig, IMAGE);
	assert_decided(rig, CAMERA, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect(rig, 2, 2);
}

static void a_lost_part_without_a_key_is_by_itself(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, (struct sl_join_options){.by = SL_ALIGN_TIMESTAMP, .window = 5});
	for (uint64_t k = 0; k <= LATE + 2; k++) {
		part(rig, IMAGE, k, 900 + k);
		if (k != 1)
			part(rig, CAMERA, k, 900 + k);
	}
	expect(rig, 0, 0);
	expect_broken(rig, NOTHING, 1);
	assert_decided(rig, CAMERA, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	expect_broken(rig, 1, NOTHING);
	assert_partner(rig, IMAGE);
	expect(rig, 2, 2);
}

/* One module of the event is missing. */
static void break_an_event(struct rig *rig)
{
	for (uint64_t k = 0; k <= LATE + 1; k++) {
		part(rig, CAMERA, k, 100 + k);
		arrive(rig, IMAGE, 0, k, 100 + k, 1000);
		if (k)
			arrive(rig, IMAGE, 1, k, 100 + k, 1000);
	}
}

static void a_broken_event_takes_its_parts_along(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	break_an_event(rig);
	expect_broken(rig, 0, 0);
	assert_partner(rig, CAMERA);
	assert_int_equal(rig->view[0].cause, SL_CAUSE_PARTNER);
	assert_int_equal(rig->view[1].outcome, SL_LOST);
	expect(rig, 1, 1);
}

static void a_broken_event_is_kept_where_that_is_wanted(void **state)
{
	static uint8_t fill[1000];
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	rig->join.keep = true;
	rig->of[IMAGE].a.options.fill = fill;
	break_an_event(rig);
	assert_int_equal(next_event(rig, 1), 1);
	assert_int_equal(rig->frame.flags, SL_FRAME_PARTIAL);
	assert_int_equal(rig->frame.missing, 2);
	assert_ptr_equal(rig->view[1].pixels.host, fill);
	assert_true(pixels_are(CAMERA, &rig->view[2]));
	assert_decided(rig, CAMERA, SL_NO_OUTCOME, SL_CAUSE_NONE);
	give_back(rig);
	expect(rig, 1, 1);
}

static void a_broken_part_that_may_be_missing_breaks_no_event(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){.by = SL_ALIGN_FRAME, .missing = SL_JOIN_OPTIONAL});
	part(rig, CAMERA, 0, 100);
	sl_ring_block(&rig->of[CAMERA].ring, 0, 0)[pixel_bytes(CAMERA) + 40] ^= 1;
	part(rig, CAMERA, 1, 101);
	part(rig, IMAGE, 0, 100);
	part(rig, IMAGE, 1, 101);
	expect(rig, 0, 0);
	assert_decided(rig, CAMERA, SL_INCOMPLETE, SL_CAUSE_RECORD);
	assert_int_equal(rig->frame.missing, 4);
	expect(rig, 1, 1);
}

/* ---- the end ---- */

static void end(struct rig *rig, unsigned d, uint64_t at)
{
	for (uint32_t m = 0; m < shapes[d].modules; m++)
		sl_assembler_end(&rig->of[d].a, m, at);
}

static void what_comes_after_the_last_event_is_unmatched(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA, by_number);
	part(rig, IMAGE, 0, 100);
	for (uint64_t k = 0; k < 3; k++)
		part(rig, CAMERA, k, 100 + k);
	end(rig, IMAGE, 1);
	end(rig, CAMERA, 4);
	expect(rig, 0, 0);
	for (int64_t k = 1; k < 3; k++) {
		expect_broken(rig, NOTHING, k);
		assert_unmatched(rig, CAMERA);
	}
	expect_broken(rig, NOTHING, 3);
	assert_decided(rig, CAMERA, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	assert_int_equal(next_event(rig, 1), -ENODATA);
}

static void a_detector_that_has_ended_is_not_waited_for(void **state)
{
	struct rig *rig = *state;

	add(rig, CAMERA,
	    (struct sl_join_options){
		    .by = SL_ALIGN_FRAME, .missing = SL_JOIN_WAIT, .wait_ns = 1 << 30});
	end(rig, CAMERA, 0);
	part(rig, IMAGE, 0, 100);
	expect(rig, 0, NOTHING);
	end(rig, IMAGE, 1);
	assert_int_equal(next_event(rig, 1), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup_rig, teardown_rig)
		CASE(parts_with_one_number_are_one_event),
		CASE(what_is_ahead_says_that_the_event_has_none),
		CASE(what_may_be_missing_does_not_break_the_event),
		CASE(what_belongs_to_no_event_is_unmatched),
		CASE(a_divider_says_which_events_have_a_part),
		CASE(events_may_be_the_slower_ones),
		CASE(by_time_the_first_part_says_where_a_divider_counts_from),
		CASE(a_required_part_is_waited_for_and_then_late),
		CASE(a_detector_that_was_waited_for_in_vain_is_not_waited_for_again),
		CASE(an_event_goes_on_without_a_part_after_its_wait),
		CASE(an_optional_part_is_taken_when_it_is_there),
		CASE(time_does_not_pass_while_the_link_has_not_looked),
		CASE(a_caller_that_is_patient_waits_for_detectors_that_have_yet_to_begin),
		CASE(parts_do_not_wait_for_ever_for_events),
		CASE(times_have_an_offset_a_drift_and_a_window),
		CASE(counters_go_on_where_they_wrap),
		CASE(the_counter_of_events_may_wrap),
		CASE(a_lost_part_has_the_number_of_its_place),
		CASE(a_lost_part_without_a_key_is_by_itself),
		CASE(a_broken_event_takes_its_parts_along),
		CASE(a_broken_event_is_kept_where_that_is_wanted),
		CASE(a_broken_part_that_may_be_missing_breaks_no_event),
		CASE(what_comes_after_the_last_event_is_unmatched),
		CASE(a_detector_that_has_ended_is_not_waited_for),
	};

	return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
