/* wire_test.c - messages as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/wire.h"

static void types_have_names(void **state)
{
	assert_string_equal(sl_wire_name(SL_WIRE_HELLO), "HELLO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_have_names),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
