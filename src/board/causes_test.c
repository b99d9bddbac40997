/* causes_test.c - every cause of an outcome has words; those that are told are the ones that
 * occurred. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "board/causes.h"

static void every_cause_has_words(void **state)
{
	for (unsigned i = SL_CAUSE_NONE; i < SL_CAUSES; i++) {
		assert_non_null(sl_cause_words[i].words);
		assert_true(strlen(sl_cause_words[i].words) > 10);
		assert_non_null(sl_cause_words[i].hint);
	}
	/* What is no loss needs no advice, all else does. */
	for (unsigned i = SL_CAUSE_DAMAGED; i < SL_CAUSES; i++)
		assert_true(sl_cause_words[i].hint[0]);
	assert_string_equal(sl_cause_words[SL_CAUSE_STAGE].hint, "");
}

static void causes_that_occurred_are_told(void **state)
{
	json_t *ledger = json_pack("{s:{s:{s:i, s:i, s:i}}}", "total", "causes", "dark", 20, "late",
				   0, "no_arrival", 3);
	json_t *words = sl_causes_words(ledger);

	assert_int_equal(json_array_size(words), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(words, 0), "cause")),
			    "dark");
	assert_string_equal(json_string_value(json_object_get(json_array_get(words, 1), "cause")),
			    "no_arrival");
	assert_string_equal(json_string_value(json_object_get(json_array_get(words, 1), "hint")),
			    sl_cause_words[SL_CAUSE_NO_ARRIVAL].hint);
	json_decref(words);
	json_decref(ledger);
	words = sl_causes_words(NULL);
	assert_int_equal(json_array_size(words), 0);
	json_decref(words);
}

static void all_causes_can_be_asked_for(void **state)
{
	json_t *all = sl_causes_all();

	assert_int_equal(json_array_size(all), SL_CAUSES - 1);
	for (unsigned i = SL_CAUSE_NONE + 1; i < SL_CAUSES; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(all, i - 1), "cause")),
			sl_cause_name((enum sl_cause)i));
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_has_words),
		cmocka_unit_test(causes_that_occurred_are_told),
		cmocka_unit_test(all_causes_can_be_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
