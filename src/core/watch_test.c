/* watch_test.c - sources that send, speak, rest and wait, as tables of what is seen and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/watch.h"

#define MS UINT64_C(1000000)

struct look {
	uint64_t at_ms;
	struct sl_sight sight;
	enum sl_watch_says says;
};

enum { MOST = 10 };

struct story {
	const char *name;
	struct sl_watch_limits limits;
	struct look look[MOST]; /* at_ms 0: the end */
};

/* Looks in vain are many unless a story says otherwise. */
static const struct story stories[] = {
	{"a source that sends is alive",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.arrived = 1, .idle = 0}, SL_WATCH_ALIVE},
	  {1000, {.arrived = 2, .idle = 9}, SL_WATCH_ALIVE},
	  {1900, {.arrived = 3, .idle = 9}, SL_WATCH_ALIVE},
	  {2800, {.arrived = 3, .packets = 1, .idle = 9}, SL_WATCH_ALIVE}}},
	{"drained after 200 ms, silent after its limit",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.arrived = 1, .idle = 0}, SL_WATCH_ALIVE},
	  {201, {.arrived = 1, .idle = 9}, SL_WATCH_ALIVE},
	  {202, {.arrived = 1, .idle = 9}, SL_WATCH_DRAINED},
	  {1001, {.arrived = 1, .idle = 99}, SL_WATCH_DRAINED},
	  {1002, {.arrived = 1, .idle = 99}, SL_WATCH_SILENT},
	  {1003, {.arrived = 2, .idle = 99}, SL_WATCH_ALIVE}}},
	{"a link that did not look proves nothing",
	 {.silence_ns = 1000 * MS, .looks = 3},
	 {{1, {.arrived = 1, .idle = 7}, SL_WATCH_ALIVE},
	  {500, {.arrived = 1, .idle = 9}, SL_WATCH_ALIVE},
	  {5000, {.arrived = 1, .idle = 9}, SL_WATCH_ALIVE},
	  {5001, {.arrived = 1, .idle = 10}, SL_WATCH_SILENT}}},
	{"what waits in a buffer of this host is no silence",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.arrived = 1, .idle = 7, .looked_ns = 1 * MS}, SL_WATCH_ALIVE},
	  {5000, {.arrived = 1, .idle = 7, .looked_ns = 900 * MS}, SL_WATCH_ALIVE},
	  {5001, {.arrived = 2, .idle = 7, .looked_ns = 5000 * MS}, SL_WATCH_ALIVE},
	  {9000, {.arrived = 2, .idle = 7, .looked_ns = 6000 * MS}, SL_WATCH_ALIVE},
	  {9001, {.arrived = 2, .idle = 7, .looked_ns = 6001 * MS}, SL_WATCH_SILENT}}},
	{"a busy link never finds nothing: without looks the limit alone counts",
	 {.silence_ns = 1000 * MS},
	 {{1, {.arrived = 1, .idle = 7}, SL_WATCH_ALIVE},
	  {900, {.arrived = 1, .idle = 7}, SL_WATCH_ALIVE},
	  {1100, {.arrived = 1, .idle = 7}, SL_WATCH_SILENT}}},
	{"before the first packet another limit counts",
	 {.first_ns = 5000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.idle = 0}, SL_WATCH_ALIVE},
	  {4000, {.idle = 99}, SL_WATCH_DRAINED},
	  {5002, {.idle = 99}, SL_WATCH_SILENT}}},
	{"0: for ever, before the first packet and after it",
	 {.silence_ns = 0},
	 {{1, {.idle = 0}, SL_WATCH_ALIVE},
	  {100000000, {.idle = 99}, SL_WATCH_DRAINED},
	  {100000001, {.arrived = 1, .idle = 99}, SL_WATCH_ALIVE},
	  {900000000, {.arrived = 1, .idle = 999}, SL_WATCH_DRAINED}}},
	{"a word is a sign of life",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.idle = 9, .word_ns = 1 * MS}, SL_WATCH_ALIVE},
	  {900, {.idle = 9, .word_ns = 800 * MS}, SL_WATCH_ALIVE},
	  {1700, {.idle = 9, .word_ns = 800 * MS}, SL_WATCH_ALIVE},
	  {1801, {.idle = 9, .word_ns = 800 * MS}, SL_WATCH_SILENT},
	  {1802, {.idle = 9, .word_ns = 1802 * MS}, SL_WATCH_ALIVE}}},
	{"data are one where words are missing",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.word_ns = 1 * MS}, SL_WATCH_ALIVE},
	  {900, {.arrived = 5, .word_ns = 1 * MS}, SL_WATCH_ALIVE},
	  {1800, {.arrived = 5, .word_ns = 1 * MS}, SL_WATCH_ALIVE},
	  {1901, {.arrived = 5, .word_ns = 1 * MS}, SL_WATCH_SILENT}}},
	{"a source without a slot is held, not silent",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{1, {.arrived = 8, .idle = 0, .held = true}, SL_WATCH_HELD},
	  {90000, {.arrived = 8, .idle = 99, .held = true}, SL_WATCH_HELD},
	  {90001, {.arrived = 8, .idle = 99}, SL_WATCH_ALIVE},
	  {90999, {.arrived = 8, .idle = 199}, SL_WATCH_DRAINED},
	  {91001, {.arrived = 8, .idle = 199}, SL_WATCH_SILENT}}},
	{"a clock that stands still or goes back is not silence",
	 {.first_ns = 1000 * MS, .silence_ns = 1000 * MS},
	 {{5000, {.arrived = 1}, SL_WATCH_ALIVE},
	  {5000, {.arrived = 1, .idle = 9}, SL_WATCH_ALIVE},
	  {4000, {.arrived = 1, .idle = 99}, SL_WATCH_ALIVE}}},
};

