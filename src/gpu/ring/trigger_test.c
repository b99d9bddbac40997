/* trigger_test.c - events through a ring by all triggers, in all kinds of buffers: on platform
 * `threads` anywhere, on CUDA where there is a GPU; and loops that the device cannot play. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/gpuring_rig.h"

/* Threads whose loops the host plays. */
static struct sl_platform loopless;

static int refuse_loop(struct sl_device_queue *queue, const struct sl_device_memory *stop,
		       struct sl_device_record **record)
{
	struct sl_device_record *lost;

	assert_int_equal(sl_platform_threads.record_end(queue, &lost), 0);
	sl_platform_threads.record_close(lost);
	return -ENOTSUP;
}

static int make_loopless(void **arg)
{
	loopless = sl_platform_threads;
	loopless.record_end_looped = refuse_loop;
	return 0;
}

/* ---- all is well ---- */

static void *source(void *arg)
{
	struct rig *rig = arg;

	for (uint64_t n = 0; n < EVENTS; n++) {
		while (!sl_gpuring_may_write(&rig->ring, n))
			sched_yield();
		publish(rig, n);
	}
	return NULL;
}

static void run_events(const struct sl_platform *platform, enum sl_gpuring_trigger trigger,
		       enum place place)
{
	struct sl_gpuring_terms terms = terms_of(trigger, place);
	struct sl_gpuring_work work = weigh(place);
	struct sl_gpuring_ledger l;
	struct rig rig;
	pthread_t thread;

	rig_open(&rig, platform, &terms, &work);
	assert_int_equal(rig.ring.host_plays, platform == &loopless);
	assert_int_equal(pthread_create(&thread, NULL, source, &rig), 0);
	for (uint64_t n = 0; n < EVENTS; n++)
		take_good(&rig, n);
	pthread_join(thread, NULL);
	assert_int_equal(sl_gpuring_end(&rig.ring), 0);
	l = sl_gpuring_ledger(&rig.ring);
	assert_int_equal(l.good, EVENTS);
	assert_true(l.kept > EVENTS / 4 && l.kept < EVENTS * 3 / 4);
	assert_closes(&rig, EVENTS);
	rig_close(&rig);
}

static void test_all_triggers_give_the_same_in_all_kinds_of_buffers(void **arg)
{
	static const struct sl_platform *const platforms[] = {&sl_platform_threads, &loopless,
							      &sl_platform_cuda};

	for (unsigned p = 0; p < 3; p++) {
		if (platforms[p]->unavailable()) {
			print_message("skipped: %s: %s\n", platforms[p]->name,
				      platforms[p]->unavailable());
			continue;
		}
		for (unsigned t = 0; t < SL_TRIGGERS; t++)
			for (unsigned place = 0; place < PLACES; place++)
				if (platforms[p] != &loopless || t == SL_TRIGGER_LOOP)
					run_events(platforms[p], t, place);
	}
}

/* ---- what ends too soon ---- */

static void test_a_source_that_vanishes_leaves_a_closed_ledger(void **arg)
{
	for (unsigned t = 0; t < SL_TRIGGERS; t++)
		for (unsigned place = 0; place < PLACES; place++) {
			struct sl_gpuring_terms terms = terms_of(t, place);
			struct sl_gpuring_work work = weigh(place);
			struct rig rig;

			rig_open(&rig, &sl_platform_threads, &terms, &work);
			for (uint64_t n = 0; n < 3; n++)
				publish(&rig, n);
			/* Half of an event, and no word of it. */
			if (place == PINNED)
				memset((char *)rig.ring.data.host + 3 * EVENT, 1, EVENT / 2);
			assert_int_equal(sl_gpuring_end(&rig.ring), 0);
			for (uint64_t n = 0; n < 3; n++)
				take_good(&rig, n);
			assert_int_equal(sl_gpuring_ledger(&rig.ring).good, 3);
			assert_closes(&rig, 3);
			rig_close(&rig);
		}
}

