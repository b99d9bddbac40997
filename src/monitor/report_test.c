/* report_test.c - the verdict on a run, the report for people, and the summary for programs, all of
 * a run that is made up here. */
#include <errno.h>
#include <jansson.h>
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

#include "base/clock.h"
#include "lib/capture.h"
#include "monitor/report.h"
#include "monitor/summary.h"

enum { MODULES = 2 };

struct fake { /* a sink's state, and the unit's */
	uint64_t wrong, unlike;
	const char *where;
};

static const char *where(const void *state)
{
	return ((const struct fake *)state)->where;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	figure(arg, "frames", 95, 0);
	figure(arg, "wrong_pixels", ((const struct fake *)state)->wrong, 1);
}

static const struct sl_sink fancy = {.name = "fancy", .where = where, .figures = figures};
static const struct sl_sink plain = {.name = "plain"};

struct world {
	struct sl_receiver *r;
	struct sl_experiment experiment;
	struct fake fake;
	char folder[64], path[128];
	char text[65536]; /* of the report */
};

/* `n` module-frames of every module. */
static void settle(struct sl_receiver *r, uint64_t n, enum sl_outcome outcome, enum sl_cause cause)
{
	for (uint32_t m = 0; m < MODULES; m++)
		for (uint64_t i = 0; i < n; i++)
			sl_ledger_settle(&r->ledger, m, r->ledger.tally[m].next, outcome, cause);
}

/* What sources report is what has an outcome. */
static void report_sent(struct sl_receiver *r)
{
	for (uint32_t m = 0; m < MODULES; m++)
		sl_ledger_report(&r->ledger, m, r->ledger.tally[m].next);
}

/* A unit with something to say. */
static void unit_figures(const void *state, sl_unit_figure *figure, void *arg)
{
	const struct fake *fake = state;

	figure(arg, "frames_cross_checked", 12, 0);
	figure(arg, "frames_unlike_the_cpu", fake->unlike, 1);
	figure(arg, "device_ring_frames_good", 3, 0);
}

static const struct sl_unit unit = {.name = "gadget", .figures = unit_figures};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t bytes = (sizeof(*w->r) + 63) / 64 * 64;

	*state = w;
	strcpy(w->folder, "/tmp/sluice-report-XXXXXX");
	w->r = aligned_alloc(64, bytes);
	if (!w->r || !mkdtemp(w->folder))
		return -1;
	memset(w->r, 0, bytes);
	snprintf(w->path, sizeof(w->path), "%s/summary.json", w->folder);
	w->experiment.unit = &unit;
	w->experiment.unit_state = &w->fake;
	w->experiment.sinks = 2;
	w->experiment.sink[0] = &fancy;
	w->experiment.sink_state[0] = &w->fake;
	w->experiment.sink[1] = &plain;
	w->fake.where = "out/run.nxs";
	w->r->experiment = &w->experiment;
	w->r->env.link = "udp";
	w->r->env.guard = "enforced, credited";
	w->r->env.proof = "packet count";
	w->r->same_clock = true;
	for (uint32_t m = 0; m < MODULES; m++)
		w->r->source[m].state = SL_SOURCE_DONE;
	if (sl_ledger_init(&w->r->ledger, MODULES))
		return -1;
	settle(w->r, 90, SL_STORED, SL_CAUSE_NONE);
	settle(w->r, 7, SL_VETOED, SL_CAUSE_STAGE);
	settle(w->r, 3, SL_VETOED, SL_CAUSE_DARK);
	report_sent(w->r);
	w->r->frames = 100;
	w->r->kept = 90;
	w->r->bytes = 4000000000;
	w->r->first_ns = 1000000000;
	w->r->last_ns = 3000000000;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	unlink(w->path);
	rmdir(w->folder);
	sl_ledger_fini(&w->r->ledger);
	free(w->r);
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

static void stored_prescaled_and_vetoed_are_no_trouble(void **state)
{
	for (unsigned o = 0; o < SL_OUTCOMES; o++)
		assert_int_equal(sl_outcome_is_trouble(o),
				 o != SL_STORED && o != SL_PRESCALED && o != SL_VETOED);
}

