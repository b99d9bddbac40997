/* account_test.c - exactly one answer: what is missing, came twice, or was never asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "feedback/account.h"
#include "feedback/wire.h"

enum { ITEMS = 70, STEP = 3, DEADLINE = 1000 }; /* more events than bits of a word */

static struct sl_feedback_account *new_window(uint32_t window, bool part)
{
	struct sl_feedback_account *a = malloc(sizeof(*a));

	assert_non_null(a);
	assert_int_equal(sl_feedback_account_init(a, ITEMS, STEP, window, part, DEADLINE), 0);
	return a;
}

static struct sl_feedback_account *new_answers(bool part)
{
	return new_window(0, part);
}

static void delete (struct sl_feedback_account *a)
{
	sl_feedback_account_fini(a);
	free(a);
}

static uint64_t packets; /* sent in this case */

/* Answers to items first.. of a frame. */
static void hear(struct sl_feedback_account *a, uint64_t number, uint32_t first, uint32_t count,
		 enum sl_feedback_decision decision, uint64_t now)
{
	uint8_t bytes[SL_FEEDBACK_HEADER + ITEMS * SL_FEEDBACK_ANSWER];
	const struct sl_feedback_header header = {.packet = packets++,
						  .first = number * ITEMS + first,
						  .items = ITEMS,
						  .count = (uint16_t)count};

	sl_feedback_write_header(&header, bytes);
	for (uint32_t i = 0; i < count; i++) {
		const struct sl_feedback_answer answer = {.number = header.first + i,
							  .decision = decision};

		sl_feedback_write_answer(&answer,
					 bytes + SL_FEEDBACK_HEADER + i * SL_FEEDBACK_ANSWER);
	}
	sl_feedback_account_absorb(a);
	sl_feedback_account_packet(a, bytes, SL_FEEDBACK_HEADER + count * SL_FEEDBACK_ANSWER, now);
}

static void send_frames(struct sl_feedback_account *a, uint64_t first, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++)
		assert_true(sl_feedback_account_sent(a, 0, first + k * STEP, 100 * k + 1));
}

static int prepare(void **state)
{
	(void)state;
	packets = 0;
	return 0;
}

static void one_answer_each_agrees_in_any_order(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	send_frames(a, 6, 4);
	hear(a, 9, 0, ITEMS, SL_FEEDBACK_REJECT, 500);
	hear(a, 6, 60, 10, SL_FEEDBACK_KEEP, 500);
	hear(a, 6, 0, 60, SL_FEEDBACK_KEEP, 500);
	hear(a, 15, 0, ITEMS, SL_FEEDBACK_NO_DATA, 500);
	assert_int_equal(atomic_load(&a->outstanding), ITEMS);
	hear(a, 12, 0, ITEMS, SL_FEEDBACK_KEEP, 500);
	assert_int_equal(atomic_load(&a->outstanding), 0);
	sl_feedback_account_end(a);
	assert_true(sl_feedback_account_agree(a));
	assert_int_equal(a->count.events, 4 * ITEMS);
	assert_int_equal(a->count.kept, 2 * ITEMS);
	assert_int_equal(a->count.rejected, ITEMS);
	assert_int_equal(a->count.no_data, ITEMS);
	assert_int_equal(a->count.packets, 5);
	assert_int_equal(a->count.packets_lost, 0);
	delete (a);
}

static void what_has_no_answer_is_missing(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	send_frames(a, 0, 3);
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	packets++; /* one is lost */
	hear(a, 3, 0, 57, SL_FEEDBACK_KEEP, 1);
	sl_feedback_account_end(a);
	assert_false(sl_feedback_account_agree(a));
	assert_int_equal(a->count.missing, 13 + ITEMS);
	assert_int_equal(a->count.packets_lost, 1);
	assert_int_equal(atomic_load(&a->outstanding), 0);
	delete (a);
}

