/* summary_test.c - the result of a run with several receivers, out of theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include "monitor/result.h"
#include "monitor/summary.h"

enum { RECEIVERS = 3 };

static const char *const names[RECEIVERS] = {"left", "middle", "right"};
static char folder[200], path[RECEIVERS][256];

static int set_up(void **state)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/summary-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	for (unsigned i = 0; i < RECEIVERS; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s.json", folder, names[i]);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < RECEIVERS; i++)
		unlink(path[i]);
	return rmdir(folder);
}

static void write_result(unsigned receiver, const char *text)
{
	FILE *file = fopen(path[receiver], "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static json_t *join(const char *state, int status)
{
	const struct sl_summary_run run = {.number = 7,
					   .folder = "/runs/000007",
					   .state = state,
					   .exit = status,
					   .log_lines_lost = 3,
					   .started_unix_ns = UINT64_C(1000000000),
					   .ended_unix_ns = UINT64_C(2500000000)};
	const char *files[RECEIVERS] = {path[0], path[1], path[2]};
	char *text = sl_summary_join_result(names, files, RECEIVERS, &run);
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;

	assert_non_null(json);
	free(text);
	return json;
}

static const char *text_of(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	assert_non_null(text);
	return text;
}

static void results_of_all_receivers_are_in_that_of_the_run(void **state)
{
	json_t *json, *transfers;

	write_result(0, "{\"state\": \"ended\", \"run\": 1}");
	write_result(2, "{\"state\": \"ended\", \"run\": 3}");
	json = join("ended", 2);
	transfers = json_object_get(json, "transfers");
	assert_int_equal(json_object_size(transfers), RECEIVERS);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(transfers, "left"), "run")), 1);
	assert_true(json_is_null(json_object_get(transfers, "middle"))); /* it wrote none */
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(transfers, "right"), "run")), 3);
	assert_string_equal(text_of(json, "state"), "ended");
	assert_string_equal(text_of(json, "result"), "damaged");
	assert_int_equal(json_integer_value(json_object_get(json, "exit")), 2);
	assert_int_equal(json_integer_value(json_object_get(json, "run")), 7);
	assert_string_equal(text_of(json, "folder"), "/runs/000007");
	assert_int_equal(json_integer_value(json_object_get(json, "log_lines_lost")), 3);
	assert_non_null(strstr(text_of(json, "started"), "1970-01-01T00:00:01"));
	assert_non_null(strstr(text_of(json, "ended"), "1970-01-01T00:00:02"));
	assert_true(json_is_null(json_object_get(json, "error")));
	json_decref(json);
}

static void one_receiver_that_failed_makes_the_run_fail(void **state)
{
	for (unsigned failed = 0; failed < RECEIVERS; failed++) {
		json_t *json;

		for (unsigned i = 0; i < RECEIVERS; i++)
			write_result(i, i == failed ? "{\"state\": \"fault\"}"
						    : "{\"state\": \"ended\"}");
		json = join("ended", 1);
		assert_string_equal(text_of(json, "state"), "fault");
		json_decref(json);
	}
}

static void files_that_are_no_results_do_no_harm(void **state)
{
	json_t *json, *transfers;

	write_result(0, "");
	write_result(1, "{\"state\": 5}");
	write_result(2, "{\"state\":");
	json = join("fault", 3);
	transfers = json_object_get(json, "transfers");
	assert_true(json_is_null(json_object_get(transfers, "left")));
	assert_true(json_is_object(json_object_get(transfers, "middle")));
	assert_true(json_is_null(json_object_get(transfers, "right")));
	assert_string_equal(text_of(json, "state"), "fault");
	assert_string_equal(text_of(json, "result"), "unclosed");
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		CASE(results_of_all_receivers_are_in_that_of_the_run),
		CASE(one_receiver_that_failed_makes_the_run_fail),
		CASE(files_that_are_no_results_do_no_harm),
	};

	return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
