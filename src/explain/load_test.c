/* load_test.c - where a run's files are looked for: folders, results, summaries, records alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "explain/load.h"

#define RESULT                                                                              \
	"{\"ledger\": {\"total\": {\"sent\": 10, \"outcomes\": {\"lost\": 4}, \"causes\": " \
	"{\"no_arrival\": 4}}}, \"link\": {\"packets\": 6}}"
#define FLIGHT "{\"schema\": 1, \"facts\": {\"link\": {\"block_packets\": 1}}, \"series\": []}"

struct world {
	char folder[64], why[400];
	struct sl_explanation *list;
	size_t n;
};

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->folder, sizeof(w->folder), "/tmp/explain-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", w->folder);
	free(w->list);
	free(w);
	return system(command);
}

static const char *path(const struct world *w, const char *name)
{
	static char text[4][300];
	static unsigned at;
	char *one = text[at++ % 4];

	snprintf(one, sizeof(text[0]), "%s/%s", w->folder, name);
	return one;
}

static void put(const struct world *w, const char *name, const char *text)
{
	FILE *file = fopen(path(w, name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int load(struct world *w, const char *what)
{
	free(w->list);
	w->list = NULL;
	w->why[0] = '\0';
	return sl_explain_path(what, &w->list, &w->n, w->why, sizeof(w->why));
}

static void one(struct world *w, const char *what, bool flight)
{
	if (load(w, what))
		fail_msg("%s", w->why);
	assert_int_equal(w->n, 1);
	assert_int_equal(w->list[0].lost, 4);
	assert_int_equal(w->list[0].has_flight, flight);
}

static void a_folder_has_result_and_record(void **state)
{
	struct world *w = *state;

	put(w, "result.json", RESULT);
	one(w, w->folder, false);
	put(w, "flight.json", FLIGHT);
	one(w, w->folder, true);
	one(w, path(w, "result.json"), true);
	assert_string_equal(w->list[0].run, path(w, "result.json"));
	put(w, "flight.json", "{\"schema\": 1, \"ser"); /* cut off */
	one(w, w->folder, false);
}

static void a_summary_has_its_record_beside_it(void **state)
{
	struct world *w = *state;

	put(w, "s.json", RESULT);
	put(w, "s.flight.json", FLIGHT);
	put(w, "other.flight.json", "no JSON");
	one(w, path(w, "s.json"), true);
	put(w, "plain", RESULT);
	one(w, path(w, "plain"), false);
	put(w, "plain.flight.json", FLIGHT);
	one(w, path(w, "plain"), true);
}

/* A summary that was moved away from it says where it was. */
static void a_result_says_where_its_record_is(void **state)
{
	struct world *w = *state;
	char text[600];

	put(w, "far.json", FLIGHT);
	snprintf(text, sizeof(text), "{\"flight\": \"%s\", %s", path(w, "far.json"), RESULT + 1);
	put(w, "s.json", text);
	one(w, path(w, "s.json"), true);
}

static void each_transfer_has_its_own(void **state)
{
	struct world *w = *state;

	put(w, "result.json",
	    "{\"transfers\": {\"a\": " RESULT ", \"b\": " RESULT ", \"c\": null}}");
	put(w, "flight.b.json", FLIGHT);
	assert_int_equal(load(w, w->folder), 0);
	assert_int_equal(w->n, 2);
	assert_string_equal(w->list[0].transfer, "a");
	assert_false(w->list[0].has_flight);
	assert_string_equal(w->list[1].transfer, "b");
	assert_true(w->list[1].has_flight);
	put(w, "result.b.json", RESULT);
	one(w, path(w, "result.b.json"), true);
	put(w, "result.json", "{\"transfers\": {\"a\": null}}");
	assert_int_equal(load(w, w->folder), -ENODATA);
}

static void a_record_alone_is_enough(void **state)
{
	struct world *w = *state;

	put(w, "flight.json", FLIGHT);
	put(w, "flight.two.json", FLIGHT);
	put(w, "flight.pcapng", "x");
	assert_int_equal(load(w, w->folder), 0);
	assert_int_equal(w->n, 2);
	assert_int_equal(load(w, path(w, "flight.json")), 0);
	assert_int_equal(w->n, 1);
	assert_false(w->list[0].has_result);
	put(w, "result.json", RESULT);
	one(w, path(w, "flight.json"), true);
	put(w, "s.flight.json", FLIGHT);
	put(w, "s.json", RESULT);
	one(w, path(w, "s.flight.json"), true);
	assert_true(w->list[0].has_result);
}

static void what_is_not_there_is_said(void **state)
{
	struct world *w = *state;

	assert_int_equal(load(w, path(w, "none")), -ENOENT);
	assert_non_null(strstr(w->why, "cannot open"));
	assert_int_equal(load(w, w->folder), -ENOENT);
	assert_non_null(strstr(w->why, "no result.json and no flight.json"));
	assert_non_null(strstr(w->why, "it is no folder of a run"));
	put(w, "bad.json", "{");
	assert_int_equal(load(w, path(w, "bad.json")), -EINVAL);
	assert_non_null(strstr(w->why, "is no JSON: line 1"));
	mkdir(path(w, "result.json"), 0777);
	assert_true(load(w, w->folder) < 0);
	assert_null(w->list);
}

/* A run that was killed before anything was lost has left its folder, with or without data. */
static void what_a_killed_run_has_left_is_said(void **state)
{
	struct world *w = *state;
	int lock;

	put(w, "lock", "host 1\n");
	assert_int_equal(load(w, w->folder), -ENOENT);
	assert_non_null(strstr(w->why, "its lock is free"));
	assert_non_null(strstr(w->why, "Data: none in this folder"));
	put(w, "run.log", "first line\nthe front end of module 1\tbegins\n\n");
	put(w, "result.json.part", "");
	put(w, "run.nxs", "HDF");
	assert_int_equal(load(w, w->folder), -ENOENT);
	assert_non_null(strstr(w->why, "the log ends with \"the front end of module 1 begins\""));
	assert_non_null(strstr(w->why, "Data: run.nxs (3 bytes)."));
	assert_non_null(strstr(w->why, "recover /tmp/explain-"));
	lock = open(path(w, "lock"), O_RDONLY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(load(w, w->folder), -ENOENT);
	assert_non_null(strstr(w->why, "its lock is held"));
	assert_null(strstr(w->why, "recover"));
	close(lock);
}

static void a_reply_says_where_its_record_is(void **state)
{
	struct world *w = *state;
	char text[700];

	put(w, "flight.json", FLIGHT);
	snprintf(text, sizeof(text),
		 "{\"ok\": true, \"status\": {\"state\": \"running\", \"gauges\": {}, \"flight\": "
		 "\"%s\", %s}",
		 path(w, "flight.json"), RESULT + 1);
	assert_int_equal(sl_explain_reply("x", text, &w->list, &w->n, w->why, sizeof(w->why)), 0);
	assert_true(w->list[0].has_flight && w->list[0].is_live);
	assert_string_equal(w->list[0].run, "x");
	free(w->list);
	assert_int_equal(
		sl_explain_reply("x", "{\"ok\": true}", &w->list, &w->n, w->why, sizeof(w->why)),
		-EINVAL);
	assert_null(w->list);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_folder_has_result_and_record),	  CASE(a_summary_has_its_record_beside_it),
		CASE(a_result_says_where_its_record_is),  CASE(each_transfer_has_its_own),
		CASE(a_record_alone_is_enough),		  CASE(what_is_not_there_is_said),
		CASE(what_a_killed_run_has_left_is_said), CASE(a_reply_says_where_its_record_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
