/* board.h - a full-screen status of sessions, drawn on a grid.
 *
 * Model:     a list of sessions with what is known of each, one of them chosen: the list where
 *            there are several, and below it the chosen one: progress, rates, ledger with causes
 *            in words, latencies by hop, fill of ring and queues, sinks and disks. The parts share
 *            the room there is, from 40 x 10 to 500 x 200; less shows a line.
 * Threads:   one at a time. No input or output. */
#ifndef SL_BOARD_BOARD_H
#define SL_BOARD_BOARD_H

#include "board/grid.h"
#include "board/view.h"

struct sl_board_session {
	char name[64],
		state[16];    /* state: instead of its status's: "crashed", "silent", "closed" */
	double closed_unix_s; /* 0: it has not */
	struct sl_view view;
};

struct sl_board {
	struct sl_board_session *session; /* [sessions], by name */
	size_t sessions, chosen;
	const char *const *only; /* names of those that are watched; none: all */
	size_t onlys;
	const char *host;    /* what is watched: a URL; "": this host */
	const char *problem; /* why nothing new comes; "": it does */
	double problem_s;    /* for how long */
	bool held;	     /* the screen stands still, since the user wants it so */
	double now_unix_s;
	long offset_s; /* of local time from UTC */
};

/* Sessions with other names, and more than 1000, are left out. state "": that of its status. */
void sl_board_take_state(struct sl_board *board, const char *name, const char *state);
/* {"status": {"session": ...}}; -EINVAL: another text. */
int sl_board_take_status(struct sl_board *board, const char *json, size_t bytes);
/* {"sessions": [{"name", "state", "alive"}]} of a service: those that are not in it have closed.
 * -EINVAL: another text. */
int sl_board_take_list(struct sl_board *board, const char *json, size_t bytes);
/* Those that closed a minute ago go; watched by name they stay. */
void sl_board_tidy(struct sl_board *board);
void sl_board_choose(struct sl_board *board, int step);
void sl_board_fini(struct sl_board *board);

void sl_board_draw(const struct sl_board *board, struct sl_grid *grid);

#endif
