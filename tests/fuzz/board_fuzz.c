/* board_fuzz.c - any bytes as statuses and lists of sessions, with the byte 0x1e between them: what
 * is drawn keeps its bounds, and no cell has a character that commands a terminal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board/board.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BETWEEN = 0x1e };

static void look(const struct sl_board *board, unsigned columns, unsigned rows)
{
	static FILE *nowhere;
	struct sl_grid grid;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (!nowhere || sl_grid_init(&grid, columns, rows))
		abort();
	sl_board_draw(board, &grid);
	for (size_t i = 0; i < (size_t)grid.columns * grid.rows; i++)
		if (grid.cell[i].code < 0x20 ||
		    (grid.cell[i].code >= 0x7f && grid.cell[i].code < 0xa0) ||
		    grid.cell[i].style >= SL_STYLES)
			abort();
	sl_grid_write(&grid, NULL, columns % 3 == 0, false, nowhere);
	sl_grid_fini(&grid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned sizes[][2] = {{80, 24}, {200, 50}, {43, 11}, {10, 3}};
	struct sl_board board = {.host = "", .problem = ""};
	const char *text = (const char *)data, *end = text + size;

	while (text < end) {
		const char *next = memchr(text, BETWEEN, (size_t)(end - text));
		size_t n = (size_t)((next ? next : end) - text);

		if (sl_board_take_status(&board, text, n))
			sl_board_take_list(&board, text, n);
		text += n + 1;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		look(&board, sizes[i][0], sizes[i][1]);
	board.now_unix_s = 1000;
	sl_board_tidy(&board);
	sl_board_fini(&board);
	return 0;
}
