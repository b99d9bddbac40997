/* board_test.c - the screen of made-up sessions: what is known is shown, at every size, and
 * sessions come and go. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "board/board.h"

static const char *const status_format =
	"{\"status\":{\"session\":\"%s\",\"state\":\"%s\",\"run\":12,\"experiment\":\"e.yaml\","
	"\"folder\":\"/data/000012\",\"flight\":%s,\"progress_age_ns\":20000000,"
	"\"started_unix_ns\":1000000000000,\"taken_unix_ns\":1090000000000,"
	"\"frames\":{\"settled\":12345,\"expected\":100000,\"kept\":500},"
	"\"rates\":{\"frames_per_s\":200.5,\"bytes_per_s\":4.2e8},"
	"\"ledger\":{\"closed\":false,\"misuse\":0,\"total\":{\"sent\":24700,\"settled\":24690,"
	"\"skipped\":0,\"pending\":7,\"outcomes\":{\"stored\":1000,\"vetoed\":%d,\"incomplete\":%d}"
	","
	"\"causes\":{\"stage\":%d,\"damaged\":%d,\"partner\":1}},"
	"\"modules\":[{\"sent\":12350,\"outcomes\":{\"stored\":500}},{\"sent\":12350,"
	"\"outcomes\":{\"stored\":500}}]},"
	"\"sources\":{\"alive\":2,\"gone\":0},\"link\":{\"kind\":\"udp\",\"dropped\":{\"full\":3}},"
	"\"latency_ns\":{\"wire\":{\"count\":9,\"p50\":12000,\"p99\":80000,\"max\":123456789},"
	"\"total\":{\"count\":9,\"p50\":1500000,\"p99\":2500000,\"max\":3e9}},"
	"\"gauges\":{\"slots\":{\"now\":12,\"most\":30,\"of\":32},\"unit\":{\"now\":1,\"most\":3,"
	"\"of\":null}},"
	"\"addons\":[{\"name\":\"cpu\",\"kind\":\"unit\"},{\"name\":\"nexus\",\"kind\":\"sink\","
	"\"where\":\"/data/000012/run.nxs\",\"error\":null,\"required\":true,"
	"\"figures\":{\"frames\":500,\"bytes\":1234567890},\"pace\":{\"waiting\":{\"now\":5,"
	"\"most\":9,\"of\":48},\"mark\":40,\"left_out\":0}}],"
	"\"forecast\":[{\"path\":\"/data\",\"free_bytes\":12000000000,\"frames_fit\":5000,"
	"\"fits\":true}],\"error\":null}}";

static struct sl_board board;

static int setup(void **state)
{
	board = (struct sl_board){.host = "", .problem = "", .now_unix_s = 86400 + 3600};
	return 0;
}

static int teardown(void **state)
{
	sl_board_fini(&board);
	return 0;
}

static void take(const char *name, const char *state, int lost, const char *flight)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), status_format, name, state, flight, 23690 - lost, lost,
			 23690 - lost, lost - 1);

	assert_in_range(n, 1, sizeof(text) - 1);
	assert_int_equal(sl_board_take_status(&board, text, strlen(text)), 0);
}

/* Rows of the screen with a line break behind each, without what is not ASCII. */
static const char *drawn(unsigned columns, unsigned rows)
{
	static char text[(SL_GRID_COLUMNS + 1) * SL_GRID_ROWS + 1];
	struct sl_grid grid;
	size_t n = 0;

	assert_int_equal(sl_grid_init(&grid, columns, rows), 0);
	sl_board_draw(&board, &grid);
	for (unsigned r = 0; r < grid.rows; r++) {
		for (unsigned c = 0; c < grid.columns; c++) {
			uint32_t code = grid.cell[r * grid.columns + c].code;

			text[n++] = code < 0x80 ? (char)code : '~';
		}
		text[n++] = '\n';
	}
	text[n] = 0;
	sl_grid_fini(&grid);
	return text;
}

static void has(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("'%s' is not in:\n%s", words, text);
}

static void has_not(const char *text, const char *words)
{
	if (strstr(text, words))
		fail_msg("'%s' is in:\n%s", words, text);
}

static void a_run_is_shown_with_all_that_is_known(void **state)
{
	const char *const words[] = {"running",
				     "run 000012",
				     "for 90 s",
				     "12 345 of 100 000",
				     "12.3 %",
				     "7 min left",
				     "200.5 frames/s",
				     "420 MB/s",
				     "24 700",
				     "stored",
				     "12.0 us",
				     "123 ms",
				     "12 of 32",
				     "1.23 GB",
				     "12.0 GB, 5 000 frames",
				     "23 690"};

	take("scan", "running", 0, "null");
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		has(drawn(100, 40), words[i]);
		has(drawn(200, 50), words[i]);
	}
	has(drawn(80, 24), "nothing was lost or damaged");
	has(drawn(80, 24), "12.0 us");
	has(drawn(80, 24), "12 of 32");
	has(drawn(80, 24), "01:00:00");
	has(drawn(200, 50), "module 1");
	has(drawn(200, 50), "unwritten"); /* also outcomes that did not happen */
	has_not(drawn(80, 24), "unwritten");
}

