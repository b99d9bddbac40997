/* grid.h - a screen of a terminal as cells: texts, bars and curves are put there, and what differs
 * from the screen before is written with ANSI sequences.
 *
 * Model:     rows and columns of cells, each a character that is one column wide and a style. What
 *            does not fit is cut off. Texts may come from anywhere: control characters, bytes that
 *            are no UTF-8 and characters of another width become '?', so that nothing in a status
 *            can command the terminal.
 * Threads:   one at a time.
 * Ownership: cells belong to the grid, until sl_grid_fini().
 * Cost:      SL_GRID_COLUMNS x SL_GRID_ROWS cells of 8 bytes at most. */
#ifndef SL_BOARD_GRID_H
#define SL_BOARD_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SL_GRID_COLUMNS = 500, SL_GRID_ROWS = 200 };

enum sl_style {
	SL_PLAIN,
	SL_DIM,
	SL_BOLD,
	SL_GOOD,
	SL_WARN,
	SL_BAD,
	SL_ACCENT,
	SL_TITLE,  /* of a panel */
	SL_BANNER, /* the first line */
	SL_CHOSEN, /* a line that is selected */
	SL_STYLES,
};

struct sl_cell {
	uint32_t code; /* Unicode */
	uint8_t style; /* enum sl_style */
};

struct sl_grid {
	unsigned columns, rows;
	struct sl_cell *cell; /* [rows * columns] */
};

/* Larger screens are used as far as the bounds go. -ENOMEM. */
int sl_grid_init(struct sl_grid *grid, unsigned columns, unsigned rows);
void sl_grid_fini(struct sl_grid *grid);
void sl_grid_clear(struct sl_grid *grid);

/* From this column on, at most `width` columns; returns the column behind it. */
unsigned sl_grid_put(struct sl_grid *grid, unsigned row, unsigned column, unsigned width,
		     enum sl_style style, const char *text);
unsigned sl_grid_print(struct sl_grid *grid, unsigned row, unsigned column, unsigned width,
		       enum sl_style style, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* The text ends before `end`. */
void sl_grid_put_right(struct sl_grid *grid, unsigned row, unsigned end, enum sl_style style,
		       const char *text);
/* Of all cells of these columns. */
void sl_grid_paint(struct sl_grid *grid, unsigned row, unsigned column, unsigned width,
		   enum sl_style style);
void sl_grid_rule(struct sl_grid *grid, unsigned row, unsigned column, unsigned width);
/* share: 0 to 1, in eighths of a cell. */
void sl_grid_bar(struct sl_grid *grid, unsigned row, unsigned column, unsigned width, double share,
		 enum sl_style style);
/* The last values that fit, the newest at the right, from 0 to the largest, which is returned;
 * below 0: not known. */
double sl_grid_curve(struct sl_grid *grid, unsigned row, unsigned column, unsigned width,
		     unsigned height, const float *value, size_t n, enum sl_style style);

/* What turns `before` (NULL: an unknown screen) into `grid`. ascii: no other characters; plain: no
 * colours. */
void sl_grid_write(const struct sl_grid *grid, const struct sl_grid *before, bool ascii, bool plain,
		   FILE *out);

/* The columns that a text takes. */
unsigned sl_grid_width(const char *text);

#endif
