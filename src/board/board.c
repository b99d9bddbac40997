/* board.c - the whole screen: banner, list of sessions, and the chosen one. */
#include "board/board.h"

#include <stdio.h>
#include <string.h>

#include "board/private.h"

enum { LEAST_COLUMNS = 40, LEAST_ROWS = 10, GAP = 3, TEXT = 32, LIST_MOST = 12 };

/* ---- banner ---- */

static void banner(const struct sl_board *b, struct sl_grid *g)
{
	long now = (long)b->now_unix_s + b->offset_s, day = ((now % 86400) + 86400) % 86400;
	char right[100];

	sl_grid_paint(g, 0, 0, g->columns, SL_BANNER);
	sl_grid_print(g, 0, 1, g->columns, SL_BANNER, "Sluice%s%s", b->host[0] ? "  " : "",
		      b->host);
	snprintf(right, sizeof(right), "%s%sp %s   q quit   %02ld:%02ld:%02ld ",
		 b->held ? "[held]   " : "", b->sessions > 1 ? "j k choose   " : "",
		 b->held ? "go on" : "hold", day / 3600, day / 60 % 60, day % 60);
	sl_grid_put_right(g, 0, g->columns, SL_BANNER, right);
}

/* The experiment's, without its folder. */
static const char *file_of(const struct sl_view *v)
{
	const char *slash = strrchr(v->experiment, '/');

	return slash && slash[1] ? slash + 1 : v->experiment;
}

/* ---- the list ---- */

struct list_columns {
	unsigned name, run, frames, rate, lost, age; /* where each ends; name: its width */
};

static struct list_columns list_columns(unsigned columns)
{
	unsigned name = columns >= 100 ? 30 : 17;

	return (struct list_columns){.name = name,
				     .run = name + 18,
				     .frames = name + 31,
				     .rate = name + 41,
				     .lost = name + 51,
				     .age = name + 61};
}

static void list_row(struct sl_grid *g, unsigned row, const struct sl_board_session *s, bool chosen)
{
	const struct list_columns c = list_columns(g->columns);
	const struct sl_view *v = &s->view;
	const char *state = v->has_status && !s->state[0] ? v->state : s->state;
	uint64_t lost = sl_view_lost(&v->total);
	char text[TEXT];

	sl_grid_put(g, row, 1, c.name, SL_PLAIN, s->name);
	sl_grid_put(g, row, c.name + 2, 10, sl_board_style_of(state, ""), state);
	if (v->has_status) {
		if (v->run)
			sl_grid_put_right(g, row, c.run, SL_PLAIN, sl_board_count(v->run, text));
		sl_grid_put_right(g, row, c.frames, SL_PLAIN, sl_board_count(v->frames, text));
		if (v->frames_per_s >= 0) {
			snprintf(text, sizeof(text), "%.4g/s", v->frames_per_s);
			sl_grid_put_right(g, row, c.rate, SL_PLAIN, text);
		}
		if (!v->is_detector)
			sl_grid_put_right(g, row, c.lost, lost ? SL_BAD : SL_DIM,
					  sl_board_count(lost, text));
		sl_grid_put_right(g, row, c.age, SL_DIM, sl_board_time(v->age_s, text));
		if (g->columns > c.age + 20)
			sl_grid_put(g, row, c.age + 3, g->columns - c.age - 4, SL_DIM, file_of(v));
	}
	if (chosen)
		sl_grid_paint(g, row, 0, g->columns, SL_CHOSEN);
}

static unsigned list(const struct sl_board *b, struct sl_grid *g, unsigned row)
{
	const struct list_columns c = list_columns(g->columns);
	size_t rows = g->rows / 3 < LIST_MOST ? g->rows / 3 : LIST_MOST, first = 0;
	static const char *const heads[] = {"RUN", "FRAMES", "RATE", "LOST", "AGE"};
	const unsigned ends[] = {c.run, c.frames, c.rate, c.lost, c.age};

	rows = rows < b->sessions ? rows : b->sessions;
	if (b->chosen >= rows)
		first = b->chosen - rows + 1;
	sl_grid_put(g, row, 1, c.name, SL_DIM, "NAME");
	sl_grid_put(g, row, c.name + 2, 10, SL_DIM, "STATE");
	for (unsigned i = 0; i < 5; i++)
		sl_grid_put_right(g, row, ends[i], SL_DIM, heads[i]);
	row++;
	for (size_t i = first; i < first + rows; i++)
		list_row(g, row++, &b->session[i], i == b->chosen);
	if (rows < b->sessions)
		sl_grid_print(g, row++, 1, g->columns, SL_DIM, "%zu to %zu of %zu sessions",
			      first + 1, first + rows, b->sessions);
	return row;
}

/* ---- the chosen one ---- */

