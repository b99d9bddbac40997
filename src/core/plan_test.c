/* plan_test.c - address, PSN and position follow the sequence, over ring laps and the 24-bit
 * wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/plan.h"

static const struct sl_plan plan = {
	.pmtu = 4096,
	.first_psn = 0xfffffe,
	.slots = 5,
	.packets = 3,
	.base = 0x10000,
	.stride = 0x9000,
	.block_at = 0x4000,
	.block_bytes = 9000,
	.first_sequence = 0,
};

static void address_wraps_with_the_ring(void **state)
{
	assert_int_equal(sl_plan_address(&plan, 0, 0), 0x14000);
	assert_int_equal(sl_plan_address(&plan, 4, 8192), 0x14000 + 4 * 0x9000 + 8192);
	assert_int_equal(sl_plan_address(&plan, 5, 0), sl_plan_address(&plan, 0, 0));
}

static void psn_wraps_at_24_bits(void **state)
{
	assert_int_equal(sl_plan_psn(&plan, 0, 0), 0xfffffe);
	assert_int_equal(sl_plan_psn(&plan, 0, 4096), 0xffffff);
	assert_int_equal(sl_plan_psn(&plan, 0, 8192), 0);
	assert_int_equal(sl_plan_psn(&plan, 1, 0), 1);
	assert_int_equal(sl_plan_psn(&plan, 1ull << 40, 0),
			 (0xfffffe + 3 * (1ull << 40)) & 0xffffff);
}

static void a_late_start_counts_from_its_first_sequence(void **state)
{
	struct sl_plan late = plan;

	late.first_sequence = 100;
	assert_int_equal(sl_plan_psn(&late, 100, 0), 0xfffffe);
	assert_int_equal(sl_plan_position(&late, 100, 10), 10);
	assert_int_equal(sl_plan_position(&late, 102, 0), 18000);
	assert_int_equal(sl_plan_address(&late, 100, 0), 0x14000); /* slots do not care */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_wraps_with_the_ring),
		cmocka_unit_test(psn_wraps_at_24_bits),
		cmocka_unit_test(a_late_start_counts_from_its_first_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
