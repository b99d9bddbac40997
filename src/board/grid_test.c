/* grid_test.c - cells: what fits, what is cut, what cannot command a terminal, and what is
 * written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "board/grid.h"

enum { COLUMNS = 20, ROWS = 3 };

static struct sl_grid grid;

static int setup(void **state)
{
	return sl_grid_init(&grid, COLUMNS, ROWS);
}

static int teardown(void **state)
{
	sl_grid_fini(&grid);
	return 0;
}

static uint32_t at(unsigned row, unsigned column)
{
	return grid.cell[row * COLUMNS + column].code;
}

static void is(unsigned row, unsigned column, const char *text)
{
	for (size_t i = 0; i < strlen(text); i++)
		if (at(row, column + (unsigned)i) != (unsigned char)text[i])
			fail_msg("row %u, column %zu: U+%04X, not '%c'", row, column + i,
				 at(row, column + (unsigned)i), text[i]);
}

static void texts_are_cut_where_they_end(void **state)
{
	assert_int_equal(sl_grid_put(&grid, 0, 2, 5, SL_BOLD, "abcdefgh"), 7);
	is(0, 0, "  abcde   ");
	assert_int_equal(grid.cell[2].style, SL_BOLD);
	assert_int_equal(sl_grid_put(&grid, 1, 18, 100, SL_PLAIN, "abcdefgh"), 20);
	is(1, 16, "  ab");
	is(2, 0, "  "); /* and not in the next row */
	sl_grid_put(&grid, 9, 0, 5, SL_PLAIN, "no such row");
	sl_grid_put(&grid, 0, 99, 5, SL_PLAIN, "no such column");
	sl_grid_put_right(&grid, 2, 10, SL_PLAIN, "right");
	is(2, 4, " right ");
	sl_grid_put_right(&grid, 2, 3, SL_PLAIN, "longer");
	is(2, 0, "ger");
}

static void no_text_commands_the_terminal(void **state)
{
	/* An escape, a C1 control in UTF-8 and as a byte, half a character, a wide one, a combining
	 * one, a line break. */
	assert_int_equal(sl_grid_put(&grid, 0, 0, 20, SL_PLAIN,
				     "\033[2Jx\xc2\x9b"
				     "y\x9bz\xe2\x82w\xe4\xb8\xad-e\xcc\x81\n."),
			 18);
	is(0, 0, "?[2Jx?y?z??w?-e??.");
	assert_int_equal(sl_grid_put(&grid, 1, 0, 20, SL_PLAIN, "\xc3\xa4\xe2\x97\x8f\xc2\xb5"), 3);
	assert_int_equal(at(1, 0), 0xe4);
	assert_int_equal(at(1, 1), 0x25cf);
	assert_int_equal(sl_grid_width("\xc3\xa4\xff"), 2);
	/* An overlong '/' is none. */
	sl_grid_put(&grid, 2, 0, 5, SL_PLAIN, "\xc0\xaf\xe0\x80\xaf");
	is(2, 0, "?????");
}

static void bars_are_as_long_as_their_share(void **state)
{
	sl_grid_bar(&grid, 0, 0, 10, 0.5, SL_GOOD);
	assert_int_equal(at(0, 4), 0x2588);
	assert_int_equal(at(0, 5), 0xb7);
	sl_grid_bar(&grid, 0, 0, 10, 0.55, SL_GOOD);
	assert_int_equal(at(0, 5), 0x258c); /* half a cell */
	sl_grid_bar(&grid, 0, 0, 10, 7, SL_GOOD);
	assert_int_equal(at(0, 9), 0x2588);
	assert_int_equal(at(0, 10), ' ');
	sl_grid_bar(&grid, 0, 0, 10, -1, SL_GOOD);
	assert_int_equal(at(0, 0), 0xb7);
}

static void curves_end_at_the_newest(void **state)
{
	const float values[] = {99, 0, 5, -1, 10};

	assert_true(sl_grid_curve(&grid, 0, 0, 4, 1, values, 5, SL_GOOD) == 10);
	assert_int_equal(at(0, 0), 0x2581);
	assert_int_equal(at(0, 1), 0x2581 + 3);
	assert_int_equal(at(0, 2), ' '); /* not known */
	assert_int_equal(at(0, 3), 0x2588);
	sl_grid_curve(&grid, 1, 0, 8, 1, values, 1, SL_GOOD);
	assert_int_equal(at(1, 6), ' ');
	assert_int_equal(at(1, 7), 0x2588);
	sl_grid_curve(&grid, 0, 10, 4, 3, values, 5, SL_GOOD); /* three rows high */
	assert_int_equal(at(2, 10), 0x2581);
	assert_int_equal(at(1, 10), ' ');
	assert_int_equal(at(2, 11), 0x2588);
	assert_int_equal(at(1, 11), 0x2584);
	assert_int_equal(at(0, 11), ' ');
	assert_int_equal(at(0, 13), 0x2588);
}

static char *written(const struct sl_grid *before, bool ascii, bool plain)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	sl_grid_write(&grid, before, ascii, plain, out);
	fclose(out);
	return text;
}

static void only_rows_that_differ_are_written(void **state)
{
	struct sl_grid before;
	char *text;

	assert_int_equal(sl_grid_init(&before, COLUMNS, ROWS), 0);
	sl_grid_put(&grid, 1, 0, 20, SL_BAD, "lost");
	text = written(&before, false, false);
	assert_non_null(strstr(text, "\033[2;1H\033[0;1;31mlost"));
	assert_null(strstr(text, "\033[1;1H"));
	free(text);
	text = written(NULL, false, true);
	assert_non_null(strstr(text, "\033[1;1H"));
	assert_null(strstr(text, ";31m"));
	free(text);
	sl_grid_fini(&before);
	assert_int_equal(sl_grid_init(&before, COLUMNS + 1, ROWS), 0); /* another size: all */
	text = written(&before, false, false);
	assert_non_null(strstr(text, "\033[3;1H"));
	free(text);
	sl_grid_fini(&before);
}

static void ascii_is_enough(void **state)
{
	const float values[] = {1, 5, 10};
	char *text;

	sl_grid_rule(&grid, 0, 0, 3);
	sl_grid_bar(&grid, 1, 0, 4, 0.5, SL_GOOD);
	sl_grid_curve(&grid, 2, 0, 3, 1, values, 3, SL_GOOD);
	sl_grid_put(&grid, 0, 5, 3, SL_PLAIN, "\xc3\xa4\xe2\x97\x8f");
	text = written(NULL, true, true);
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_non_null(strstr(text, "---"));
	assert_non_null(strstr(text, "?*"));
	assert_non_null(strstr(text, "##"));
	free(text);
}

static void large_screens_are_used_in_part(void **state)
{
	struct sl_grid large;

	assert_int_equal(sl_grid_init(&large, 100000, 100000), 0);
	assert_int_equal(large.columns, SL_GRID_COLUMNS);
	assert_int_equal(large.rows, SL_GRID_ROWS);
	sl_grid_fini(&large);
	assert_int_equal(sl_grid_init(&large, 0, 0), 0);
	sl_grid_put(&large, 0, 0, 5, SL_PLAIN, "x");
	sl_grid_fini(&large);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(texts_are_cut_where_they_end),	 CASE(no_text_commands_the_terminal),
		CASE(bars_are_as_long_as_their_share),	 CASE(curves_end_at_the_newest),
		CASE(only_rows_that_differ_are_written), CASE(ascii_is_enough),
		CASE(large_screens_are_used_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
