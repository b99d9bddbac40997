/* numa_test.c - the kernel takes our wish and shows where a page lies; another wish stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "core/numa.h"
#include "core/region.h"

static struct sl_cpus cpus;

/* Kernels without NUMA, and containers, say no. */
static void prefer(int node)
{
	int err = sl_numa_prefer(node);

	if (err == -ENOSYS || err == -EPERM) {
		print_message("memory policies cannot be set here: error %d\n", err);
		skip();
	}
	assert_int_equal(err, 0);
}

static void a_page_comes_from_the_preferred_node(void **state)
{
	struct sl_region r;

	for (int node = 0; node < (int)cpus.nodes; node++) {
		prefer(node);
		assert_int_equal(sl_region_open(SL_REGION_HOST, 4 << 20, &r), 0);
		sl_numa_forget();
		assert_int_equal(sl_numa_of(r.base), node);
		assert_int_equal(sl_numa_of((const char *)r.base + r.bytes - 1), node);
		sl_region_close(&r);
		prefer(node);
		assert_int_equal(sl_region_open(SL_REGION_SHARED, 4 << 20, &r), 0);
		sl_numa_forget();
		assert_int_equal(sl_numa_of(r.base), node);
		sl_region_close(&r);
	}
}

static void a_policy_that_is_there_stays(void **state)
{
	prefer(0);
	assert_int_equal(sl_numa_prefer(0), -EBUSY);
	sl_numa_forget();
	prefer(0);
	sl_numa_forget();
}

static void nodes_that_are_not_there_are_refused(void **state)
{
	assert_int_equal(sl_numa_prefer(-1), -EINVAL);
	assert_int_equal(sl_numa_prefer(1 << 20), -EINVAL);
	assert_true(sl_numa_prefer(1000) < 0);
	prefer(0); /* nothing was left behind */
	sl_numa_forget();
}

static void an_address_without_memory_has_no_node(void **state)
{
	assert_int_equal(sl_numa_of(NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_comes_from_the_preferred_node),
		cmocka_unit_test(a_policy_that_is_there_stays),
		cmocka_unit_test(nodes_that_are_not_there_are_refused),
		cmocka_unit_test(an_address_without_memory_has_no_node),
	};

	sl_cpus_read("", &cpus);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
