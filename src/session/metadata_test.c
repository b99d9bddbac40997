/* metadata_test.c - metadata of a session: what the experiment says, what changes between runs and
 * during one, what configure does to them, and their bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/private.h"

#define EXPERIMENT                                                                          \
	"detector: {kind: pattern, modules: 2, rows: 4, columns: 64, frame_rate_Hz: 100}\n" \
	"link: {kind: shm}\ncontrol: {port: 0}\nsinks: ['null']\n"                          \
	"metadata: {sample: salt, title: first, keys: {current: 200 mA}}\n"

static unsigned lines;
static struct sl_session *session;
static struct sl_metadata table;

static void note_line(void *arg, enum sl_log_level level, const char *line)
{
	lines++;
}

static int setup(void **state)
{
	const struct sl_session_options options = {
		.bytes = sizeof(options), .text = EXPERIMENT, .log = note_line};

	lines = 0;
	setenv("SLUICE_SITE", "", 1);
	return sl_session_open(&options, &session, NULL);
}

static int teardown(void **state)
{
	sl_session_close(session);
	return 0;
}

static void has(const char *key, const char *value)
{
	const char *found;

	sl_session_copy_metadata(session, &table);
	found = sl_metadata_get(&table, key);
	if (!value) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, value);
}

static void next_has(const char *key, const char *value)
{
	sl_session_copy_next_metadata(session, &table);
	if (value)
		assert_string_equal(sl_metadata_get(&table, key), value);
	else
		assert_null(sl_metadata_get(&table, key));
}

static int set(const char *key, const char *value)
{
	return sl_session_set_metadata(session, key, value);
}

static int keep(const char *key, const char *value)
{
	char why[300];
	size_t bad;

	return sl_session_change_metadata(session, &key, &value, 1, true, &bad, why, sizeof(why));
}

static void configure(const char *change)
{
	assert_int_equal(sl_session_configure(session, &change, 1), 0);
}

static void the_section_is_what_a_session_begins_with(void **state)
{
	has("sample", "salt");
	has("title", "first");
	has("current", "200 mA");
	sl_session_copy_metadata(session, &table);
	assert_int_equal(table.n, 3);
}

static void changes_are_checked_by_the_table(void **state)
{
	assert_int_equal(set("exposure_s", "0.01"), 0);
	assert_int_equal(set("exposure_s", "0.02"), -EINVAL); /* 100 Hz */
	assert_int_equal(set("exposure_s", "5 ms"), -EINVAL);
	assert_int_equal(set("smaple", "x"), -EINVAL);
	assert_int_equal(set("wavelength", "1"), -EINVAL);
	assert_int_equal(lines, 4); /* each says why, once */
	has("exposure_s", "0.01");
	assert_int_equal(set("exposure_s", NULL), 0);
	has("exposure_s", NULL);
}

static void a_change_between_runs_is_for_all_later_ones(void **state)
{
	assert_int_equal(set("sample", "sugar"), 0);
	for (int run = 0; run < 2; run++) {
		sl_session_begin_metadata(session);
		has("sample", "sugar");
		sl_session_end_metadata(session);
	}
}

static void a_change_during_a_run_is_that_runs(void **state)
{
	sl_session_begin_metadata(session);
	assert_int_equal(set("sample", "sugar"), 0);
	assert_int_equal(set("comment", "it melts"), 0);
	assert_int_equal(set("title", NULL), 0);
	assert_int_equal(keep("current", "199 mA"), 0);
	sl_session_end_metadata(session);
	has("comment", "it melts"); /* the status still tells of that run */
	next_has("comment", NULL);
	next_has("title", "first");
	next_has("current", "199 mA");
	sl_session_begin_metadata(session);
	has("sample", "salt");
	has("comment", NULL);
	has("title", "first");
	has("current", "199 mA");
	sl_session_end_metadata(session);
}

static void configure_has_the_last_word_on_what_it_changes(void **state)
{
	assert_int_equal(set("sample", "sugar"), 0);
	assert_int_equal(set("extra", "1"), 0);
	configure("metadata.title=second");
	has("title", "second");
	has("sample", "sugar");
	has("extra", "1");
	configure("metadata.sample=flour");
	has("sample", "flour");
	has("title", "first"); /* overrides of the last configure hold */
	has("extra", "1");
}

static void a_change_that_no_longer_fits_is_told(void **state)
{
	const char *change = "detector.frame_rate_Hz=200";

	assert_int_equal(set("exposure_s", "0.01"), 0);
	assert_int_equal(sl_session_configure(session, &change, 1), -EINVAL);
	has("exposure_s", "0.01");
	assert_int_equal(set("exposure_s", "0.005"), 0);
	configure(change);
	assert_int_equal(set("exposure_s", "0.01"), -EINVAL);
}

