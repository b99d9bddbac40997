/* http_fuzz.c - any bytes as what a client of the service sends: a request target by the routes of
 * the service, a query by its tables, Host and Origin headers, a whole head, a file of tokens. What
 * is taken has the form that handlers rely on. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/http/fields.h"
#include "service/http/target.h"
#include "service/http/tokens.h"
#include "service/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look_at_match(const struct sl_http_match *m)
{
	check(m->n <= SL_HTTP_SEGMENTS);
	for (unsigned i = 0; i < m->n; i++) {
		const char *text = m->segment[i];

		check(strlen(text) < SL_HTTP_SEGMENT_BYTES);
		for (; *text; text++)
			check((unsigned char)*text >= 0x20 && *text != 0x7f);
	}
}

static void look_at_values(const struct sl_http_parameter *table, const struct sl_http_values *v)
{
	check(v->n <= SL_HTTP_QUERIES);
	for (unsigned i = 0; i < v->n; i++) {
		if (!v->given[i])
			continue;
		check(strlen(v->text[i]) < SL_HTTP_SEGMENT_BYTES);
		if (table[i].type == SL_HTTP_WHOLE)
			check(v->whole[i] >= table[i].min && v->whole[i] <= table[i].max);
		if (table[i].type == SL_HTTP_TEXT)
			check(strlen(v->text[i]) >= table[i].min &&
			      strlen(v->text[i]) <= table[i].max);
	}
}

static void route(const char *target)
{
	size_t path = strcspn(target, "?");
	const char *query = target[path] ? target + path + 1 : NULL;
	struct sl_http_values values;
	struct sl_http_match match;
	char why[300];

	for (const struct sl_http_route *const *table = sl_service_routes; *table; table++)
		for (const struct sl_http_route *r = *table; r->method; r++) {
			if (sl_http_match(r->pattern, target, path, &match))
				look_at_match(&match);
			why[0] = 0;
			if (!sl_http_query(r->query, query, &values, why, sizeof(why)))
				look_at_values(r->query, &values);
			else
				check(why[0] != 0);
		}
}

static void header(const char *text)
{
	char name[64];

	if (sl_http_host_name(text, name, sizeof(name)))
		for (const char *c = name; *c; c++)
			check(!(*c >= 'A' && *c <= 'Z') && *c != '/' && *c != '@' && *c != ' ');
	sl_http_same_origin(text, "localhost:8765");
}

/* Cut as libmicrohttpd does: a name ends at ':', a value at the end of its line or at a zero. */
static void head(char *text, size_t size)
{
	struct sl_http_field field[SL_HTTP_FIELDS];
	size_t n = 0, at = 0;

	while (at < size && n < SL_HTTP_FIELDS) {
		char *line = text + at, *end = memchr(line, '\n', size - at), *colon;
		size_t bytes = end ? (size_t)(end - line) : size - at;

		at += bytes + 1;
		colon = memchr(line, ':', bytes);
		if (!colon)
			continue;
		*colon = 0;
		if (end)
			*end = 0;
		field[n].name = line;
		field[n].name_bytes = strlen(line);
		field[n].value = colon + 1;
		field[n++].value_bytes = strnlen(colon + 1, bytes - (size_t)(colon + 1 - line));
	}
	sl_http_head_problem(field, n, text, size);
	if (sl_http_fields_problem(field, n, false))
		return;
	for (size_t i = 0; i < n; i++)
		check(field[i].name_bytes && !memchr(field[i].value, '\r', field[i].value_bytes));
}

static void tokens(char *text)
{
	static struct sl_tokens t;
	const char *name = NULL;
	char why[300] = "";

	if (sl_tokens_parse(text, &t, why, sizeof(why))) {
		check(why[0] != 0);
		return;
	}
	check(t.n > 0 && t.n <= SL_TOKENS);
	for (unsigned i = 0; i < t.n; i++)
		check(t.token[i].role >= SL_ROLE_VIEW && t.token[i].role <= SL_ROLE_CONFIGURE &&
		      t.token[i].name[0]);
	check(sl_tokens_find(&t, "", &name) == SL_ROLE_NONE);
}

/* The first byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	if (data[0] == 'h')
		header(text);
	else if (data[0] == 'f')
		head(text, size - 1);
	else if (data[0] == 't')
		tokens(text);
	else
		route(text);
	free(text);
	return 0;
}
