/* text.c - the files of /proc and /sys as lines, words and numbers. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flight/host.h"

enum { MOST = 4 << 20 }; /* of a file; the rest is not looked at */

static bool grow(struct sl_flight_host *h)
{
	size_t bytes = h->text_bytes * 2;
	char *text = bytes <= MOST ? realloc(h->text, bytes) : NULL;

	if (!text)
		return false;
	h->text = text;
	h->text_bytes = bytes;
	return true;
}

static char *read_all(struct sl_flight_host *h, int fd)
{
	size_t bytes = 0;
	ssize_t n;

	while ((n = read(fd, h->text + bytes, h->text_bytes - 1 - bytes)) > 0) {
		bytes += (size_t)n;
		if (bytes + 1 >= h->text_bytes && !grow(h))
			break;
	}
	h->text[bytes] = '\0';
	return bytes ? h->text : NULL;
}

char *sl_flight_file(struct sl_flight_host *h, const char *path, ...)
{
	char below[1100], whole[1600], *text;
	va_list args;
	int fd;

	va_start(args, path);
	vsnprintf(below, sizeof(below), path, args);
	va_end(args);
	snprintf(whole, sizeof(whole), "%s%s", h->root, below);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = read_all(h, fd);
	close(fd);
	return text;
}

char *sl_flight_line(char **text)
{
	char *line = *text, *end;

	if (!line || !*line)
		return NULL;
	end = line + strcspn(line, "\n");
	*text = *end ? end + 1 : end;
	*end = '\0';
	return line;
}

char *sl_flight_word(char **line)
{
	char *word = *line + strspn(*line, " \t"), *end;

	if (!*word)
		return NULL;
	end = word + strcspn(word, " \t");
	*line = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

uint64_t sl_flight_number(char **line, int base)
{
	char *word = sl_flight_word(line);

	return word ? strtoull(word, NULL, base) : 0;
}
