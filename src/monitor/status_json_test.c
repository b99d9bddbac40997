/* status_json_test.c - a status as JSON: names, what is left out, what no number or text can break.
 * tests/system/socket_test.py holds it against the schema. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/status_json.h"

static struct sl_status status;
static struct sl_metadata metadata;
static struct sl_error error;

static int setup(void **state)
{
	memset(&status, 0, sizeof(status));
	memset(&metadata, 0, sizeof(metadata));
	memset(&error, 0, sizeof(error));
	status.result = -1;
	status.threads.ring_node = -1;
	return 0;
}

static json_t *parsed(char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(text);
	assert_non_null(json);
	free(text);
	return json;
}

static json_t *document(void)
{
	const struct sl_status_document d = {.status = &status,
					     .error = &error,
					     .metadata = &metadata,
					     .parameters = "{\"frames\":7,\"rate\":0.5}",
					     .rates = {2000000000, 12.5, 1e6},
					     .taken_unix_ns = 5};

	return parsed(sl_status_json(&d));
}

/* "a.b.0.c" */
static json_t *at(json_t *json, const char *path)
{
	char copy[100], *save, *part;

	snprintf(copy, sizeof(copy), "%s", path);
	for (part = strtok_r(copy, ".", &save); part; part = strtok_r(NULL, ".", &save))
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(part))
					   : json_object_get(json, part);
	assert_non_null(json);
	return json;
}

static void an_empty_status_has_all_fields(void **state)
{
	const struct sl_status_document d = {.status = &status};
	json_t *json = parsed(sl_status_json(&d));

	assert_int_equal(json_integer_value(at(json, "schema")), SL_STATUS_SCHEMA);
	assert_string_equal(json_string_value(at(json, "state")), "idle");
	assert_true(json_is_null(at(json, "result")));
	assert_true(json_is_null(at(json, "rates")));
	assert_true(json_is_null(at(json, "error")));
	assert_true(json_is_null(at(json, "progress_age_ns")));
	assert_true(json_is_false(at(json, "ledger.closed")));
	assert_int_equal(json_object_size(at(json, "metadata")), 0);
	assert_int_equal(json_object_size(at(json, "parameters")), 0);
	json_decref(json);
}

static void parameters_are_there_by_name(void **state)
{
	json_t *json = document();

	assert_int_equal(json_integer_value(at(json, "parameters.frames")), 7);
	assert_true(json_real_value(at(json, "parameters.rate")) == 0.5);
	json_decref(json);
}

static void counts_are_found_by_name(void **state)
{
	json_t *json;

	status.state = SL_STATE_RUNNING;
	status.modules = 2;
	status.column[0].outcome[SL_STORED] = 5;
	status.column[1].outcome[SL_STORED] = 4;
	status.column[1].outcome[SL_LOST] = 1;
	status.column[1].cause[SL_CAUSE_NO_ARRIVAL] = 1;
	status.source[1].state = SL_SOURCE_GONE;
	status.dropped[SL_DROP_ICRC] = 3;
	status.latencies = SL_LATENCIES;
	status.latency[SL_LATENCY_TOTAL] = (struct sl_status_latency){.count = 9, .p999_ns = 77};
	json = document();
	assert_int_equal(json_integer_value(at(json, "ledger.total.outcomes.stored")), 9);
	assert_int_equal(json_integer_value(at(json, "ledger.modules.1.outcomes.lost")), 1);
	assert_int_equal(json_integer_value(at(json, "ledger.modules.1.causes.no_arrival")), 1);
	assert_int_equal(json_object_size(at(json, "ledger.modules.0.outcomes")), 1);
	assert_string_equal(json_string_value(at(json, "sources.modules.1.state")), "gone");
	assert_int_equal(json_integer_value(at(json, "link.dropped.icrc")), 3);
	assert_int_equal(json_integer_value(at(json, "latency_ns.total.p999")), 77);
	assert_int_equal(json_object_size(at(json, "latency_ns")), 1);
	assert_true(json_real_value(at(json, "rates.frames_per_s")) == 12.5);
	json_decref(json);
}