static void a_run_without_trouble_is_intact(void **state)
{
	struct world *w = *state;

	settle(w->r, 2, SL_PRESCALED, SL_CAUSE_NONE);
	report_sent(w->r);
	assert_int_equal(sl_result_of(w->r), SL_RESULT_INTACT);
}

static void one_troubled_module_frame_makes_it_damaged(void **state)
{
	struct world *w = *state;

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++) {
		_Atomic uint64_t *counter = &w->r->ledger.tally[1].outcome[o];

		*counter += 1;
		w->r->ledger.tally[1].sent++;
		assert_int_equal(sl_result_of(w->r),
				 sl_outcome_is_trouble(o) ? SL_RESULT_DAMAGED : SL_RESULT_INTACT);
		*counter -= 1;
		w->r->ledger.tally[1].sent--;
	}
}

static void a_sink_that_failed_makes_it_damaged(void **state)
{
	struct world *w = *state;

	w->r->sink_error[1] = -ENOSPC;
	assert_int_equal(sl_result_of(w->r), SL_RESULT_DAMAGED);
}

static void a_figure_that_must_be_zero_makes_it_damaged(void **state)
{
	struct world *w = *state;

	w->fake.wrong = 1;
	assert_int_equal(sl_result_of(w->r), SL_RESULT_DAMAGED);
}

static void so_does_one_of_the_unit(void **state)
{
	struct world *w = *state;

	w->fake.unlike = 3;
	assert_int_equal(sl_result_of(w->r), SL_RESULT_DAMAGED);
}

static void a_ledger_that_does_not_close_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	sl_ledger_report(&w->r->ledger, 0, 101);
	assert_int_equal(sl_result_of(w->r), SL_RESULT_UNCLOSED);
	w->r->sink_error[0] = -EIO; /* the worse one counts */
	assert_int_equal(sl_result_of(w->r), SL_RESULT_UNCLOSED);
}

static void a_source_that_vanished_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	assert_true(sl_ledger_closed(&w->r->ledger));
	w->r->ledger.source_died = 1;
	assert_int_equal(sl_result_of(w->r), SL_RESULT_UNCLOSED);
}

static void misuse_of_the_ledger_makes_it_unclosed(void **state)
{
	struct world *w = *state;

	sl_ledger_settle(&w->r->ledger, 0, 0, SL_STORED, SL_CAUSE_NONE);
	assert_int_equal(sl_result_of(w->r), SL_RESULT_UNCLOSED);
}

/* ---- the report ---- */

static const char *report(struct world *w, enum sl_result result)
{
	FILE *out = fmemopen(w->text, sizeof(w->text), "w");

	assert_non_null(out);
	sl_report(out, w->r, result, NULL);
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

	sl_ledger_settle(&w->r->ledger, 1, 100, SL_LOST, SL_CAUSE_NO_ARRIVAL);
	report_sent(w->r);
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

	sl_ledger_report(&w->r->ledger, 0, 101);
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

	w->r->counters.dropped[SL_DROP_ICRC] = 3;
	w->r->counters.dropped[SL_DROP_LATE] = 4;
	expect_text(report(w, SL_RESULT_INTACT), "packets turned away: ");
	expect_text(w->text, sl_drop_name(SL_DROP_ICRC));
	expect_text(w->text, " 3, ");
	expect_text(w->text, " 4\n");
}

static void a_source_that_vanished_is_named_with_its_last_frame(void **state)
{
	struct world *w = *state;

	w->r->source[1].state = SL_SOURCE_GONE;
	expect_text(report(w, SL_RESULT_UNCLOSED), "module 1: its front end vanished");
	assert_null(strstr(w->text, "under way"));
	w->r->source[1].unfinished_sequence = 42;
	w->r->source[1].unfinished_packets = 17;
	expect_text(report(w, SL_RESULT_UNCLOSED), "frame 42 was under way, 17 packets of it came");
}

static void latencies_are_in_microseconds_where_there_are_any(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 100; i++)
		sl_histogram_add(&w->r->latency[SL_LATENCY_SINK], 5000);
	expect_text(report(w, SL_RESULT_INTACT),
		    "  sink                    5.0        5.0        5.0\n");
	assert_null(strstr(w->text, "wire"));
	w->r->same_clock = false;
	expect_text(report(w, SL_RESULT_INTACT), "another clock");
}

