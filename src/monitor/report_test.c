/* report_test.c - the result of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/report.h"

static void results_have_names(void **state)
{
	assert_string_equal(sl_result_name(SL_RESULT_INTACT), "intact");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_have_names),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