static void a_second_answer_is_a_duplicate_whatever_it_says(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	send_frames(a, 0, 1);
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	hear(a, 0, 64, 5, SL_FEEDBACK_REJECT, 1);
	sl_feedback_account_end(a);
	assert_false(sl_feedback_account_agree(a));
	assert_int_equal(a->count.duplicate, 5);
	assert_int_equal(a->count.missing, 0);
	assert_int_equal(a->count.kept, ITEMS);
	delete (a);
}

static void what_was_never_sent_is_unknown(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	hear(a, 0, 0, 1, SL_FEEDBACK_NO_DATA, 1); /* before anything was */
	send_frames(a, 3, 2);
	hear(a, 3, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	hear(a, 6, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	hear(a, 9, 0, 1, SL_FEEDBACK_NO_DATA, 1); /* not yet */
	hear(a, 0, 0, 1, SL_FEEDBACK_NO_DATA, 1);
	hear(a, 4, 0, 1, SL_FEEDBACK_KEEP, 1);
	hear(a, (uint64_t)1 << 57, 0, 1, SL_FEEDBACK_KEEP, 1);
	sl_feedback_account_end(a);
	assert_int_equal(a->count.unknown, 5);
	assert_int_equal(a->count.missing + a->count.duplicate, 0);
	assert_false(sl_feedback_account_agree(a));
	delete (a);
}

/* By events of a frame, as docs/reference/feedback.md says: an answer to a frame that is further
 * back than this is to one that was not sent. */
static void frames_are_remembered_for_65536_more_or_fewer_if_they_are_large(void **state)
{
	static const uint32_t windows[][2] = {{1, 65536},   {255, 65536}, {256, 65536},
					      {257, 65280}, {512, 32768}, {4095, 4097},
					      {4096, 4096}, {4097, 4096}, {100000, 4096}};

	(void)state;
	for (unsigned i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct sl_feedback_account *a = malloc(sizeof(*a));

		assert_non_null(a);
		assert_int_equal(sl_feedback_account_init(a, windows[i][0], 1, 0, false, DEADLINE),
				 0);
		assert_int_equal(a->window, windows[i][1]);
		delete (a);
	}
}

static void a_frame_that_was_left_out_may_be_answered(void **state)
{
	(void)state;
	for (int part = 0; part < 2; part++) {
		struct sl_feedback_account *a = new_answers(part);

		send_frames(a, 0, 1);
		send_frames(a, 6, 1);
		hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
		hear(a, 6, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
		hear(a, 3, 0, ITEMS, SL_FEEDBACK_NO_DATA, 1);
		/* Also after the last that was sent, when it was left out. */
		assert_true(sl_feedback_account_sent(a, 0, 9, 0));
		hear(a, 9, 0, ITEMS, SL_FEEDBACK_NO_DATA, 1);
		assert_true(sl_feedback_account_agree(a));
		assert_int_equal(a->count.not_sent, 2 * ITEMS);
		assert_int_equal(a->count.frames, 2);
		/* Judged it can only be when another front end sent some of it. */
		hear(a, 3, 0, 1, SL_FEEDBACK_KEEP, 1);
		assert_int_equal(sl_feedback_account_agree(a), part);
		delete (a);
	}
}

/* A sender left the frame out, the receiver gave it up, and only then another sender's module of it
 * left: its events have their answer. `note` is of the sender that is ahead: the frame itself, or a
 * later one where it was away for several. */
static void answer_before_the_second_sender(bool part, uint64_t note, uint32_t early)
{
	struct sl_feedback_account *a = new_answers(part);

	assert_int_equal(sl_feedback_account_senders(a, 2), 0);
	assert_true(sl_feedback_account_sent(a, 0, 0, 1));
	assert_true(sl_feedback_account_sent(a, 1, 0, 2));
	assert_true(sl_feedback_account_sent(a, 0, note, 0));
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 5);
	hear(a, 3, 0, early, part ? SL_FEEDBACK_REJECT : SL_FEEDBACK_NO_DATA, 5);
	assert_int_equal(a->count.not_sent, early);
	assert_int_equal(a->count.events, ITEMS);

	assert_true(sl_feedback_account_sent(a, 1, 3, 7)); /* behind, and then it comes */
	sl_feedback_account_absorb(a);
	assert_int_equal(atomic_load(&a->outstanding), ITEMS - early);
	assert_int_equal(a->count.events, 2 * ITEMS);
	assert_int_equal(a->count.frames, 2);
	assert_int_equal(a->count.not_sent, 0);
	if (early < ITEMS)
		hear(a, 3, early, ITEMS - early, SL_FEEDBACK_KEEP, 5 + DEADLINE);
	assert_int_equal(atomic_load(&a->outstanding), 0);
	assert_int_equal(a->count.late, 0);
	assert_int_equal(a->count.kept, 2 * ITEMS - early);
	assert_int_equal(a->count.rejected, part ? early : 0);
	assert_int_equal(a->count.no_data, part ? 0 : early);
	assert_true(sl_feedback_account_agree(a));
	hear(a, 3, early - 1, 1, SL_FEEDBACK_NO_DATA, 8);
	assert_int_equal(a->count.duplicate, 1);
	sl_feedback_account_end(a);
	assert_int_equal(a->count.missing, 0);
	delete (a);
}

static void an_answer_may_come_before_a_sender_that_is_behind(void **state)
{
	static const uint32_t early[] = {1, 40, ITEMS};

	(void)state;
	for (unsigned i = 0; i < sizeof(early) / sizeof(early[0]); i++)
		for (int k = 0; k < 4; k++)
			answer_before_the_second_sender(k % 2, k / 2 ? 9 : 3, early[i]);
}

/* Such a frame gives up its place like any other, and is not missing when it was never sent. */
static void a_frame_that_was_answered_and_never_sent_is_not_missing(void **state)
{
	struct sl_feedback_account *a = new_window(50, false);

	(void)state;
	send_frames(a, 0, 1);
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	send_frames(a, 6, 1);
	hear(a, 3, 0, 20, SL_FEEDBACK_NO_DATA, 1);
	hear(a, 3, 0, 20, SL_FEEDBACK_NO_DATA, 1);
	hear(a, 6, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	send_frames(a, 3 + 50 * STEP, 1); /* takes its place */
	hear(a, 3 + 50 * STEP, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	assert_true(sl_feedback_account_sent(a, 0, 3, 8)); /* too far behind */
	sl_feedback_account_end(a);
	assert_int_equal(a->count.not_sent, 40);
	assert_int_equal(a->count.events, 3 * ITEMS);
	assert_int_equal(a->count.kept, 3 * ITEMS);
	assert_true(sl_feedback_account_agree(a));
	delete (a);
}

static void events_of_others_modules_are_theirs(void **state)
{
	struct sl_feedback_account *a = new_answers(true);

	(void)state;
	sl_feedback_account_own(a, 20, 30);
	send_frames(a, 0, 2);
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	assert_int_equal(atomic_load(&a->outstanding), 30);
	assert_int_equal(a->count.events, 60);
	assert_int_equal(a->count.not_sent, ITEMS - 30);
	hear(a, 3, 0, 49, SL_FEEDBACK_KEEP, 1);
	assert_int_equal(atomic_load(&a->outstanding), 1);
	sl_feedback_account_end(a);
	assert_int_equal(a->count.missing, 1);
	assert_int_equal(a->count.kept, 59);
	delete (a);
}

static void garbage_changes_nothing_and_is_told(void **state)
{
	struct sl_feedback_account *a = new_answers(false);
	uint8_t bytes[SL_FEEDBACK_HEADER + SL_FEEDBACK_ANSWER] = {0};
	struct sl_feedback_header header = {.items = ITEMS + 1, .count = 1};
	const struct sl_feedback_answer answer = {.number = 0};

	(void)state;
	send_frames(a, 0, 1);
	hear(a, 0, 0, ITEMS, SL_FEEDBACK_KEEP, 1);
	sl_feedback_account_packet(a, bytes, 0, 1);
	sl_feedback_account_packet(a, bytes, sizeof(bytes), 1);
	sl_feedback_write_header(&header, bytes); /* of a run with other frames */
	sl_feedback_write_answer(&answer, bytes + SL_FEEDBACK_HEADER);
	sl_feedback_account_packet(a, bytes, sizeof(bytes), 1);
	sl_feedback_account_end(a);
	assert_int_equal(a->count.malformed, 3);
	assert_int_equal(a->count.missing + a->count.duplicate + a->count.unknown, 0);
	assert_false(sl_feedback_account_agree(a));
	delete (a);
}

static void time_runs_from_the_earliest_module(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	assert_true(sl_feedback_account_sent(a, 0, 0, 5000));
	assert_true(sl_feedback_account_sent(a, 0, 0, 4000));
	assert_true(sl_feedback_account_sent(a, 0, 0, 4500));
	hear(a, 0, 0, 10, SL_FEEDBACK_KEEP, 5000);
	assert_int_equal(a->count.late, 0);
	hear(a, 0, 10, 60, SL_FEEDBACK_KEEP, 5001);
	assert_int_equal(a->count.late, 60);
	assert_int_equal(a->count.frames, 1);
	assert_int_equal(sl_histogram_max(&a->delay), 1001);
	assert_int_equal(sl_histogram_count(&a->delay), ITEMS);
	delete (a);
}

/* Longer than the tables: frames are judged when others need their place. */
static void runs_have_no_end(void **state)
{
	struct sl_feedback_account *a = new_window(50, false);
	uint64_t frames = 3ull * a->window;

	(void)state;
	for (uint64_t k = 0; k < frames; k++) {
		assert_true(sl_feedback_account_sent(a, 0, k * STEP, k + 1));
		if (k != 7)
			hear(a, k * STEP, 0, ITEMS, SL_FEEDBACK_KEEP, k);
	}
	assert_int_equal(a->count.missing, ITEMS);
	hear(a, 7 * STEP, 0, 1, SL_FEEDBACK_KEEP, 1); /* too late by far */
	sl_feedback_account_end(a);
	assert_int_equal(a->count.missing, ITEMS);
	assert_int_equal(a->count.unknown, 1);
	assert_int_equal(a->count.kept, (frames - 1) * ITEMS);
	delete (a);
}

static void notes_wait_when_nobody_takes_them(void **state)
{
	struct sl_feedback_account *a = new_answers(false);

	(void)state;
	send_frames(a, 0, SL_FEEDBACK_ACCOUNT_NOTES);
	assert_false(sl_feedback_account_sent(a, 0, SL_FEEDBACK_ACCOUNT_NOTES * STEP, 1));
	sl_feedback_account_absorb(a);
	assert_true(sl_feedback_account_sent(a, 0, SL_FEEDBACK_ACCOUNT_NOTES * STEP, 1));
	sl_feedback_account_end(a);
	assert_int_equal(a->count.missing, (SL_FEEDBACK_ACCOUNT_NOTES + 1) * ITEMS);
	delete (a);
}

#define CASE(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_answer_each_agrees_in_any_order),
		CASE(what_has_no_answer_is_missing),
		CASE(a_second_answer_is_a_duplicate_whatever_it_says),
		CASE(what_was_never_sent_is_unknown),
		CASE(frames_are_remembered_for_65536_more_or_fewer_if_they_are_large),
		CASE(a_frame_that_was_left_out_may_be_answered),
		CASE(an_answer_may_come_before_a_sender_that_is_behind),
		CASE(a_frame_that_was_answered_and_never_sent_is_not_missing),
		CASE(events_of_others_modules_are_theirs),
		CASE(garbage_changes_nothing_and_is_told),
		CASE(time_runs_from_the_earliest_module),
		CASE(runs_have_no_end),
		CASE(notes_wait_when_nobody_takes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
