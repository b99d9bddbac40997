/* metrics_test.c - sessions as metrics: what each number becomes, what no text can break, and that
 * the text is one that Prometheus takes. tests/system/metrics_test.py asks Prometheus itself. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/metrics.h"
#include "monitor/metrics_families.h"
#include "monitor/status_json.h"

static struct sl_status status;
static char *text;

static int setup(void **state)
{
	memset(&status, 0, sizeof(status));
	status.result = -1;
	status.threads.ring_node = -1;
	return 0;
}

static int teardown(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

/* The metrics of a list of sessions. */
static void make(const char *sessions)
{
	free(text);
	assert_int_equal(sl_metrics_text_of(sessions, strlen(sessions), 1500000000, &text), 0);
	assert_non_null(text);
}

/* Of one session with the status above. */
static void make_of_status(void)
{
	const struct sl_status_document d = {.status = &status, .rates = {2000000000, 12.5, 1e6}};
	char *json = sl_status_json(&d), *sessions;

	assert_non_null(json);
	assert_true(asprintf(&sessions, "[{\"name\":\"a\",\"crashed\":false,\"status\":%s}]",
			     json) > 0);
	make(sessions);
	free(sessions);
	free(json);
}

static bool has_line(const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	return false;
}

static void assert_line(const char *line)
{
	if (!has_line(line))
		fail_msg("no line '%s' in\n%s", line, text);
}

static void assert_no(const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in\n%s", part, text);
}

static unsigned lines_with(const char *part)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

static void no_sessions_leave_the_program_itself(void **state)
{
	make("[]");
	assert_line("# TYPE sluice_build_info gauge");
	assert_line("sluice_build_info{version=\"" SL_VERSION "\"} 1");
	assert_line("sluice_collect_seconds 1.5");
	assert_no("session=");
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {"", "{}", "[", "1", "[]]"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *none = (char *)1;

		assert_int_equal(sl_metrics_text_of(bad[i], strlen(bad[i]), 0, &none), -EINVAL);
		assert_null(none);
	}
}

static void sessions_that_do_not_answer_have_two_metrics(void **state)
{
	make("[{\"name\":\"gone\",\"crashed\":true,\"status\":null},"
	     "{\"name\":\"mute\",\"crashed\":false,\"status\":null}]");
	assert_line("sluice_session_up{session=\"gone\"} 0");
	assert_line("sluice_session_crashed{session=\"gone\"} 1");
	assert_line("sluice_session_up{session=\"mute\"} 0");
	assert_line("sluice_session_crashed{session=\"mute\"} 0");
	assert_int_equal(lines_with("session=\""), 4);
}

/* Two lines with the same labels are an error of the whole text. */
static void of_two_sessions_with_one_name_the_living_one_counts(void **state)
{
	make("[{\"name\":\"a\",\"crashed\":true},{\"name\":\"a\",\"crashed\":false},"
	     "{\"name\":\"a\",\"crashed\":false}]");
	assert_int_equal(lines_with("session=\"a\""), 2);
	assert_line("sluice_session_crashed{session=\"a\"} 0");
	make("[{\"name\":\"a\",\"crashed\":true},{\"name\":\"a\",\"crashed\":true}]");
	assert_int_equal(lines_with("session=\"a\""), 2);
}

static void every_sample_of_a_family_follows_its_type(void **state)
{
	make("[{\"name\":\"a\",\"status\":{\"state\":\"running\",\"frames\":{\"settled\":5}}},"
	     "{\"name\":\"b\",\"status\":{\"state\":\"ended\",\"frames\":{\"settled\":7}}}]");
	assert_non_null(strstr(text,
			       "# HELP sluice_frames_settled_total Frames of which every module "
			       "has its outcome, or is pending\n"
			       "# TYPE sluice_frames_settled_total counter\n"
			       "sluice_frames_settled_total{session=\"a\"} 5\n"
			       "sluice_frames_settled_total{session=\"b\"} 7\n"));
	assert_int_equal(lines_with("# TYPE sluice_session_state"), 1);
	assert_line("sluice_session_state{session=\"a\",state=\"running\"} 1");
	assert_line("sluice_session_state{session=\"a\",state=\"ended\"} 0");
	assert_line("sluice_session_state{session=\"b\",state=\"ended\"} 1");
}

