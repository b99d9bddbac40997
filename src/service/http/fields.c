/* fields.c - header fields that two readers may understand differently. */
#include "service/http/fields.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* RFC 9110, 5.6.2 */
static bool is_token(const char *text, size_t bytes)
{
	static const char also[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < bytes; i++)
		if (!text[i] || (!isalnum((unsigned char)text[i]) && !strchr(also, text[i])))
			return false;
	return bytes > 0;
}

static bool is_named(const struct sl_http_field *field, const char *name)
{
	return field->name_bytes == strlen(name) &&
	       !strncasecmp(field->name, name, field->name_bytes);
}

/* Tabs may be in a value, other control characters may not. */
static bool is_value(const struct sl_http_field *field)
{
	for (size_t i = 0; i < field->value_bytes; i++) {
		unsigned char c = (unsigned char)field->value[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool is_digits(const struct sl_http_field *field)
{
	for (size_t i = 0; i < field->value_bytes; i++)
		if (!isdigit((unsigned char)field->value[i]))
			return false;
	return field->value_bytes > 0 && field->value_bytes < 19;
}

static const char *problem_of_length(const struct sl_http_field *length,
				     const struct sl_http_field *encoding, bool old)
{
	if (length && encoding)
		return "the request has both Content-Length and Transfer-Encoding";
	if (length && !is_digits(length))
		return "Content-Length takes a whole number";
	if (encoding && old)
		return "HTTP/1.0 has no Transfer-Encoding";
	if (encoding && (encoding->value_bytes != 7 || strncasecmp(encoding->value, "chunked", 7)))
		return "Transfer-Encoding takes chunked alone";
	return NULL;
}

const char *sl_http_fields_problem(const struct sl_http_field *field, size_t n, bool old)
{
	static const struct {
		const char *name, *problem;
	} once[] = {{"Content-Length", "the request has more than one Content-Length"},
		    {"Transfer-Encoding", "the request has more than one Transfer-Encoding"},
		    {"Host", "the request has more than one Host header"},
		    {"Origin", "the request has more than one Origin header"},
		    {"Authorization", "the request has more than one Authorization header"}};
	const struct sl_http_field *found[sizeof(once) / sizeof(*once)] = {NULL};

	for (size_t i = 0; i < n; i++) {
		if (!is_token(field[i].name, field[i].name_bytes))
			return "the name of a header has characters that names do not have";
		if (!is_value(&field[i]))
			return "the value of a header has control characters";
		for (size_t k = 0; k < sizeof(once) / sizeof(*once); k++) {
			if (!is_named(&field[i], once[k].name))
				continue;
			if (found[k])
				return once[k].problem;
			found[k] = &field[i];
		}
	}
	return problem_of_length(found[0], found[1], old);
}

static bool is_blank(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (text[i] && !strchr(": \t\r\n", text[i]))
			return false;
	return true;
}

/* Whether [text, text + bytes) begins at `*at` or behind, with nothing but blanks before, and ends
 * within the head. at: moves behind it. */
static bool follows(const char *text, size_t bytes, const char *head, size_t head_bytes, size_t *at)
{
	uintptr_t begin = (uintptr_t)head, here = (uintptr_t)text;

	if (here < begin + *at || here - begin > head_bytes || bytes > head_bytes - (here - begin))
		return false;
	if (*at && !is_blank(head + *at, (size_t)(here - begin) - *at))
		return false;
	*at = (size_t)(here - begin) + bytes;
	return true;
}

const char *sl_http_head_problem(const struct sl_http_field *field, size_t n, const char *head,
				 size_t bytes)
{
	static const char problem[] = "a header has a zero byte, or goes on in a second line";
	size_t at = 0; /* 0: the request line comes first */

	for (size_t i = 0; i < n; i++) {
		if (!follows(field[i].name, field[i].name_bytes, head, bytes, &at))
			return problem;
		if (field[i].value_bytes &&
		    !follows(field[i].value, field[i].value_bytes, head, bytes, &at))
			return problem;
	}
	return !at || is_blank(head + at, bytes - at) ? NULL : problem;
}
