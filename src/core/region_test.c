/* region_test.c - mappings are zeroed, sealed where shared, and refuse what could hurt later. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/region.h"

static void host_region_is_zeroed_and_writable(void **state)
{
	struct sl_region r;

	assert_int_equal(sl_region_open(SL_REGION_HOST, 100000, &r), 0);
	assert_true(r.bytes >= 100000);
	assert_int_equal((uintptr_t)r.base % (uintptr_t)getpagesize(), 0);
	for (size_t i = 0; i < r.bytes; i++)
		assert_int_equal(((uint8_t *)r.base)[i], 0);
	memset(r.base, 1, r.bytes);
	assert_int_equal(r.fd, -1);
	sl_region_close(&r);
	assert_null(r.base);
}

static void shared_region_is_seen_through_a_second_mapping(void **state)
{
	struct sl_region a, b;

	assert_int_equal(sl_region_open(SL_REGION_SHARED, 3 << 20, &a), 0);
	assert_int_equal(sl_region_map(dup(a.fd), 3 << 20, &b), 0);
	assert_ptr_not_equal(a.base, b.base);
	((uint8_t *)a.base)[12345] = 77;
	assert_int_equal(((uint8_t *)b.base)[12345], 77);
	sl_region_close(&b);
	sl_region_close(&a);
}

static void shared_region_cannot_be_shrunk(void **state)
{
	struct sl_region r;

	assert_int_equal(sl_region_open(SL_REGION_SHARED, 1 << 16, &r), 0);
	assert_int_equal(ftruncate(r.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	sl_region_close(&r);
}

static void an_unsealed_memfd_is_refused(void **state)
{
	struct sl_region r = {.fd = 42};
	int fd = memfd_create("t", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(sl_region_map(fd, 8192, &r), -EPERM);
	assert_int_equal(r.fd, 42); /* outputs are set only on success */
	close(fd);
}

static void a_memfd_that_is_too_small_is_refused(void **state)
{
	struct sl_region a, b;

	assert_int_equal(sl_region_open(SL_REGION_SHARED, 8192, &a), 0);
	assert_int_equal(sl_region_map(a.fd, a.bytes + 1, &b), -EINVAL);
	sl_region_close(&a);
}

static void something_that_is_no_memfd_is_refused(void **state)
{
	struct sl_region r;
	int fd = open("/dev/null", O_RDWR);

	assert_int_equal(sl_region_map(fd, 4096, &r), -EPERM);
	close(fd);
}

static void absurd_sizes_are_refused(void **state)
{
	struct sl_region r;

	assert_int_equal(sl_region_open(SL_REGION_HOST, 0, &r), -EINVAL);
	assert_int_equal(sl_region_open(SL_REGION_HOST, UINT64_MAX, &r), -EINVAL);
	assert_int_equal(sl_region_open(SL_REGION_DEVICE, 4096, &r),
			 -EINVAL); /* who has it fills it in */
	assert_int_equal(sl_region_open(SL_REGION_HOST, 1ull << 50, &r), -ENOMEM);
}

static void poison_leaves_no_zero(void **state)
{
	struct sl_region r;

	assert_int_equal(sl_region_open(SL_REGION_HOST, 4096, &r), 0);
	sl_region_poison(&r);
	assert_null(memchr(r.base, 0, r.bytes));
	sl_region_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_region_is_zeroed_and_writable),
		cmocka_unit_test(shared_region_is_seen_through_a_second_mapping),
		cmocka_unit_test(shared_region_cannot_be_shrunk),
		cmocka_unit_test(an_unsealed_memfd_is_refused),
		cmocka_unit_test(a_memfd_that_is_too_small_is_refused),
		cmocka_unit_test(something_that_is_no_memfd_is_refused),
		cmocka_unit_test(absurd_sizes_are_refused),
		cmocka_unit_test(poison_leaves_no_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
