/* request.c - the text of a request, read. */
#include "service/image/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/pixels.h"
#include "service/image/wire.h"

enum { OF_PIXELS = 1 << SL_IMAGE_PIXELS, OF_PICTURE = 1 << SL_IMAGE_PICTURE };
enum { OF_VIEWS = OF_PIXELS | OF_PICTURE, OF_ALL = OF_VIEWS | 1 << SL_IMAGE_RESULTS };
enum { WHOLE, LONG_WHOLE, PERCENT, CHOICE, NAME };
enum { VALUE_BYTES = 64, MOST_SIZE = 4096 };

static const char *const kinds[] = {"image", "image.png", "results"};

struct key {
	const char *name;
	unsigned of; /* which kinds have it */
	int type;
	size_t offset;
	uint64_t least, most;
	const char *choices; /* "a|b": the number of the word */
};

#define FIELD(f) offsetof(struct sl_image_request, f)

static const struct key keys[] = {
	{"array", OF_VIEWS, NAME, FIELD(array), 0, 0, NULL},
	{"x", OF_VIEWS, WHOLE, FIELD(x), 0, UINT32_MAX, NULL},
	{"y", OF_VIEWS, WHOLE, FIELD(y), 0, UINT32_MAX, NULL},
	{"width", OF_VIEWS, WHOLE, FIELD(width), 1, UINT32_MAX, NULL},
	{"height", OF_VIEWS, WHOLE, FIELD(height), 1, UINT32_MAX, NULL},
	{"bin", OF_VIEWS, WHOLE, FIELD(bin), 1, SL_PIXELS_BIN, NULL},
	{"how", OF_VIEWS, CHOICE, FIELD(mean), 0, 0, "max|mean"},
	{"after", OF_ALL, LONG_WHOLE, FIELD(after), 0, INT64_MAX, NULL},
	{"wait_ms", OF_ALL, WHOLE, FIELD(wait_ms), 0, SL_IMAGE_WAIT_MS, NULL},
	{"encoding", OF_PIXELS, CHOICE, FIELD(deflate), 0, 0, "identity|deflate"},
	{"peaks", OF_PICTURE, WHOLE, FIELD(peaks), 0, 1, NULL},
	{"rings", OF_PICTURE, WHOLE, FIELD(rings), 0, 1, NULL},
	{"size", OF_PICTURE, WHOLE, FIELD(size), 16, MOST_SIZE, NULL},
	{"scale", OF_PICTURE, CHOICE, FIELD(scale), 0, 0, "log|sqrt|linear"},
	{"colours", OF_PICTURE, CHOICE, FIELD(colours), 0, 0, "fire|paper|grey"},
	{"low", OF_PICTURE, PERCENT, FIELD(low), 0, 0, NULL},
	{"high", OF_PICTURE, PERCENT, FIELD(high), 0, 0, NULL},
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

struct reader {
	struct sl_image_request *request;
	unsigned seen; /* a bit for each key */
	char *why;
	size_t why_bytes;
};

static int wrong(const struct reader *r, const char *key, const char *problem)
{
	snprintf(r->why, r->why_bytes, "%s%s%s", key, key[0] ? ": " : "", problem);
	return -EINVAL;
}

/* ---- values ---- */

static int digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

static bool decode(const char *from, size_t bytes, char value[VALUE_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = from[i];

		if (c == '%') {
			if (bytes - i < 3 || digit(from[i + 1]) < 0 || digit(from[i + 2]) < 0)
				return false;
			c = (char)(digit(from[i + 1]) << 4 | digit(from[i + 2]));
			i += 2;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f || used + 1 >= VALUE_BYTES)
			return false;
		value[used++] = c;
	}
	value[used] = 0;
	return true;
}

static int read_whole(const struct reader *r, const struct key *key, const char *value, void *to)
{
	unsigned long long number;
	char problem[100];

	errno = 0;
	number = strtoull(value, NULL, 10);
	if (!value[0] || strspn(value, "0123456789") != strlen(value) || errno ||
	    number < key->least || number > key->most) {
		snprintf(problem, sizeof(problem), "takes a whole number, %llu to %llu",
			 (unsigned long long)key->least, (unsigned long long)key->most);
		return wrong(r, key->name, problem);
	}
	if (key->type == LONG_WHOLE)
		*(uint64_t *)to = number;
	else
		*(uint32_t *)to = (uint32_t)number;
	return 0;
}

static int read_percent(const struct reader *r, const struct key *key, const char *value,
			double *to)
{
	char *end;

	/* strtod() would also take blanks, "nan" and hexadecimal. */
	if (!value[0] || strspn(value, "0123456789.") != strlen(value))
		return wrong(r, key->name, "takes a number, 0 to 100");
	*to = strtod(value, &end);
	return *end || !(*to <= 100) ? wrong(r, key->name, "takes a number, 0 to 100") : 0;
}

static int read_choice(const struct reader *r, const struct key *key, const char *value,
		       uint32_t *to)
{
	size_t length = strlen(value);
	char problem[100];

	*to = 0;
	for (const char *at = key->choices; *at; (*to)++) {
		size_t n = strcspn(at, "|");

		if (n == length && !strncmp(at, value, n))
			return 0;
		at += n + (at[n] != 0);
	}
	snprintf(problem, sizeof(problem), "takes %s", key->choices);
	return wrong(r, key->name, problem);
}

static int read_value(const struct reader *r, const struct key *key, const char *value)
{
	void *to = (char *)r->request + key->offset;

	switch (key->type) {
	case NAME:
		if (strlen(value) >= sizeof(r->request->array))
			return wrong(r, key->name, "is longer than any name of an array");
		strcpy(to, value);
		return 0;
	case CHOICE:
		return read_choice(r, key, value, to);
	case PERCENT:
		return read_percent(r, key, value, to);
	default:
		return read_whole(r, key, value, to);
	}
}

/* ---- pairs ---- */

static int read_pair(struct reader *r, const char *text, size_t bytes)
{
	const char *equals = memchr(text, '=', bytes);
	size_t length = equals ? (size_t)(equals - text) : bytes;
	char value[VALUE_BYTES];

	for (unsigned i = 0; i < KEYS; i++) {
		const struct key *key = &keys[i];

		if (strlen(key->name) != length || memcmp(key->name, text, length) != 0)
			continue;
		if (!(key->of >> r->request->kind & 1))
			break;
		if (r->seen >> i & 1)
			return wrong(r, key->name, "comes twice");
		r->seen |= 1u << i;
		if (key->offset == FIELD(after))
			r->request->has_after = 1;
		if (!equals || !decode(equals + 1, bytes - length - 1, value))
			return wrong(r, key->name, "has no value that can be read");
		return read_value(r, key, value);
	}
	return wrong(r, "", "a key is not known");
}

static int read_kind(const struct reader *r, const char *text, size_t bytes)
{
	for (uint32_t i = 0; i < SL_IMAGE_KINDS; i++)
		if (strlen(kinds[i]) == bytes && !memcmp(kinds[i], text, bytes)) {
			r->request->kind = i;
			return 0;
		}
	return wrong(r, "", "asks for neither image, image.png nor results");
}

int sl_image_request_parse(const char *text, size_t bytes, struct sl_image_request *request,
			   char *why, size_t why_bytes)
{
	struct reader r = {.request = request, .why = why, .why_bytes = why_bytes};
	const char *question = memchr(text, '?', bytes), *end = text + bytes;
	int err;

	memset(request, 0, sizeof(*request));
	request->size = 1024;
	request->low = 1;
	request->high = 99.9;
	err = read_kind(&r, text, question ? (size_t)(question - text) : bytes);
	for (const char *at = question ? question + 1 : end; at < end && !err;) {
		const char *next = memchr(at, '&', (size_t)(end - at));
		size_t length = next ? (size_t)(next - at) : (size_t)(end - at);

		if (length)
			err = read_pair(&r, at, length);
		at += length + (next != NULL);
	}
	return err;
}

bool sl_image_request_same(const struct sl_image_request *a, const struct sl_image_request *b)
{
	struct sl_image_request x, y;

	/* Bytes between members, too. */
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	x.has_after = y.has_after = x.wait_ms = y.wait_ms = 0;
	x.after = y.after = 0;
	return !memcmp(&x, &y, sizeof(x));
}
