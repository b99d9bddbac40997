/* report_test.c - the verdict on a run, the report for people, and the summary for programs, all of
 * a run that is made up here. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "lib/capture.h"
#include <sluice/sink.h>

#include "monitor/report.h"
#include "monitor/summary.h"

enum { MODULES = 2 };

struct world {
	struct sl_status s;
	char folder[64], path[128];
	char text[65536]; /* of the report */
};

/* `n` module-frames of one module. */
static void settle_one(struct sl_status *s, uint32_t module, uint64_t n, enum sl_outcome outcome,
		       enum sl_cause cause)
{
	s->column[module].settled += n;
	s->column[module].outcome[outcome] += n;
	s->column[module].cause[cause] += n;
}

/* `n` module-frames of every module. */
static void settle(struct sl_status *s, uint64_t n, enum sl_outcome outcome, enum sl_cause cause)
{
	for (uint32_t m = 0; m < MODULES; m++)
		settle_one(s, m, n, outcome, cause);
}

/* What sources report is what has an outcome. */
static void report_sent(struct sl_status *s)
{
	for (uint32_t m = 0; m < MODULES; m++)
		s->column[m].sent = s->column[m].settled;
}

static struct sl_status_addon *add_addon(struct sl_status *s, const char *name, bool is_sink,
					 const char *where)
{
	struct sl_status_addon *a = &s->addon[s->addons++];

	snprintf(a->name, sizeof(a->name), "%s", name);
	snprintf(a->where, sizeof(a->where), "%s", where);
	a->is_sink = is_sink;
	a->has_place = where[0] != 0;
	a->first_figure = s->figures;
	return a;
}

static void add_figure(struct sl_status *s, const char *name, uint64_t value, bool failed)
{
	struct sl_status_figure *f = &s->figure[s->figures++];

	snprintf(f->name, sizeof(f->name), "%s", name);
	f->value = value;
	f->failed = failed;
	s->addon[s->addons - 1].figures++;
}

/* Figures that must be 0, and the sinks. */
enum { UNLIKE = 1, WRONG = 4, FANCY = 1, PLAIN = 2 };

static void add_addons(struct sl_status *s)
{
	add_addon(s, "gadget", false, "");
	add_figure(s, "frames_cross_checked", 12, false);
	add_figure(s, "frames_unlike_the_cpu", 0, true);
	add_figure(s, "device_ring_frames_good", 3, false);
	add_addon(s, "fancy", true, "out/run.nxs");
	add_figure(s, "frames", 95, false);
	add_figure(s, "wrong_pixels", 0, true);
	add_addon(s, "plain", true, "");
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sl_status *s = &w->s;

	*state = w;
	strcpy(w->folder, "/tmp/sluice-report-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->path, sizeof(w->path), "%s/summary.json", w->folder);
	*s = (struct sl_status){
		.modules = MODULES,
		.latencies = SL_LATENCIES,
		.started_unix_ns = UINT64_C(1706704496789000000),
		.ended_unix_ns = UINT64_C(1706704501000000000),
		.frames = 100,
		.kept = 90,
		.pixel_bytes = 4000000000,
		.first_ns = 1000000000,
		.last_ns = 3000000000,
		.items = 1,
		.same_clock = 1,
		.expected_frames = 200,
		.threads = {.polling = "adaptive", .ring_node = -1},
		.experiment = "demo.yaml",
		.link = "udp",
		.guard = "enforced, credited",
		.proof = "packet count",
	};
	for (uint32_t m = 0; m < MODULES; m++)
		s->source[m].state = SL_SOURCE_DONE;
	settle(s, 90, SL_STORED, SL_CAUSE_NONE);
	settle(s, 7, SL_VETOED, SL_CAUSE_STAGE);
	settle(s, 3, SL_VETOED, SL_CAUSE_DARK);
	report_sent(s);
	add_addons(s);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	unlink(w->path);
	rmdir(w->folder);
	free(w);
	return 0;
}

/* ---- the verdict ---- */

static void results_have_names_and_exit_codes(void **state)
{
	assert_string_equal(sl_result_name(SL_RESULT_INTACT), "intact");
	assert_string_equal(sl_result_name(SL_RESULT_ERROR), "error");
	assert_string_equal(sl_result_name(SL_RESULT_DAMAGED), "damaged");
	assert_string_equal(sl_result_name(SL_RESULT_UNCLOSED), "unclosed");
	assert_int_equal(SL_RESULT_INTACT, 0);
	assert_int_equal(SL_RESULT_ERROR, 1);
	assert_int_equal(SL_RESULT_DAMAGED, 2);
	assert_int_equal(SL_RESULT_UNCLOSED, 3);
}

static void stored_prescaled_vetoed_and_unmatched_are_no_trouble(void **state)
{
	for (unsigned o = 0; o < SL_OUTCOMES; o++)
		assert_int_equal(sl_outcome_is_trouble(o), o != SL_STORED && o != SL_PRESCALED &&
								   o != SL_VETOED &&
								   o != SL_UNMATCHED);
}

static void a_run_without_trouble_is_intact(void **state)
{
	struct world *w = *state;

	settle(&w->s, 2, SL_PRESCALED, SL_CAUSE_NONE);
	report_sent(&w->s);
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_INTACT);
}

