/* row_queue_test.c - rows are sent in order, again after a lost connection, and counted once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sink/redis/row_queue.h"

enum { CAPACITY = 8 };

static void push(struct sl_row_queue *queue, int rows)
{
	char text[16];

	for (int i = 0; i < rows; i++) {
		snprintf(text, sizeof(text), "row %d", (int)queue->end);
		assert_int_equal(sl_row_queue_push(queue, text, strlen(text)), 0);
	}
}

static void next_is(struct sl_row_queue *queue, int number)
{
	const struct sl_waiting_row *row = sl_row_queue_next(queue);
	char text[16];

	assert_non_null(row);
	snprintf(text, sizeof(text), "row %d", number);
	assert_int_equal(row->length, strlen(text));
	assert_memory_equal(row->bytes, text, row->length);
}

/* `rows` more that Redis has stored. */
static void store(struct sl_row_queue *queue, int rows)
{
	for (int i = 0; i < rows; i++) {
		push(queue, 1);
		assert_non_null(sl_row_queue_next(queue));
		sl_row_queue_answered(queue, false);
	}
}

static void a_full_queue_takes_no_more(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	assert_null(sl_row_queue_next(&queue));
	push(&queue, CAPACITY);
	assert_true(sl_row_queue_full(&queue));
	assert_int_equal(sl_row_queue_push(&queue, "x", 1), -ENOBUFS);
	next_is(&queue, 0);
	assert_int_equal(sl_row_queue_push(&queue, "x", 1), -ENOBUFS);
	sl_row_queue_answered(&queue, false);
	push(&queue, 1);
	for (int i = 1; i <= CAPACITY; i++)
		next_is(&queue, i);
	assert_null(sl_row_queue_next(&queue));
	sl_row_queue_close(&queue);
}

static void memory_is_bounded(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	push(&queue, 2);
	assert_int_equal(queue.bytes, 10);
	queue.bytes = SL_ROW_BYTES - 5; /* as if they were large */
	assert_int_equal(sl_row_queue_push(&queue, "row 02", 6), -ENOBUFS);
	push(&queue, 1);
	assert_int_equal(sl_row_queue_push(&queue, "x", 1), -ENOBUFS);
	sl_row_queue_answered(&queue, false);
	push(&queue, 1);
	sl_row_queue_close(&queue);
}

static void what_was_not_answered_is_sent_again(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	push(&queue, 4);
	next_is(&queue, 0);
	next_is(&queue, 1);
	next_is(&queue, 2);
	sl_row_queue_answered(&queue, false);
	assert_int_equal(queue.resent, 0);
	sl_row_queue_rewind(&queue);
	assert_int_equal(queue.resent, 3);
	assert_int_equal(sl_row_queue_resume(&queue, 1), 0);
	next_is(&queue, 1);
	next_is(&queue, 2);
	next_is(&queue, 3);
	assert_null(sl_row_queue_next(&queue));
	sl_row_queue_close(&queue);
}

static void what_redis_has_is_not_sent_again(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	push(&queue, 4);
	for (int i = 0; i < 3; i++)
		next_is(&queue, i);
	sl_row_queue_rewind(&queue);
	assert_int_equal(sl_row_queue_resume(&queue, 2), 0);
	assert_int_equal(queue.first, 2);
	next_is(&queue, 2);
	sl_row_queue_close(&queue);
}

static void rows_that_redis_has_lost_are_counted_once(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	store(&queue, 20);
	assert_int_equal(sl_row_queue_resume(&queue, 20), 0);
	assert_int_equal(sl_row_queue_resume(&queue, 15), 5);
	assert_int_equal(sl_row_queue_resume(&queue, 15), 0);
	store(&queue, 3);
	assert_int_equal(sl_row_queue_resume(&queue, 21), 2);
	assert_int_equal(sl_row_queue_resume(&queue, 0), 16);
	assert_int_equal(sl_row_queue_resume(&queue, 0), 0);
	sl_row_queue_close(&queue);
}

static void refused_rows_are_not_lost_besides(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	store(&queue, 10);
	for (int i = 0; i < 4; i++) {
		push(&queue, 1);
		sl_row_queue_answered(&queue, i < 3);
	}
	assert_int_equal(queue.sent, 14);
	/* 10, 11, 12 are holes; Redis has 0..9 and 13. */
	assert_int_equal(sl_row_queue_resume(&queue, 14), 0);
	assert_int_equal(sl_row_queue_resume(&queue, 11), 1);
	assert_int_equal(sl_row_queue_resume(&queue, 8), 2);
	sl_row_queue_close(&queue);
}

static void many_holes_are_counted(void **state)
{
	struct sl_row_queue queue;

	(void)state;
	assert_int_equal(sl_row_queue_open(&queue, CAPACITY), 0);
	for (int i = 0; i < 2 * SL_ROW_HOLES; i++) {
		push(&queue, 1);
		sl_row_queue_answered(&queue, i % 2);
	}
	assert_int_equal(queue.holes, SL_ROW_HOLES);
	assert_int_equal(sl_row_queue_resume(&queue, 0), SL_ROW_HOLES);
	sl_row_queue_close(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_queue_takes_no_more),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(what_was_not_answered_is_sent_again),
		cmocka_unit_test(what_redis_has_is_not_sent_again),
		cmocka_unit_test(rows_that_redis_has_lost_are_counted_once),
		cmocka_unit_test(refused_rows_are_not_lost_besides),
		cmocka_unit_test(many_holes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
