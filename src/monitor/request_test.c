/* request_test.c - requests of the status socket: those that are understood; those that are
 * refused, and why. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/status.h>

#include "monitor/request.h"

static char why[300];

static int parse(const char *line, struct sl_request *request)
{
	return sl_request_parse(line, strlen(line), request, why, sizeof(why));
}

static void every_call_is_understood(void **state)
{
	static const struct {
		const char *line;
		enum sl_request_call call;
	} rows[] = {
		{"{\"call\":\"status\"}", SL_REQUEST_STATUS},
		{" { \"call\" : \"arm\" } ", SL_REQUEST_ARM},
		{"{\"call\":\"start\"}", SL_REQUEST_START},
		{"{\"call\":\"pause\"}", SL_REQUEST_PAUSE},
		{"{\"call\":\"resume\"}", SL_REQUEST_RESUME},
		{"{\"call\":\"stop\"}", SL_REQUEST_STOP},
		{"{\"call\":\"abort\"}", SL_REQUEST_ABORT},
		{"{\"call\":\"close\"}", SL_REQUEST_CLOSE},
		{"{\"call\":\"configure\"}", SL_REQUEST_CONFIGURE},
		{"{\"call\":\"metadata\"}", SL_REQUEST_METADATA_CALL},
		{"{\"call\":\"watch\"}", SL_REQUEST_WATCH},
		{"{\"call\":\"wait\",\"states\":[\"ended\"]}", SL_REQUEST_WAIT},
		{"{\"call\":\"point\",\"frames\":1}", SL_REQUEST_POINT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_request r;

		assert_int_equal(parse(rows[i].line, &r), 0);
		assert_int_equal(r.call, rows[i].call);
		assert_non_null(strstr(rows[i].line, r.name));
		sl_request_free(&r);
	}
}

static void members_are_taken(void **state)
{
	struct sl_request r;

	assert_int_equal(parse("{\"call\":\"configure\",\"set\":[\"a.b=c\",\"d=\"]}", &r), 0);
	assert_int_equal(r.sets, 2);
	assert_string_equal(r.set[1], "d=");
	sl_request_free(&r);
	assert_int_equal(parse("{\"reason\":\"shutter\",\"call\":\"stop\"}", &r), 0);
	assert_string_equal(r.reason, "shutter");
	sl_request_free(&r);
	assert_int_equal(parse("{\"call\":\"metadata\",\"set\":{\"a\":\"x\",\"b\":12,\"c\":0.5,"
			       "\"d\":null}}",
			       &r),
			 0);
	assert_int_equal(r.metadata_set, 4);
	assert_false(r.keep);
	for (uint32_t i = 0; i < 4; i++)
		switch (r.metadata[i].key[0]) {
		case 'a':
			assert_string_equal(r.metadata[i].value, "x");
			break;
		case 'b':
			assert_string_equal(r.metadata[i].value, "12");
			break;
		case 'c':
			assert_string_equal(r.metadata[i].value, "0.5");
			break;
		default:
			assert_null(r.metadata[i].value);
		}
	sl_request_free(&r);
	assert_int_equal(parse("{\"call\":\"metadata\",\"keep\":true,\"set\":{}}", &r), 0);
	assert_true(r.keep);
	sl_request_free(&r);
	assert_int_equal(
		parse("{\"call\":\"wait\",\"states\":[\"armed\",\"fault\"],\"timeout_ms\":7}", &r),
		0);
	assert_int_equal(r.states, 1 << SL_STATE_ARMED | 1 << SL_STATE_FAULT);
	assert_int_equal(r.timeout_ms, 7);
	sl_request_free(&r);
	assert_int_equal(parse("{\"call\":\"watch\",\"interval_ms\":100}", &r), 0);
	assert_int_equal(r.interval_ms, 100);
	sl_request_free(&r);
	assert_int_equal(parse("{\"call\":\"resume\",\"frames\":3}", &r), 0);
	assert_int_equal(r.frames, 3);
	sl_request_free(&r);
	assert_int_equal(parse("{\"call\":\"pause\",\"frames\":3}", &r), -EINVAL);
	assert_int_equal(parse("{\"call\":\"start\",\"frames\":1e3}", &r), -EINVAL);
	assert_int_equal(parse("{\"call\":\"start\",\"frames\":9000000000000000}", &r), -EINVAL);
	assert_string_equal(why, "frames: a number, 0 to 1000000000000000");
	assert_int_equal(parse("{\"call\":\"point\",\"first\":120,\"frames\":5,\"values\":{\"angle_"
			       "deg\":1.5}}",
			       &r),
			 0);
	assert_int_equal(r.first, 120);
	assert_int_equal(r.frames, 5);
	assert_int_equal(r.values, 1);
	assert_string_equal(r.value[0].name, "angle_deg");
	assert_true(r.value[0].value == 1.5);
	sl_request_free(&r);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{"", "not JSON"},
		{"stop", "not JSON"},
		{"{\"call\":\"stop\"} x", "not JSON"},
		{"{\"call\":\"stop\",\"call\":\"start\"}", "duplicate"},
		{"[]", "an object"},
		{"{}", "\"call\""},
		{"{\"call\":1}", "\"call\""},
		{"{\"call\":\"destroy\"}", "'destroy'"},
		{"{\"call\":\"status\",\"a\":1}", "status has no 'a'"},
		{"{\"call\":\"start\",\"reason\":\"x\"}", "start has no 'reason'"},
		{"{\"call\":\"stop\",\"reason\":7}", "reason"},
		{"{\"call\":\"stop\",\"reason\":\"0123456789abcdef\"}", "15"},
		{"{\"call\":\"configure\",\"set\":{}}", "set"},
		{"{\"call\":\"configure\",\"set\":[\"a\"]}", "set[0]"},
		{"{\"call\":\"configure\",\"set\":[\"a=1\",2]}", "set[1]"},
		{"{\"call\":\"metadata\",\"set\":[]}", "set"},
		{"{\"call\":\"metadata\",\"set\":{\"a\":[]}}", "set.a"},
		{"{\"call\":\"metadata\",\"keep\":1}", "keep"},
		{"{\"call\":\"wait\"}", "states"},
		{"{\"call\":\"wait\",\"states\":[]}", "states"},
		{"{\"call\":\"wait\",\"states\":[\"asleep\"]}", "states[0]"},
		{"{\"call\":\"wait\",\"states\":[\"ended\"],\"timeout_ms\":-2}", "timeout_ms"},
		{"{\"call\":\"wait\",\"states\":[\"ended\"],\"timeout_ms\":1e9}", "timeout_ms"},
		{"{\"call\":\"watch\",\"interval_ms\":99}", "interval_ms"},
		{"{\"call\":\"watch\",\"interval_ms\":-1}", "interval_ms"},
		{"{\"call\":\"point\"}", "\"frames\" is missing"},
		{"{\"call\":\"point\",\"frames\":0}", "\"frames\" is missing"},
		{"{\"call\":\"point\",\"frames\":-1}", "frames"},
		{"{\"call\":\"point\",\"frames\":1.5}", "frames"},
		{"{\"call\":\"point\",\"frames\":1,\"first\":\"a\"}", "first"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":[1]}", "values"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":{\"x\":\"1\"}}",
		 "values.x: a number"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":{\"\":1}}", "a letter first"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":{\"1x\":1}}", "a letter first"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":{\"a/b\":1}}", "a letter first"},
		{"{\"call\":\"point\",\"frames\":1,\"values\":{\"x\":1e999}}", "not JSON"},
		{"{\"call\":[[[[[[[[[]]]]]]]]]}", "brackets"},
		{"{\"call\":\"\\u0000\"}", "not JSON"},
		{"{\"call\":\"\xff\"}", "not JSON"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_request r;

		why[0] = 0;
		assert_int_equal(parse(rows[i].line, &r), -EINVAL);
		if (!strstr(why, rows[i].says))
			fail_msg("'%s' does not say '%s'", why, rows[i].says);
	}
}

static void brackets_in_texts_do_not_count(void **state)
{
	struct sl_request r;

	assert_int_equal(
		parse("{\"call\":\"metadata\",\"set\":{\"a\":\"\\\"[[[[[[[[[[[[[{{{\"}}", &r), 0);
	assert_string_equal(r.metadata[0].value, "\"[[[[[[[[[[[[[{{{");
	sl_request_free(&r);
}

static void sizes_are_bounded(void **state)
{
	char *line = malloc(SL_REQUEST_BYTES + 2);
	struct sl_request r;
	size_t n;

	assert_non_null(line);
	memset(line, ' ', SL_REQUEST_BYTES + 1);
	memcpy(line, "{\"call\":\"arm\"}", 14);
	assert_int_equal(sl_request_parse(line, SL_REQUEST_BYTES, &r, why, sizeof(why)), 0);
	sl_request_free(&r);
	assert_int_equal(sl_request_parse(line, SL_REQUEST_BYTES + 1, &r, why, sizeof(why)),
			 -EINVAL);
	n = (size_t)sprintf(line, "{\"call\":\"configure\",\"set\":[\"a=1\"");
	for (int i = 0; i < SL_REQUEST_SETS; i++)
		n += (size_t)sprintf(line + n, ",\"a=1\"");
	sprintf(line + n, "]}");
	assert_int_equal(parse(line, &r), -EINVAL);
	n = (size_t)sprintf(line, "{\"call\":\"metadata\",\"set\":{\"a\":1");
	for (int i = 0; i < SL_REQUEST_METADATA; i++)
		n += (size_t)sprintf(line + n, ",\"k%d\":1", i);
	sprintf(line + n, "}}");
	assert_int_equal(parse(line, &r), -EINVAL);
	n = (size_t)sprintf(line, "{\"call\":\"point\",\"frames\":1,\"values\":{\"a\":1");
	for (int i = 0; i < SL_REQUEST_VALUES; i++)
		n += (size_t)sprintf(line + n, ",\"k%d\":1", i);
	sprintf(line + n, "}}");
	assert_int_equal(parse(line, &r), -EINVAL);
	for (int longer = 1; longer >= 0; longer--) {
		sprintf(line, "{\"call\":\"point\",\"frames\":1,\"values\":{\"a%0*d\":1}}",
			SL_REQUEST_NAME - 1 + longer, 0);
		assert_int_equal(parse(line, &r), longer ? -EINVAL : 0);
	}
	sl_request_free(&r);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_understood),
		cmocka_unit_test(members_are_taken),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(brackets_in_texts_do_not_count),
		cmocka_unit_test(sizes_are_bounded),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
