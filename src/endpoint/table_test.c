/* table_test.c - numbers found again, whatever was removed between. */
#include "endpoint/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static int values[1000];

static void test_find(void **state)
{
	struct sl_table table;

	assert_int_equal(sl_table_init(&table, 3), 0);
	assert_null(sl_table_find(&table, 7));
	assert_int_equal(sl_table_add(&table, 7, &values[0]), 0);
	assert_int_equal(sl_table_add(&table, 7, &values[1]), -EEXIST);
	assert_int_equal(sl_table_add(&table, 15, &values[1]), 0);
	assert_int_equal(sl_table_add(&table, 0, &values[2]), 0);
	assert_int_equal(sl_table_add(&table, 9, &values[3]), -ENOSPC);
	assert_ptr_equal(sl_table_find(&table, 7), &values[0]);
	assert_ptr_equal(sl_table_find(&table, 15), &values[1]);
	assert_ptr_equal(sl_table_find(&table, 0), &values[2]);
	assert_null(sl_table_find(&table, 23));
	assert_null(sl_table_remove(&table, 23));
	assert_ptr_equal(sl_table_remove(&table, 7), &values[0]);
	assert_null(sl_table_find(&table, 7));
	assert_ptr_equal(sl_table_find(&table, 15), &values[1]);
	sl_table_fini(&table);
}

/* Against a plain array; numbers that collide a lot. */
static void test_churn(void **state)
{
	bool there[1000] = {false};
	struct sl_table table;
	unsigned used = 0;

	srand(1);
	assert_int_equal(sl_table_init(&table, 60), 0);
	for (int step = 0; step < 20000; step++) {
		uint32_t n = (uint32_t)rand() % 1000, number = n * 16;

		if (there[n]) {
			assert_ptr_equal(sl_table_remove(&table, number), &values[n]);
			used--;
		} else if (used == 60) {
			assert_int_equal(sl_table_add(&table, number, &values[n]), -ENOSPC);
			continue;
		} else {
			assert_int_equal(sl_table_add(&table, number, &values[n]), 0);
			used++;
		}
		there[n] = !there[n];
		for (uint32_t k = 0; k < 1000; k += 1 + (uint32_t)rand() % 50)
			assert_ptr_equal(sl_table_find(&table, k * 16),
					 there[k] ? &values[k] : NULL);
	}
	sl_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_churn),
	};

	return cmocka_run_group_tests_name("endpoint_table", tests, NULL, NULL);
}