static void numbers_become_base_units(void **state)
{
	status.state = SL_STATE_PAUSED;
	status.drained = 1;
	status.run = 12;
	status.frames = 1000;
	status.pixel_bytes = UINT64_MAX;
	status.started_unix_ns = UINT64_C(1700000000123456789);
	status.threads.busy_ns = 1500;
	make_of_status();
	assert_line("sluice_run_number{session=\"a\"} 12");
	assert_line("sluice_run_drained{session=\"a\"} 1");
	assert_line("sluice_frames_settled_total{session=\"a\"} 1000");
	assert_line("sluice_pixel_bytes_total{session=\"a\"} 9223372036854775807");
	assert_line("sluice_run_started_timestamp_seconds{session=\"a\"} 1700000000.123456789");
	assert_line("sluice_workers_busy_seconds_total{session=\"a\"} 0.0000015");
	assert_line("sluice_frame_rate_hertz{session=\"a\"} 12.5");
	assert_line("sluice_pixel_rate_bytes_per_second{session=\"a\"} 1000000");
	assert_no("sluice_run_ended_timestamp_seconds"); /* null: it has not ended */
	assert_no("sluice_frames_expected");		 /* nor is it known how long it is */
}

static void the_ledger_is_there_before_anything_is_lost(void **state)
{
	status.modules = 2;
	status.column[0].outcome[SL_STORED] = 5;
	status.column[0].sent = 9;
	status.column[1].outcome[SL_LOST] = 3;
	status.column[1].cause[SL_CAUSE_NO_ARRIVAL] = 3;
	make_of_status();
	assert_line("sluice_ledger_sent_total{session=\"a\",module=\"0\"} 9");
	assert_line("sluice_ledger_outcome_total{session=\"a\",outcome=\"stored\",module=\"0\"} 5");
	assert_line("sluice_ledger_outcome_total{session=\"a\",outcome=\"lost\",module=\"0\"} 0");
	assert_line("sluice_ledger_outcome_total{session=\"a\",outcome=\"lost\",module=\"1\"} 3");
	assert_line("sluice_ledger_cause_total{session=\"a\",cause=\"no_arrival\"} 3");
	assert_line("sluice_ledger_cause_total{session=\"a\",cause=\"slow\"} 0");
	assert_int_equal(lines_with("sluice_ledger_outcome_total{"), 2 * (SL_OUTCOMES - 1));
	assert_int_equal(lines_with("sluice_ledger_cause_total{"), SL_CAUSES - 1);
	assert_int_equal(lines_with("sluice_link_dropped_total{"), SL_DROPS);
}

static void names_of_a_newer_session_are_written_too(void **state)
{
	make("[{\"name\":\"a\",\"status\":{\"ledger\":{\"total\":{\"causes\":{\"comet\":4}}},"
	     "\"sources\":{\"modules\":[{\"state\":\"asleep\"}]}}}]");
	assert_line("sluice_ledger_cause_total{session=\"a\",cause=\"comet\"} 4");
	assert_line("sluice_ledger_cause_total{session=\"a\",cause=\"dark\"} 0");
	assert_line("sluice_source_state{session=\"a\",module=\"0\",state=\"asleep\"} 1");
}

static void sources_are_counted_by_state(void **state)
{
	status.modules = 3;
	status.source[0].state = SL_SOURCE_RUNNING;
	status.source[1].state = SL_SOURCE_RUNNING;
	status.source[2] = (struct sl_status_source){.state = SL_SOURCE_GONE, .turned_away = 8};
	make_of_status();
	assert_line("sluice_sources{session=\"a\",state=\"running\"} 2");
	assert_line("sluice_sources{session=\"a\",state=\"gone\"} 1");
	assert_line("sluice_sources{session=\"a\",state=\"absent\"} 0");
	assert_line("sluice_source_state{session=\"a\",module=\"2\",state=\"gone\"} 1");
	assert_line("sluice_source_turned_away_total{session=\"a\",module=\"2\"} 8");
}

static void a_histogram_is_cumulative_and_agrees_with_its_count(void **state)
{
	struct sl_status_latency *l = &status.latency[SL_LATENCY_TOTAL];

	status.latencies = SL_LATENCIES;
	l->count = 11;
	l->sum_ns = UINT64_C(5000000001);
	l->bucket[0] = 1;  /* 0 ns */
	l->bucket[10] = 2; /* below 1.024 us */
	l->bucket[11] = 3; /* below 2.048 us */
	l->bucket[35] = 4;
	l->bucket[47] = 1; /* more than the last bound */
	make_of_status();
	assert_line("# TYPE sluice_latency_seconds histogram");
	assert_line(
		"sluice_latency_seconds_bucket{session=\"a\",hop=\"total\",le=\"0.000001024\"} 3");
	assert_line(
		"sluice_latency_seconds_bucket{session=\"a\",hop=\"total\",le=\"0.000002048\"} 6");
	assert_line(
		"sluice_latency_seconds_bucket{session=\"a\",hop=\"total\",le=\"17.179869184\"} 6");
	assert_line("sluice_latency_seconds_bucket{session=\"a\",hop=\"total\",le=\"34.359738368\"}"
		    " 10");
	assert_line("sluice_latency_seconds_bucket{session=\"a\",hop=\"total\",le=\"+Inf\"} 11");
	assert_line("sluice_latency_seconds_sum{session=\"a\",hop=\"total\"} 5.000000001");
	assert_line("sluice_latency_seconds_count{session=\"a\",hop=\"total\"} 11");
	assert_int_equal(lines_with("sluice_latency_seconds_bucket{"), 27);
	assert_no("hop=\"wire\""); /* was not measured */
}

