/* ring_test.c - a ring that a device polls, with sources, kernels and hosts that misbehave, or
 * another device that writes. On platform `threads`. That all is well is in kernel_test.c. */
#include "gpu/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/device_ring_rig.h"

/* ---- another device writes ---- */

/* As an RDMA device does: it knows the memory's file and where the enable words are, no more. */
static void write_from_afar(struct rig *rig, uint64_t n, char *data, char *meta)
{
	uint32_t b = (uint32_t)(n % BUFFERS), *word = (uint32_t *)(void *)(meta + 16 * (size_t)b);

	while (!sl_device_ring_may_write(&rig->ring, n))
		sched_yield();
	memcpy(data + (size_t)b * rig->ring.buffer_bytes, rig->event[n], bytes_of(n));
	__atomic_store_n(&word[0], bytes_of(n), __ATOMIC_RELAXED);
	__atomic_store_n(&word[3], (uint32_t)(n + 1), __ATOMIC_RELEASE);
}

static void run_remote(bool is_told)
{
	struct sl_device_ring_terms terms = terms_of(ON_DEVICE);
	struct sl_device_ring_work work = weigh(ON_DEVICE);
	char *data, *meta;
	struct rig rig;
	int fd[2];

	terms.remote = true;
	rig_open(&rig, &sl_platform_threads, &terms, &work);
	assert_int_equal(sl_device_ring_share(&rig.ring, &fd[0], &fd[1]), 0);
	data = mmap(NULL, rig.ring.data.bytes, PROT_WRITE, MAP_SHARED, fd[0], 0);
	meta = mmap(NULL, rig.ring.meta.bytes, PROT_WRITE, MAP_SHARED, fd[1], 0);
	assert_true(data != MAP_FAILED && meta != MAP_FAILED);
	for (uint64_t n = 0; n < 3 * BUFFERS; n++) {
		write_from_afar(&rig, n, data, meta);
		if (is_told)
			assert_int_equal(sl_device_ring_arrived(&rig.ring, n), 0);
		take_good(&rig, n);
	}
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_int_equal(sl_device_ring_arrived(&rig.ring, 3 * BUFFERS), -ESHUTDOWN);
	assert_closes(&rig, 3 * BUFFERS);
	munmap(data, rig.ring.data.bytes);
	munmap(meta, rig.ring.meta.bytes);
	close(fd[0]);
	close(fd[1]);
	rig_close(&rig);
}

static void test_another_device_writes_through_the_memory_that_it_was_given(void **arg)
{
	run_remote(false);
	run_remote(true);
}

/* Why no ring on a GPU of this host can have another device as its source; NULL: one can. */
static const char *no_remote_writes(void)
{
	struct sl_device_info info;
	struct sl_device *device;

	if (sl_platform_cuda.unavailable())
		return sl_platform_cuda.unavailable();
	assert_int_equal(sl_platform_cuda.open(0, &device), 0);
	sl_platform_cuda.describe(device, &info);
	sl_platform_cuda.close(device);
	return info.sees_remote_writes ? NULL
				       : "kernels of this GPU do not see remote writes in order";
}

/* Nothing here could write by it: that it is given is all that is shown. */
static void test_memory_of_a_gpu_is_shared_as_a_dma_buf(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(ON_DEVICE);
	struct sl_device_ring_work work = weigh(ON_DEVICE);
	const char *why = no_remote_writes();
	int fd[2], err;
	struct rig rig;

	if (why) {
		print_message("# skip: %s\n", why);
		skip();
	}
	terms.remote = true;
	rig_open(&rig, &sl_platform_cuda, &terms, &work);
	err = sl_device_ring_share(&rig.ring, &fd[0], &fd[1]);
	if (err == -ENOTSUP) {
		print_message("skipped: %s\n", sl_platform_cuda.problem(rig.device));
	} else {
		assert_int_equal(err, 0);
		assert_true(fcntl(fd[0], F_GETFD) >= 0 && fcntl(fd[1], F_GETFD) >= 0);
		close(fd[0]);
		close(fd[1]);
	}
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	rig_close(&rig);
}

/* ---- somebody misbehaves ---- */

static void test_a_slow_host_holds_the_source_and_loses_nothing(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);
	struct sl_device_ring_work work = weigh(PINNED);
	struct rig rig;

	rig_open(&rig, &sl_platform_threads, &terms, &work);
	for (uint64_t n = 0; n < BUFFERS; n++) {
		assert_true(sl_device_ring_may_write(&rig.ring, n));
		publish(&rig, n);
	}
	assert_false(sl_device_ring_may_write(&rig.ring, BUFFERS));
	for (uint64_t n = 0; n < BUFFERS; n++) {
		struct sl_device_ring_completion completion = take(&rig);

		assert_false(sl_device_ring_may_write(&rig.ring, BUFFERS + n));
		check_good(&rig, &completion, n);
		assert_int_equal(sl_device_ring_release(&rig.ring), 0);
		assert_true(sl_device_ring_may_write(&rig.ring, BUFFERS + n));
	}
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_closes(&rig, BUFFERS);
	rig_close(&rig);
}

