/* server_test.c - the plan exchange. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/server.h"

static void an_address_that_is_none_is_refused(void **state)
{
	struct sl_server *server;

	assert_true(sl_server_open(&(struct sl_server_options){.address = "x", .token = ""}, NULL, NULL, &server) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_that_is_none_is_refused),
	};

	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
