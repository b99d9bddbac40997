/* queue_test.c - first in, first out, nothing twice and nothing lost, also between two threads. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/queue.h"

static void an_empty_queue_gives_nothing(void **state)
{
	struct sl_queue queue;

	assert_int_equal(sl_queue_init(&queue, 4), 0);
	assert_null(sl_queue_pop(&queue));
	sl_queue_fini(&queue);
}

static void a_full_queue_takes_nothing(void **state)
{
	struct sl_queue queue;
	int item[5];

	assert_int_equal(sl_queue_init(&queue, 4), 0);
	for (int i = 0; i < 4; i++)
		assert_true(sl_queue_push(&queue, &item[i]));
	assert_false(sl_queue_push(&queue, &item[4]));
	assert_ptr_equal(sl_queue_pop(&queue), &item[0]);
	assert_true(sl_queue_push(&queue, &item[4]));
	for (int i = 1; i < 5; i++)
		assert_ptr_equal(sl_queue_pop(&queue), &item[i]);
	assert_null(sl_queue_pop(&queue));
	sl_queue_fini(&queue);
}

static void room_is_rounded_up(void **state)
{
	struct sl_queue queue;

	assert_int_equal(sl_queue_init(&queue, 5), 0);
	assert_true(queue.capacity >= 5);
	assert_int_equal(queue.capacity & (queue.capacity - 1), 0);
	sl_queue_fini(&queue);
}

static void indices_may_wrap(void **state)
{
	struct sl_queue queue;
	int item[3];

	assert_int_equal(sl_queue_init(&queue, 2), 0);
	atomic_store(&queue.head, UINT32_MAX - 1);
	atomic_store(&queue.tail, UINT32_MAX - 1);
	for (int i = 0; i < 8; i++) {
		assert_true(sl_queue_push(&queue, &item[i % 3]));
		assert_ptr_equal(sl_queue_pop(&queue), &item[i % 3]);
	}
	sl_queue_fini(&queue);
}

enum { ITEMS = 100000 };

static void *push_all(void *arg)
{
	static int value[ITEMS];

	for (int i = 0; i < ITEMS; i++) {
		value[i] = i; /* published by the push: TSan would see if it were not */
		while (!sl_queue_push(arg, &value[i]))
			sched_yield();
	}
	return NULL;
}

static void two_threads_agree_on_every_item(void **state)
{
	struct sl_queue queue;
	pthread_t thread;

	assert_int_equal(sl_queue_init(&queue, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, push_all, &queue), 0);
	for (int i = 0; i < ITEMS; i++) {
		int *got;

		while (!(got = sl_queue_pop(&queue)))
			sched_yield();
		assert_int_equal(*got, i);
	}
	pthread_join(thread, NULL);
	assert_null(sl_queue_pop(&queue));
	sl_queue_fini(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_queue_gives_nothing),
		cmocka_unit_test(a_full_queue_takes_nothing),
		cmocka_unit_test(room_is_rounded_up),
		cmocka_unit_test(indices_may_wrap),
		cmocka_unit_test(two_threads_agree_on_every_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