static void one_troubled_module_frame_makes_it_damaged(void **state)
{
	struct world *w = *state;

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++) {
		uint64_t *counter = &w->s.column[1].outcome[o];

		*counter += 1;
		w->s.column[1].sent++;
		assert_int_equal(sl_result_of(&w->s),
				 sl_outcome_is_trouble(o) ? SL_RESULT_DAMAGED : SL_RESULT_INTACT);
		*counter -= 1;
		w->s.column[1].sent--;
	}
}

static void a_sink_that_failed_makes_it_damaged(void **state)
{
	struct world *w = *state;

	w->s.addon[PLAIN].error = -ENOSPC;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_DAMAGED);
}

static void one_that_is_not_required_does_not(void **state)
{
	struct world *w = *state;
	char text[128];

	w->s.addon[FANCY].error = -ENOSPC;
	w->s.addon[FANCY].optional = 1;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_INTACT);
	sl_result_early(&w->s, text, sizeof(text));
	assert_string_equal(text, "");
	w->s.addon[FANCY].optional = 0;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_DAMAGED);
	sl_result_early(&w->s, text, sizeof(text));
	assert_string_equal(text, "disk full: later frames were not stored");
}

/* Everything that was sent is stored; but not everything was sent, by no wish of the user. */
static void a_sink_that_stopped_the_run_makes_it_damaged(void **state)
{
	struct world *w = *state;
	char text[256];

	w->s.too_slow = 1 + FANCY;
	w->s.result = sl_result_of(&w->s);
	assert_int_equal(w->s.result, SL_RESULT_DAMAGED);
	sl_result_early(&w->s, text, sizeof(text));
	assert_string_equal(text,
			    "stopped: fancy could not keep pace with the data (on_slow: stop)");
	sl_result_words(&w->s, text, sizeof(text));
	assert_non_null(strstr(text, "stopped because fancy could not keep pace"));
}

static void a_figure_that_must_be_zero_makes_it_damaged(void **state)
{
	struct world *w = *state;

	w->s.figure[WRONG].value = 1;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_DAMAGED);
}

static void so_does_one_of_the_unit(void **state)
{
	struct world *w = *state;

	w->s.figure[UNLIKE].value = 3;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_DAMAGED);
}

static void a_ledger_that_does_not_close_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	w->s.column[0].sent = 101;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_UNCLOSED);
	w->s.addon[FANCY].error = -EIO; /* the worse one counts */
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_UNCLOSED);
}

static void a_source_that_vanished_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	assert_true(sl_status_closed(&w->s));
	w->s.sources_gone = 1;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_UNCLOSED);
}

static void misuse_of_the_ledger_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	w->s.misuse = 1;
	assert_int_equal(sl_result_of(&w->s), SL_RESULT_UNCLOSED);
}

/* ---- the report ---- */

static const char *report(struct world *w, enum sl_result result)
{
	FILE *out = fmemopen(w->text, sizeof(w->text), "w");

	assert_non_null(out);
	w->s.result = result;
	sl_report(out, &w->s);
	fclose(out);
	return w->text;
}

/* The numbers of one row of the ledger. */
static void expect_row(const char *text, const char *name, uint64_t first, uint64_t second,
		       uint64_t total)
{
	char row[128];

	snprintf(row, sizeof(row), "\n  %-12s  %10llu  %10llu  %10llu\n", name,
		 (unsigned long long)first, (unsigned long long)second, (unsigned long long)total);
	if (!strstr(text, row))
		fail_msg("no row '%s' in: %s", row, text);
}