static unsigned head(const struct sl_board_session *s, struct sl_grid *g, unsigned row)
{
	const struct sl_view *v = &s->view;
	const char *state = s->state[0] ? s->state : v->state;
	enum sl_style style = sl_board_style_of(state, v->result);
	unsigned column = sl_grid_put(g, row, 1, 40, SL_BOLD, s->name);
	char began[TEXT], text[300];

	column = sl_grid_print(g, row, column + 2, 24, style, "\xe2\x97\x8f %s%s%s", state,
			       v->result[0] ? ", " : "", v->result);
	if (!strcmp(v->state, "paused"))
		column = sl_grid_put(g, row, column, 20, SL_WARN,
				     v->drained ? ", drained" : ", not drained yet");
	if (v->run)
		column = sl_grid_print(g, row, column + 3, 20, SL_PLAIN, "run %06llu",
				       (unsigned long long)v->run);
	if (v->begun_unix_s > 0) {
		double until = v->ended_unix_s > 0 ? v->ended_unix_s : v->taken_unix_s;

		column = sl_grid_print(g, row, column + 3, 24, SL_PLAIN, "%s %s",
				       v->ended_unix_s > 0 ? "took" : "for",
				       sl_board_time(until - v->begun_unix_s, began));
	}
	snprintf(text, sizeof(text), "%s%s%s", file_of(v), v->link[0] ? "  " : "", v->link);
	if (column + 3 + sl_grid_width(text) < g->columns)
		sl_grid_put_right(g, row, g->columns - 1, SL_DIM, text);
	row++;
	if (v->error[0])
		row = sl_board_wrap(g, (struct sl_area){row, 1, g->columns - 2, row + 2}, SL_BAD,
				    v->error);
	if (v->error[0] && v->hint[0])
		row = sl_board_wrap(g, (struct sl_area){row, 1, g->columns - 2, row + 2}, SL_PLAIN,
				    v->hint);
	if (v->early[0])
		row = sl_board_wrap(g, (struct sl_area){row, 1, g->columns - 2, row + 1}, SL_WARN,
				    v->early);
	return row;
}

/* "12 345 of 100 000 frames   42 %   3 min left" */
static void say_progress(const struct sl_view *v, char *text, size_t bytes)
{
	char frames[TEXT], of[TEXT], left[TEXT], percent[TEXT];
	double share = v->expected ? (double)v->frames / (double)v->expected : 0;
	int n = snprintf(text, bytes, "%s%s%s frames", sl_board_count(v->frames, frames),
			 v->expected ? " of " : "",
			 v->expected ? sl_board_count(v->expected, of) : "");

	if (v->expected)
		n += snprintf(text + n, bytes - (size_t)n, "   %s",
			      sl_board_percent(share < 1 ? share : 1, percent));
	if (v->expected > v->frames && v->frames_per_s > 0 && !strcmp(v->state, "running"))
		snprintf(text + n, bytes - (size_t)n, "   %s left",
			 sl_board_time((double)(v->expected - v->frames) / v->frames_per_s, left));
}

static void say_rates(const struct sl_view *v, char *text, size_t bytes)
{
	char rate[TEXT], kept[TEXT];

	snprintf(text, bytes, "no rate yet");
	if (v->frames_per_s >= 0)
		snprintf(text, bytes, "%.4g frames/s   %s/s   %s kept", v->frames_per_s,
			 sl_board_bytes(v->bytes_per_s > 0 ? v->bytes_per_s : 0, rate),
			 sl_board_percent(v->frames ? (double)v->kept / (double)v->frames : 0,
					  kept));
}

static void say_losses(const struct sl_view *v, char *text, size_t bytes)
{
	char lost[TEXT], share[TEXT];
	uint64_t n = sl_view_lost(&v->total);

	snprintf(text, bytes, "%s lost or damaged   %s", sl_board_count(n, lost),
		 sl_board_percent(v->total.settled ? (double)n / (double)v->total.settled : 0,
				  share));
}

/* Three lines: a bar or curve each, and beside it the numbers. */
static unsigned gist(const struct sl_view *v, struct sl_grid *g, unsigned row)
{
	uint64_t lost = sl_view_lost(&v->total);
	char text[3][200];
	unsigned lines = v->is_detector ? 2 : 3, width = 0, bar;

	say_progress(v, text[0], sizeof(text[0]));
	say_rates(v, text[1], sizeof(text[1]));
	say_losses(v, text[2], sizeof(text[2]));
	for (unsigned i = 0; i < lines; i++)
		width = sl_grid_width(text[i]) > width ? sl_grid_width(text[i]) : width;
	for (unsigned i = 0; i < lines; i++)
		sl_grid_put_right(g, row + i, g->columns - 1,
				  i < 2	 ? SL_PLAIN
				  : lost ? SL_BAD
					 : SL_DIM,
				  text[i]);
	bar = g->columns > width + 15 ? g->columns - width - 5 : 0;
	if (!bar)
		return row + lines;
	if (v->expected)
		sl_grid_bar(g, row, 1, bar, (double)v->frames / (double)v->expected, SL_ACCENT);
	else
		sl_grid_put(g, row, 1, bar, SL_DIM, "no end is set");
	sl_grid_curve(g, row + 1, 1, bar, 1, v->rate, v->rates, SL_GOOD);
	if (lost && lines == 3)
		sl_grid_curve(g, row + 2, 1, bar, 1, v->loss, v->rates, SL_BAD);
	return row + lines;
}

/* ---- how panels share the room ---- */