/* Of a session whose program is older. */
static void a_histogram_without_buckets_has_its_count(void **state)
{
	make("[{\"name\":\"a\",\"status\":{\"latency_ns\":{\"wire\":{\"count\":7,\"sum\":14}}}}]");
	assert_line("sluice_latency_seconds_bucket{session=\"a\",hop=\"wire\",le=\"+Inf\"} 7");
	assert_line("sluice_latency_seconds_count{session=\"a\",hop=\"wire\"} 7");
	assert_int_equal(lines_with("sluice_latency_seconds_bucket{"), 1);
}

static void add_ons_of_one_name_are_told_apart(void **state)
{
	status.addons = 3;
	snprintf(status.addon[0].name, SL_STATUS_NAME, "cpu");
	for (int i = 1; i < 3; i++) {
		snprintf(status.addon[i].name, SL_STATUS_NAME, "redis");
		status.addon[i].is_sink = 1;
	}
	status.addon[2].error = -28;
	status.addon[1].figures = status.figures = 1;
	snprintf(status.figure[0].name, SL_STATUS_NAME, "longest_put_us");
	status.figure[0].value = 44;
	status.pace[2] = (struct sl_status_pace){
		.threaded = 1, .factor = 4, .waited_ns = 2500000000, .left_out = 6, .mark = 16};
	make_of_status();
	assert_line("sluice_addon_failed{session=\"a\",addon=\"cpu\",kind=\"unit\",index=\"0\"} 0");
	assert_line(
		"sluice_addon_failed{session=\"a\",addon=\"redis\",kind=\"sink\",index=\"2\"} 1");
	assert_line("sluice_addon_figure{session=\"a\",addon=\"redis\",kind=\"sink\",index=\"1\","
		    "figure=\"longest_put_us\"} 44");
	assert_line("sluice_sink_waited_seconds_total{session=\"a\",addon=\"redis\",kind=\"sink\","
		    "index=\"2\"} 2.5");
	assert_line("sluice_sink_left_out_frames_total{session=\"a\",addon=\"redis\",kind=\"sink\","
		    "index=\"2\"} 6");
	assert_line(
		"sluice_sink_prescale{session=\"a\",addon=\"redis\",kind=\"sink\",index=\"2\"} 4");
	assert_int_equal(lines_with("sluice_sink_waiting_mark_frames{"), 1); /* one has a thread */
}

static void queues_threads_and_disks_have_their_names(void **state)
{
	status.slots = (struct sl_status_gauge){3, 7, 32};
	status.progress_threads = 1;
	status.progress[0] = (struct sl_status_progress){"settler", 1000};
	status.taken_ns = 2001000;
	status.disks = 1;
	snprintf(status.disk[0].path, SL_STATUS_PATH, "/data");
	status.disk[0].free_bytes = 100;
	status.disk[0].frame_bytes = 1;
	status.disk[0].needed_bytes = 200;
	status.disk[0].is_short = 1;
	make_of_status();
	assert_line("sluice_queue_frames{session=\"a\",queue=\"slots\"} 3");
	assert_line("sluice_queue_frames_most{session=\"a\",queue=\"slots\"} 7");
	assert_line("sluice_queue_room_frames{session=\"a\",queue=\"slots\"} 32");
	assert_no("sluice_queue_room_frames{session=\"a\",queue=\"unit\"}"); /* no limit */
	assert_line("sluice_thread_age_seconds{session=\"a\",thread=\"settler\"} 0.002");
	assert_line("sluice_disk_free_bytes{session=\"a\",path=\"/data\"} 100");
	assert_line("sluice_disk_fits{session=\"a\",path=\"/data\"} 0");
}

static void an_error_and_a_result_are_labels(void **state)
{
	make("[{\"name\":\"a\",\"status\":{\"state\":\"fault\",\"result\":\"damaged\","
	     "\"error\":{\"code\":\"memory\"}}}]");
	assert_line("sluice_run_error{session=\"a\",code=\"memory\"} 1");
	assert_line("sluice_run_result{session=\"a\",result=\"damaged\"} 1");
	assert_line("sluice_run_result{session=\"a\",result=\"intact\"} 0");
}

