/* session_folder_test.c - sessions with a root: number, folder, log and result of runs that do not
 * begin. tests/system/session_test.py has runs with data. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/sluice.h>

#include "session/session.h"

enum { PATIENCE_MS = 60000, OVER = 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT };

#define EXPERIMENT                                                                  \
	"detector: {kind: pattern, modules: 2, rows: 4, columns: 64, frames: 60}\n" \
	"link: {kind: shm}\ncontrol: {port: 0, token: opensesame}\nsinks: ['null']\n"

static char root[PATH_MAX];

static int setup(void **state)
{
	const char *place = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/sluice-root-XXXXXX", place ? place : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 32];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static char *path_of(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void drop_line(void *arg, enum sl_log_level level, const char *line)
{
}

struct ends {
	unsigned n;
	uint64_t run;
	uint32_t state, code;
};

static void note_end(void *arg, const struct sl_status *status, const struct sl_error *error)
{
	struct ends *ends = arg;

	ends->n++;
	ends->run = status->run;
	ends->state = status->state;
	ends->code = error->code;
}

static struct sl_session *opened(const char *in, const char *text, struct ends *ends)
{
	const struct sl_session_hooks hooks = {.ended = ends ? note_end : NULL, .arg = ends};
	const struct sl_session_options options = {
		.bytes = sizeof(options), .text = text, .log = drop_line, .root = in};
	struct sl_session *session = NULL;
	struct sl_error error;

	if (sl_session_open_with(&options, &hooks, &session, &error))
		fail_msg("%s", error.message);
	return session;
}

static struct sl_status *status_of(struct sl_session *session)
{
	static struct sl_status status;

	assert_int_equal(sl_session_status(session, &status, sizeof(status)), 0);
	return &status;
}

/* A run that is stopped while it waits for sources. */
static void stopped_run(struct sl_session *session)
{
	assert_int_equal(sl_session_start(session), 0);
	while (!status_of(session)->run)
		assert_int_equal(sl_session_wait(session, OVER, 1), -ETIMEDOUT);
	sl_session_stop(session, "test");
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_ENDED);
}

static json_t *result_of(const char *name)
{
	json_error_t why;
	json_t *json = json_load_file(path_of(name), 0, &why);

	if (!json)
		fail_msg("%s: %s", name, why.text);
	return json;
}

static const char *text_in(const json_t *json, const char *object, const char *key)
{
	return json_string_value(
		json_object_get(object ? json_object_get(json, object) : json, key));
}

static void read_text(const char *name, char *text, size_t bytes)
{
	FILE *file = fopen(path_of(name), "r");
	size_t n;

	assert_non_null(file);
	n = fread(text, 1, bytes - 1, file);
	text[n] = 0;
	fclose(file);
}

static void runs_are_counted_without_a_root(void **state)
{
	struct sl_session *session = opened(NULL, EXPERIMENT, NULL);

	assert_int_equal(status_of(session)->run, 0);
	for (uint64_t i = 1; i < 3; i++) {
		stopped_run(session);
		assert_int_equal(status_of(session)->run, i);
		assert_string_equal(status_of(session)->folder, "");
	}
	sl_session_close(session);
}

static void a_run_that_never_began_has_a_result(void **state)
{
	struct ends ends = {0};
	struct sl_session *session = opened(root, EXPERIMENT, &ends);
	json_t *result;

	stopped_run(session);
	stopped_run(session);
	assert_int_equal(status_of(session)->run, 2);
	assert_string_equal(status_of(session)->folder, path_of("000002"));
	assert_int_equal(ends.n, 2);
	assert_int_equal(ends.run, 2);
	assert_int_equal(ends.state, SL_STATE_ENDED);
	assert_int_equal(ends.code, SL_ERROR_STOPPED);
	result = result_of("000002/result.json");
	assert_int_equal(json_integer_value(json_object_get(result, "run")), 2);
	assert_int_equal(json_integer_value(json_object_get(result, "exit")), 1);
	assert_string_equal(text_in(result, NULL, "folder"), path_of("000002"));
	assert_string_equal(text_in(result, NULL, "state"), "ended");
	assert_string_equal(text_in(result, NULL, "result"), "error");
	assert_string_equal(text_in(result, "error", "code"), "stopped");
	assert_string_equal(text_in(result, "origin", "file"), "text");
	json_decref(result);
	sl_session_close(session);
}

