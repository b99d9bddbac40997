/* text.c - lines and numbers, with where they are. */
#include "geometry/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

int sl_text_read(const char *path, const char *what, char **text, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	char *memory = file ? malloc(SL_TEXT_BYTES + 1) : NULL;
	int err = file ? memory ? 0 : -ENOMEM : -errno;
	size_t count = 0;

	if (!err) {
		count = fread(memory, 1, SL_TEXT_BYTES + 1, file);
		if (ferror(file))
			err = errno ? -errno : -EIO;
		else if (count > SL_TEXT_BYTES)
			err = -EFBIG;
	}
	if (file)
		fclose(file);
	if (err) {
		sl_error("%s: cannot read '%s': %s", what, path, strerror(-err));
		free(memory);
		return err;
	}
	*text = memory;
	*bytes = count;
	return 0;
}

void sl_text_begin(struct sl_text *text, const char *file, const char *bytes, size_t count)
{
	text->file = file;
	text->at = bytes;
	text->end = bytes + count;
	text->line = 0;
	text->buffer[0] = 0;
}

char *sl_text_trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = 0;
	return text;
}

int sl_text_next(struct sl_text *text, char comment, char **line)
{
	const char *end;
	size_t length;
	char *mark;

	if (text->at >= text->end)
		return 0;
	end = memchr(text->at, '\n', (size_t)(text->end - text->at));
	end = end ? end : text->end;
	length = (size_t)(end - text->at);
	text->line++;
	if (length >= sizeof(text->buffer))
		return sl_text_error(text, "the line has %zu bytes; at most %zu are read", length,
				     sizeof(text->buffer) - 1);
	memcpy(text->buffer, text->at, length);
	text->buffer[length] = 0;
	text->at = end < text->end ? end + 1 : end;
	if (memchr(text->buffer, 0, length))
		return sl_text_error(text, "the line has a byte 0: this is no text file");
	mark = comment ? strchr(text->buffer, comment) : NULL;
	if (mark)
		*mark = 0;
	*line = sl_text_trim(text->buffer);
	return 1;
}

int sl_text_error(const struct sl_text *text, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	sl_error("%s:%u: %s", text->file, text->line, message);
	return -EINVAL;
}

int sl_text_number(const struct sl_text *text, const char *key, const char *value, double low,
		   double high, double *number)
{
	char *end;
	double x = strtod(value, &end);

	if (end == value || *end)
		return sl_text_error(text, "%s: '%.60s' is no number", key, value);
	if (!isfinite(x))
		return sl_text_error(text, "%s: '%.60s' is not finite", key, value);
	if (x < low || x > high)
		return sl_text_error(text, "%s: %g is out of range (%g to %g)", key, x, low, high);
	*number = x;
	return 0;
}