static void every_story_ends_as_told(void **state)
{
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		const struct story *s = &stories[i];
		struct sl_watch watch = {.quiet_since_ns = 0};

		for (unsigned n = 0; n < MOST && s->look[n].at_ms; n++) {
			enum sl_watch_says says = sl_watch_look(
				&watch, &s->limits, &s->look[n].sight, s->look[n].at_ms * MS);

			if (says != s->look[n].says)
				fail_msg("%s: look %u says %u, not %u", s->name, n, says,
					 s->look[n].says);
		}
	}
}

static void without_limits_nothing_is_silent(void **state)
{
	struct sl_watch watch = {.quiet_since_ns = 0};
	struct sl_sight sight = {.arrived = 1};

	assert_int_equal(sl_watch_look(&watch, NULL, &sight, MS), SL_WATCH_ALIVE);
	sight.idle = SL_WATCH_LOOKS - 1;
	assert_int_equal(sl_watch_look(&watch, NULL, &sight, UINT64_MAX), SL_WATCH_ALIVE);
	sight.idle++;
	assert_int_equal(sl_watch_look(&watch, NULL, &sight, UINT64_MAX), SL_WATCH_DRAINED);
}

/* ---- a module's progress ---- */

static void a_module_is_held_between_blocks_alone(void **state)
{
	static const struct {
		struct sl_progress progress;
		bool between, held;
	} rows[] = {
		{{.reached = 0, .opened = 4, .packets_whole = 5}, true, false},
		{{.reached = 0, .opened = 0, .packets_whole = 5}, true, true},
		{{.reached = 3, .opened = 4, .packets = 5, .packets_whole = 5}, true, false},
		{{.reached = 4, .opened = 4, .packets = 5, .packets_whole = 5}, true, true},
		{{.reached = 4, .opened = 4, .packets = 4, .packets_whole = 5}, false, false},
		/* What an earlier receiver took is not under way. */
		{{.first = 4, .reached = 4, .opened = 8, .packets = 2, .packets_whole = 5},
		 true,
		 false},
		{{.first = 4, .reached = 5, .opened = 8, .packets = 2, .packets_whole = 5},
		 false,
		 false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(sl_progress_between_blocks(&rows[i].progress), rows[i].between);
		assert_int_equal(sl_progress_is_held(&rows[i].progress), rows[i].held);
	}
}

static void a_module_begins_with_this_run(void **state)
{
	const struct sl_watch_limits limits = {.first_ns = 5000 * MS, .silence_ns = 1000 * MS};
	struct sl_watch watch = {.quiet_since_ns = 0};
	struct sl_progress p = {
		.first = 7, .reached = 7, .packets = 3, .packets_whole = 5, .opened = 11};

	assert_int_equal(sl_watch_module(&watch, &limits, &p, MS), SL_WATCH_ALIVE);
	p.idle = 99;
	assert_int_equal(sl_watch_module(&watch, &limits, &p, 2000 * MS), SL_WATCH_DRAINED);
	p.reached = 8;
	p.packets = 1;
	assert_int_equal(sl_watch_module(&watch, &limits, &p, 2001 * MS), SL_WATCH_ALIVE);
	assert_int_equal(sl_watch_module(&watch, &limits, &p, 3002 * MS), SL_WATCH_SILENT);
	p.reached = 11; /* all that is open, whole */
	p.packets = 5;
	assert_int_equal(sl_watch_module(&watch, &limits, &p, 9000 * MS), SL_WATCH_HELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_story_ends_as_told),
		cmocka_unit_test(without_limits_nothing_is_silent),
		cmocka_unit_test(a_module_is_held_between_blocks_alone),
		cmocka_unit_test(a_module_begins_with_this_run),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
