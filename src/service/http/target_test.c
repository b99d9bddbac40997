/* target_test.c - paths, queries, Host and Origin headers: what fits, what is refused, and that
 * nothing is decoded twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "service/http/target.h"

static struct sl_http_match found;

static bool match(const char *pattern, const char *path)
{
	return sl_http_match(pattern, path, strlen(path), &found);
}

static void literal_paths_fit_as_a_whole(void **state)
{
	assert_true(match("/", "/"));
	assert_true(match("/api/v1", "/api/v1"));
	assert_false(match("/api/v1", "/api/v1/"));
	assert_false(match("/api/v1", "/api/v"));
	assert_false(match("/api/v1", "/api/v12"));
	assert_false(match("/api/v1", "/api"));
	assert_false(match("/api/v1", "/"));
	assert_false(match("/api/v1", ""));
	assert_false(match("/api/v1", "api/v1"));
	assert_false(match("/api/v1", "/API/v1"));
	assert_false(match("/api/v1", "/api//v1"));
	assert_false(match("/api/v1", "/api/%761"));
	assert_false(sl_http_match("/api", "/api", 3, &found));
}

static void placeholders_take_one_segment(void **state)
{
	assert_true(match("/s/{name}/x", "/s/run-1.a_B/x"));
	assert_int_equal(found.n, 1);
	assert_string_equal(found.segment[0], "run-1.a_B");
	assert_true(match("/s/{name}", "/s/%61b"));
	assert_string_equal(found.segment[0], "ab");
	assert_false(match("/s/{name}", "/s/%2561")); /* decoded once: "%61" is no name */
	assert_false(match("/s/{name}", "/s/"));
	assert_false(match("/s/{name}", "/s/a/b"));
	assert_false(match("/s/{name}", "/s/a%2fb"));
	assert_false(match("/s/{name}", "/s/.hidden"));
	assert_false(match("/s/{name}", "/s/-x"));
	assert_false(match("/s/{name}", "/s/.."));
	assert_false(match("/s/{name}", "/s/%2e%2e"));
	assert_false(match("/s/{name}", "/s/a%00"));
	assert_false(match("/s/{name}", "/s/a%"));
	assert_false(match("/s/{name}", "/s/a%4"));
	assert_false(match("/s/{name}", "/s/a%4g"));
	assert_false(match("/s/{name}", "/s/a+b"));
	assert_true(match("/s/{name}",
			  "/s/0123456789012345678901234567890123456789012345678901234567890ab"));
	assert_false(match("/s/{name}",
			   "/s/0123456789012345678901234567890123456789012345678901234567890abc"));
}

static void numbers_begin_at_1(void **state)
{
	assert_true(match("/runs/{run}", "/runs/000012"));
	assert_string_equal(found.segment[0], "000012");
	assert_true(match("/runs/{run}", "/runs/999999999999999999"));
	assert_false(match("/runs/{run}", "/runs/1000000000000000000"));
	assert_false(match("/runs/{run}", "/runs/0"));
	assert_false(match("/runs/{run}", "/runs/-1"));
	assert_false(match("/runs/{run}", "/runs/+1"));
	assert_false(match("/runs/{run}", "/runs/1.0"));
	assert_false(match("/runs/{run}", "/runs/0x1"));
	assert_false(match("/runs/{run}", "/runs/"));
}

static void a_path_takes_the_rest(void **state)
{
	assert_true(match("/assets/{path}", "/assets/js/app.js"));
	assert_string_equal(found.segment[0], "js/app.js");
	assert_true(match("/assets/{path}", "/assets/"));
	assert_string_equal(found.segment[0], "");
	assert_true(match("/{file}/x", "/a b%20c/x"));
	assert_string_equal(found.segment[0], "a b c");
	assert_false(match("/{file}/x", "/a%2fb/x"));
	assert_false(match("/{file}/x", "/a%0ab/x"));
	assert_false(match("/{file}/x", "/a\x80/x"));
}

static void what_is_too_long_does_not_fit(void **state)
{
	char path[400] = "/assets/";

	memset(path + 8, 'x', sizeof(path) - 9);
	assert_false(match("/assets/{path}", path));
	path[8 + SL_HTTP_SEGMENT_BYTES - 1] = 0;
	assert_true(match("/assets/{path}", path));
	assert_false(match("/{file}/{file}/{file}/{file}", "/a/b/c/d"));
	assert_true(match("/{file}/{file}/{file}", "/a/b/c"));
	assert_string_equal(found.segment[2], "c");
}

/* ---- query ---- */

static const struct sl_http_parameter table[] = {
	{"bin", SL_HTTP_WHOLE, 1, 64, "4", NULL, ""},
	{"x", SL_HTTP_WHOLE, 0, INT64_MAX, NULL, NULL, ""},
	{"how", SL_HTTP_CHOICE, 0, 0, "max", "max|mean", ""},
	{"flip", SL_HTTP_FLAG, 0, 0, NULL, NULL, ""},
	{"array", SL_HTTP_TEXT, 1, 8, NULL, NULL, ""},
	{NULL},
};
static struct sl_http_values values;
static char why[200];

static int query(const char *text)
{
	why[0] = 0;
	return sl_http_query(table, text, &values, why, sizeof(why));
}