static void sinks_are_told_with_place_figures_and_failure(void **state)
{
	struct world *w = *state;

	expect_text(report(w, SL_RESULT_INTACT), "fancy: ok, out/run.nxs, frames 95\n");
	expect_text(w->text, "plain: ok\n");
	w->fake.wrong = 2;
	w->fake.where = "";
	w->r->sink_error[1] = -ENOSPC;
	expect_text(report(w, SL_RESULT_DAMAGED), "fancy: ok, frames 95, wrong_pixels 2 (!)\n");
	expect_text(w->text, "plain: FAILED (No space left on device)\n");
}

static void the_unit_is_told_with_its_figures(void **state)
{
	struct world *w = *state;

	expect_text(report(w, SL_RESULT_INTACT), "gadget, frames_cross_checked 12, "
						 "device_ring_frames_good 3\n");
	w->fake.unlike = 2;
	expect_text(report(w, SL_RESULT_DAMAGED),
		    "gadget, frames_cross_checked 12, frames_unlike_the_cpu 2 (!), "
		    "device_ring_frames_good 3\n");
}

/* ---- the live line ---- */

/* The line that is drawn at the end, as somebody who reads a log sees it. */
static const char *last_line(struct world *w, uint64_t expected)
{
	struct sl_progress progress;

	capture_begin();
	sl_progress_begin(&progress, expected);
	progress.start_ns -= 1000000000;
	sl_progress_end(&progress, w->r);
	return capture_end();
}

static void the_line_counts_frames_and_kept(void **state)
{
	struct world *w = *state;

	w->r->broken = 10;
	w->r->kept = 45;
	expect_text(last_line(w, 200), "100 / 200 frames");
	w->r->ring.slots = 32;
	w->r->slots_used.now = 3;
	w->r->at_unit.now = 4;
	w->r->at_sinks.now = 5;
	expect_text(last_line(w, 200),
		    "50.0 % kept   10 lost or damaged   ring 3/32   waiting 4 + 5\n");
	expect_text(last_line(w, 0), "100 frames ");
	expect_text(last_line(w, 99), "100 frames "); /* never 100 of 99 */
}

static void the_line_never_reads_over_a_hundred_percent(void **state)
{
	struct world *w = *state;

	w->r->kept = 105; /* counted on while the line was put together */
	expect_text(last_line(w, 200), "100.0 % kept");
	w->r->broken = 101;
	expect_text(last_line(w, 200), "0.0 % kept   100 lost or damaged");
}

static void the_line_is_not_drawn_all_the_time(void **state)
{
	struct world *w = *state;
	struct sl_progress progress;

	capture_begin();
	sl_progress_begin(&progress, 200);
	sl_progress_draw(&progress, w->r);
	assert_string_equal(capture_end(), "");
	capture_begin();
	progress.shown_ns -= 3000000000;
	sl_progress_draw(&progress, w->r);
	sl_progress_draw(&progress, w->r);
	expect_text(capture_end(), "100 / 200 frames");
	assert_int_equal(progress.shown_bytes, 4000000000);
}

/* ---- the summary ---- */

