/* watch.c - the full-screen status. */
#include "cmd/ctl/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice/client.h>

#include "base/clock.h"
#include "base/log.h"
#include "board/board.h"
#include "cmd/ctl/screen.h"

enum { TICK_MS = 500 };

struct watch {
	struct sl_board board;
	struct sl_grid shown; /* what is on the terminal */
	bool known;	      /* ... if that is known */
	char problem[300];
	uint64_t problem_ns;
};

static double now_unix_s(void)
{
	return (double)sl_clock_unix_ns() * 1e-9;
}

static long offset_of_zone(void)
{
	time_t now = time(NULL);
	struct tm local;

	return localtime_r(&now, &local) ? local.tm_gmtoff : 0;
}

static void take(void *arg, const struct sl_ctl_feed_message *m)
{
	struct watch *w = arg;

	switch (m->kind) {
	case SL_CTL_FEED_STATUS:
		sl_board_take_status(&w->board, m->text, strlen(m->text));
		break;
	case SL_CTL_FEED_LIST:
		sl_board_take_list(&w->board, m->text, strlen(m->text));
		break;
	case SL_CTL_FEED_STATE:
		sl_board_take_state(&w->board, m->name, m->text);
		break;
	case SL_CTL_FEED_PROBLEM:
		if (m->text[0] && !w->problem[0])
			w->problem_ns = sl_clock_ns();
		snprintf(w->problem, sizeof(w->problem), "%s", m->text);
		break;
	}
}

/* In one write: the terminal never shows half a screen. */
static int show(struct watch *w)
{
	struct sl_grid grid;
	unsigned columns, rows;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;
	int err;

	sl_screen_size(&columns, &rows);
	err = sl_grid_init(&grid, columns, rows);
	if (err)
		return err;
	w->board.problem = w->problem;
	w->board.problem_s = (double)(sl_clock_ns() - w->problem_ns) * 1e-9;
	sl_board_draw(&w->board, &grid);
	out = open_memstream(&text, &bytes);
	if (out) {
		if (!w->known)
			fputs("\033[2J", out);
		sl_grid_write(&grid, w->known ? &w->shown : NULL, !sl_screen_has_utf8(),
			      !sl_screen_has_colours(), out);
		fclose(out);
		err = sl_screen_write(text, bytes);
	}
	free(text);
	sl_grid_fini(&w->shown);
	w->shown = grid;
	w->known = true;
	return err;
}

/* False: the end. */
static bool press(struct watch *w, int key)
{
	if (key == 'q' || key == 'Q' || key < 0)
		return false;
	if (key == 'p' || key == ' ')
		w->board.held = !w->board.held;
	if (key == 'j' || key == '\t' || key == SL_KEY_DOWN)
		sl_board_choose(&w->board, 1);
	if (key == 'k' || key == SL_KEY_UP)
		sl_board_choose(&w->board, -1);
	if (key == 'l' - 'a' + 1) /* control and l: draw it all again */
		w->known = false;
	return true;
}

static int run(struct watch *w, struct sl_ctl_feed *feed)
{
	int err = 0;

	for (bool goes_on = true; goes_on && !err;) {
		bool resized;
		int key;

		/* What comes while the screen is held waits in the feed, the newest of it. */
		if (!w->board.held) {
			w->board.now_unix_s = now_unix_s();
			sl_ctl_feed_take(feed, take, w);
			sl_board_tidy(&w->board);
		}
		err = show(w);
		key = err ? 0
			  : sl_screen_wait(w->board.held ? -1 : sl_ctl_feed_fd(feed), TICK_MS,
					   &resized);
		w->known &= !err && !resized;
		goes_on = press(w, key);
	}
	return err == -EPIPE || err == -EIO ? 0 : err;
}

/* ---- on a pipe ---- */

struct lines {
	bool json;
	char problem[300];
};

static void print(void *arg, const struct sl_ctl_feed_message *m)
{
	struct lines *l = arg;
	struct sl_remote_status status;

	if (m->kind == SL_CTL_FEED_STATUS && l->json)
		puts(m->text);
	else if (m->kind == SL_CTL_FEED_STATUS &&
		 !sl_remote_status_of(m->text, &status, sizeof(status)))
		sl_ctl_print_status(&status);
	else if (m->kind == SL_CTL_FEED_STATE && !l->json && m->text[0])
		printf("%s: %s\n", m->name, m->text);
	if (m->kind != SL_CTL_FEED_PROBLEM)
		return;
	if (m->text[0] && strcmp(m->text, l->problem) != 0)
		sl_warn("%s", m->text);
	snprintf(l->problem, sizeof(l->problem), "%s", m->text);
}

static int print_lines(const struct sl_ctl_feed_options *options, bool json)
{
	struct lines lines = {.json = json};
	struct sl_ctl_feed *feed;
	int err = sl_ctl_feed_open(options, &feed);

	if (err) {
		sl_error("watch: %s", strerror(-err));
		return 1;
	}
	for (;;) {
		struct pollfd p = {.fd = sl_ctl_feed_fd(feed), .events = POLLIN};
		struct pollfd out = {.fd = STDOUT_FILENO}; /* says when the reader has gone */

		poll(&p, 1, TICK_MS);
		sl_ctl_feed_take(feed, print, &lines);
		fflush(stdout);
		if (ferror(stdout) || (poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP)))
			break;
	}
	sl_ctl_feed_close(feed);
	return 0;
}

int sl_ctl_watch(const struct sl_ctl_feed_options *options, const char *url, bool json)
{
	struct watch w = {.board = {.only = options->only,
				    .onlys = options->onlys,
				    .host = url,
				    .offset_s = offset_of_zone(),
				    .now_unix_s = now_unix_s()}};
	struct sl_ctl_feed *feed;
	int err;

	if (json || !sl_screen_is_there())
		return print_lines(options, json);
	/* Watched by name, they are there before they begin. */
	for (size_t i = 0; i < options->onlys; i++)
		sl_board_take_state(&w.board, options->only[i], "waiting");
	err = sl_screen_open();
	if (!err)
		err = sl_ctl_feed_open(options, &feed);
	if (!err) {
		err = run(&w, feed);
		sl_ctl_feed_close(feed);
	}
	sl_screen_close();
	sl_board_fini(&w.board);
	sl_grid_fini(&w.shown);
	if (err)
		sl_error("watch: %s", strerror(-err));
	return err ? 1 : 0;
}
