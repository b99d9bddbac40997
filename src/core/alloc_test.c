/* alloc_test.c - rings, regions and ledgers of which an allocation fails: the error is returned,
 * nothing is left behind, and the owner may take them down once more. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ledger.h"
#include "core/region.h"
#include "core/ring.h"
#include "lib/failing_alloc.h"

static int make_ring(void *arg)
{
	struct sl_region region = {.bytes = UINT64_MAX};
	struct sl_ring ring;
	int r = sl_ring_init(&ring, &region, NULL, 4, 3, 1000);

	sl_ring_fini(&ring);
	return r;
}

static int make_region(void *arg)
{
	struct sl_region region = {.fd = -1};
	int r = sl_region_open(*(enum sl_region_kind *)arg, 4096, &region);

	assert_int_equal(region.base != NULL, !r);
	sl_region_close(&region);
	return r;
}

static int make_ledger(void *arg)
{
	struct sl_ledger ledger;
	int r = sl_ledger_init(&ledger, 3);

	sl_ledger_fini(&ledger);
	return r;
}

static void a_ring_without_memory_is_none(void **state)
{
	assert_int_equal(alloc_fail_each(make_ring, NULL), 3);
}

static void a_region_without_memory_is_none(void **state)
{
	enum sl_region_kind kind[] = {SL_REGION_HOST, SL_REGION_SHARED};

	assert_int_equal(alloc_fail_each(make_region, &kind[0]), 1);
	assert_int_equal(alloc_fail_each(make_region, &kind[1]), 1);
}

static void a_ledger_without_memory_is_none(void **state)
{
	assert_int_equal(alloc_fail_each(make_ledger, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_without_memory_is_none),
		cmocka_unit_test(a_region_without_memory_is_none),
		cmocka_unit_test(a_ledger_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