static void expect_text(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("no '%s' in: %s", words, text);
}

static void the_table_has_a_row_per_outcome(void **state)
{
	struct world *w = *state;
	const char *text;

	settle_one(&w->s, 1, 1, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	report_sent(&w->s);
	text = report(w, SL_RESULT_DAMAGED);
	expect_text(text, "module 0    module 1       total\n");
	expect_row(text, "sent", 100, 101, 201);
	expect_row(text, "stored", 90, 90, 180);
	expect_row(text, "prescaled", 0, 0, 0);
	expect_row(text, "vetoed", 10, 10, 20);
	expect_row(text, "incomplete", 0, 0, 0);
	expect_row(text, "overrun", 0, 0, 0);
	expect_row(text, "unproven", 0, 0, 0);
	expect_row(text, "refused", 0, 0, 0);
	expect_row(text, "unwritten", 0, 0, 0);
	expect_row(text, "lost", 0, 1, 1);
	expect_text(text, "the ledger closes");
	expect_text(text, "causes: dark 6, stage 14, no_arrival 1\n");
	expect_text(text, "Result: damaged");
}

static void a_ledger_that_does_not_close_is_shouted(void **state)
{
	struct world *w = *state;

	w->s.column[0].sent = 101;
	expect_text(report(w, SL_RESULT_UNCLOSED), "DOES NOT CLOSE");
	expect_text(w->text, "Result: unclosed");
}

static void an_intact_run_says_so_and_how_fast_it_was(void **state)
{
	struct world *w = *state;
	const char *text = report(w, SL_RESULT_INTACT);

	expect_text(text, "100 frames in 2.00 s: 50.0 frames/s, 2.00 GB/s of pixels; link udp, "
			  "guard enforced, credited, proof packet count");
	expect_text(text, "Result: intact");
	assert_null(strstr(text, "turned away"));
	assert_null(strstr(text, "vanished"));
}

static void packets_that_were_turned_away_are_told_by_cause(void **state)
{
	struct world *w = *state;

	w->s.dropped[SL_DROP_ICRC] = 3;
	w->s.dropped[SL_DROP_LATE] = 4;
	expect_text(report(w, SL_RESULT_INTACT), "packets turned away: ");
	expect_text(w->text, sl_drop_name(SL_DROP_ICRC));
	expect_text(w->text, " 3, ");
	expect_text(w->text, " 4\n");
}

static void a_source_that_vanished_is_named_with_its_last_frame(void **state)
{
	struct world *w = *state;

	w->s.source[1].state = SL_SOURCE_GONE;
	expect_text(report(w, SL_RESULT_UNCLOSED), "module 1: its front end vanished");
	assert_null(strstr(w->text, "under way"));
	w->s.source[1].unfinished_sequence = 42;
	w->s.source[1].unfinished_packets = 17;
	expect_text(report(w, SL_RESULT_UNCLOSED), "frame 42 was under way, 17 packets of it came");
}

static void latencies_are_in_microseconds_where_there_are_any(void **state)
{
	struct world *w = *state;

	w->s.latency[SL_LATENCY_SINK] = (struct sl_status_latency){
		.count = 100, .p50_ns = 5000, .p99_ns = 5000, .p999_ns = 5000, .max_ns = 5000};
	expect_text(report(w, SL_RESULT_INTACT),
		    "  sink                    5.0        5.0        5.0\n");
	assert_null(strstr(w->text, "wire"));
	w->s.same_clock = 0;
	expect_text(report(w, SL_RESULT_INTACT), "another clock");
}

static void sinks_are_told_with_place_figures_and_failure(void **state)
{
	struct world *w = *state;

	expect_text(report(w, SL_RESULT_INTACT), "fancy: ok, out/run.nxs, frames 95\n");
	expect_text(w->text, "plain: ok\n");
	w->s.figure[WRONG].value = 2;
	w->s.addon[FANCY].where[0] = 0;
	w->s.addon[PLAIN].error = -ENOSPC;
	expect_text(report(w, SL_RESULT_DAMAGED), "fancy: ok, frames 95, wrong_pixels 2 (!)\n");
	expect_text(w->text, "plain: FAILED (No space left on device)\n");
}

static void the_unit_is_told_with_its_figures(void **state)
{
	struct world *w = *state;

	expect_text(report(w, SL_RESULT_INTACT), "gadget, frames_cross_checked 12, "
						 "device_ring_frames_good 3\n");
	w->s.figure[UNLIKE].value = 2;
	expect_text(report(w, SL_RESULT_DAMAGED),
		    "gadget, frames_cross_checked 12, frames_unlike_the_cpu 2 (!), "
		    "device_ring_frames_good 3\n");
}

/* ---- the live line ---- */

/* The line that is drawn at the end, as somebody who reads a log sees it. */
static const char *last_line(struct world *w, uint64_t expected)
{
	struct sl_progress_line progress;

	w->s.expected_frames = expected;
	capture_begin();
	sl_progress_line_begin(&progress);
	progress.start_ns -= 1000000000;
	sl_progress_line_end(&progress, &w->s);
	return capture_end();
}

static void the_line_counts_frames_and_kept(void **state)
{
	struct world *w = *state;

	w->s.broken = 10;
	w->s.kept = 45;
	expect_text(last_line(w, 200), "100 / 200 frames");
	w->s.slots.of = 32;
	w->s.slots.now = 3;
	w->s.at_unit.now = 4;
	w->s.at_sinks.now = 5;
	expect_text(last_line(w, 200),
		    "50.0 % kept   10 lost or damaged   ring 3/32   waiting 4 + 5\n");
	expect_text(last_line(w, 0), "100 frames ");
	expect_text(last_line(w, 99), "100 frames "); /* never 100 of 99 */
}

/* Since the last line: of one second, the sink was waited for 370 ms; later lines count anew. */
static void the_line_names_sinks_that_are_slow(void **state)
{
	struct world *w = *state;
	struct sl_progress_line progress;
	const char *line;

	expect_text(last_line(w, 200), "waiting 0 + 0\n");
	w->s.pace[FANCY] = (struct sl_status_pace){.threaded = 1, .factor = 1};
	w->s.pace[FANCY].waited_ns = 370000000;
	expect_text(last_line(w, 200), "   waits for fancy 37 %\n");
	w->s.pace[FANCY].left_out = 12;
	w->s.pace[FANCY].on_slow = SL_ON_SLOW_PRESCALE;
	w->s.pace[FANCY].factor = 4;
	expect_text(last_line(w, 200), "   fancy stores 1 of 4, has left out 12\n");
	w->s.pace[FANCY].on_slow = SL_ON_SLOW_DROP;
	expect_text(last_line(w, 200), "   fancy has left out 12\n");
	capture_begin();
	sl_progress_line_begin(&progress);
	progress.shown_ns -= 1000000000;
	sl_progress_line_draw(&progress, &w->s);
	progress.shown_ns -= 1000000000;
	sl_progress_line_draw(&progress, &w->s);
	line = capture_end();
	assert_non_null(strstr(line, "waits for fancy 37 %"));
	assert_null(strstr(strchr(line, '\n'), "waits for"));
}

static void the_report_names_sinks_that_are_slow(void **state)
{
	struct world *w = *state;

	assert_null(strstr(report(w, SL_RESULT_INTACT), "keep pace"));
	w->s.pace[FANCY] = (struct sl_status_pace){.threaded = 1,
						   .on_slow = SL_ON_SLOW_PRESCALE,
						   .waited_ns = 500000000,
						   .left_out = 12,
						   .changes = 3,
						   .factor = 2};
	report(w, SL_RESULT_DAMAGED);
	expect_text(w->text, "  the data waited for fancy 25 % of the time (0.50 s)");
	expect_text(w->text, "  12 kept frames were left out by fancy");
	expect_text(w->text, "the factor changed 3 times");
	expect_text(w->text, "Result: damaged: everything is accounted for, but see above; fancy "
			     "left out 12 kept frames (on_slow: prescale)\n");
	w->s.pace[FANCY].on_slow = SL_ON_SLOW_DROP;
	report(w, SL_RESULT_INTACT);
	expect_text(w->text, "  12 frames were left out by fancy, which could not keep pace "
			     "(on_slow: drop)");
	expect_text(w->text, "fancy left out 12 frames (on_slow: drop)\n");
	w->s.addon[FANCY].error = -EIO;
	w->s.addon[FANCY].optional = 1;
	expect_text(report(w, SL_RESULT_INTACT), "fancy: FAILED (not required), out/run.nxs");
}

static void the_line_is_not_drawn_all_the_time(void **state)
{
	struct world *w = *state;
	struct sl_progress_line progress;

	sl_progress_line_begin(&progress);
	assert_false(sl_progress_line_is_due(&progress));
	progress.shown_ns -= 3000000000;
	assert_true(sl_progress_line_is_due(&progress));
	capture_begin();
	sl_progress_line_draw(&progress, &w->s);
	expect_text(capture_end(), "100 / 200 frames");
	assert_false(sl_progress_line_is_due(&progress));
	assert_int_equal(progress.shown_bytes, 4000000000);
}

/* ---- the summary ---- */

static int write_summary(const char *path, const struct sl_status *status, uint32_t version)
{
	struct sl_part_file file;
	int err = sl_part_file_open(path, &file);

	return err ? err : sl_summary_write(&file, status, NULL, version);
}

static json_t *summary_of_version(struct world *w, const char *file, uint32_t version)
{
	json_error_t error;
	json_t *json;

	snprintf(w->s.experiment, sizeof(w->s.experiment), "%s", file);
	w->s.result = sl_result_of(&w->s);
	assert_int_equal(write_summary(w->path, &w->s, version), 0);
	json = json_load_file(w->path, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("%s:%d: %s", w->path, error.line, error.text);
	return json;
}

static json_t *summary(struct world *w, const char *file)
{
	return summary_of_version(w, file, SL_SUMMARY_VERSION);
}

/* "a.b.2.c": keys and indices on the way down. */
static const json_t *find(const json_t *json, const char *path)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save)) {
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
					   : json_object_get(json, key);
		if (!json)
			fail_msg("no %s in the summary (at %s)", path, key);
	}
	return json;
}

