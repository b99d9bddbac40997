/* parameters_test.c - values of clients become overrides by what an experiment declares, or say
 * what is wrong with them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "service/experiments/experiments.h"

static const char declared[] =
	"[{\"name\":\"frames\",\"path\":\"detector.frames\",\"type\":\"integer\",\"min\":1,\"max\":"
	"1000,\"value\":5},"
	"{\"name\":\"workers\",\"path\":\"unit.workers\",\"type\":\"integer\",\"min\":1,\"max\":64,"
	"\"value\":\"auto\"},"
	"{\"name\":\"rate\",\"path\":\"detector.rate\",\"type\":\"number\",\"min\":0.5,\"max\":1e6,"
	"\"value\":1.5},"
	"{\"name\":\"free\",\"path\":\"a.b\",\"type\":\"number\",\"min\":null,\"max\":null,"
	"\"value\":1},"
	"{\"name\":\"pin\",\"path\":\"threads.pin\",\"type\":\"boolean\",\"value\":true},"
	"{\"name\":\"mode\",\"path\":\"threads.polling\",\"type\":\"choice\",\"values\":[\"fast\","
	"\"10\",\"0.5\",\"true\"],\"value\":\"fast\"},"
	"{\"name\":\"title\",\"path\":\"metadata.title\",\"type\":\"text\",\"value\":\"\"}]";

static struct sl_values values;
static char said[2000];

static int take(const char *text)
{
	json_t *parameters = json_loads(declared, 0, NULL), *json = json_loads(text, 0, NULL),
	       *errors = json_array(), *one;
	size_t i;
	int err;

	assert_non_null(parameters);
	assert_non_null(json);
	err = sl_values_of(parameters, json, &values, errors);
	said[0] = 0;
	json_array_foreach(errors, i, one)
	{
		strcat(said, json_string_value(json_object_get(one, "where")));
		strcat(strcat(said, " "), json_string_value(json_object_get(one, "message")));
		strcat(said, "\n");
	}
	json_decref(errors);
	json_decref(json);
	json_decref(parameters);
	return err;
}

static void sets(const char *text, const char *set)
{
	if (take(text))
		fail_msg("%s: %s", text, said);
	assert_int_equal(values.n, 1);
	assert_string_equal(values.set[0], set);
}

static void refused(const char *text, const char *says)
{
	assert_int_equal(take(text), -EINVAL);
	if (!strstr(said, says))
		fail_msg("'%s' is not in '%s'", says, said);
}

static void values_become_overrides(void **state)
{
	sets("{\"frames\":1}", "detector.frames=1");
	sets("{\"frames\":1000}", "detector.frames=1000");
	sets("{\"workers\":\"auto\"}", "unit.workers=auto");
	sets("{\"rate\":0.5}", "detector.rate=0.5");
	sets("{\"rate\":1000000}", "detector.rate=1000000");
	sets("{\"free\":-1e-300}", "a.b=-1e-300");
	sets("{\"pin\":false}", "threads.pin=false");
	sets("{\"mode\":\"fast\"}", "threads.polling=fast");
	sets("{\"mode\":10}", "threads.polling=10");
	sets("{\"mode\":0.5}", "threads.polling=0.5");
	sets("{\"mode\":true}", "threads.polling=true");
	sets("{\"title\":\"a = {b}, \\u00e9\"}", "metadata.title=a = {b}, \xc3\xa9");
	sets("{\"title\":\"\"}", "metadata.title=");
	assert_int_equal(take("{}"), 0);
	assert_int_equal(values.n, 0);
	assert_int_equal(take("{\"frames\":2,\"pin\":true}"), 0);
	assert_int_equal(values.n, 2);
}

static void what_is_wrong_is_told_of_each(void **state)
{
	refused("{\"frames\":0}", "parameters.frames takes a whole number from 1 to 1000");
	refused("{\"frames\":1001}", "from 1 to 1000");
	refused("{\"frames\":5.0}", "a whole number");
	refused("{\"frames\":\"5\"}", "a whole number");
	refused("{\"frames\":\"auto\"}", "a whole number");
	refused("{\"frames\":null}", "a whole number");
	refused("{\"frames\":true}", "a whole number");
	refused("{\"frames\":[1]}", "a whole number");
	refused("{\"frames\":9223372036854775807}", "from 1 to 1000");
	refused("{\"workers\":\"many\"}", "a whole number");
	refused("{\"rate\":0.4}", "a number from 0.5 to 1000000");
	refused("{\"rate\":1e7}", "a number");
	refused("{\"rate\":\"1\"}", "a number");
	refused("{\"pin\":1}", "true or false");
	refused("{\"pin\":\"true\"}", "true or false");
	refused("{\"mode\":\"slow\"}", "takes one of fast, 10, 0.5, true");
	refused("{\"mode\":11}", "takes one of");
	refused("{\"mode\":null}", "takes one of");
	refused("{\"mode\":{}}", "takes one of");
	refused("{\"title\":5}", "takes a text");
	refused("{\"title\":\"a\\nb\"}", "takes a text");
	refused("{\"title\":\"a\\u007fb\"}", "takes a text");
	refused("{\"other\":5}", "parameters.other the experiment declares no such parameter");
	refused("{\"frames\":0,\"pin\":1,\"x\":1}", "parameters.pin");
	assert_non_null(strstr(said, "parameters.frames"));
	assert_non_null(strstr(said, "parameters.x"));
}

static void long_texts_are_refused(void **state)
{
	char text[400];

	snprintf(text, sizeof(text), "{\"title\":\"%0255d\"}", 5);
	assert_int_equal(take(text), 0);
	snprintf(text, sizeof(text), "{\"title\":\"%0256d\"}", 5);
	refused(text, "at most 255 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_become_overrides),
		cmocka_unit_test(what_is_wrong_is_told_of_each),
		cmocka_unit_test(long_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