static json_t *summary_of_version(struct world *w, const char *file, uint32_t version)
{
	const struct sl_summary_facts run = {.file = file,
					     .started = "2024-01-31T12:34:56.789Z",
					     .stopped_by = NULL,
					     .result = sl_result_of(w->r),
					     .version = version};
	json_error_t error;
	json_t *json;

	assert_int_equal(sl_summary_write(w->path, w->r, &run), 0);
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

	sl_ledger_settle(&w->r->ledger, 1, 100, SL_INCOMPLETE, SL_CAUSE_CHECKSUM);
	report_sent(w->r);
	json = summary(w, "demo.yaml");
	assert_true(json_is_true(find(json, "ledger.closed")));
	assert_int_equal(integer(json, "ledger.misuse"), 0);
	assert_int_equal(integer(json, "ledger.sources_vanished"), 0);
	assert_int_equal(integer(json, "ledger.total.sent"), 201);
	assert_int_equal(json_object_size(find(json, "ledger.total.outcomes")), 9);
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

	w->r->ledger.source_died = 1;
	w->r->source[1].state = SL_SOURCE_GONE;
	w->r->source[1].unfinished_sequence = 42;
	w->r->source[1].unfinished_packets = 17;
	sl_ledger_report(&w->r->ledger, 1, 102);
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

	w->r->counters.packets = 1000;
	w->r->counters.bytes = 4096000;
	for (unsigned d = 0; d < SL_DROPS; d++)
		w->r->counters.dropped[d] = d + 1;
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

	for (uint64_t ns = 1000; ns <= 100000; ns += 1000)
		sl_histogram_add(&w->r->latency[SL_LATENCY_TOTAL], ns);
	w->r->sink_error[1] = -ENOSPC;
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

static void events_are_counted_where_frames_hold_many(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->r->broken = 10;
	w->r->geometry.modules = MODULES;
	w->r->geometry.items = 100000;
	expect_text(report(w, SL_RESULT_INTACT), "50.0 frames/s (9 M events/s), 2.00 GB/s");
	w->r->geometry.items = 100;
	w->r->geometry.items_shared = true;
	expect_text(report(w, SL_RESULT_INTACT), "50.0 frames/s (4500 events/s), 2.00 GB/s");
	json = summary(w, "demo.yaml");
	assert_true(json_real_value(find(json, "rates.events_per_s")) == 4500);
	json_decref(json);
	w->r->geometry.items = 0;
	json = summary(w, "demo.yaml");
	assert_null(json_object_get(find(json, "rates"), "events_per_s"));
	json_decref(json);
}

static void a_name_that_is_not_utf8_does_not_cost_the_summary(void **state)
{
	struct world *w = *state;
	json_t *json;

	w->fake.where = "M\xfcnchen.nxs";
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
	const struct sl_summary_facts run = {
		.file = "demo.yaml", .started = "", .version = SL_SUMMARY_VERSION};
	char part[160];
	const char *said;
	int err;

	json_decref(summary(w, "demo.yaml"));
	snprintf(part, sizeof(part), "%s.part", w->path);
	assert_false(exists(part));
	unlink(w->path);

	mkdir(w->path, 0700); /* cannot be replaced by a file */
	capture_begin();
	err = sl_summary_write(w->path, w->r, &run);
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
	const struct sl_summary_facts run = {
		.file = "demo.yaml", .started = "", .version = SL_SUMMARY_VERSION};
	const char *said;

	capture_begin();
	assert_int_equal(sl_summary_write("/nowhere/at/all.json", w->r, &run), -ENOENT);
	said = capture_end();
	expect_text(said, "cannot write the summary '/nowhere/at/all.json'");
	assert_false(exists("/nowhere/at/all.json.part"));
}

static void a_full_disk_is_an_error(void **state)
{
	struct world *w = *state;
	const struct sl_summary_facts run = {
		.file = "demo.yaml", .started = "", .version = SL_SUMMARY_VERSION};
	char part[160];
	int err;

	snprintf(part, sizeof(part), "%s.part", w->path);
	if (symlink("/dev/full", part))
		skip();
	capture_begin();
	err = sl_summary_write(w->path, w->r, &run);
	capture_end();
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
	assert_int_equal(json_object_size(now), json_object_size(former) + 1);
	json_decref(now);
	json_decref(former);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		cmocka_unit_test(results_have_names_and_exit_codes),
		CASE(version_1_has_the_former_words),
		cmocka_unit_test(stored_prescaled_and_vetoed_are_no_trouble),
		CASE(a_run_without_trouble_is_intact),
		CASE(one_troubled_module_frame_makes_it_damaged),
		CASE(a_sink_that_failed_makes_it_damaged),
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
		CASE(the_line_counts_frames_and_kept),
		CASE(the_line_never_reads_over_a_hundred_percent),
		CASE(the_line_is_not_drawn_all_the_time),
		CASE(the_summary_says_what_ran_and_how_it_ended),
		CASE(the_summary_has_the_ledger_and_its_sums),
		CASE(the_summary_of_an_unclosed_run_says_why),
		CASE(the_summary_has_the_link_with_guard_and_proof),
		CASE(the_summary_has_latencies_rates_and_sinks),
		CASE(a_name_that_is_not_utf8_does_not_cost_the_summary),
		CASE(a_summary_is_written_whole_or_not_at_all),
		CASE(a_place_that_cannot_be_written_is_an_error),
		CASE(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