/* Events of two rounds of a loop are there when the host says stop; the second has not begun. */
static void end_between_rounds(const struct sl_platform *platform, enum place place)
{
	struct sl_gpuring_terms terms = terms_of(SL_TRIGGER_LOOP, place);
	struct sl_gpuring_work work = weigh(place);
	struct rig rig;

	rig_open(&rig, platform, &terms, &work);
	for (uint64_t n = 0; n < BUFFERS; n++)
		publish(&rig, n);
	for (uint64_t n = 0; n < BUFFERS + 5; n++) {
		take_good(&rig, n);
		if (n < 5)
			publish(&rig, BUFFERS + n);
		if (n == 4)
			assert_int_equal(sl_gpuring_end(&rig.ring), 0);
	}
	assert_int_equal(sl_gpuring_ledger(&rig.ring).good, BUFFERS + 5);
	assert_closes(&rig, BUFFERS + 5);
	rig_close(&rig);
}

static void test_a_loop_answers_all_that_was_there_when_it_was_stopped(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++) {
		end_between_rounds(&sl_platform_threads, place);
		end_between_rounds(&loopless, place);
		if (!sl_platform_cuda.unavailable())
			end_between_rounds(&sl_platform_cuda, place);
	}
}

/* The host takes no record, until all buffers are full; and some only after the end. */
static void test_a_full_ring_of_results_ends_with_a_closed_ledger(void **arg)
{
	for (unsigned t = 0; t < SL_TRIGGERS; t++)
		for (unsigned place = 0; place < PLACES; place++) {
			struct sl_gpuring_terms terms = terms_of(t, place);
			struct sl_gpuring_work work = weigh(place);
			struct rig rig;

			rig_open(&rig, &sl_platform_threads, &terms, &work);
			for (uint64_t n = 0; n < BUFFERS; n++) {
				assert_true(sl_gpuring_may_write(&rig.ring, n));
				publish(&rig, n);
			}
			assert_false(sl_gpuring_may_write(&rig.ring, BUFFERS));
			assert_int_equal(sl_gpuring_end(&rig.ring), 0);
			assert_int_equal(sl_gpuring_ledger(&rig.ring).unanswered, BUFFERS);
			for (uint64_t n = 0; n < BUFFERS - 3; n++)
				take_good(&rig, n);
			assert_int_equal(sl_gpuring_ledger(&rig.ring).good, BUFFERS - 3);
			assert_int_equal(sl_gpuring_ledger(&rig.ring).unanswered, 3);
			assert_closes(&rig, BUFFERS);
			rig_close(&rig);
		}
}

static struct sl_platform faulty;
static int launches;

static int launch_some(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		       const struct sl_device_range *range,
		       const struct sl_device_argument *argument, unsigned arguments)
{
	return launches-- > 0
		       ? sl_platform_threads.launch(queue, kernel, range, argument, arguments)
		       : -EIO;
}

static void test_a_ring_that_opens_half_is_closed(void **arg)
{
	for (unsigned t = SL_TRIGGER_GRAPH; t < SL_TRIGGERS; t++)
		for (int some = 0; some < 3; some += 2) {
			struct sl_gpuring_terms terms = terms_of(t, PINNED);
			struct sl_gpuring_work work = weigh(PINNED);
			struct sl_device *device;
			struct sl_gpuring ring;

			if (t == SL_TRIGGER_PERSISTENT && some)
				continue; /* it launches once */
			assert_int_equal(sl_platform_threads.open(0, &device), 0);
			faulty = sl_platform_threads;
			faulty.launch = launch_some;
			device->platform = &faulty;
			launches = some;
			capture_begin();
			assert_int_equal(sl_gpuring_open(&ring, device, &terms, &work), -EIO);
			assert_non_null(strstr(capture_end(), "cannot be opened"));
			sl_gpuring_close(&ring);
			sl_platform_threads.close(device);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_triggers_give_the_same_in_all_kinds_of_buffers),
		cmocka_unit_test(test_a_source_that_vanishes_leaves_a_closed_ledger),
		cmocka_unit_test(test_a_loop_answers_all_that_was_there_when_it_was_stopped),
		cmocka_unit_test(test_a_full_ring_of_results_ends_with_a_closed_ledger),
		cmocka_unit_test(test_a_ring_that_opens_half_is_closed),
	};

	return cmocka_run_group_tests_name("trigger", tests, make_loopless, NULL);
}