/* A source that does not ask writes event 8 into the buffer of event 0, before that one came. */
static void lap(enum place place)
{
	struct sl_device_ring_terms terms = terms_of(place);
	struct sl_device_ring_work work = weigh(place);
	struct sl_device_ring_completion completion;
	struct rig rig;

	rig_open(&rig, &sl_platform_threads, &terms, &work);
	assert_false(sl_device_ring_may_write(&rig.ring, BUFFERS));
	publish(&rig, BUFFERS);
	completion = take(&rig);
	assert_int_equal(completion.event, 0);
	assert_int_equal(completion.outcome, SL_DEVICE_RING_LAPPED);
	assert_false(completion.keep);
	assert_int_equal(sl_device_ring_release(&rig.ring), 0);
	for (uint64_t n = 1; n <= BUFFERS; n++) {
		if (n < BUFFERS)
			publish(&rig, n);
		take_good(&rig, n);
	}
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_int_equal(sl_device_ring_ledger(&rig.ring).lapped, 1);
	assert_closes(&rig, BUFFERS + 1);
	rig_close(&rig);
}

static void test_a_lapped_event_is_never_good(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++)
		lap(place);
}

/* The same when the older event was answered, and the host has not taken that yet. */
static void lap_answered(enum place place)
{
	struct sl_device_ring_terms terms = terms_of(place);
	struct sl_device_ring_work work = weigh(place);
	const _Atomic uint32_t *word;
	struct rig rig;

	rig_open(&rig, &sl_platform_threads, &terms, &work);
	publish(&rig, 0);
	word = rig.ring.completion.host;
	while (atomic_load(&word[3]) != 1)
		sched_yield();
	publish(&rig, BUFFERS);
	for (uint64_t n = 1; n < BUFFERS; n++)
		publish(&rig, n);
	for (uint32_t n = 1; n < BUFFERS; n++)
		while (atomic_load(&word[4 * n + 3]) != n + 1)
			sched_yield();
	nanosleep(&(struct timespec){0, 20000000}, NULL); /* nothing holds event 8 but the host */
	for (uint64_t n = 0; n <= BUFFERS; n++)
		take_good(&rig, n);
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_closes(&rig, BUFFERS + 1);
	rig_close(&rig);
}

static void test_what_the_host_has_not_taken_is_not_overwritten(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++)
		lap_answered(place);
}

static void test_a_source_cannot_end_the_device(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);
	struct sl_device_ring_work work = weigh(PINNED);
	struct sl_device_ring_completion completion;
	_Atomic uint32_t *word;
	struct rig rig;

	rig_open(&rig, &sl_platform_threads, &terms, &work);
	word = rig.ring.meta.host;
	atomic_store(&word[1], SL_DEVICE_RING_END);
	atomic_store(&word[3], 1);
	completion = take(&rig);
	assert_int_equal(completion.outcome, SL_DEVICE_RING_WRONG);
	assert_int_equal(sl_device_ring_release(&rig.ring), 0);
	for (uint64_t n = 1; n < 9; n++) { /* all groups are still there */
		publish(&rig, n);
		take_good(&rig, n);
	}
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_int_equal(sl_device_ring_publish(&rig.ring, 9, rig.event[9], 16), -ESHUTDOWN);
	assert_closes(&rig, 9);
	rig_close(&rig);
}

static void test_an_event_that_does_not_fit_is_wrong(void **arg)
{
	for (unsigned place = 0; place < PLACES; place++) {
		struct sl_device_ring_terms terms = terms_of(place);
		struct sl_device_ring_work work = weigh(place);
		char *large = calloc(2, EVENT);
		struct sl_device_ring_completion completion;
		struct rig rig;

		assert_non_null(large);
		rig_open(&rig, &sl_platform_threads, &terms, &work);
		assert_int_equal(sl_device_ring_publish(&rig.ring, 0, large, 2 * EVENT), 0);
		completion = take(&rig);
		assert_int_equal(completion.outcome, SL_DEVICE_RING_WRONG);
		assert_int_equal(sl_device_ring_release(&rig.ring), 0);
		assert_int_equal(sl_device_ring_end(&rig.ring), 0);
		assert_int_equal(sl_device_ring_ledger(&rig.ring).wrong, 1);
		assert_closes(&rig, 1);
		rig_close(&rig);
		free(large);
	}
}

/* ---- kernels that do not do their work ---- */

static _Atomic bool let_it_end;

static void run_deaf(uint32_t group, uint32_t groups, void *const *argument)
{
	const _Atomic uint32_t *stop = *(_Atomic uint32_t **)argument[5];

	while (!atomic_load(stop))
		sched_yield();
}

static void run_stuck(uint32_t group, uint32_t groups, void *const *argument)
{
	while (!atomic_load(&let_it_end))
		sched_yield();
}

