/* psn_test.c - 24-bit arithmetic around its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/psn.h"

static void add_wraps_at_24_bits(void **state)
{
	assert_int_equal(sl_roce_psn_add(0, 1), 1);
	assert_int_equal(sl_roce_psn_add(0xffffff, 1), 0);
	assert_int_equal(sl_roce_psn_add(0xfffffe, 5), 3);
	assert_int_equal(sl_roce_psn_add(0x123456, 0x1000000), 0x123456);
}

static void diff_is_signed(void **state)
{
	assert_int_equal(sl_roce_psn_diff(5, 5), 0);
	assert_int_equal(sl_roce_psn_diff(7, 5), 2);
	assert_int_equal(sl_roce_psn_diff(5, 7), -2);
}

static void diff_across_the_wrap(void **state)
{
	assert_int_equal(sl_roce_psn_diff(2, 0xfffffe), 4);
	assert_int_equal(sl_roce_psn_diff(0xfffffe, 2), -4);
}

static void diff_at_half_the_range(void **state)
{
	assert_int_equal(sl_roce_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(sl_roce_psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(sl_roce_psn_diff(0, 0x800000), -0x800000);
}

static void compare_orders(void **state)
{
	assert_true(sl_roce_psn_compare(0xffffff, 0) < 0);
	assert_true(sl_roce_psn_compare(0, 0xffffff) > 0);
	assert_true(sl_roce_psn_compare(9, 9) == 0);
	assert_true(sl_roce_psn_compare(0x400000, 0xc00001) > 0);
}

static void diff_undoes_add(void **state)
{
	for (uint32_t psn = 0xfff000; psn != 0x1000; psn = sl_roce_psn_add(psn, 1)) {
		assert_int_equal(sl_roce_psn_diff(sl_roce_psn_add(psn, 12345), psn), 12345);
		assert_int_equal(sl_roce_psn_compare(sl_roce_psn_add(psn, 1), psn), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_wraps_at_24_bits), cmocka_unit_test(diff_is_signed),
		cmocka_unit_test(diff_across_the_wrap), cmocka_unit_test(diff_at_half_the_range),
		cmocka_unit_test(compare_orders),	cmocka_unit_test(diff_undoes_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
