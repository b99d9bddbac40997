/* grid.c - cells, and the sequences that show them. */
#include "board/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = '?', EIGHTHS = 8 };

/* ---- characters ---- */

/* Bytes of the character that begins here; 0: it is none. */
static unsigned decode(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = *s < 0x80			? 1
		     : *s >= 0xc2 && *s <= 0xdf ? 2
		     : *s >= 0xe0 && *s <= 0xef ? 3
		     : *s >= 0xf0 && *s <= 0xf4 ? 4
						: 0;

	*code = n > 1 ? *s & (0x7fu >> n) : *s;
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return n && *code >= least[n] ? n : 0;
}

/* One column wide wherever it is shown: letters of Europe, punctuation, lines, blocks, arrows. */
static bool is_narrow(uint32_t code)
{
	return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0x300 && code != 0xad) ||
	       (code >= 0x370 && code < 0x483) || (code >= 0x48a && code < 0x530) ||
	       (code >= 0x2010 && code < 0x2028) || (code >= 0x2030 && code < 0x205f) ||
	       (code >= 0x2070 && code < 0x20a0) || (code >= 0x2190 && code < 0x2300) ||
	       (code >= 0x2500 && code < 0x25fd);
}

/* The next character as it is shown; the text moves on. 0: its end. */
static uint32_t next(const char **text)
{
	uint32_t code;
	unsigned n;

	if (!**text)
		return 0;
	n = decode((const unsigned char *)*text, &code);
	*text += n ? n : 1;
	return n && is_narrow(code) ? code : UNKNOWN;
}

unsigned sl_grid_width(const char *text)
{
	unsigned n = 0;

	while (next(&text))
		n++;
	return n;
}

/* ---- cells ---- */

int sl_grid_init(struct sl_grid *g, unsigned columns, unsigned rows)
{
	g->columns = columns < SL_GRID_COLUMNS ? columns : SL_GRID_COLUMNS;
	g->rows = rows < SL_GRID_ROWS ? rows : SL_GRID_ROWS;
	g->cell = calloc((size_t)g->columns * g->rows + 1, sizeof(*g->cell));
	if (!g->cell)
		return -ENOMEM;
	sl_grid_clear(g);
	return 0;
}

void sl_grid_fini(struct sl_grid *g)
{
	free(g->cell);
	memset(g, 0, sizeof(*g));
}

void sl_grid_clear(struct sl_grid *g)
{
	for (size_t i = 0; i < (size_t)g->columns * g->rows; i++)
		g->cell[i] = (struct sl_cell){.code = ' ', .style = SL_PLAIN};
}

static bool set(struct sl_grid *g, unsigned row, unsigned column, uint32_t code,
		enum sl_style style)
{
	if (row >= g->rows || column >= g->columns)
		return false;
	g->cell[(size_t)row * g->columns + column] =
		(struct sl_cell){.code = code, .style = (uint8_t)style};
	return true;
}

unsigned sl_grid_put(struct sl_grid *g, unsigned row, unsigned column, unsigned width,
		     enum sl_style style, const char *text)
{
	uint32_t code;
	unsigned end = width < SL_GRID_COLUMNS ? column + width : column + SL_GRID_COLUMNS;

	while (column < end && (code = next(&text)) && set(g, row, column, code, style))
		column++;
	return column;
}

unsigned sl_grid_print(struct sl_grid *g, unsigned row, unsigned column, unsigned width,
		       enum sl_style style, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return sl_grid_put(g, row, column, width, style, text);
}

void sl_grid_put_right(struct sl_grid *g, unsigned row, unsigned end, enum sl_style style,
		       const char *text)
{
	unsigned n = sl_grid_width(text);

	for (; n > end; n--)
		next(&text);
	sl_grid_put(g, row, end - n, n, style, text);
}

void sl_grid_paint(struct sl_grid *g, unsigned row, unsigned column, unsigned width,
		   enum sl_style style)
{
	for (unsigned i = column; row < g->rows && i < g->columns && i - column < width; i++)
		g->cell[(size_t)row * g->columns + i].style = (uint8_t)style;
}

void sl_grid_rule(struct sl_grid *g, unsigned row, unsigned column, unsigned width)
{
	for (unsigned i = 0; i < width && set(g, row, column + i, 0x2500, SL_DIM); i++)
		;
}

void sl_grid_bar(struct sl_grid *g, unsigned row, unsigned column, unsigned width, double share,
		 enum sl_style style)
{
	unsigned eighths;

