/* experiment_test.c - experiment files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/experiment.h"

static void a_missing_file_is_an_error(void **state)
{
	struct sl_experiment *e;

	assert_true(sl_experiment_open("no-such-file.yaml", NULL, 0, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_file_is_an_error),
	};

	return cmocka_run_group_tests_name("experiment", tests, NULL, NULL);
}