static json_int_t integer(const json_t *json, const char *path)
{
	assert_true(json_is_integer(find(json, path)));
	return json_integer_value(find(json, path));
}

static const char *string(const json_t *json, const char *path)
{
	assert_true(json_is_string(find(json, path)));
	return json_string_value(find(json, path));
}

static json_int_t sum_of(const json_t *object)
{
	json_int_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) sum += json_integer_value(value);
	return sum;
}

static void the_summary_says_what_ran_and_how_it_ended(void **state)
{
	json_t *json = summary(*state, "demo.yaml");

	assert_string_equal(string(json, "sluice"), SL_VERSION);
	assert_string_equal(string(json, "experiment"), "demo.yaml");
	assert_string_equal(string(json, "started"), "2024-01-31T12:34:56.789Z");
	assert_int_equal(strlen(string(json, "ended")), 24);
	assert_true(json_is_null(find(json, "stopped_by")));
	assert_string_equal(string(json, "result"), "intact");
	assert_int_equal(integer(json, "exit"), 0);
	assert_int_equal(integer(json, "frames.settled"), 100);
	assert_int_equal(integer(json, "frames.kept"), 90);
	assert_int_equal(integer(json, "frames.broken"), 0);
	json_decref(json);
}

static void the_summary_has_the_ledger_and_its_sums(void **state)
{
	static const char *const outcomes[] = {"stored",     "prescaled", "vetoed",
					       "incomplete", "overrun",	  "unproven",
					       "refused",    "unwritten", "lost"};
	struct world *w = *state;
	json_t *json;

	settle_one(&w->s, 1, 1, SL_INCOMPLETE, SL_CAUSE_CHECKSUM);
	report_sent(&w->s);
	json = summary(w, "demo.yaml");
	assert_true(json_is_true(find(json, "ledger.closed")));
	assert_int_equal(integer(json, "ledger.misuse"), 0);
	assert_int_equal(integer(json, "ledger.sources_vanished"), 0);
	assert_int_equal(integer(json, "ledger.total.sent"), 201);
	assert_int_equal(json_object_size(find(json, "ledger.total.outcomes")), SL_OUTCOMES - 1);
	for (size_t i = 0; i < 9; i++)
		assert_true(json_is_integer(
			json_object_get(find(json, "ledger.total.outcomes"), outcomes[i])));
	assert_int_equal(sum_of(find(json, "ledger.total.outcomes")), 201);
	assert_int_equal(integer(json, "ledger.total.outcomes.stored"), 180);
	assert_int_equal(integer(json, "ledger.total.outcomes.vetoed"), 20);
	assert_int_equal(integer(json, "ledger.total.causes.dark"), 6);
	assert_int_equal(integer(json, "ledger.total.causes.checksum"), 1);

	assert_int_equal(json_array_size(find(json, "ledger.modules")), MODULES);
	assert_int_equal(integer(json, "ledger.modules.1.module"), 1);
	assert_int_equal(integer(json, "ledger.modules.1.sent"), 101);
	assert_int_equal(sum_of(find(json, "ledger.modules.1.outcomes")), 101);
	assert_int_equal(integer(json, "ledger.modules.1.outcomes.incomplete"), 1);
	assert_int_equal(integer(json, "ledger.modules.0.outcomes.incomplete"), 0);
	assert_int_equal(integer(json, "ledger.modules.1.causes.checksum"), 1);
	assert_string_equal(string(json, "ledger.modules.0.source"), "done");
	assert_null(json_object_get(find(json, "ledger.modules.0"), "unfinished"));
	json_decref(json);
}