static void a_loss_has_its_cause_in_words(void **state)
{
	take("scan", "running", 34, "\"/data/000012/flight.json\"");
	for (unsigned wide = 0; wide < 2; wide++) {
		const char *text = drawn(wide ? 200 : 80, wide ? 50 : 24);

		has(text, "34 lost or damaged");
		has(text, "0.14 %");
		has(text, "33 damaged");
		has(text, "some packets of the"); /* it may go on in the next line */
		has(text, "1 partner");
		has(text, "sluice explain /data/000012");
	}
	has_not(drawn(200, 50), "stage rejected"); /* that is no loss */
	has(drawn(200, 50), "To mend it:");
	has(drawn(200, 50), "some packets of the module-frame are missing");
	has(drawn(200, 50), "Slots of the ring in use");
	has(drawn(200, 50), "3 packets turned away: full");
}

static void several_sessions_are_a_list(void **state)
{
	char name[8];

	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "s%02d", i);
		take(name, "running", i, "null");
	}
	board.chosen = 0;
	has(drawn(80, 24), "s00");
	has(drawn(80, 24), "1 to 8 of 30 sessions");
	has_not(drawn(80, 24), "s09");
	for (int i = 0; i < 40; i++)
		sl_board_choose(&board, 1);
	assert_int_equal(board.chosen, 29);
	has(drawn(80, 24), "s29");
	has(drawn(80, 24), "23 to 30 of 30 sessions");
	/* One that comes before the chosen one does not choose another. */
	take("a", "armed", 0, "null");
	assert_string_equal(board.session[board.chosen].name, "s29");
	sl_board_choose(&board, -1);
	assert_string_equal(board.session[board.chosen].name, "s28");
}

static void sessions_come_and_go(void **state)
{
	const char *list = "{\"sessions\":[{\"name\":\"b\",\"crashed\":true},{\"name\":\"c\","
			   "\"answers\":false},{\"name\":5},{}]}";

	take("a", "running", 0, "null");
	take("b", "running", 0, "null");
	assert_int_equal(sl_board_take_list(&board, list, strlen(list)), 0);
	assert_int_equal(board.sessions, 3);
	assert_string_equal(board.session[0].state, "closed");
	assert_string_equal(board.session[1].state, "crashed");
	assert_string_equal(board.session[2].state, "silent");
	has(drawn(80, 24), "closed");
	take("a", "running", 0, "null"); /* the next of this name */
	assert_string_equal(board.session[0].state, "");
	sl_board_take_state(&board, "a", "closed");
	board.now_unix_s += 59;
	sl_board_tidy(&board);
	assert_int_equal(board.sessions, 3);
	board.chosen = 2;
	board.now_unix_s += 2;
	sl_board_tidy(&board);
	assert_int_equal(board.sessions, 2);
	assert_string_equal(board.session[board.chosen].name, "c");
	assert_int_equal(sl_board_take_list(&board, "[", 1), -EINVAL);
	assert_int_equal(sl_board_take_list(&board, "{}", 2), -EINVAL);
	assert_int_equal(board.sessions, 2);
}

static void only_what_is_asked_for_is_watched(void **state)
{
	const char *const only[] = {"a"};

	board.only = only;
	board.onlys = 1;
	take("b", "running", 0, "null");
	assert_int_equal(board.sessions, 0);
	has(drawn(80, 24), "There is no session");
	sl_board_take_state(&board, "a", "waiting");
	has(drawn(80, 24), "It has not answered yet");
	take("a", "running", 0, "null");
	sl_board_take_state(&board, "a", "closed");
	board.now_unix_s += 1000;
	sl_board_tidy(&board);
	assert_int_equal(board.sessions, 1);
}

/* At every size, with and without losses: no cell outside the grid is touched (sanitizers). */
static void every_size_is_drawn(void **state)
{
	take("a", "running", 34, "\"f\"");
	take("b", "paused", 0, "null");
	board.problem = "cannot connect";
	for (unsigned columns = 0; columns < 260; columns += 3)
		for (unsigned rows = 0; rows < 70; rows++) {
			board.chosen = rows & 1;
			drawn(columns, rows);
		}
	has(drawn(80, 24), "Nothing new for 0.0 s: cannot connect");
	has(drawn(30, 24), "too small");
}

static void what_is_no_status_changes_nothing(void **state)
{
	static const char *const texts[] = {"",
					    "{",
					    "null",
					    "[]",
					    "{\"status\":{}}",
					    "{\"status\":{\"session\":\"a\"}}",
					    "{\"status\":{\"session\":7,\"state\":\"x\"}}"};

	take("a", "running", 0, "null");
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(sl_board_take_status(&board, texts[i], strlen(texts[i])), -EINVAL);
	assert_int_equal(board.sessions, 1);
	assert_int_equal(board.session[0].view.frames, 12345);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_run_is_shown_with_all_that_is_known), CASE(a_loss_has_its_cause_in_words),
		CASE(several_sessions_are_a_list),	     CASE(sessions_come_and_go),
		CASE(only_what_is_asked_for_is_watched),     CASE(every_size_is_drawn),
		CASE(what_is_no_status_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
