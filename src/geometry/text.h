/* text.h - files of lines, for the readers of geometry files.
 *
 * Model:     a file is read whole, at most SL_TEXT_BYTES. Lines are cut at a mark that begins a
 *            comment, and freed of blanks at their ends. Numbers are finite, or refused.
 * Threads:   one.
 * Errors:    logged here with file and line; callers pass the code on.
 * Ownership: sl_text_read() gives memory to free(); a line is valid until the next. */
#ifndef SL_GEOMETRY_TEXT_H
#define SL_GEOMETRY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { SL_TEXT_BYTES = 8 << 20, SL_TEXT_LINE = 4096 };

struct sl_text {
	const char *file; /* for messages */
	const char *at, *end;
	unsigned line; /* of the one that was read last; the first is 1 */
	char buffer[SL_TEXT_LINE];
};

/* 0 or -errno, logged with `what` it is for. */
int sl_text_read(const char *path, const char *what, char **text, size_t *bytes);

void sl_text_begin(struct sl_text *text, const char *file, const char *bytes, size_t count);

/* 1: a line, in *line; 0: there is none; -EINVAL: it is too long, or has a byte 0. `comment`: the
 * byte that begins one anywhere in a line; 0: there is none. */
int sl_text_next(struct sl_text *text, char comment, char **line);

/* Blanks at both ends taken away, in place. */
char *sl_text_trim(char *text);

/* "file:line: message". Returns -EINVAL. */
int sl_text_error(const struct sl_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The whole of `value` is a finite number from low to high. */
int sl_text_number(const struct sl_text *text, const char *key, const char *value, double low,
		   double high, double *number);

#endif
