/* metadata_test.c - a table of short texts: set, changed, removed, and its bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/metadata/metadata.h"

static struct sl_metadata table;

static int setup(void **state)
{
	memset(&table, 0, sizeof(table));
	return 0;
}

static void keys_are_set_changed_and_removed(void **state)
{
	assert_null(sl_metadata_get(&table, "a"));
	assert_int_equal(sl_metadata_set(&table, "a", "1"), 0);
	assert_int_equal(sl_metadata_set(&table, "b", "2"), 0);
	assert_int_equal(sl_metadata_set(&table, "c", ""), 0);
	assert_int_equal(sl_metadata_set(&table, "a", "3"), 0);
	assert_int_equal(table.n, 3);
	assert_string_equal(sl_metadata_get(&table, "a"), "3");
	assert_string_equal(sl_metadata_get(&table, "c"), "");
	assert_int_equal(sl_metadata_set(&table, "b", NULL), 0);
	assert_int_equal(sl_metadata_set(&table, "none", NULL), 0);
	assert_int_equal(table.n, 2);
	assert_null(sl_metadata_get(&table, "b"));
	assert_string_equal(table.entry[1].key, "c");
}

static void what_does_not_fit_is_refused(void **state)
{
	static const char *const bad[] = {"", ".a", "a b", "a/b", "a\n", "\xc3\xa4"};
	char key[80], value[SL_METADATA_VALUE + 1];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sl_metadata_set(&table, bad[i], "x"), -EINVAL);
	memset(key, 'k', sizeof(key));
	key[64] = 0;
	assert_int_equal(sl_metadata_set(&table, key, "x"), -EINVAL);
	key[63] = 0;
	assert_int_equal(sl_metadata_set(&table, key, "x"), 0);
	memset(value, 'v', sizeof(value));
	value[SL_METADATA_VALUE] = 0;
	assert_int_equal(sl_metadata_set(&table, "long", value), -EMSGSIZE);
	value[SL_METADATA_VALUE - 1] = 0;
	assert_int_equal(sl_metadata_set(&table, "long", value), 0);
	for (int i = 2; i < SL_METADATA_KEYS; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_int_equal(sl_metadata_set(&table, key, "x"), 0);
	}
	assert_int_equal(sl_metadata_set(&table, "more", "x"), -E2BIG);
	assert_int_equal(sl_metadata_set(&table, "key2", "y"), 0);
	assert_int_equal(sl_metadata_set(&table, "key2", NULL), 0);
	assert_int_equal(sl_metadata_set(&table, "more", "x"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keys_are_set_changed_and_removed, setup),
		cmocka_unit_test_setup(what_does_not_fit_is_refused, setup),
	};

	return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