static void values_are_taken_by_their_types(void **state)
{
	assert_int_equal(query("bin=8&x=9223372036854775&how=mean&flip=true&array=a%20b+c"), 0);
	assert_int_equal(values.n, 5);
	assert_int_equal(values.whole[0], 8);
	assert_true(values.whole[1] == 9223372036854775);
	assert_int_equal(values.whole[2], 1);
	assert_int_equal(values.whole[3], 1);
	assert_string_equal(values.text[4], "a b c");
	assert_int_equal(query("flip"), 0);
	assert_int_equal(values.whole[3], 1);
	assert_int_equal(query("flip=0"), 0);
	assert_true(values.given[3]);
	assert_int_equal(values.whole[3], 0);
	assert_int_equal(query("%62in=5"), 0);
	assert_int_equal(values.whole[0], 5);
}

static void defaults_stand_for_what_is_not_given(void **state)
{
	static const char *const nothing[] = {NULL, "", "&", "&&&"};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(query(nothing[i]), 0);
		assert_true(values.given[0]);
		assert_int_equal(values.whole[0], 4);
		assert_false(values.given[1]);
		assert_string_equal(values.text[2], "max");
		assert_false(values.given[3]);
	}
	assert_int_equal(sl_http_parameter(table, "flip"), 3);
	assert_int_equal(sl_http_parameter(table, "flop"), -1);
	assert_int_equal(sl_http_parameter(NULL, "flip"), -1);
}

static void refused(const char *text, const char *says)
{
	assert_int_equal(query(text), -EINVAL);
	if (!strstr(why, says))
		fail_msg("'%s' is not in '%s'", says, why);
}

static void what_does_not_fit_is_refused(void **state)
{
	refused("bin=0", "from 1 to 64");
	refused("bin=65", "from 1 to 64");
	refused("bin=-1", "from 1 to 64");
	refused("bin= 5", "from 1 to 64");
	refused("bin=5e1", "from 1 to 64");
	refused("bin=0x5", "from 1 to 64");
	refused("bin=", "from 1 to 64");
	refused("bin", "from 1 to 64");
	refused("x=18446744073709551616", "whole number");
	refused("x=99999999999999999999999999", "whole number");
	refused("how=least", "max|mean");
	refused("how=ma", "max|mean");
	refused("how=max|mean", "max|mean");
	refused("flip=2", "true or false");
	refused("flip=", "true or false");
	refused("array=", "1 to 8 bytes");
	refused("array=123456789", "1 to 8 bytes");
	refused("array=%0a", "1 to 8 bytes");
	refused("array=%ff", "1 to 8 bytes");
	refused("bin=1&bin=1", "twice");
	refused("colour=red", "'colour'");
	refused("=5", "''");
	refused("%zz=5", "not understood");
	assert_int_equal(sl_http_query(NULL, "a=1", &values, why, sizeof(why)), -EINVAL);
	assert_int_equal(sl_http_query(NULL, "", &values, why, sizeof(why)), 0);
}

/* ---- Host and Origin ---- */

static void hosts_are_names_without_ports(void **state)
{
	static const struct {
		const char *host, *name;
	} good[] = {{"localhost", "localhost"},	      {"LocalHost:80", "localhost"},
		    {"127.0.0.1:65535", "127.0.0.1"}, {"[::1]", "::1"},
		    {"[FE80::1]:8765", "fe80::1"},    {"a_b-c.example.org", "a_b-c.example.org"}};
	static const char *const bad[] = {
		"",	":80",	  "localhost:",	 "localhost:x", "localhost:123456",
		"[::1", "[::1]x", "[]",		 "a b",		"a/b",
		"a@b",	"::1",	  "localhost\t", "a%62"};
	char name[256];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(sl_http_host_name(good[i].host, name, sizeof(name)));
		assert_string_equal(name, good[i].name);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (sl_http_host_name(bad[i], name, sizeof(name)))
			fail_msg("'%s' is taken as a host", bad[i]);
	assert_false(sl_http_host_name("localhost", name, 5));
}

static void origins_name_host_and_port(void **state)
{
	assert_true(sl_http_same_origin("http://localhost:8765", "localhost:8765"));
	assert_true(sl_http_same_origin("HTTPS://LOCALHOST:8765", "localhost:8765"));
	assert_false(sl_http_same_origin("http://localhost", "localhost:8765"));
	assert_false(sl_http_same_origin("http://localhost:8765.evil.org", "localhost:8765"));
	assert_false(sl_http_same_origin("http://evil.org/localhost:8765", "localhost:8765"));
	assert_false(sl_http_same_origin("null", "localhost:8765"));
	assert_false(sl_http_same_origin("", "localhost:8765"));
	assert_false(sl_http_same_origin("file://localhost:8765", "localhost:8765"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literal_paths_fit_as_a_whole),
		cmocka_unit_test(placeholders_take_one_segment),
		cmocka_unit_test(numbers_begin_at_1),
		cmocka_unit_test(a_path_takes_the_rest),
		cmocka_unit_test(what_is_too_long_does_not_fit),
		cmocka_unit_test(values_are_taken_by_their_types),
		cmocka_unit_test(defaults_stand_for_what_is_not_given),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(hosts_are_names_without_ports),
		cmocka_unit_test(origins_name_host_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