static void the_summary_of_an_unclosed_run_says_why(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->s.sources_gone = 1;
	w->s.source[1].state = SL_SOURCE_GONE;
	w->s.source[1].unfinished_sequence = 42;
	w->s.source[1].unfinished_packets = 17;
	w->s.column[1].sent = 102;
	json = summary(w, "demo.yaml");
	assert_true(json_is_false(find(json, "ledger.closed")));
	assert_string_equal(string(json, "result"), "unclosed");
	assert_int_equal(integer(json, "exit"), 3);
	assert_int_equal(integer(json, "ledger.sources_vanished"), 1);
	assert_string_equal(string(json, "ledger.modules.1.source"), "vanished");
	assert_int_equal(integer(json, "ledger.modules.1.unfinished.sequence"), 42);
	assert_int_equal(integer(json, "ledger.modules.1.unfinished.packets"), 17);
	json_decref(json);
}

static void the_summary_has_the_link_with_guard_and_proof(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->s.packets = 1000;
	w->s.packet_bytes = 4096000;
	for (unsigned d = 0; d < SL_DROPS; d++)
		w->s.dropped[d] = d + 1;
	json = summary(w, "demo.yaml");
	assert_string_equal(string(json, "link.kind"), "udp");
	assert_string_equal(string(json, "link.guard"), "enforced, credited");
	assert_string_equal(string(json, "link.proof"), "packet count");
	assert_int_equal(integer(json, "link.packets"), 1000);
	assert_int_equal(integer(json, "link.bytes"), 4096000);
	assert_int_equal(sum_of(find(json, "link.turned_away")), SL_DROPS * (SL_DROPS + 1) / 2);
	json_decref(json);
}

