/* write.c - answers become a document. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "telegram/telegram.h"

struct writer {
	char *text;
	size_t used, room;
	bool failed;
};

/* ---- bytes ---- */

static void put(struct writer *w, const char *bytes, size_t n)
{
	size_t room = w->room;
	char *more;

	while (n >= room - w->used)
		room = room ? 2 * room : 4096;
	if (room != w->room) {
		more = realloc(w->text, room);
		if (!more) {
			w->failed = true;
			w->used = 0;
			return;
		}
		w->text = more;
		w->room = room;
	}
	memcpy(w->text + w->used, bytes, n);
	w->used += n;
	w->text[w->used] = '\0';
}

static void raw(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

/* The length of a character of UTF-8 that XML 1.0 allows; 0: it is none. */
static size_t character(const unsigned char *t)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = t[0] < 0x80	     ? 1
		   : t[0] >> 5 == 6  ? 2
		   : t[0] >> 4 == 14 ? 3
		   : t[0] >> 3 == 30 ? 4
				     : 0;
	uint32_t code = n == 1 ? t[0] : n ? t[0] & (0x7f >> n) : 0;

	for (size_t i = 1; i < n; i++) {
		if (t[i] >> 6 != 2) /* also the zero at the end */
			return 0;
		code = code << 6 | (t[i] & 0x3f);
	}
	if (n == 1)
		return code >= 0x20 || strchr("\t\n\r", (int)code) ? 1 : 0;
	if (!n || code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
	    code == 0xfffe || code == 0xffff)
		return 0;
	return n;
}

static const char *escape_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
		return "&#9;";
	case '\n':
		return "&#10;";
	case '\r':
		return "&#13;";
	default:
		return NULL;
	}
}

/* In an element or in an attribute. What XML cannot have becomes U+FFFD. */
static void escaped(struct writer *w, const char *text)
{
	while (*text) {
		const char *escape = escape_of(*text);
		size_t n = character((const unsigned char *)text);

		if (escape)
			raw(w, escape);
		else if (n)
			put(w, text, n);
		else
			raw(w, "\xef\xbf\xbd");
		text += n ? n : 1;
	}
}

/* ---- attributes ---- */

static void attribute(struct writer *w, const char *name, const char *value)
{
	raw(w, " ");
	raw(w, name);
	raw(w, "=\"");
	escaped(w, value);
	raw(w, "\"");
}

/* NULL and "": none. */
static void attribute_or_none(struct writer *w, const char *name, const char *value)
{
	if (value && value[0])
		attribute(w, name, value);
}

static void truth(struct writer *w, const char *name, bool value)
{
	attribute(w, name, value ? "true" : "false");
}

static void text_of(struct writer *w, const char *name, const json_t *object, const char *member)
{
	attribute_or_none(w, name, json_string_value(json_object_get(object, member)));
}

static void whole_of(struct writer *w, const char *name, const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	char text[32];

	if (!json_is_integer(value))
		return;
	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	attribute(w, name, text);
}

static void number_of(struct writer *w, const char *name, const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	char text[64];

	if (!json_is_number(value))
		return;
	snprintf(text, sizeof(text), "%.9g", json_number_value(value));
	attribute(w, name, text);
}

static void truth_of(struct writer *w, const char *name, const json_t *object, const char *member)
{
	truth(w, name, json_is_true(json_object_get(object, member)));
}

/* ---- elements ---- */

static void error_element(struct writer *w, const char *code, const char *message,
			  const char *where, const char *hint)
{
	raw(w, "<error");
	attribute(w, "code", code);
	attribute_or_none(w, "where", where);
	attribute_or_none(w, "hint", hint);
	raw(w, ">");
	escaped(w, message);
	raw(w, "</error>");
}

static const char *text_at(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

/* Counts by name become elements. */
static void counts(struct writer *w, const char *element, const char *named, const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		raw(w, "<");
		raw(w, element);
		attribute(w, named, name);
		whole_of(w, "count", object, name);
		raw(w, "/>");
	}
}

static void ledger(struct writer *w, const json_t *l)
{
	const json_t *total = json_object_get(l, "total");

	raw(w, "<ledger");
	truth_of(w, "closed", l, "closed");
	whole_of(w, "settled", total, "settled");
	whole_of(w, "sent", total, "sent");
	whole_of(w, "skipped", total, "skipped");
	whole_of(w, "pending", total, "pending");
	raw(w, ">");
	counts(w, "outcome", "name", json_object_get(total, "outcomes"));
	counts(w, "cause", "name", json_object_get(total, "causes"));
	raw(w, "</ledger>");
}

static void detector(struct writer *w, const json_t *d)
{
	const json_t *one;
	size_t i;

	raw(w, "<detector");
	number_of(w, "rate_Hz", d, "rate_Hz");
	truth_of(w, "one_way", d, "one_way");
	truth_of(w, "held", d, "held");
	whole_of(w, "held_ns", d, "held_ns");
	raw(w, ">");
	json_array_foreach(json_object_get(d, "receivers"), i, one)
	{
		raw(w, "<receiver");
		text_of(w, "transfer", one, "transfer");
		text_of(w, "address", one, "address");
		whole_of(w, "port", one, "port");
		truth_of(w, "connected", one, "connected");
		text_of(w, "waits_for", one, "waits_for");
		whole_of(w, "gone", one, "gone");
		text_of(w, "refusal", one, "refusal");
		raw(w, "/>");
	}
	json_array_foreach(json_object_get(d, "modules"), i, one)
	{
		raw(w, "<module");
		text_of(w, "transfer", one, "transfer");
		whole_of(w, "number", one, "module");
		whole_of(w, "sent", one, "sent");
		raw(w, "/>");
	}
	counts(w, "fault", "kind", json_object_get(d, "faults"));
	raw(w, "</detector>");
}

