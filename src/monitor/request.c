/* request.c - a line of JSON becomes a request. */
#include "monitor/request.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <sluice/status.h>

struct parser {
	struct sl_request *request;
	char *why;
	size_t why_bytes;
};

static int wrong(const struct parser *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(const struct parser *p, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(p->why, p->why_bytes, format, list);
	va_end(list);
	return -EINVAL;
}

/* Brackets inside each other; those in texts do not count. */
static unsigned depth_of(const char *line, size_t bytes)
{
	unsigned depth = 0, most = 0;
	bool quoted = false;

	for (size_t i = 0; i < bytes; i++) {
		if (quoted && line[i] == '\\')
			i++;
		else if (line[i] == '"')
			quoted = !quoted;
		else if (!quoted && (line[i] == '{' || line[i] == '['))
			most = ++depth > most ? depth : most;
		else if (!quoted && (line[i] == '}' || line[i] == ']') && depth)
			depth--;
	}
	return most;
}

/* ---- members ---- */

static int take_reason(const struct parser *p, const json_t *value)
{
	if (!json_is_string(value) || json_string_length(value) > 15)
		return wrong(p, "reason: a text of at most 15 bytes");
	p->request->reason = json_string_value(value);
	return 0;
}

static int take_sets(const struct parser *p, const json_t *value)
{
	struct sl_request *r = p->request;
	const json_t *item;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) > SL_REQUEST_SETS)
		return wrong(p, "set: a list of at most %d texts, \"path=value\"", SL_REQUEST_SETS);
	json_array_foreach(value, i, item)
	{
		const char *text = json_string_value(item);

		if (!text || !strchr(text, '='))
			return wrong(p, "set[%zu]: a text \"path=value\"", i);
		r->set[r->sets++] = text;
	}
	return 0;
}

static const char *as_text(const json_t *value, char *number, size_t bytes)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value))
		snprintf(number, bytes, "%lld", (long long)json_integer_value(value));
	else
		snprintf(number, bytes, "%.17g", json_real_value(value));
	return number;
}

static int take_metadata(const struct parser *p, const json_t *value)
{
	struct sl_request *r = p->request;
	const char *key;
	json_t *item;

	if (!json_is_object(value) || json_object_size(value) > SL_REQUEST_METADATA)
		return wrong(p, "set: an object of at most %d keys", SL_REQUEST_METADATA);
	json_object_foreach((json_t *)value, key, item)
	{
		uint32_t i = r->metadata_set;

		if (!json_is_string(item) && !json_is_number(item) && !json_is_null(item))
			return wrong(p, "set.%.40s: a text, a number, or null to remove it", key);
		r->metadata[i].key = key;
		r->metadata[i].value = json_is_null(item) ? NULL
							  : as_text(item, r->metadata[i].number,
								    sizeof(r->metadata[i].number));
		r->metadata_set++;
	}
	return 0;
}

static int take_keep(const struct parser *p, const json_t *value)
{
	if (!json_is_boolean(value))
		return wrong(p, "keep: true or false");
	p->request->keep = json_is_true(value);
	return 0;
}

static uint32_t state_bit(const char *name)
{
	for (unsigned i = 0; name && i < SL_STATES; i++)
		if (!strcmp(name, sl_state_name(i)))
			return 1u << i;
	return 0;
}

static int take_states(const struct parser *p, const json_t *value)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(value) || !json_array_size(value))
		return wrong(p, "states: a list of states, as [\"ended\"]");
	json_array_foreach(value, i, item)
	{
		uint32_t bit = state_bit(json_string_value(item));

		if (!bit)
			return wrong(p, "states[%zu]: no such state; sluice list states", i);
		p->request->states |= bit;
	}
	return 0;
}

static int take_timeout(const struct parser *p, const json_t *value)
{
	json_int_t ms = json_integer_value(value);

	if (!json_is_integer(value) || ms < -1 || ms > SL_REQUEST_WAIT_MAX_MS)
		return wrong(p, "timeout_ms: 0 to %d, or -1 for no limit", SL_REQUEST_WAIT_MAX_MS);
	p->request->timeout_ms = (int32_t)ms;
	return 0;
}

static int take_interval(const struct parser *p, const json_t *value)
{
	json_int_t ms = json_integer_value(value);

	if (!json_is_integer(value) ||
	    (ms && (ms < SL_REQUEST_WATCH_MIN_MS || ms > SL_REQUEST_WATCH_MAX_MS)))
		return wrong(p, "interval_ms: %d to %d, or 0 to watch no longer",
			     SL_REQUEST_WATCH_MIN_MS, SL_REQUEST_WATCH_MAX_MS);
	p->request->interval_ms = (uint32_t)ms;
	return 0;
}

/* ---- of a point ---- */

static int take_count(const struct parser *p, const char *name, const json_t *value,
		      uint64_t *count)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > SL_REQUEST_COUNT)
		return wrong(p, "%s: a number, 0 to %lld", name, (long long)SL_REQUEST_COUNT);
	*count = (uint64_t)json_integer_value(value);
	return 0;
}

static int take_first(const struct parser *p, const json_t *value)
{
	return take_count(p, "first", value, &p->request->first);
}

static int take_frames(const struct parser *p, const json_t *value)
{
	return take_count(p, "frames", value, &p->request->frames);
}

