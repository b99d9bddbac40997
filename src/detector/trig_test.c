/* trig_test.c - the series agree with the mathematical library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "detector/trig.h"

static void test_cosine_and_sine(void **arg)
{
	for (int i = -4000; i <= 4000; i++) {
		double turns = i / 1000. + 1e-5 * i, c, s;

		sl_cos_sin(turns, &c, &s);
		assert_true(fabs(c - cos(2 * M_PI * turns)) < 1e-13);
		assert_true(fabs(s - sin(2 * M_PI * turns)) < 1e-13);
		assert_true(fabs(c * c + s * s - 1) < 1e-15);
	}
}

static void test_arc_sine(void **arg)
{
	for (int i = -800; i <= 800; i++)
		assert_true(fabs(sl_asin(i / 1000.) - asin(i / 1000.)) < 1e-15);
}

static void test_hyperbolic_sine(void **arg)
{
	for (int i = -300; i <= 300; i++)
		assert_true(fabs(sl_sinh(i / 100.) - sinh(i / 100.)) < 1e-13 * cosh(i / 100.));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cosine_and_sine),
		cmocka_unit_test(test_arc_sine),
		cmocka_unit_test(test_hyperbolic_sine),
	};

	return cmocka_run_group_tests_name("trig", tests, NULL, NULL);
}
