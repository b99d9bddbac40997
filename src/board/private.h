/* private.h - parts of the screen. Each is given the room that it may use, and returns the row
 * behind what it drew. */
#ifndef SL_BOARD_PRIVATE_H
#define SL_BOARD_PRIVATE_H

#include "board/board.h"

struct sl_area {
	unsigned top, left, width, bottom; /* bottom: the row behind the last */
};

/* panels.c */
unsigned sl_board_ledger(struct sl_grid *grid, const struct sl_view *view, struct sl_area area,
			 bool all);
unsigned sl_board_hops(struct sl_grid *grid, const struct sl_view *view, struct sl_area area);
unsigned sl_board_queues(struct sl_grid *grid, const struct sl_view *view, struct sl_area area);
unsigned sl_board_causes(struct sl_grid *grid, const struct sl_view *view, struct sl_area area);
unsigned sl_board_sinks(struct sl_grid *grid, const struct sl_view *view, struct sl_area area);
/* Rates, fill of the ring and losses over time, one beside the other. */
void sl_board_history(struct sl_grid *grid, const struct sl_view *view, struct sl_area area);

/* words.c: texts of at most 32 bytes for numbers. "12 345" */
const char *sl_board_count(uint64_t n, char text[32]);
const char *sl_board_bytes(double bytes, char text[32]);  /* "1.23 GB" */
const char *sl_board_time(double seconds, char text[32]); /* "12 s", "3 min", "2.5 h" */
const char *sl_board_us(double us, char text[32]);	  /* "12.3 us", "4.5 ms" */
const char *sl_board_percent(double share, char text[32]);

/* Words of a text in lines of the area; the row behind them. */
unsigned sl_board_wrap(struct sl_grid *grid, struct sl_area area, enum sl_style style,
		       const char *text);
enum sl_style sl_board_style_of(const char *state, const char *result);

#endif