static void configure_may_not_exceed_the_bound(void **state)
{
	const char *change = "metadata.keys.one_more=1";
	char key[32];

	for (int i = 3; i < SL_METADATA_KEYS; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_int_equal(set(key, "x"), 0);
	}
	assert_int_equal(set("another", "x"), -E2BIG);
	assert_int_equal(sl_session_configure(session, &change, 1), -E2BIG);
	has("one_more", NULL);
	assert_int_equal(set("key3", NULL), 0);
	configure(change);
	has("one_more", "1");
}

struct heard {
	unsigned n;
	char first[64], last[64], to[200];
	uint64_t unix_ns;
};

static void hear(void *to, const struct sl_env_metadata_change *change)
{
	struct heard *heard = to;

	assert_true(change->unix_ns >= heard->unix_ns);
	heard->unix_ns = change->unix_ns;
	if (!heard->n++)
		snprintf(heard->first, sizeof(heard->first), "%s:%s", change->key, change->from);
	snprintf(heard->last, sizeof(heard->last), "%s:%s", change->key, change->from);
	snprintf(heard->to, sizeof(heard->to), "%s", change->to);
}

static void the_last_changes_of_a_run_are_kept(void **state)
{
	const struct sl_env_metadata *env = session->experiment->metadata;
	struct heard heard = {.n = 0};
	char value[16];

	assert_int_equal(set("sample", "sugar"), 0); /* before the run: no change of it */
	sl_session_begin_metadata(session);
	assert_int_equal(set("title", "first"), 0); /* nor is this */
	assert_int_equal(set("title", "second"), 0);
	assert_int_equal(set("title", NULL), 0);
	assert_true(env->changes(env->arg, hear, &heard) == 0);
	assert_int_equal(heard.n, 2);
	assert_string_equal(heard.first, "title:first");
	assert_string_equal(heard.last, "title:second");
	assert_string_equal(heard.to, "");
	for (int i = 0; i < 200; i++) {
		snprintf(value, sizeof(value), "%d", i);
		assert_int_equal(set("point", value), 0);
	}
	heard.n = 0;
	assert_true(env->changes(env->arg, hear, &heard) == 202 - SL_METADATA_CHANGES);
	assert_int_equal(heard.n, SL_METADATA_CHANGES);
	assert_string_equal(heard.to, "199");
	sl_session_end_metadata(session);
	sl_session_begin_metadata(session);
	heard.n = 0;
	assert_true(env->changes(env->arg, hear, &heard) == 0);
	assert_int_equal(heard.n, 0);
	sl_session_end_metadata(session);
}

static void long_texts_are_cut_between_characters(void **state)
{
	const struct sl_env_metadata *env = session->experiment->metadata;
	struct heard heard = {.n = 0};
	char text[301] = "";

	for (int i = 0; i < 100; i++)
		strcat(text, "\xe2\x82\xac"); /* three bytes */
	sl_session_begin_metadata(session);
	assert_int_equal(set("price", text), 0);
	env->changes(env->arg, hear, &heard);
	assert_int_equal(strlen(heard.to), 126);
	assert_memory_equal(heard.to, text, 126);
	sl_session_end_metadata(session);
}

/* All of one request, or none. */
static void a_request_is_taken_whole_or_not(void **state)
{
	const char *const key[] = {"sample", "a", "exposure_s"};
	const char *const value[] = {"flour", "b", "5 days"};
	char why[300];
	size_t bad;

	assert_int_equal(
		sl_session_change_metadata(session, key, value, 3, false, &bad, why, sizeof(why)),
		-EINVAL);
	assert_int_equal(bad, 2);
	assert_non_null(strstr(why, "not 'days'"));
	has("sample", "salt");
	has("a", NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(the_section_is_what_a_session_begins_with),
		CASE(changes_are_checked_by_the_table),
		CASE(a_change_between_runs_is_for_all_later_ones),
		CASE(a_change_during_a_run_is_that_runs),
		CASE(configure_has_the_last_word_on_what_it_changes),
		CASE(a_change_that_no_longer_fits_is_told),
		CASE(configure_may_not_exceed_the_bound),
		CASE(the_last_changes_of_a_run_are_kept),
		CASE(long_texts_are_cut_between_characters),
		CASE(a_request_is_taken_whole_or_not),
	};

	return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
