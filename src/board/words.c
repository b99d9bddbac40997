/* words.c - numbers, times and paragraphs as they are shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "board/private.h"

enum { TEXT = 32 };

const char *sl_board_count(uint64_t n, char text[TEXT])
{
	char digits[TEXT];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[at++] = ' ';
		text[at++] = digits[i];
	}
	text[at] = 0;
	return text;
}

/* Three digits, whatever the size. */
static const char *with_unit(double value, const char *unit, char text[TEXT])
{
	snprintf(text, TEXT, "%.*f %s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, unit);
	return text;
}

const char *sl_board_bytes(double bytes, char text[TEXT])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	unsigned i = 0;

	for (; bytes >= 999.5 && i < sizeof(units) / sizeof(units[0]) - 1; i++)
		bytes /= 1000;
	if (i)
		return with_unit(bytes, units[i], text);
	snprintf(text, TEXT, "%.0f B", bytes);
	return text;
}

const char *sl_board_time(double seconds, char text[TEXT])
{
	if (!isfinite(seconds) || seconds < 0)
		snprintf(text, TEXT, "-");
	else if (seconds < 9.95)
		snprintf(text, TEXT, "%.1f s", seconds);
	else if (seconds < 120)
		snprintf(text, TEXT, "%.0f s", seconds);
	else if (seconds < 7200)
		snprintf(text, TEXT, "%.0f min", seconds / 60);
	else if (seconds < 172800)
		snprintf(text, TEXT, "%.1f h", seconds / 3600);
	else
		snprintf(text, TEXT, "%.1f d", seconds / 86400);
	return text;
}

const char *sl_board_us(double us, char text[TEXT])
{
	if (us < 999.5)
		return with_unit(us, "us", text);
	return us < 999500 ? with_unit(us * 1e-3, "ms", text) : with_unit(us * 1e-6, "s ", text);
}

const char *sl_board_percent(double share, char text[TEXT])
{
	double percent = 100 * share;

	if (percent > 0 && percent < 0.01)
		snprintf(text, TEXT, "< 0.01 %%");
	else
		snprintf(text, TEXT, "%.*f %%", percent < 0.995 && percent > 0 ? 2 : 1, percent);
	return text;
}

unsigned sl_board_wrap(struct sl_grid *g, struct sl_area a, enum sl_style style, const char *text)
{
	unsigned row = a.top, column = 0;

	while (*text && row < a.bottom) {
		size_t n = strcspn(text, " ");
		char word[256];
		unsigned width;

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		width = sl_grid_width(word);
		if (column && column + 1 + width > a.width) {
			row++;
			column = 0;
			continue;
		}
		column += column > 0;
		column = sl_grid_put(g, row, a.left + column, a.width - column, style, word) -
			 a.left;
		text += n;
		text += strspn(text, " ");
	}
	return row < a.bottom ? row + 1 : row;
}

enum sl_style sl_board_style_of(const char *state, const char *result)
{
	if (!strcmp(state, "fault") || !strcmp(state, "crashed") || !strcmp(result, "error") ||
	    !strcmp(result, "damaged") || !strcmp(result, "unclosed"))
		return SL_BAD;
	if (!strcmp(state, "running") || !strcmp(result, "intact"))
		return SL_GOOD;
	if (!strcmp(state, "paused") || !strcmp(state, "stopping") || !strcmp(state, "silent"))
		return SL_WARN;
	return SL_ACCENT;
}
