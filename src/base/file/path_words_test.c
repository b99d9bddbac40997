/* path_words_test.c - words in paths, and values that would lead elsewhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file/path_words.h"

static int expand(const char *text, const char *value, char *out, size_t bytes, char *why)
{
	const struct sl_path_word words[] = {
		{"run", "000012", NULL}, {"sample", value, NULL}, {"gone", NULL, "not here"}};

	why[0] = 0;
	return sl_path_words_expand(text, words, 3, out, bytes, why, 200);
}

static void words_are_replaced(void **state)
{
	static const char *const cases[][2] = {
		{"run.nxs", "run.nxs"},
		{"{run}.nxs", "000012.nxs"},
		{"a/{sample}/{run}_{run}.nxs", "a/salt/000012_000012.nxs"},
		{"{{run}}.nxs", "{run}.nxs"},
		{"{{{run}}}", "{000012}"},
		{"a}b", "a}b"},
		{"{sample}{sample}", "saltsalt"},
		{"", ""},
	};
	char out[64], why[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(expand(cases[i][0], "salt", out, sizeof(out), why), 0);
		assert_string_equal(out, cases[i][1]);
	}
}

static void values_stay_in_their_folder(void **state)
{
	static const char *const cases[][2] = {
		{"..", "d/_./x"},     {".", "d/_/x"},	      {"../../etc", "d/_._.._etc/x"},
		{"/etc", "d/_etc/x"}, {"", "d/_/x"},	      {"a\nb\tc\x7f", "d/a_b_c_/x"},
		{"a..b", "d/a..b/x"}, {"{run}", "d/{run}/x"}, {"Zäh 1", "d/Zäh 1/x"},
	};
	char out[64], why[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(expand("d/{sample}/x", cases[i][0], out, sizeof(out), why), 0);
		assert_string_equal(out, cases[i][1]);
	}
}

static void what_is_wrong_is_told(void **state)
{
	char out[16], why[200];

	assert_int_equal(expand("{rum}.nxs", "s", out, sizeof(out), why), -EINVAL);
	assert_string_equal(why, "'{rum}' is no word; there are: {run}, {sample}, {gone}; '{{' "
				 "stands for a brace");
	assert_int_equal(expand("a{run.nxs", "s", out, sizeof(out), why), -EINVAL);
	assert_non_null(strstr(why, "has no '}'"));
	assert_int_equal(expand("{run{run}", "s", out, sizeof(out), why), -EINVAL);
	assert_int_equal(expand("{}", "s", out, sizeof(out), why), -EINVAL);
	assert_int_equal(expand("{gone}", "s", out, sizeof(out), why), -ENODATA);
	assert_string_equal(why, "{gone}: not here");
	assert_int_equal(expand("123456789{run}", "s", out, sizeof(out), why), 0);
	assert_int_equal(expand("1234567890{run}", "s", out, sizeof(out), why), -ENAMETOOLONG);
	assert_non_null(strstr(why, "longer than 15 bytes"));
}

static void lists_are_expanded_one_by_one(void **state)
{
	static const struct sl_path_word words[] = {{"sample", "a, b/c", NULL}, {"run", "7", NULL}};
	static const struct {
		const char *text, *folder, *out;
	} cases[] = {
		{"", NULL, ""},
		{" , ,", "/r", ""},
		{"/x/{run}", "/r", "/x/7"},
		{" /my disk/{run} ,b,, {sample} ", NULL, "/my disk/7,b,a_ b_c"},
		{"/x,b/{sample},{{y}}", "/r", "/x,/r/b/a_ b_c,/r/{y}"},
	};
	char out[64], why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(sl_path_list_expand(cases[i].text, cases[i].folder, words, 2, out,
						     sizeof(out), why, sizeof(why)),
				 0);
		assert_string_equal(out, cases[i].out);
	}
	assert_int_equal(
		sl_path_list_expand("a,{rum}", NULL, words, 2, out, sizeof(out), why, sizeof(why)),
		-EINVAL);
	assert_non_null(strstr(why, "'{rum}' is no word"));
	for (size_t bytes = 1; bytes < 13; bytes++)
		assert_int_equal(sl_path_list_expand("a/b,{run}", "/fold", words, 2, out, bytes,
						     why, sizeof(why)),
				 -ENAMETOOLONG);
}

static void a_text_has_a_word_or_not(void **state)
{
	assert_true(sl_path_words_has("a/{run}.nxs", "run"));
	assert_true(sl_path_words_has("{{{run}", "run"));
	assert_false(sl_path_words_has("{{run}}", "run"));
	assert_false(sl_path_words_has("{runs}", "run"));
	assert_false(sl_path_words_has("run", "run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_replaced),
		cmocka_unit_test(values_stay_in_their_folder),
		cmocka_unit_test(what_is_wrong_is_told),
		cmocka_unit_test(lists_are_expanded_one_by_one),
		cmocka_unit_test(a_text_has_a_word_or_not),
	};

	return cmocka_run_group_tests_name("path_words", tests, NULL, NULL);
}