static void the_summary_has_latencies_rates_and_sinks(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->s.latency[SL_LATENCY_TOTAL] = (struct sl_status_latency){
		.count = 100, .p50_ns = 50000, .p99_ns = 99000, .p999_ns = 99900, .max_ns = 100000};
	w->s.addon[PLAIN].error = -ENOSPC;
	json = summary(w, "demo.yaml");
	assert_int_equal(integer(json, "latency_us.total.count"), 100);
	assert_true(json_real_value(find(json, "latency_us.total.max")) == 100);
	assert_in_range(json_real_value(find(json, "latency_us.total.p50")), 45, 55);
	assert_in_range(json_real_value(find(json, "latency_us.total.p99")), 94, 100);
	assert_non_null(find(json, "latency_us.total.p999"));
	assert_null(json_object_get(find(json, "latency_us"), "wire"));
	assert_true(json_real_value(find(json, "rates.seconds")) == 2);
	assert_true(json_real_value(find(json, "rates.frames_per_s")) == 50);
	assert_true(json_real_value(find(json, "rates.GB_per_s")) == 2);
	assert_string_equal(string(json, "sinks.0.name"), "fancy");
	assert_string_equal(string(json, "sinks.0.where"), "out/run.nxs");
	assert_int_equal(integer(json, "sinks.0.figures.frames"), 95);
	assert_true(json_is_null(find(json, "sinks.0.error")));
	assert_true(json_is_null(find(json, "sinks.1.where")));
	assert_string_equal(string(json, "sinks.1.error"), "No space left on device");
	json_decref(json);
}