static void the_folder_has_log_and_experiment_without_the_token(void **state)
{
	struct sl_session *session = opened(root, EXPERIMENT, NULL);
	char text[32 << 10];

	stopped_run(session);
	read_text("000001/run.log", text, sizeof(text));
	assert_non_null(strstr(text, "Z info    run 1 of text, sluice "));
	assert_non_null(strstr(text, "Z info    waiting for front ends"));
	assert_non_null(strstr(text, "Z info    stopped before it began"));
	read_text("000001/experiment.yaml", text, sizeof(text));
	assert_non_null(strstr(text, "# text:1\n"));
	assert_non_null(strstr(text, "# default\n"));
	assert_null(strstr(text, "opensesame"));
	sl_session_close(session);
}

/* The root cannot be written; once it can, configure leaves the fault. */
static void a_root_in_the_way_is_a_fault_that_can_be_left(void **state)
{
	struct ends ends = {0};
	char in[2 * PATH_MAX];
	struct sl_session *session;
	struct sl_error error;

	snprintf(in, sizeof(in), "%s", path_of("data"));
	close(open(in, O_CREAT | O_WRONLY, 0666));
	session = opened(in, EXPERIMENT, &ends);
	assert_int_equal(sl_session_start(session), 0);
	assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
	sl_session_error(session, &error);
	assert_int_equal(error.code, SL_ERROR_OUTPUT);
	assert_non_null(strstr(error.message, in));
	assert_int_equal(status_of(session)->run, 0);
	assert_int_equal(ends.state, SL_STATE_FAULT);
	assert_int_equal(unlink(in), 0);
	assert_int_equal(sl_session_configure(session, NULL, 0), 0);
	stopped_run(session);
	assert_int_equal(status_of(session)->run, 1);
	sl_session_close(session);
}

static void an_output_does_not_replace_the_folders_own_files(void **state)
{
	static const char *const names[] = {"lock",
					    "run.log",
					    "experiment.yaml",
					    "result.json",
					    "./result.json.part",
					    "result.json/",
					    "x/../lock",
					    "x/y/.././../run.log"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct sl_session_options options = {.bytes = sizeof(options),
							   .text = EXPERIMENT,
							   .log = drop_line,
							   .root = root,
							   .outcomes = names[i]};
		struct sl_session *session;
		struct sl_error error;

		assert_int_equal(sl_session_open(&options, &session, &error), 0);
		assert_int_equal(sl_session_start(session), 0);
		assert_int_equal(sl_session_wait(session, OVER, PATIENCE_MS), SL_STATE_FAULT);
		sl_session_error(session, &error);
		assert_int_equal(error.code, SL_ERROR_OUTPUT);
		assert_non_null(strstr(error.message, "reserved"));
		sl_session_close(session);
	}
	json_decref(result_of("000008/result.json"));
}

static void two_sessions_have_folders_of_their_own(void **state)
{
	struct sl_session *one = opened(root, EXPERIMENT, NULL),
			  *two = opened(root, EXPERIMENT, NULL);

	assert_int_equal(sl_session_start(one), 0);
	while (!status_of(one)->run)
		usleep(1000);
	stopped_run(two);
	stopped_run(two);
	sl_session_close(one); /* stops its run */
	json_decref(result_of("000001/result.json"));
	json_decref(result_of("000002/result.json"));
	json_decref(result_of("000003/result.json"));
	assert_int_equal(status_of(two)->run, 3);
	sl_session_close(two);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(runs_are_counted_without_a_root),
		CASE(a_run_that_never_began_has_a_result),
		CASE(the_folder_has_log_and_experiment_without_the_token),
		CASE(a_root_in_the_way_is_a_fault_that_can_be_left),
		CASE(an_output_does_not_replace_the_folders_own_files),
		CASE(two_sessions_have_folders_of_their_own),
	};

	return cmocka_run_group_tests_name("session_folder", tests, NULL, NULL);
}
