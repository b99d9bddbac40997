/* glyphs.c - digits and a few letters, five pixels wide and seven high, for labels in pictures. */
#include <string.h>

#include "cmd/show/show.h"

static const char names[] = "0123456789.Adeg";

/* A row of five bits each, the left one highest. */
static const uint8_t glyphs[][7] = {
	{14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},	  {14, 17, 1, 2, 4, 8, 31},
	{31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2},	  {31, 16, 30, 1, 1, 17, 14},
	{6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},	  {14, 17, 17, 14, 17, 17, 14},
	{14, 17, 17, 15, 1, 2, 12},   {0, 0, 0, 0, 0, 12, 12},	  {14, 17, 17, 17, 31, 17, 17},
	{1, 1, 13, 19, 17, 17, 15},   {0, 0, 14, 17, 31, 16, 14}, {0, 15, 17, 17, 15, 1, 14},
};

void sl_glyphs_draw(uint8_t *rgb, uint32_t rows, uint32_t columns, double row, double column,
		    const char *text, uint32_t scale, const uint8_t colour[3])
{
	double width = (double)strlen(text) * 6 * scale;

	for (size_t i = 0; text[i]; i++) {
		const char *at = strchr(names, text[i]);

		for (uint32_t k = 0; at && k < 35 * scale * scale; k++) {
			uint32_t y = k / (5 * scale), x = k % (5 * scale);
			long r = (long)(row - 3.5 * scale) + y;
			long c = (long)(column - width / 2) + (long)(i * 6 * scale) + x;

			if (r < 0 || c < 0 || r >= (long)rows || c >= (long)columns ||
			    !(glyphs[at - names][y / scale] >> (4 - x / scale) & 1))
				continue;
			memcpy(rgb + ((size_t)r * columns + (size_t)c) * 3, colour, 3);
		}
	}
}