/* It becomes the name of a dataset. */
static bool is_value_name(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++)
		if (!isalpha((unsigned char)name[i]) && name[i] != '_' &&
		    !(i && isdigit((unsigned char)name[i])))
			return false;
	return length > 0 && length <= SL_REQUEST_NAME;
}

static int take_values(const struct parser *p, const json_t *value)
{
	struct sl_request *r = p->request;
	const char *name;
	json_t *item;

	if (!json_is_object(value) || json_object_size(value) > SL_REQUEST_VALUES)
		return wrong(p, "values: an object of at most %d numbers", SL_REQUEST_VALUES);
	json_object_foreach((json_t *)value, name, item)
	{
		if (!is_value_name(name))
			return wrong(p,
				     "values.%.40s: a name has 1 to %d of A-Z a-z 0-9 _, and a "
				     "letter first",
				     name, SL_REQUEST_NAME);
		if (!json_is_number(item))
			return wrong(p, "values.%.40s: a number", name);
		r->value[r->values].name = name;
		r->value[r->values++].value = json_number_value(item);
	}
	return 0;
}

/* ---- calls ---- */

enum { MEMBERS = 3 }; /* of a call, at most */

struct member {
	const char *name;
	int (*take)(const struct parser *parser, const json_t *value);
};

static const struct {
	const char *name;
	struct member member[MEMBERS];
} calls[SL_REQUEST_CALLS] = {
	[SL_REQUEST_STATUS] = {"status", {{NULL}}},
	[SL_REQUEST_CONFIGURE] = {"configure", {{"set", take_sets}}},
	[SL_REQUEST_ARM] = {"arm", {{NULL}}},
	[SL_REQUEST_START] = {"start", {{"frames", take_frames}}},
	[SL_REQUEST_PAUSE] = {"pause", {{NULL}}},
	[SL_REQUEST_RESUME] = {"resume", {{"frames", take_frames}}},
	[SL_REQUEST_STOP] = {"stop", {{"reason", take_reason}}},
	[SL_REQUEST_ABORT] = {"abort", {{"reason", take_reason}}},
	[SL_REQUEST_METADATA_CALL] = {"metadata", {{"set", take_metadata}, {"keep", take_keep}}},
	[SL_REQUEST_WAIT] = {"wait", {{"states", take_states}, {"timeout_ms", take_timeout}}},
	[SL_REQUEST_WATCH] = {"watch", {{"interval_ms", take_interval}}},
	[SL_REQUEST_POINT] = {"point",
			      {{"first", take_first},
			       {"frames", take_frames},
			       {"values", take_values}}},
	[SL_REQUEST_CLOSE] = {"close", {{NULL}}},
};

static int find_call(const struct parser *p, const json_t *json)
{
	const char *name = json_string_value(json_object_get(json, "call"));

	if (!name)
		return wrong(p, "a request is an object with \"call\", as {\"call\":\"status\"}");
	for (unsigned i = 0; i < SL_REQUEST_CALLS; i++)
		if (!strcmp(name, calls[i].name)) {
			p->request->call = (enum sl_request_call)i;
			p->request->name = calls[i].name;
			return 0;
		}
	return wrong(p, "no call is named '%.40s'", name);
}

static int take_members(const struct parser *p, json_t *json)
{
	const struct member *members = calls[p->request->call].member;
	const char *key;
	json_t *value;
	int err = 0;

	json_object_foreach(json, key, value)
	{
		const struct member *m = members;

		if (err || !strcmp(key, "call"))
			continue;
		while (m < members + MEMBERS && m->name && strcmp(m->name, key) != 0)
			m++;
		if (m == members + MEMBERS || !m->name)
			err = wrong(p, "%s has no '%.40s'", p->request->name, key);
		else
			err = m->take(p, value);
	}
	if (!err && p->request->call == SL_REQUEST_WAIT && !p->request->states)
		err = wrong(p, "wait: \"states\" is missing");
	if (!err && p->request->call == SL_REQUEST_POINT && !p->request->frames)
		err = wrong(p, "point: \"frames\" is missing, or 0");
	return err;
}

int sl_request_parse(const char *line, size_t bytes, struct sl_request *request, char *why,
		     size_t why_bytes)
{
	const struct parser parser = {request, why, why_bytes};
	json_error_t error;
	json_t *json;
	int err;

	memset(request, 0, sizeof(*request));
	request->timeout_ms = -1;
	request->interval_ms = 1000;
	if (bytes > SL_REQUEST_BYTES)
		return wrong(&parser, "a request has at most %d bytes", SL_REQUEST_BYTES);
	if (depth_of(line, bytes) > SL_REQUEST_DEPTH)
		return wrong(&parser, "more than %d brackets inside each other", SL_REQUEST_DEPTH);
	json = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		return wrong(&parser, "not JSON: %s (column %d)", error.text, error.column);
	err = json_is_object(json) ? find_call(&parser, json)
				   : wrong(&parser, "a request is an object with \"call\"");
	if (!err)
		err = take_members(&parser, json);
	if (err)
		json_decref(json);
	else
		request->json = json;
	return err;
}

void sl_request_free(struct sl_request *request)
{
	json_decref(request->json);
	request->json = NULL;
}