enum { HISTORY_LEAST = 7, HISTORY_MOST = 20 };

/* Behind the last panel of a column, where there is room for a line of the next. */
static bool has_room(struct sl_area *a, unsigned row, bool loose)
{
	a->top = row + loose;
	return a->top + 2 <= a->bottom;
}

/* Each returns the row behind what it drew. */
static unsigned one_column(const struct sl_view *v, struct sl_grid *g, struct sl_area a)
{
	unsigned row = sl_board_ledger(g, v, a, false);

	if (has_room(&a, row, true))
		row = sl_board_causes(g, v, a);
	if (has_room(&a, row, true))
		row = sl_board_queues(g, v, a);
	if (has_room(&a, row, true))
		row = sl_board_hops(g, v, a);
	if (has_room(&a, row, true))
		row = sl_board_sinks(g, v, a);
	return row;
}

static unsigned two_columns(const struct sl_view *v, struct sl_grid *g, struct sl_area a)
{
	unsigned wide = (a.width - GAP) / 2, row, end;
	bool loose = a.bottom - a.top >= 24;
	struct sl_area left = {a.top, a.left, wide, a.bottom};
	struct sl_area right = {a.top, a.left + wide + GAP, a.width - wide - GAP, a.bottom};

	end = sl_board_ledger(g, v, left, loose);
	if (has_room(&left, end, loose))
		end = sl_board_causes(g, v, left);
	row = sl_board_hops(g, v, right);
	if (has_room(&right, row, loose))
		row = sl_board_queues(g, v, right);
	if (has_room(&right, row, loose))
		row = sl_board_sinks(g, v, right);
	return row > end ? row : end;
}

static unsigned three_columns(const struct sl_view *v, struct sl_grid *g, struct sl_area a)
{
	unsigned modules = v->modules > 1 && v->modules <= 8 ? v->modules : 0;
	unsigned first = 60 + (a.width >= 170 ? modules * 13 : 0), second = 48, row, end;
	struct sl_area one, two, three;

	first = first < a.width - second - 50 ? first : a.width - second - 50;
	one = (struct sl_area){a.top, a.left, first, a.bottom};
	two = (struct sl_area){a.top, a.left + first + GAP, second, a.bottom};
	three = (struct sl_area){a.top, two.left + second + GAP, a.width - first - second - 2 * GAP,
				 a.bottom};
	row = sl_board_ledger(g, v, one, true);
	end = sl_board_hops(g, v, two);
	if (has_room(&two, end, true))
		end = sl_board_queues(g, v, two);
	row = row > end ? row : end;
	end = sl_board_sinks(g, v, three);
	if (has_room(&three, end, true))
		end = sl_board_causes(g, v, three);
	return row > end ? row : end;
}

static void panels(const struct sl_view *v, struct sl_grid *g, struct sl_area a)
{
	unsigned row;

	if (a.width >= 160)
		row = three_columns(v, g, a);
	else if (a.width >= 76)
		row = two_columns(v, g, a);
	else
		row = one_column(v, g, a);
	a.top = row + 1;
	if (a.width < 76 || a.top + HISTORY_LEAST > a.bottom)
		return;
	a.bottom = a.bottom < a.top + HISTORY_MOST ? a.bottom : a.top + HISTORY_MOST;
	sl_board_history(g, v, a);
}

static void detail(const struct sl_board_session *s, struct sl_grid *g, unsigned row)
{
	const struct sl_view *v = &s->view;
	struct sl_area a = {0, 1, g->columns - 2, g->rows};

	row = head(s, g, row);
	if (!v->has_status) {
		sl_grid_put(
			g, row, 1, g->columns - 2, SL_DIM,
			!strcmp(s->state, "crashed")
				? "It was killed, or its host went down; its data stay. sluice ps "
				  "--clean forgets it."
				: "It has not answered yet.");
		return;
	}
	row = gist(v, g, row);
	a.top = row + (g->rows > row + 16);
	if (!v->is_detector && a.top + 2 <= a.bottom)
		panels(v, g, a);
}

static unsigned problem(const struct sl_board *b, struct sl_grid *g)
{
	char since[TEXT];

	if (!b->problem[0])
		return 1;
	sl_grid_print(g, 1, 1, g->columns - 2, SL_BAD, "Nothing new for %s: %s",
		      sl_board_time(b->problem_s, since), b->problem);
	return 2;
}

void sl_board_draw(const struct sl_board *b, struct sl_grid *g)
{
	unsigned row;

	sl_grid_clear(g);
	if (g->columns < LEAST_COLUMNS || g->rows < LEAST_ROWS) {
		sl_grid_print(g, 0, 0, g->columns, SL_PLAIN, "%u x %u: too small", g->columns,
			      g->rows);
		return;
	}
	banner(b, g);
	row = problem(b, g);
	if (!b->sessions) {
		sl_grid_put(g, row + 1, 1, g->columns - 2, SL_DIM, "There is no session.");
		return;
	}
	if (b->sessions > 1)
		row = list(b, g, row) + (g->rows >= 30);
	if (b->chosen < b->sessions)
		detail(&b->session[b->chosen], g, row);
}
