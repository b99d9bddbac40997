/* read.c - a run's result, its summary, or the status of a live session. They name some things
 * differently; what is missing is 0. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "explain/private.h"

uint64_t sl_member(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	return json_is_integer(value) && number > 0 ? (uint64_t)number : 0;
}

void sl_member_text(const json_t *object, const char *key, char *text, size_t bytes)
{
	const char *value = json_string_value(json_object_get(object, key));

	snprintf(text, bytes, "%s", value ? value : "");
}

static const json_t *either(const json_t *object, const char *one, const char *other)
{
	const json_t *value = json_object_get(object, one);

	return value ? value : json_object_get(object, other);
}

static double real(const json_t *object, const char *key, double otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : otherwise;
}

/* ---- ledger ---- */

static void read_column(const json_t *column, struct sl_case_module *m)
{
	const json_t *outcomes = json_object_get(column, "outcomes");
	const json_t *causes = json_object_get(column, "causes");
	char source[16];

	m->sent = sl_member(column, "sent");
	m->skipped = sl_member(column, "skipped");
	m->offered = sl_member(column, "offered");
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		m->outcome[o] = sl_member(outcomes, sl_outcome_name(o));
	for (unsigned k = SL_CAUSE_NONE + 1; k < SL_CAUSES; k++)
		m->cause[k] = sl_member(causes, sl_cause_name(k));
	sl_member_text(column, "source", source, sizeof(source));
	m->vanished = !strcmp(source, "vanished");
}

static void read_ledger(struct sl_case *c, const json_t *ledger, const json_t *sources)
{
	const json_t *modules = json_object_get(ledger, "modules");
	struct sl_case_module total = {0};

	read_column(json_object_get(ledger, "total"), &total);
	c->sent = total.sent;
	c->skipped = total.skipped;
	memcpy(c->outcome, total.outcome, sizeof(c->outcome));
	memcpy(c->cause, total.cause, sizeof(c->cause));
	for (size_t m = 0; m < json_array_size(modules) && m < SL_CASE_MODULES; m++) {
		const json_t *source = json_array_get(json_object_get(sources, "modules"), m);
		char state[16];

		read_column(json_array_get(modules, m), &c->module[m]);
		sl_member_text(source, "state", state, sizeof(state));
		c->module[m].vanished |= !strcmp(state, "gone");
		if (!c->module[m].offered)
			c->module[m].offered = sl_member(source, "offered");
		c->vanished += c->module[m].vanished;
		c->modules = (unsigned)m + 1;
	}
	c->misuse = sl_member(ledger, "misuse");
	/* The ledger of a run that goes on is open. */
	c->is_unclosed = c->vanished ||
			 (!c->is_live && json_is_false(json_object_get(ledger, "closed")));
}

/* ---- link, queues ---- */

static void read_link(struct sl_case *c, const json_t *link)
{
	const json_t *dropped = either(link, "turned_away", "dropped");

	sl_member_text(link, "kind", c->link, sizeof(c->link));
	c->packets = sl_member(link, "packets");
	c->bytes = sl_member(link, "bytes");
	c->marked = sl_member(link, "marked");
	c->notified = sl_member(link, "notified");
	c->receive_buffer = sl_member(link, "receive_buffer");
	if (!c->receive_buffer)
		c->receive_buffer = sl_member(link, "receive_buffer_bytes");
	for (unsigned d = 0; d < SL_DROPS; d++)
		c->drop[d] = sl_member(dropped, sl_drop_name(d));
}

static void read_queues(struct sl_case *c, const json_t *json)
{
	const json_t *slots = json_object_get(either(json, "backlog", "gauges"), "slots");
	const json_t *rates = json_object_get(json, "rates");
	const json_t *threads = json_object_get(json, "threads");

	c->slots = sl_member(slots, "of");
	c->slots_most = sl_member(slots, "most");
	c->frames = sl_member(json_object_get(json, "frames"), "settled");
	c->seconds = real(rates, "seconds", 0);
	c->unit_busy = real(rates, "unit_busy", -1);
	c->crowded = json_is_true(json_object_get(threads, "crowded"));
}

static void read_sink(struct sl_case *c, const json_t *json)
{
	struct sl_case_sink *s = &c->sink[c->sinks];
	const json_t *pace = json_object_get(json, "pace");
	const json_t *waiting = json_object_get(pace, "waiting");
	const char *kind = json_string_value(json_object_get(json, "kind"));

	if (c->sinks == SL_CASE_SINKS || !json_is_object(json) || (kind && strcmp(kind, "sink")))
		return;
	c->sinks++;
	sl_member_text(json, "name", s->name, sizeof(s->name));
	sl_member_text(json, "where", s->where, sizeof(s->where));
	sl_member_text(json, "error", s->error, sizeof(s->error));
	sl_member_text(pace, "on_slow", s->on_slow, sizeof(s->on_slow));
	s->required = !json_is_false(json_object_get(json, "required"));
	s->waited_ns = sl_member(pace, "waited_ns");
	s->waiting_most = sl_member(waiting, "most");
	s->mark = sl_member(pace, "mark");
	s->left_out = sl_member(pace, "left_out");
}

static void read_run(struct sl_case *c, const json_t *json)
{
	const json_t *sinks = either(json, "sinks", "addons");

	c->is_live = json_is_string(json_object_get(json, "state")) &&
		     json_is_object(json_object_get(json, "gauges"));
	sl_member_text(json, "experiment", c->experiment, sizeof(c->experiment));
	read_ledger(c, json_object_get(json, "ledger"), json_object_get(json, "sources"));
	read_link(c, json_object_get(json, "link"));
	read_queues(c, json);
	for (size_t i = 0; i < json_array_size(sinks); i++)
		read_sink(c, json_array_get(sinks, i));
}

int sl_case_read(struct sl_case *c, const char *text, size_t bytes, char *why, size_t why_bytes)
{
	json_error_t error;
	json_t *json = json_loadb(text, bytes, 0, &error);

	if (json_is_object(json_object_get(json, "status"))) { /* a reply of a session */
		json_t *status = json_incref(json_object_get(json, "status"));

		json_decref(json);
		json = status;
	}
	if (!json_is_object(json)) {
		snprintf(why, why_bytes, "the result is no JSON object: line %d: %s", error.line,
			 json ? "something else" : error.text);
		json_decref(json);
		return -EINVAL;
	}
	c->has_result = json_is_object(json_object_get(json, "ledger"));
	if (!c->has_result)
		snprintf(why, why_bytes, "it has no ledger: the run never began");
	else
		read_run(c, json);
	json_decref(json);
	return c->has_result ? 0 : -EINVAL;
}