static void progress_is_as_old_as_its_newest_part(void **state)
{
	json_t *json;

	assert_true(sl_status_progress_age_ns(&status) == UINT64_MAX);
	status.taken_ns = 1000;
	status.last_ns = 400;
	assert_int_equal(sl_status_progress_age_ns(&status), 600);
	status.progress_threads = 2;
	status.progress[0] = (struct sl_status_progress){"poller 0", 900};
	status.progress[1] = (struct sl_status_progress){"sinks", 0};
	assert_int_equal(sl_status_progress_age_ns(&status), 100);
	json = document();
	assert_int_equal(json_integer_value(at(json, "threads.progress.0.age_ns")), 100);
	assert_true(json_is_null(at(json, "threads.progress.1.age_ns")));
	json_decref(json);
	status.progress[1].at_ns = 2000; /* set after the snapshot was begun */
	assert_int_equal(sl_status_progress_age_ns(&status), 0);
}

static void texts_of_any_bytes_become_utf8(void **state)
{
	json_t *json;

	snprintf(status.experiment, sizeof(status.experiment), "/data/\xff\n\"x\"");
	memset(status.folder, 0xe4, sizeof(status.folder) - 1);
	assert_int_equal(sl_metadata_set(&metadata, "sample", "\xe4"), 0);
	error.code = SL_ERROR_OUTPUT;
	snprintf(error.message, sizeof(error.message), "\xe4 and \t");
	json = document();
	assert_string_equal(json_string_value(at(json, "experiment")), "/data/?\n\"x\"");
	assert_int_equal(strlen(json_string_value(at(json, "folder"))), sizeof(status.folder) - 1);
	assert_string_equal(json_string_value(at(json, "metadata.sample")), "?");
	assert_string_equal(json_string_value(at(json, "error.code")), "output");
	assert_string_equal(json_string_value(at(json, "error.message")), "? and \t");
	json_decref(json);
}

static void numbers_stay_numbers(void **state)
{
	json_t *json;

	status.frames = UINT64_MAX;
	status.addons = 1;
	status.addon[0] = (struct sl_status_addon){.name = "x", .is_sink = 1, .figures = 1};
	status.figure[0] = (struct sl_status_figure){.name = "n", .value = UINT64_MAX};
	status.texts = 1;
	status.text[0] = (struct sl_status_text){.name = "audit_root", .value = "e3b0"};
	json = document();
	assert_string_equal(json_string_value(at(json, "addons.0.texts.audit_root")), "e3b0");
	assert_true(json_integer_value(at(json, "frames.settled")) == INT64_MAX);
	assert_true(json_integer_value(at(json, "addons.0.figures.n")) == INT64_MAX);
	json_decref(json);
}

static void figures_are_those_of_the_add_on(void **state)
{
	json_t *json;

	status.addons = 2;
	status.figures = 3;
	for (unsigned i = 0; i < 3; i++) {
		status.figure[i].value = 10 + i;
		snprintf(status.figure[i].name, sizeof(status.figure[i].name), "n%u", i);
	}
	status.addon[0] = (struct sl_status_addon){.name = "x", .is_sink = 1, .figures = 1};
	status.addon[1] = (struct sl_status_addon){
		.name = "y", .is_sink = 1, .first_figure = 1, .figures = 2};
	json = document();
	assert_int_equal(json_object_size(at(json, "addons.0.figures")), 1);
	assert_int_equal(json_object_size(at(json, "addons.1.figures")), 2);
	assert_int_equal(json_integer_value(at(json, "addons.0.figures.n0")), 10);
	assert_int_equal(json_integer_value(at(json, "addons.1.figures.n2")), 12);
	json_decref(json);
}