	share = share > 0 ? share : 0; /* not a number: nothing */
	share = share < 1 ? share : 1;
	eighths = (unsigned)(share * width * EIGHTHS + 0.5);
	for (unsigned i = 0; i < width; i++, eighths -= eighths < EIGHTHS ? eighths : EIGHTHS) {
		if (eighths >= EIGHTHS)
			set(g, row, column + i, 0x2588, style);
		else if (eighths)
			set(g, row, column + i, 0x2590 - eighths, style);
		else
			set(g, row, column + i, 0xb7, SL_DIM);
	}
}

double sl_grid_curve(struct sl_grid *g, unsigned row, unsigned column, unsigned width,
		     unsigned height, const float *value, size_t n, enum sl_style style)
{
	size_t first = n > width ? n - width : 0;
	float most = 0;

	for (size_t i = first; i < n; i++)
		most = value[i] > most ? value[i] : most;
	for (size_t i = first; i < n; i++) {
		float share = most > 0 ? value[i] / most : 0;
		/* What is known has a line, also where it is 0. */
		unsigned level = 1 +
				 (unsigned)(share > 0 ? share * (float)(height * EIGHTHS - 1) : 0);

		for (unsigned k = 0; value[i] >= 0 && k < height && level; k++) {
			unsigned part = level < EIGHTHS ? level : EIGHTHS;

			set(g, row + height - 1 - k, column + width - (unsigned)(n - i),
			    0x2580 + part, style);
			level -= part;
		}
	}
	return most;
}

/* ---- what is written ---- */

static const char *const sequence[SL_STYLES] = {
	[SL_PLAIN] = "\033[0m",	    [SL_DIM] = "\033[0;2m",	 [SL_BOLD] = "\033[0;1m",
	[SL_GOOD] = "\033[0;32m",   [SL_WARN] = "\033[0;33m",	 [SL_BAD] = "\033[0;1;31m",
	[SL_ACCENT] = "\033[0;36m", [SL_TITLE] = "\033[0;1;36m", [SL_BANNER] = "\033[0;1;7m",
	[SL_CHOSEN] = "\033[0;7m",
};

static const char *const sequence_plain[SL_STYLES] = {
	[SL_PLAIN] = "\033[0m",	   [SL_DIM] = "\033[0m",     [SL_BOLD] = "\033[0;1m",
	[SL_GOOD] = "\033[0m",	   [SL_WARN] = "\033[0m",    [SL_BAD] = "\033[0;1m",
	[SL_ACCENT] = "\033[0m",   [SL_TITLE] = "\033[0;1m", [SL_BANNER] = "\033[0;7m",
	[SL_CHOSEN] = "\033[0;7m",
};

static uint32_t as_ascii(uint32_t code)
{
	static const char curve[] = "_.:-=+*#";

	if (code < 0x80)
		return code;
	if (code == 0x2500)
		return '-';
	if (code == 0xb7)
		return '.';
	if (code >= 0x2581 && code <= 0x2587)
		return (uint32_t)curve[code - 0x2581];
	if (code >= 0x2588 && code <= 0x258b)
		return '#';
	if (code >= 0x258c && code <= 0x258f)
		return '-';
	return code == 0x25cf ? '*' : UNKNOWN;
}

static void write_code(uint32_t code, FILE *out)
{
	if (code < 0x80) {
		putc((int)code, out);
	} else if (code < 0x800) {
		putc((int)(0xc0 | code >> 6), out);
		putc((int)(0x80 | (code & 0x3f)), out);
	} else {
		putc((int)(0xe0 | code >> 12), out);
		putc((int)(0x80 | (code >> 6 & 0x3f)), out);
		putc((int)(0x80 | (code & 0x3f)), out);
	}
}

static bool same(const struct sl_cell *a, const struct sl_cell *b, unsigned columns)
{
	for (unsigned i = 0; i < columns; i++)
		if (a[i].code != b[i].code || a[i].style != b[i].style)
			return false;
	return true;
}

void sl_grid_write(const struct sl_grid *g, const struct sl_grid *before, bool ascii, bool plain,
		   FILE *out)
{
	const char *const *say = plain ? sequence_plain : sequence;

	if (before && (before->columns != g->columns || before->rows != g->rows))
		before = NULL;
	for (unsigned r = 0; r < g->rows; r++) {
		const struct sl_cell *cell = g->cell + (size_t)r * g->columns;
		int style = -1;

		if (before && same(cell, before->cell + (size_t)r * g->columns, g->columns))
			continue;
		fprintf(out, "\033[%u;1H", r + 1);
		for (unsigned i = 0; i < g->columns; i++) {
			if (cell[i].style != style)
				fputs(say[style = cell[i].style], out);
			write_code(ascii ? as_ascii(cell[i].code) : cell[i].code, out);
		}
	}
	fputs("\033[0m", out);
}