static void status(struct writer *w, const json_t *s)
{
	const json_t *frames = json_object_get(s, "frames"), *rates = json_object_get(s, "rates");
	const json_t *error = json_object_get(s, "error"), *d = json_object_get(s, "detector_side");

	raw(w, "<status");
	attribute(w, "kind", d ? "detector" : "session");
	text_of(w, "state", s, "state");
	whole_of(w, "run", s, "run");
	text_of(w, "result", s, "result");
	whole_of(w, "frames", frames, "settled");
	whole_of(w, "expected", frames, "expected");
	number_of(w, "frames_per_s", rates, "frames_per_s");
	number_of(w, "bytes_per_s", rates, "bytes_per_s");
	truth_of(w, "drained", s, "drained");
	text_of(w, "stopped_by", s, "stopped_by");
	text_of(w, "experiment", s, "experiment");
	text_of(w, "folder", s, "folder");
	raw(w, ">");
	if (json_is_object(error))
		error_element(w, text_at(error, "code"), text_at(error, "message"),
			      text_at(error, "where"), text_at(error, "hint"));
	if (d)
		detector(w, d);
	else
		ledger(w, json_object_get(s, "ledger"));
	raw(w, "</status>");
}

static void metadata(struct writer *w, const json_t *m)
{
	const char *key;
	json_t *value;

	raw(w, "<metadata>");
	json_object_foreach((json_t *)m, key, value)
	{
		raw(w, "<value");
		attribute(w, "key", key);
		raw(w, ">");
		escaped(w, json_is_string(value) ? json_string_value(value) : "");
		raw(w, "</value>");
	}
	raw(w, "</metadata>");
}

static void capabilities(struct writer *w, const json_t *c)
{
	const json_t *one;
	size_t i;

	raw(w, "<capabilities");
	text_of(w, "program", c, "version");
	text_of(w, "host", c, "host");
	raw(w, ">");
	json_array_foreach(json_object_get(c, "calls"), i, one)
	{
		raw(w, "<call");
		attribute_or_none(w, "name", json_string_value(one));
		raw(w, "/>");
	}
	json_array_foreach(json_object_get(c, "addons"), i, one)
	{
		raw(w, "<addon");
		text_of(w, "kind", one, "kind");
		text_of(w, "name", one, "name");
		text_of(w, "doc", one, "doc");
		raw(w, "/>");
	}
	json_array_foreach(json_object_get(c, "sessions"), i, one)
	{
		raw(w, "<session");
		text_of(w, "name", one, "name");
		text_of(w, "kind", one, "kind");
		truth_of(w, "alive", one, "alive");
		text_of(w, "experiment", one, "experiment");
		raw(w, "/>");
	}
	raw(w, "</capabilities>");
}

/* ---- the whole ---- */

static void write_answer(struct writer *w, const struct sl_telegram_request *r,
			 const struct sl_telegram_answer *a)
{
	static const char *const result[] = {"skipped", "done", "failed"};

	raw(w, "\n <answer");
	attribute(w, "call", sl_telegram_call_name(r->call));
	attribute_or_none(w, "to", r->to);
	attribute(w, "result", result[a->result]);
	attribute_or_none(w, "state", a->state);
	raw(w, ">");
	if (a->result == SL_TELEGRAM_FAILED)
		error_element(w, a->error.code, a->error.message, a->error.where, a->error.hint);
	if (a->status)
		status(w, a->status);
	if (a->metadata)
		metadata(w, a->metadata);
	if (a->capabilities)
		capabilities(w, a->capabilities);
	raw(w, "</answer>");
}

static void write_time(struct writer *w)
{
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(text, sizeof(text), "%lld", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	attribute(w, "time_unix_ns", text);
}

char *sl_telegram_write(const struct sl_telegram *t, const struct sl_telegram_answer *answer,
			const struct sl_remote_error *error)
{
	struct writer w = {.text = NULL};
	bool done = t != NULL;

	for (unsigned i = 0; t && i < t->requests; i++)
		done &= answer[i].result == SL_TELEGRAM_DONE;
	raw(&w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<reply xmlns=\"" SL_TELEGRAM_NAMESPACE
		"\" version=\"1\"");
	attribute_or_none(&w, "id", t ? t->id : NULL);
	attribute(&w, "result", done ? "done" : "failed");
	write_time(&w);
	raw(&w, ">");
	if (!t)
		error_element(&w, error->code, error->message, error->where, error->hint);
	for (unsigned i = 0; t && i < t->requests; i++)
		write_answer(&w, &t->request[i], &answer[i]);
	raw(&w, "\n</reply>\n");
	if (!w.failed)
		return w.text;
	free(w.text);
	return NULL;
}
