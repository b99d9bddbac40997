/* ledger_test.c - sums and closing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/outcome.h>

static void an_empty_ledger_is_closed(void **state)
{
	struct sl_ledger ledger;

	assert_int_equal(sl_ledger_init(&ledger, 2), 0);
	assert_true(sl_ledger_closed(&ledger));
	sl_ledger_fini(&ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_ledger_is_closed),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