static void the_summary_has_the_pace_of_sinks(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->s.watermark = 100;
	w->s.addon[PLAIN].optional = 1;
	w->s.pace[FANCY] = (struct sl_status_pace){.threaded = 1,
						   .on_slow = 1,
						   .factor = 2,
						   .changes = 300,
						   .waiting = {1, 20, 32},
						   .mark = 24,
						   .waited_ns = 5,
						   .left_out = 12};
	w->s.changes = 3;
	w->s.change[0] = (struct sl_status_change){7, FANCY, 2};
	w->s.change[1] = (struct sl_status_change){8, PLAIN, 2};
	w->s.change[2] = (struct sl_status_change){9, FANCY, 4};
	json = summary(w, "x.yaml");
	assert_int_equal(integer(json, "watermark"), 100);
	assert_true(json_is_true(find(json, "sinks.0.required")));
	assert_true(json_is_false(find(json, "sinks.1.required")));
	assert_true(json_is_null(find(json, "sinks.1.pace")));
	assert_string_equal(string(json, "sinks.0.pace.on_slow"), "prescale");
	assert_int_equal(integer(json, "sinks.0.pace.waiting.most"), 20);
	assert_int_equal(integer(json, "sinks.0.pace.mark"), 24);
	assert_int_equal(integer(json, "sinks.0.pace.waited_ns"), 5);
	assert_int_equal(integer(json, "sinks.0.pace.left_out"), 12);
	assert_int_equal(integer(json, "sinks.0.pace.factor_changes"), 300);
	assert_int_equal(json_array_size(find(json, "sinks.0.pace.changes")), 2);
	assert_int_equal(integer(json, "sinks.0.pace.changes.1.sequence"), 9);
	assert_int_equal(integer(json, "sinks.0.pace.changes.1.factor"), 4);
	json_decref(json);
}

static void events_are_counted_where_frames_hold_many(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->s.broken = 10;
	w->s.items = 200000;
	expect_text(report(w, SL_RESULT_INTACT), "50.0 frames/s (9 M events/s), 2.00 GB/s");
	w->s.items = 100;
	expect_text(report(w, SL_RESULT_INTACT), "50.0 frames/s (4500 events/s), 2.00 GB/s");
	json = summary(w, "demo.yaml");
	assert_true(json_real_value(find(json, "rates.events_per_s")) == 4500);
	json_decref(json);
	w->s.items = 1;
	json = summary(w, "demo.yaml");
	assert_null(json_object_get(find(json, "rates"), "events_per_s"));
	json_decref(json);
}

static void a_name_that_is_not_utf8_does_not_cost_the_summary(void **state)
{
	struct world *w = *state;
	json_t *json;

	strcpy(w->s.addon[FANCY].where, "M\xfcnchen.nxs");
	json = summary(w, "caf\xe9.yaml");
	assert_string_equal(string(json, "experiment"), "caf?.yaml");
	assert_string_equal(string(json, "sinks.0.where"), "M?nchen.nxs");
	json_decref(json);
	json = summary(w, "caf\xc3\xa9.yaml"); /* this one is */
	assert_string_equal(string(json, "experiment"), "caf\xc3\xa9.yaml");
	json_decref(json);
}

static bool exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0;
}

static void a_summary_is_written_whole_or_not_at_all(void **state)
{
	struct world *w = *state;
	char part[160];
	const char *said;
	int err;

	json_decref(summary(w, "demo.yaml"));
	snprintf(part, sizeof(part), "%s.part", w->path);
	assert_false(exists(part));
	unlink(w->path);

	mkdir(w->path, 0700); /* cannot be replaced by a file */
	capture_begin();
	err = write_summary(w->path, &w->s, SL_SUMMARY_VERSION);
	said = capture_end();
	rmdir(w->path);
	assert_int_equal(err, -EISDIR);
	assert_false(exists(part));
	expect_text(said, w->path);
	expect_text(said, "Is a directory");
}

static void a_place_that_cannot_be_written_is_an_error(void **state)
{
	struct world *w = *state;
	const char *said;

	capture_begin();
	assert_int_equal(write_summary("/dev/null/all.json", &w->s, SL_SUMMARY_VERSION), -ENOTDIR);
	said = capture_end();
	expect_text(said, "/dev/null/all.json.part: cannot create: Not a directory");
}

