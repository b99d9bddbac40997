/* descriptor_test.c - pieces of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/descriptor.h"

static void a_module_message_is_one_write(void **state)
{
	assert_int_equal(sl_descriptor_count(&(struct sl_plan){.message = SL_MESSAGE_MODULE, .packets = 9}), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_module_message_is_one_write),
	};

	return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
