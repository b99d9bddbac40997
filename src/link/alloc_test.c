/* alloc_test.c - what links keep of a module, when an allocation fails: the error is returned,
 * nothing is left behind, and the owner may take it down once more. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/failing_alloc.h"
#include "link/native/native.h"
#include "link/native/place.h"
#include "link/place.h"
#include "link/udp/udp.h"

enum { SLOTS = 4, PIXELS = 1000 };

static struct sl_region region = {.bytes = UINT64_MAX};
static struct sl_ring ring;
static struct sl_link_counters counters;
static const struct sl_plan plan = {
	.pmtu = 256, .packets = 5, .slots = SLOTS, .block_bytes = PIXELS + SL_RECORD_BYTES};

static int make_placer(void *arg)
{
	struct sl_placer placer;
	int r = sl_placer_init(&placer, &ring, &counters, &plan, 0);

	sl_placer_fini(&placer);
	return r;
}

static int make_native_placer(void *arg)
{
	struct sl_native_shape shape = {.packets = 5};
	struct sl_native_numbers numbers = {.bits = 64, .step = 1};
	struct sl_native_placer placer;
	int r = sl_native_placer_init(&placer, &ring, &counters, &plan, &shape, &numbers);

	sl_native_placer_fini(&placer);
	return r;
}

static int make_udp_reorder(void *arg)
{
	static struct sl_udp udp = {.env.hold = 3};
	static struct sl_udp_source source;
	int r = sl_udp_reorder_open(&udp, &source);

	free(source.held);
	source.held = NULL;
	return r;
}

static int make_native_reorder(void *arg)
{
	static struct sl_native native = {.env.hold = 3};
	static struct sl_native_source source;
	int r = sl_native_reorder_open(&native, &source);

	free(source.held);
	source.held = NULL;
	return r;
}

static void a_placer_without_memory_is_none(void **state)
{
	assert_int_equal(alloc_fail_each(make_placer, NULL), 2);
	assert_int_equal(alloc_fail_each(make_native_placer, NULL), 2);
}

static void packets_that_there_is_no_room_to_hold_back_are_an_error(void **state)
{
	assert_int_equal(alloc_fail_each(make_udp_reorder, NULL), 1);
	assert_int_equal(alloc_fail_each(make_native_reorder, NULL), 1);
}

static int setup(void **state)
{
	return sl_ring_init(&ring, &region, NULL, SLOTS, 1, PIXELS);
}

static int teardown(void **state)
{
	sl_ring_fini(&ring);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_placer_without_memory_is_none),
		cmocka_unit_test(packets_that_there_is_no_room_to_hold_back_are_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