static const struct sl_kernel_function functions[] = {
	{"deaf", run_deaf}, {"stuck", run_stuck}, {NULL, NULL}};
static const struct sl_kernels bad = {.name = "bad", .function = functions};

static void test_a_kernel_that_does_not_answer_is_told_and_counted(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);
	struct sl_device_ring_work work = {.kernels = &bad, .kernel = "deaf"};
	struct sl_device_ring_completion completion;
	struct rig rig;
	int got;

	terms.timeout_ns = 200000000;
	rig_open(&rig, &sl_platform_threads, &terms, &work);
	publish(&rig, 0);
	publish(&rig, 1);
	while (!(got = sl_device_ring_take(&rig.ring, &completion)))
		sched_yield();
	assert_int_equal(got, -ETIMEDOUT);
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_int_equal(sl_device_ring_ledger(&rig.ring).unanswered, 2);
	assert_closes(&rig, 2);
	rig_close(&rig);
}

static void test_memory_of_a_kernel_that_does_not_end_is_left_alone(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);
	struct sl_device_ring_work work = {.kernels = &bad, .kernel = "stuck"};
	struct rig rig;

	terms.timeout_ns = 100000000;
	rig_open(&rig, &sl_platform_threads, &terms, &work);
	publish(&rig, 0);
	capture_begin();
	assert_int_equal(sl_device_ring_end(&rig.ring), -ETIMEDOUT);
	assert_non_null(strstr(capture_end(), "did not end its work"));
	sl_device_ring_close(&rig.ring);
	assert_non_null(rig.ring.data.host);
	atomic_store(&let_it_end, true);
	assert_int_equal(sl_device_ring_end(&rig.ring), 0);
	assert_closes(&rig, 1);
	rig_close(&rig);
}

/* ---- what cannot be ---- */

/* Threads that are a device whose kernels do not see in order what another device writes. */
static struct sl_platform blind;

static void describe_blind(struct sl_device *device, struct sl_device_info *info)
{
	sl_platform_threads.describe(device, info);
	info->sees_remote_writes = 0;
}

static void refused_on(const struct sl_platform *platform, struct sl_device_ring_terms terms,
		       const char *says)
{
	struct sl_device_ring_work work = weigh(PINNED);
	struct sl_device *device;
	struct sl_device_ring ring;

	assert_int_equal(sl_platform_threads.open(0, &device), 0);
	device->platform = platform;
	capture_begin();
	assert_int_equal(sl_device_ring_open(&ring, device, &terms, &work), -EINVAL);
	assert_non_null(strstr(capture_end(), says));
	sl_device_ring_close(&ring);
	sl_platform_threads.close(device);
}

static void refused(struct sl_device_ring_terms terms, const char *says)
{
	refused_on(&sl_platform_threads, terms, says);
}

static void test_impossible_terms_are_refused_with_a_reason(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(TAGGED);

	terms.buffers = 12;
	refused(terms, "power of two");
	terms.buffers = BUFFERS;
	terms.event_bytes = 13000;
	refused(terms, "at most 12276 bytes");
	terms.event_bytes = EVENT;
	terms.on_device = true;
	refused(terms, "in the host's memory");
	terms.on_device = false;
	terms.groups = BUFFERS + 1;
	refused(terms, "as many buffers as groups");
	terms.buffers = 128;
	terms.groups = 65;
	refused(terms, "the device has fewer");
	terms.buffers = BUFFERS;
	terms.groups = 1;
	terms.threads = 33;
	refused(terms, "multiples of 32");
	terms.threads = 32;
	terms.result_bytes = EVENT + 1;
	refused(terms, "not larger than an event");
}

static void test_another_device_is_refused_where_kernels_would_not_see_its_writes(void **arg)
{
	struct sl_device_ring_terms terms = terms_of(PINNED);

	blind = sl_platform_threads;
	blind.describe = describe_blind;
	terms.remote = true;
	refused(terms, "in this device's memory");
	terms.on_device = true;
	refused_on(&blind, terms, "do not see what others write");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_device_writes_through_the_memory_that_it_was_given),
		cmocka_unit_test(test_memory_of_a_gpu_is_shared_as_a_dma_buf),
		cmocka_unit_test(test_a_slow_host_holds_the_source_and_loses_nothing),
		cmocka_unit_test(test_a_lapped_event_is_never_good),
		cmocka_unit_test(test_what_the_host_has_not_taken_is_not_overwritten),
		cmocka_unit_test(test_a_source_cannot_end_the_device),
		cmocka_unit_test(test_an_event_that_does_not_fit_is_wrong),
		cmocka_unit_test(test_a_kernel_that_does_not_answer_is_told_and_counted),
		cmocka_unit_test(test_memory_of_a_kernel_that_does_not_end_is_left_alone),
		cmocka_unit_test(test_impossible_terms_are_refused_with_a_reason),
		cmocka_unit_test(
			test_another_device_is_refused_where_kernels_would_not_see_its_writes),
	};

	return cmocka_run_group_tests_name("device ring", tests, NULL, NULL);
}
