/* sysfile.c - the small files of /proc and /sys. */
#include "base/sysfile.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_below(const char *root, const char *path, va_list args)
{
	char below[512], whole[1024];

	vsnprintf(below, sizeof(below), path, args);
	snprintf(whole, sizeof(whole), "%s%s", root, below);
	return fopen(whole, "re");
}

static bool read_line(FILE *file, char *text, size_t bytes)
{
	bool got = file && fgets(text, (int)bytes, file);

	if (file)
		fclose(file);
	if (got)
		text[strcspn(text, "\n")] = 0;
	return got && text[0];
}

bool sl_sysfile_line(const char *root, char *text, size_t bytes, const char *path, ...)
{
	va_list args;
	FILE *file;

	va_start(args, path);
	file = open_below(root, path, args);
	va_end(args);
	return read_line(file, text, bytes);
}

bool sl_sysfile_number(const char *root, long long *number, const char *path, ...)
{
	char text[64], *end;
	va_list args;
	FILE *file;
	long long value;

	va_start(args, path);
	file = open_below(root, path, args);
	va_end(args);
	if (!read_line(file, text, sizeof(text)))
		return false;
	value = strtoll(text, &end, 10);
	if (end == text)
		return false;
	*number = value;
	return true;
}

bool sl_sysfile_value(const char *root, const char *path, const char *key, char *text, size_t bytes)
{
	char whole[1024], line[4096];
	size_t length = strlen(key);
	bool found = false;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *value = line + length;

		if (strncmp(line, key, length) != 0 || (*value != ':' && !isblank(*value)))
			continue;
		value += strspn(value, ": \t");
		snprintf(text, bytes, "%.*s", (int)strcspn(value, "\n"), value);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}
