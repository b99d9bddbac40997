/* errors_test.c - the table of errors, and errors out of logged lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/errors.h"

static void every_code_has_a_word_and_a_sentence(void **state)
{
	for (unsigned i = 0; i < SL_ERRORS; i++) {
		assert_non_null(sl_error_name(i));
		assert_true(strlen(sl_error_doc(i)) > 10);
		assert_int_equal(sl_error_exit(i), i ? 1 : 0);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(sl_error_name(i), sl_error_name(k));
	}
	assert_string_equal(sl_error_name(SL_ERRORS), "unknown");
}

static void a_line_is_taken_apart(void **state)
{
	static const struct {
		const char *line, *where, *message, *hint;
	} rows[] = {
		{"run.yaml:12: veto.threshold: 40000 is out of range (1 to 32767)", "run.yaml:12",
		 "veto.threshold: 40000 is out of range (1 to 32767)", ""},
		{"/folder/b.yaml:3: no link is called 'x'; there are: udp, shm", "/folder/b.yaml:3",
		 "no link is called 'x'", "there are: udp, shm"},
		{"cannot listen on 127.0.0.1:4791: another receiver runs there; stop it", "",
		 "cannot listen on 127.0.0.1:4791: another receiver runs there", "stop it"},
		{"no memory", "", "no memory", ""},
		{"", "", "", ""},
		{"a:1:", "", "a:1:", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_error e = {.code = SL_ERROR_SYSTEM};

		sl_error_from_line(rows[i].line, &e);
		assert_string_equal(e.where, rows[i].where);
		assert_string_equal(e.message, rows[i].message);
		assert_string_equal(e.hint, rows[i].hint);
	}
}

static void long_lines_are_cut(void **state)
{
	static char line[3000];
	struct sl_error e = {.code = SL_ERROR_SYSTEM};

	memset(line, 'x', sizeof(line) - 1);
	sl_error_from_line(line, &e);
	assert_int_equal(strlen(e.message), sizeof(e.message) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_word_and_a_sentence),
		cmocka_unit_test(a_line_is_taken_apart),
		cmocka_unit_test(long_lines_are_cut),
	};

	return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