static void label_values_are_escaped(void **state)
{
	make("[{\"name\":\"a\",\"status\":{\"experiment\":\"C:\\\\x \\\"y\\\"\\nz \\u00e9\"}}]");
	assert_line("sluice_run_info{session=\"a\",experiment=\"C:\\\\x \\\"y\\\"\\nz \xc3\xa9\","
		    "transfer=\"\",link=\"\",guard=\"\",proof=\"\"} 1");
}

static void what_is_of_another_type_is_left_out(void **state)
{
	make("[7,{\"name\":5},{\"status\":{}},{\"name\":\"a\",\"status\":[]},"
	     "{\"name\":\"b\",\"status\":{\"state\":1,\"run\":\"x\",\"drained\":3,\"frames\":[],"
	     "\"ledger\":{\"modules\":{\"0\":1},\"total\":7},\"latency_ns\":{\"wire\":3},"
	     "\"sources\":{\"modules\":[null,7]},\"gauges\":{\"slots\":null},\"addons\":[{}],"
	     "\"threads\":{\"progress\":[{\"name\":null}]},\"forecast\":[7],\"rates\":null,"
	     "\"error\":null,\"watermark\":-4}}]");
	assert_line("sluice_session_up{session=\"a\"} 0");
	assert_line("sluice_session_up{session=\"b\"} 1");
	assert_line("sluice_watermark_frames{session=\"b\"} 0");
	assert_no("sluice_run_number");
	assert_no("sluice_run_drained");
	assert_no("sluice_latency_seconds");
	assert_no("session_state");
}

static void seconds_keep_every_digit(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {{0, "0"},
		     {1, "0.000000001"},
		     {1024, "0.000001024"},
		     {500000000, "0.5"},
		     {UINT64_C(3000000000), "3"},
		     {UINT64_MAX, "18446744073.709551615"}};
	char out[24];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sl_metrics_seconds_text(cases[i].ns, out, sizeof(out));
		assert_string_equal(out, cases[i].text);
	}
}

static void the_process_describes_itself(void **state)
{
	struct sl_metrics_text out;

	assert_int_equal(sl_metrics_text_begin(&out), 0);
	sl_metrics_process(&out);
	text = sl_metrics_text_end(&out);
	assert_line("# TYPE process_cpu_seconds_total counter");
	assert_true(strtod(strstr(text, "\nprocess_resident_memory_bytes ") + 31, NULL) > 65536);
	assert_true(strtod(strstr(text, "\nprocess_open_fds ") + 18, NULL) >= 3);
	assert_true(strtod(strstr(text, "\nprocess_start_time_seconds ") + 28, NULL) > 1e9);
}

/* "_total" is of counters alone, and of all; a name is there once. */
static void names_follow_the_conventions(void **state)
{
	const struct sl_metric_family *const table[] = {
		sl_metric_families, sl_metric_ledger_families, sl_metric_parts_families};
	const char *name[200];
	size_t n = 0;

	for (int t = 0; t < 3; t++)
		for (const struct sl_metric_family *f = table[t]; f->name; f++) {
			size_t length = strlen(f->name);
			bool total = length > 6 && !strcmp(f->name + length - 6, "_total");

			assert_int_equal(total, f->type == SL_METRIC_COUNTER);
			assert_int_equal(strncmp(f->name, "sluice_", 7), 0);
			assert_true(f->help[0] && f->write);
			for (size_t i = 0; i < n; i++)
				assert_string_not_equal(name[i], f->name);
			name[n++] = f->name;
		}
	assert_true(n > 50);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(no_sessions_leave_the_program_itself),
		TEST(what_is_no_list_is_refused),
		TEST(sessions_that_do_not_answer_have_two_metrics),
		TEST(of_two_sessions_with_one_name_the_living_one_counts),
		TEST(every_sample_of_a_family_follows_its_type),
		TEST(numbers_become_base_units),
		TEST(the_ledger_is_there_before_anything_is_lost),
		TEST(names_of_a_newer_session_are_written_too),
		TEST(sources_are_counted_by_state),
		TEST(a_histogram_is_cumulative_and_agrees_with_its_count),
		TEST(a_histogram_without_buckets_has_its_count),
		TEST(add_ons_of_one_name_are_told_apart),
		TEST(queues_threads_and_disks_have_their_names),
		TEST(an_error_and_a_result_are_labels),
		TEST(label_values_are_escaped),
		TEST(what_is_of_another_type_is_left_out),
		TEST(seconds_keep_every_digit),
		TEST(the_process_describes_itself),
		TEST(names_follow_the_conventions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
