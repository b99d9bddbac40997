/* metrics_fuzz.c - any bytes as a list of sessions: what is a list becomes a text whose every line
 * is one of the format, with one HELP and one TYPE for each family before its samples. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The quoted value of a label: where it ends, behind its quotation mark. */
static const char *after_value(const char *at)
{
	check(*at++ == '"');
	for (; *at != '"'; at++) {
		check(*at && *at != '\n');
		if (*at == '\\') {
			at++;
			check(*at == '\\' || *at == '"' || *at == 'n');
		}
	}
	return at + 1;
}

static const char *after_labels(const char *at)
{
	do {
		const char *name = ++at;

		while (is_name(*at))
			at++;
		check(at > name && *at == '=');
		at = after_value(at + 1);
	} while (*at == ',');
	check(*at == '}');
	return at + 1;
}

/* A sample of the family: its name, labels, a number. */
static void check_sample(const char *line, const char *family, size_t family_bytes)
{
	const char *at = line;
	char *end;

	check(!strncmp(line, family, family_bytes));
	while (is_name(*at))
		at++;
	if (*at == '{')
		at = after_labels(at);
	check(*at == ' ');
	strtod(at + 1, &end);
	check(end > at + 1 && *end == '\n');
}

static void check_text(const char *text)
{
	const char *family = "", *line = text;
	size_t bytes = 0;

	for (; *line; line = strchr(line, '\n') + 1) {
		check(strchr(line, '\n'));
		if (!strncmp(line, "# HELP ", 7)) {
			family = line + 7;
			bytes = strcspn(family, " ");
			line = strchr(line, '\n') + 1;
			check(!strncmp(line, "# TYPE ", 7) && !strncmp(line + 7, family, bytes));
		} else {
			check_sample(line, family, bytes);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (sl_metrics_text_of((const char *)data, size, 5, &text) == 0) {
		check_text(text);
		free(text);
	} else {
		check(!text);
	}
	return 0;
}
