/* json.h - JSON as it is written: texts, and numbers that JSON has no word for.
 *
 * Threads:   the stream's. */
#ifndef SL_SERVICE_IMAGE_JSON_H
#define SL_SERVICE_IMAGE_JSON_H

#include <math.h>
#include <stdio.h>

/* Bytes above 127 become '?': names of a share's arrays may be any bytes. */
static inline void sl_image_json_text(FILE *out, const char *text)
{
	putc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else
			putc(*c < 0x20 || *c >= 0x7f ? '?' : *c, out);
	}
	putc('"', out);
}

/* null: NaN, infinity. digits: 9 say a float exactly, 17 a double. */
static inline void sl_image_json_number(FILE *out, double number, int digits)
{
	if (isfinite(number))
		fprintf(out, "%.*g", digits, number);
	else
		fputs("null", out);
}

#endif
