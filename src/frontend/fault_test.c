/* fault_test.c - damage on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/fault.h"

static void fates_have_names(void **state)
{
	assert_string_equal(sl_fate_name(SL_FATE_DROP), "drop");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fates_have_names),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
