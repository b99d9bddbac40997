/* target.c - request targets, Host and Origin headers: bytes of clients become values. */
#include "service/http/target.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/config/node.h"

enum { NAME_BYTES = 64, HOST_BYTES = 256 };

/* ---- segments ---- */

static int hex(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

static bool is_text(const char *text)
{
	unsigned code;

	for (size_t n; *text; text += n) {
		n = sl_utf8_decode(text, &code);
		if (!n || code < 0x20 || code == 0x7f)
			return false;
	}
	return true;
}

bool sl_http_decode(const char *from, size_t bytes, bool plus, char *text, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = from[i];

		if (c == '%') {
			if (bytes - i < 3 || hex(from[i + 1]) < 0 || hex(from[i + 2]) < 0)
				return false;
			c = (char)(hex(from[i + 1]) << 4 | hex(from[i + 2]));
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (!c || used + 1 >= room)
			return false;
		text[used++] = c;
	}
	text[used] = 0;
	return is_text(text);
}

static bool is_name(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(text);

	return length && length < NAME_BYTES && text[0] != '.' && text[0] != '-' &&
	       strspn(text, allowed) == length;
}

static bool is_number(const char *text)
{
	size_t length = strlen(text);

	return length && length <= 18 && strspn(text, "0123456789") == length &&
	       strtoull(text, NULL, 10) > 0;
}

static bool fits(const char *placeholder, size_t length, const char *text)
{
	if (length == 6 && !strncmp(placeholder, "{name}", length))
		return is_name(text);
	if (length == 5 && !strncmp(placeholder, "{run}", length))
		return is_number(text);
	return text[0] != 0 && !strchr(text, '/');
}

bool sl_http_match(const char *pattern, const char *path, size_t bytes, struct sl_http_match *match)
{
	const char *end = path + bytes;

	match->n = 0;
	while (*pattern == '/' && path < end && *path == '/') {
		size_t wanted = strcspn(pattern + 1, "/"), length;
		const char *slash = memchr(path + 1, '/', (size_t)(end - path - 1));
		bool rest = !strncmp(pattern + 1, "{path}", 6);

		pattern++;
		path++;
		length = (size_t)((slash && !rest ? slash : end) - path);
		if (*pattern != '{') {
			if (length != wanted || strncmp(path, pattern, length) != 0)
				return false;
		} else {
			char *segment = match->segment[match->n];

			if (match->n == SL_HTTP_SEGMENTS ||
			    !sl_http_decode(path, length, false, segment, SL_HTTP_SEGMENT_BYTES))
				return false;
			if (!rest && !fits(pattern, wanted, segment))
				return false;
			match->n++;
		}
		pattern += wanted;
		path += length;
	}
	return !*pattern && path == end;
}

/* ---- query ---- */

int sl_http_parameter(const struct sl_http_parameter *table, const char *name)
{
	for (int i = 0; table && table[i].name; i++)
		if (!strcmp(table[i].name, name))
			return i;
	return -1;
}

/* Index of a word in "a|b|c"; -1: it is none of them. */
static int choice_of(const char *choices, const char *word)
{
	size_t length = strlen(word);

	for (int i = 0; choices; i++) {
		size_t n = strcspn(choices, "|");

		if (n == length && !strncmp(choices, word, n))
			return i;
		choices = choices[n] ? choices + n + 1 : NULL;
	}
	return -1;
}

static bool take_whole(const struct sl_http_parameter *p, const char *text, uint64_t *value)
{
	size_t length = strlen(text);

	if (!length || length > 18 || strspn(text, "0123456789") != length)
		return false;
	*value = strtoull(text, NULL, 10);
	return *value >= p->min && *value <= p->max;
}

static bool take(const struct sl_http_parameter *p, const char *text, uint64_t *whole)
{
	int choice;

	switch (p->type) {
	case SL_HTTP_WHOLE:
		return take_whole(p, text, whole);
	case SL_HTTP_FLAG:
		*whole = !strcmp(text, "true") || !strcmp(text, "1");
		return *whole || !strcmp(text, "false") || !strcmp(text, "0");
	case SL_HTTP_CHOICE:
		choice = choice_of(p->choices, text);
		*whole = choice < 0 ? 0 : (uint64_t)choice;
		return choice >= 0;
	default:
		return strlen(text) >= p->min && strlen(text) <= p->max;
	}
}

static int refuse(const struct sl_http_parameter *p, char *why, size_t bytes)
{
	switch (p->type) {
	case SL_HTTP_WHOLE:
		snprintf(why, bytes, "%s takes a whole number from %llu to %llu", p->name,
			 (unsigned long long)p->min, (unsigned long long)p->max);
		break;
	case SL_HTTP_FLAG:
		snprintf(why, bytes, "%s takes true or false", p->name);
		break;
	case SL_HTTP_CHOICE:
		snprintf(why, bytes, "%s takes one of %s", p->name, p->choices);
		break;
	default:
		snprintf(why, bytes, "%s takes a text of %llu to %llu bytes", p->name,
			 (unsigned long long)p->min, (unsigned long long)p->max);
	}
	return -EINVAL;
}

static int set_one(const struct sl_http_parameter *table, const char *piece, size_t length,
		   struct sl_http_values *values, char *why, size_t bytes)
{
	const char *equals = memchr(piece, '=', length);
	size_t key = equals ? (size_t)(equals - piece) : length;
	char name[NAME_BYTES];
	int i;

	if (!sl_http_decode(piece, key, true, name, sizeof(name))) {
		snprintf(why, bytes, "a name in the query is not understood");
		return -EINVAL;
	}
	i = sl_http_parameter(table, name);
	if (i < 0) {
		snprintf(why, bytes, "the query has '%s', which is not known here", name);
		return -EINVAL;
	}
	if (values->given[i]) {
		snprintf(why, bytes, "the query has '%s' twice", name);
		return -EINVAL;
	}
	/* A flag without a value is set. */
	if (!equals && table[i].type == SL_HTTP_FLAG)
		snprintf(values->text[i], sizeof(values->text[i]), "true");
	else if (!sl_http_decode(piece + key + (equals != NULL), length - key - (equals != NULL),
				 true, values->text[i], sizeof(values->text[i])))
		return refuse(&table[i], why, bytes);
	values->given[i] = true;
	return take(&table[i], values->text[i], &values->whole[i]) ? 0
								   : refuse(&table[i], why, bytes);
}

int sl_http_query(const struct sl_http_parameter *table, const char *query,
		  struct sl_http_values *values, char *why, size_t why_bytes)
{
	memset(values, 0, sizeof(*values));
	for (; query && *query; query += *query == '&') {
		size_t length = strcspn(query, "&");
		int err = length ? set_one(table, query, length, values, why, why_bytes) : 0;

		if (err)
			return err;
		query += length;
	}
	for (; table && table[values->n].name; values->n++) {
		const struct sl_http_parameter *p = &table[values->n];
		unsigned i = values->n;

		if (values->given[i] || !p->def)
			continue;
		values->given[i] = true;
		snprintf(values->text[i], sizeof(values->text[i]), "%s", p->def);
		take(p, p->def, &values->whole[i]);
	}
	return 0;
}

/* ---- Host and Origin ---- */

static bool is_port(const char *text)
{
	size_t length = strlen(text);

	return length && length <= 5 && strspn(text, "0123456789") == length;
}

bool sl_http_host_name(const char *host, char *name, size_t bytes)
{
	const char *from = host + (*host == '['), *end;
	size_t length;

	if (strlen(host) >= HOST_BYTES)
		return false;
	length = strcspn(from, *host == '[' ? "]" : ":");
	end = from + length;
	if (*host == '[' && *end++ != ']')
		return false;
	if (!length || length >= bytes || (*end && (*end != ':' || !is_port(end + 1))))
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = from[i];

		if (!isalnum((unsigned char)c) && c != '.' && c != '-' && c != '_' &&
		    !(c == ':' && *host == '['))
			return false;
		name[i] = (char)tolower((unsigned char)c);
	}
	name[length] = 0;
	return true;
}

bool sl_http_same_origin(const char *origin, const char *host)
{
	static const char *const scheme[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof(scheme) / sizeof(*scheme); i++) {
		size_t n = strlen(scheme[i]);

		if (!strncasecmp(origin, scheme[i], n))
			return !strcasecmp(origin + n, host);
	}
	return false;
}
