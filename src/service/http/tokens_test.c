/* tokens_test.c - the file of tokens: roles by tokens, mistakes by line, and no token in a message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service/http/tokens.h"

#define A "aaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbb"

static struct sl_tokens tokens;
static char why[300];

static int parse(const char *text)
{
	char *copy = strdup(text);
	int err;

	why[0] = 0;
	err = sl_tokens_parse(copy, &tokens, why, sizeof(why));
	free(copy);
	return err;
}

static enum sl_role find(const char *token, const char **name)
{
	*name = NULL;
	return sl_tokens_find(&tokens, token, name);
}

static void tokens_have_roles_and_names(void **state)
{
	const char *name;

	assert_int_equal(parse("# people\n\nview page " A "\r\n\toperate  shift@beamline\t" B
			       "\nconfigure c cccccccccccccccccccc"),
			 0);
	assert_int_equal(tokens.n, 3);
	assert_int_equal(find(A, &name), SL_ROLE_VIEW);
	assert_string_equal(name, "page");
	assert_int_equal(find(B, &name), SL_ROLE_OPERATE);
	assert_string_equal(name, "shift@beamline");
	assert_int_equal(find("cccccccccccccccccccc", &name), SL_ROLE_CONFIGURE);
}

static void nothing_else_is_a_token(void **state)
{
	const char *name;

	assert_int_equal(parse("view page " A "\n"), 0);
	assert_int_equal(find("", &name), SL_ROLE_NONE);
	assert_int_equal(find("aaaaaaaaaaaaaaaaaaa", &name), SL_ROLE_NONE);
	assert_int_equal(find(A "a", &name), SL_ROLE_NONE);
	assert_int_equal(find("page", &name), SL_ROLE_NONE);
	assert_int_equal(find(B, &name), SL_ROLE_NONE);
	assert_null(name);
	memset(&tokens, 0, sizeof(tokens));
	assert_int_equal(find("", &name), SL_ROLE_NONE);
}

static void mistakes_are_named_by_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "has no token"},
		{"#\n", "has no token"},
		{"view a " A "\nview b\n", "line 2: takes three words"},
		{"view a " A " " B, "line 1: takes three words"},
		{"see a " A, "line 1: its role"},
		{"none a " A, "line 1: its role"},
		{"view a/b " A, "line 1: a name"},
		{"view a short", "line 1: a token"},
		{"view a aaaaaaaaaaaaaaaaaaa\x7f", "line 1: a token"},
		{"view a aaaaaaaaaaaaaaaaaaa\xc3\xa4", "line 1: a token"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].text), -EINVAL);
		assert_non_null(strstr(why, bad[i].says));
		assert_null(strstr(why, "aaaa"));
	}
}

static void there_are_at_most_64(void **state)
{
	char text[65 * 40] = "";

	for (int i = 0; i < 64; i++)
		sprintf(text + strlen(text), "view n%d token-of-many-%06d\n", i, i);
	assert_int_equal(parse(text), 0);
	assert_int_equal(tokens.n, 64);
	strcat(text, "view more " A "\n");
	assert_int_equal(parse(text), -EINVAL);
	assert_non_null(strstr(why, "line 65: there are more than 64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_have_roles_and_names),
		cmocka_unit_test(nothing_else_is_a_token),
		cmocka_unit_test(mistakes_are_named_by_line),
		cmocka_unit_test(there_are_at_most_64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
