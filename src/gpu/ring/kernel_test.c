/* kernel_test.c - events through a ring, from its opening to the end of the kernel that polls, in
 * all kinds of buffers: on platform `threads` anywhere, on CUDA where there is a GPU. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/device_ring_rig.h"

static void on_all(void (*test)(const struct sl_platform *platform, enum place place))
{
	static const struct sl_platform *const platforms[] = {&sl_platform_threads,
							      &sl_platform_cuda};

	for (unsigned p = 0; p < 2; p++) {
		if (platforms[p]->unavailable()) {
			print_message("skipped: %s: %s\n", platforms[p]->name,
				      platforms[p]->unavailable());
			continue;
		}
		for (unsigned place = 0; place < PLACES; place++)
			test(platforms[p], place);
	}
}

/* ---- all is well ---- */

static void *source(void *arg)
{
	struct rig *rig = arg;

	for (uint64_t n = 0; n < EVENTS; n++) {
		while (!sl_device_ring_may_write(&rig->ring, n))
			sched_yield();
		publish(rig, n);
	}
	return NULL;
}

static void run_events(const struct sl_platform *platform, enum place place)
{
	struct sl_device_ring_terms terms = terms_of(place);
	struct sl_device_ring_work work = weigh(place);
	struct sl_device_ring_ledger l;
	struct rig rig;
	pthread_t thread;

	rig_open(&rig, platform, &terms, &work);
	assert_int_equal(pthread_create(&thread, NULL, source, &rig), 0);
	for (uint64_t n = 0; n < EVENTS; n++)
		take_good(&rig, n);
	pthread_join(thread, NULL);
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	l = sl_device_ring_ledger(&rig.ring);
	assert_int_equal(l.good, EVENTS);
	assert_true(l.kept > EVENTS / 4 && l.kept < EVENTS * 3 / 4);
	assert_closes(&rig, EVENTS);
	rig_close(&rig);
}

static void test_all_kinds_of_buffers_give_the_same(void **arg)
{
	on_all(run_events);
}

/* ---- what ends too soon ---- */

static void test_a_source_that_vanishes_leaves_a_closed_ledger(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++) {
		struct sl_device_ring_terms terms = terms_of(place);
		struct sl_device_ring_work work = weigh(place);
		struct rig rig;

		rig_open(&rig, &sl_platform_threads, &terms, &work);
		for (uint64_t n = 0; n < 3; n++)
			publish(&rig, n);
		/* Half of an event, and no word of it. */
		if (place == PINNED)
			memset((char *)rig.ring.data.host + 3 * EVENT, 1, EVENT / 2);
		assert_int_equal(sl_device_ring_end(&rig.ring), 0);
		for (uint64_t n = 0; n < 3; n++)
			take_good(&rig, n);
		assert_int_equal(sl_device_ring_ledger(&rig.ring).good, 3);
		assert_closes(&rig, 3);
		rig_close(&rig);
	}
}

/* Events of the second round through the buffers are there when the host says stop. */
static void end_in_the_second_round(const struct sl_platform *platform, enum place place)
{
	struct sl_device_ring_terms terms = terms_of(place);
	struct sl_device_ring_work work = weigh(place);
	struct rig rig;

	rig_open(&rig, platform, &terms, &work);
	for (uint64_t n = 0; n < BUFFERS; n++)
		publish(&rig, n);
	for (uint64_t n = 0; n < BUFFERS + 5; n++) {
		take_good(&rig, n);
		if (n < 5)
			publish(&rig, BUFFERS + n);
		if (n == 4)
			assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	}
	assert_int_equal(sl_device_ring_ledger(&rig.ring).good, BUFFERS + 5);
	assert_closes(&rig, BUFFERS + 5);
	rig_close(&rig);
}

static void test_all_that_was_there_when_the_kernel_was_stopped_is_answered(void **arg)
{
	on_all(end_in_the_second_round);
}

/* The host takes no completion, until all buffers are full; and some only after the end. */
static void test_a_full_ring_of_results_ends_with_a_closed_ledger(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++) {
		struct sl_device_ring_terms terms = terms_of(place);
		struct sl_device_ring_work work = weigh(place);
		struct rig rig;

		rig_open(&rig, &sl_platform_threads, &terms, &work);
		for (uint64_t n = 0; n < BUFFERS; n++) {
			assert_true(sl_device_ring_may_write(&rig.ring, n));
			publish(&rig, n);
		}
		assert_false(sl_device_ring_may_write(&rig.ring, BUFFERS));
		assert_int_equal(sl_device_ring_end(&rig.ring), 0);
		assert_int_equal(sl_device_ring_ledger(&rig.ring).unanswered, BUFFERS);
		for (uint64_t n = 0; n < BUFFERS - 3; n++)
			take_good(&rig, n);
		assert_int_equal(sl_device_ring_ledger(&rig.ring).good, BUFFERS - 3);
		assert_int_equal(sl_device_ring_ledger(&rig.ring).unanswered, 3);
		assert_closes(&rig, BUFFERS);
		rig_close(&rig);
	}
}

/* ---- what does not begin ---- */

static struct sl_platform faulty;
static bool is_launched;

static int launch_none(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		       const struct sl_device_range *range,
		       const struct sl_device_argument *argument, unsigned arguments)
{
	return -EIO;
}

static int launch_and_tell(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
			   const struct sl_device_range *range,
			   const struct sl_device_argument *argument, unsigned arguments)
{
	is_launched = true;
	return sl_platform_threads.launch(queue, kernel, range, argument, arguments);
}

/* The first one after the launch fails: the kernel polls, and open() says that it does not. */
static int flush_but_the_launch(struct sl_device_queue *queue)
{
	int err = is_launched ? -EIO : sl_platform_threads.flush(queue);

	is_launched = false;
	return err;
}

static void open_half(void)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);
	struct sl_device_ring_work work = weigh(PINNED);
	struct sl_device *device;
	struct sl_device_ring ring;

	assert_int_equal(sl_platform_threads.open(0, &device), 0);
	device->platform = &faulty;
	capture_begin();
	assert_int_equal(sl_device_ring_open(&ring, device, &terms, &work), -EIO);
	assert_non_null(strstr(capture_end(), "cannot be opened"));
	assert_false(ring.running);
	sl_device_ring_close(&ring);
	assert_null(ring.data.host);
	sl_platform_threads.close(device);
}

static void test_a_ring_that_opens_half_is_closed(void **arg)
{
	faulty = sl_platform_threads;
	faulty.launch = launch_none;
	open_half();
	faulty.launch = launch_and_tell;
	faulty.flush = flush_but_the_launch;
	open_half();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds_of_buffers_give_the_same),
		cmocka_unit_test(test_a_source_that_vanishes_leaves_a_closed_ledger),
		cmocka_unit_test(test_all_that_was_there_when_the_kernel_was_stopped_is_answered),
		cmocka_unit_test(test_a_full_ring_of_results_ends_with_a_closed_ledger),
		cmocka_unit_test(test_a_ring_that_opens_half_is_closed),
	};

	return cmocka_run_group_tests_name("device_ring_kernel", tests, NULL, NULL);
}