/* A status may say more than it has room for: it was cut there. */
static void lists_end_where_the_status_does(void **state)
{
	json_t *json;

	status.threads.cpus = 2;
	status.threads.pollers = 3;
	status.threads.workers = 5;
	json = document();
	assert_int_equal(json_array_size(at(json, "threads.cpus")), 2);
	assert_int_equal(json_integer_value(at(json, "threads.pollers")), 3);
	assert_int_equal(json_integer_value(at(json, "threads.workers")), 5);
	json_decref(json);
	status.threads.cpus = SL_STATUS_CPUS + 50;
	status.progress_threads = SL_STATUS_PROGRESS + 50;
	for (unsigned i = 0; i < SL_STATUS_CPUS; i++)
		status.threads.cpu[i] = (int)i;
	status.addons = 1;
	status.addon[0] = (struct sl_status_addon){
		.name = "x", .is_sink = 1, .figures = SL_STATUS_FIGURES + 50};
	for (unsigned i = 0; i < SL_STATUS_FIGURES; i++)
		snprintf(status.figure[i].name, sizeof(status.figure[i].name), "n%u", i);
	json = document();
	assert_int_equal(json_object_size(at(json, "addons.0.figures")), SL_STATUS_FIGURES);
	assert_int_equal(json_array_size(at(json, "threads.cpus")), SL_STATUS_CPUS);
	assert_int_equal(json_array_size(at(json, "threads.progress")), SL_STATUS_PROGRESS);
	json_decref(json);
}

static void a_forecast_says_what_is_not_known(void **state)
{
	json_t *json;

	status.disks = 2;
	status.disk[0] = (struct sl_status_disk){.path = "/a",
						 .free_bytes = 10,
						 .frame_bytes = 4,
						 .needed_bytes = 12,
						 .frames_fit = 2,
						 .is_short = 1};
	status.disk[1] = (struct sl_status_disk){.path = "/b", .frames_fit = UINT64_MAX};
	json = document();
	assert_string_equal(json_string_value(at(json, "forecast.0.path")), "/a");
	assert_int_equal(json_integer_value(at(json, "forecast.0.needed_bytes")), 12);
	assert_int_equal(json_integer_value(at(json, "forecast.0.frames_fit")), 2);
	assert_true(json_is_false(at(json, "forecast.0.fits")));
	assert_true(json_is_null(at(json, "forecast.1.needed_bytes")));
	assert_true(json_is_null(at(json, "forecast.1.frames_fit")));
	assert_true(json_is_null(at(json, "forecast.1.fits")));
	json_decref(json);
}

static void replies_are_one_line(void **state)
{
	const struct sl_status_document d = {.status = &status};
	char *line[4];

	error.code = SL_ERROR_STATE;
	snprintf(error.message, sizeof(error.message), "a\nb");
	line[0] = sl_reply_ok("stop", SL_STATE_STOPPING);
	line[1] = sl_reply_error(&error);
	line[2] = sl_reply_status("status", &d);
	line[3] = sl_reply_metadata(&metadata);
	for (int i = 0; i < 4; i++) {
		json_t *json;

		assert_ptr_equal(strchr(line[i], '\n'), line[i] + strlen(line[i]) - 1);
		json = parsed(line[i]);
		assert_int_equal(json_is_true(at(json, "ok")), i != 1);
		json_decref(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_status_has_all_fields, setup),
		cmocka_unit_test_setup(parameters_are_there_by_name, setup),
		cmocka_unit_test_setup(counts_are_found_by_name, setup),
		cmocka_unit_test_setup(progress_is_as_old_as_its_newest_part, setup),
		cmocka_unit_test_setup(texts_of_any_bytes_become_utf8, setup),
		cmocka_unit_test_setup(numbers_stay_numbers, setup),
		cmocka_unit_test_setup(figures_are_those_of_the_add_on, setup),
		cmocka_unit_test_setup(lists_end_where_the_status_does, setup),
		cmocka_unit_test_setup(a_forecast_says_what_is_not_known, setup),
		cmocka_unit_test_setup(replies_are_one_line, setup),
	};

	return cmocka_run_group_tests_name("status_json", tests, NULL, NULL);
}
