/* wire_test.c - answers of a script's process: what is one, and what is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stage/python/wire.h"

static struct sl_python_answer verdict(uint32_t numbers)
{
	struct sl_python_answer a = {.magic = SL_PYTHON_MAGIC,
				     .type = SL_PYTHON_VERDICT,
				     .ticket = 7,
				     .keep = 1,
				     .numbers = numbers,
				     .score = 2.5};

	for (uint32_t i = 0; i < numbers; i++)
		a.number[i] = i;
	return a;
}

static int check(const struct sl_python_answer *a, size_t n, uint32_t numbers)
{
	struct sl_python_answer out;

	return sl_python_answer_check(a, n, numbers, &out);
}

static void test_a_verdict(void **arg)
{
	struct sl_python_answer a = verdict(3), out;

	assert_int_equal(sl_python_answer_check(&a, SL_PYTHON_ANSWER_HEAD + 24, 3, &out), 0);
	assert_int_equal(out.ticket, 7);
	assert_int_equal(out.keep, 1);
	assert_true(out.score == 2.5 && out.number[2] == 2);
}

static void test_sizes_that_lie(void **arg)
{
	struct sl_python_answer a = verdict(3);

	for (size_t n = 0; n <= sizeof(a) + 8; n++)
		if (n != SL_PYTHON_ANSWER_HEAD + 24)
			assert_int_equal(check(&a, n, SL_PYTHON_NUMBERS), -EPROTO);
	assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD + 24, 2), -EPROTO);
	a.numbers = UINT32_MAX;
	assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD + 24, 3), -EPROTO);
}

static void test_words_that_are_wrong(void **arg)
{
	struct sl_python_answer a = verdict(0);

	a.magic++;
	assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD, 0), -EPROTO);
	a = verdict(0);
	a.keep = 2;
	assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD, 0), -EPROTO);
	for (uint32_t type = 0; type < 10; type++) {
		bool known = type >= SL_PYTHON_READY && type <= SL_PYTHON_FAILED;

		a = verdict(0);
		a.type = type;
		assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD, 0), known ? 0 : -EPROTO);
	}
}

static void test_a_text_is_one_line_that_ends(void **arg)
{
	struct sl_python_answer a = {.magic = SL_PYTHON_MAGIC, .type = SL_PYTHON_REFUSED}, out;

	memset(a.text, 'x', sizeof(a.text));
	a.text[3] = '\n';
	a.numbers = 8;
	assert_int_equal(sl_python_answer_check(&a, SL_PYTHON_ANSWER_HEAD + 8, 0, &out), 0);
	assert_string_equal(out.text, "xxx xxxx");
	a.numbers = SL_PYTHON_TEXT;
	assert_int_equal(sl_python_answer_check(&a, sizeof(a), 0, &out), 0);
	assert_int_equal(strlen(out.text), SL_PYTHON_TEXT - 1);
	a.numbers = 9;
	assert_int_equal(check(&a, SL_PYTHON_ANSWER_HEAD + 8, 0), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_verdict),
		cmocka_unit_test(test_sizes_that_lie),
		cmocka_unit_test(test_words_that_are_wrong),
		cmocka_unit_test(test_a_text_is_one_line_that_ends),
	};

	return cmocka_run_group_tests_name("python wire", tests, NULL, NULL);
}