static void a_full_disk_is_an_error(void **state)
{
	struct world *w = *state;
	struct rlimit before;
	char part[160];
	int err;

	snprintf(part, sizeof(part), "%s.part", w->path);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, before.rlim_max}), 0);
	capture_begin();
	err = write_summary(w->path, &w->s, SL_SUMMARY_VERSION);
	capture_end();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(err < 0);
	assert_false(exists(w->path));
	assert_false(exists(part));
}

static void version_1_has_the_former_words(void **state)
{
	struct world *w = *state;
	json_t *now = summary(w, "demo.yaml");
	json_t *former = summary_of_version(w, "demo.yaml", 1);

	assert_int_equal(integer(now, "schema"), 2);
	assert_null(json_object_get(former, "schema"));
	assert_int_equal(integer(now, "unit.figures.device_ring_frames_good"), 3);
	assert_int_equal(integer(former, "unit.figures.ring_frames_good"), 3);
	assert_null(json_object_get(find(former, "unit.figures"), "device_ring_frames_good"));
	assert_non_null(json_object_get(now, "metadata"));
	assert_null(json_object_get(former, "metadata"));
	assert_true(json_is_null(json_object_get(now, "flight")));
	assert_null(json_object_get(former, "flight"));
	assert_int_equal(json_object_size(now), json_object_size(former) + 3);
	json_decref(now);
	json_decref(former);
}

static void what_a_sink_says_in_words_is_told_with_it(void **state)
{
	struct world *w = *state;

	w->s.texts = 1;
	w->s.text[0] = (struct sl_status_text){.name = "root", .value = "e3b0", .addon = FANCY};
	expect_text(report(w, SL_RESULT_INTACT), "fancy: ok, out/run.nxs, frames 95");
	expect_text(w->text, ", root e3b0\n");
	assert_null(strstr(strstr(w->text, "e3b0") + 1, "e3b0")); /* of no other */
	expect_text(w->text, "plain: ok\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		cmocka_unit_test(results_have_names_and_exit_codes),
		CASE(version_1_has_the_former_words),
		cmocka_unit_test(stored_prescaled_vetoed_and_unmatched_are_no_trouble),
		CASE(a_run_without_trouble_is_intact),
		CASE(one_troubled_module_frame_makes_it_damaged),
		CASE(a_sink_that_failed_makes_it_damaged),
		CASE(one_that_is_not_required_does_not),
		CASE(a_sink_that_stopped_the_run_makes_it_damaged),
		CASE(a_figure_that_must_be_zero_makes_it_damaged),
		CASE(so_does_one_of_the_unit),
		CASE(a_ledger_that_does_not_close_makes_it_unclosed),
		CASE(a_source_that_vanished_makes_it_unclosed),
		CASE(misuse_of_the_ledger_makes_it_unclosed),
		CASE(the_table_has_a_row_per_outcome),
		CASE(a_ledger_that_does_not_close_is_shouted),
		CASE(an_intact_run_says_so_and_how_fast_it_was),
		CASE(events_are_counted_where_frames_hold_many),
		CASE(packets_that_were_turned_away_are_told_by_cause),
		CASE(a_source_that_vanished_is_named_with_its_last_frame),
		CASE(latencies_are_in_microseconds_where_there_are_any),
		CASE(sinks_are_told_with_place_figures_and_failure),
		CASE(the_unit_is_told_with_its_figures),
		CASE(what_a_sink_says_in_words_is_told_with_it),
		CASE(the_line_counts_frames_and_kept),
		CASE(the_line_names_sinks_that_are_slow),
		CASE(the_report_names_sinks_that_are_slow),
		CASE(the_line_is_not_drawn_all_the_time),
		CASE(the_summary_says_what_ran_and_how_it_ended),
		CASE(the_summary_has_the_ledger_and_its_sums),
		CASE(the_summary_of_an_unclosed_run_says_why),
		CASE(the_summary_has_the_link_with_guard_and_proof),
		CASE(the_summary_has_latencies_rates_and_sinks),
		CASE(the_summary_has_the_pace_of_sinks),
		CASE(a_name_that_is_not_utf8_does_not_cost_the_summary),
		CASE(a_summary_is_written_whole_or_not_at_all),
		CASE(a_place_that_cannot_be_written_is_an_error),
		CASE(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
