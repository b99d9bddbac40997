/* read_flight.c - flight.json: facts, packets in brief, series. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "explain/private.h"

enum { SAMPLES_MOST = 1 << 14, SERIES_MOST = 1 << 13 };

/* ---- facts ---- */

static double share_of(const json_t *object, const char *key)
{
	double share = json_number_value(json_object_get(object, key));

	return share > 0 && share <= 1 ? share : 0;
}

static void read_facts(struct sl_case *c, const json_t *facts)
{
	const json_t *link = json_object_get(facts, "link"), *ring = json_object_get(facts, "ring");
	const json_t *cpus = json_object_get(facts, "cpus");
	const json_t *frontend = json_object_get(facts, "frontend");

	if (!c->link[0])
		sl_member_text(link, "kind", c->link, sizeof(c->link));
	sl_member_text(link, "interface", c->interface, sizeof(c->interface));
	sl_member_text(link, "listen", c->listen, sizeof(c->listen));
	c->mtu = (uint32_t)sl_member(link, "mtu");
	c->pmtu = (uint32_t)sl_member(link, "pmtu");
	c->longest_packet = (uint32_t)sl_member(link, "longest_packet");
	c->block_packets = sl_member(link, "block_packets");
	c->block_bytes = sl_member(link, "block_bytes");
	c->receive_buffer_wanted = sl_member(link, "receive_buffer_wanted");
	c->credits = json_is_true(json_object_get(link, "credits"));
	c->one_way = json_is_true(json_object_get(link, "one_way"));
	if (!c->modules) {
		uint64_t modules = sl_member(link, "modules");

		c->modules = modules < SL_CASE_MODULES ? (unsigned)modules : SL_CASE_MODULES;
	}
	if (!c->slots)
		c->slots = sl_member(ring, "slots");
	sl_member_text(ring, "overrun", c->overrun, sizeof(c->overrun));
	sl_member_text(ring, "align", c->align, sizeof(c->align));
	c->late_timeout_us = sl_member(ring, "late_timeout_us");
	c->late_frames = sl_member(ring, "late_frames");
	c->inject_drop = share_of(frontend, "drop");
	c->inject_corrupt = share_of(frontend, "corrupt");
	c->inject_skip = share_of(frontend, "skip");
	c->cpus_allowed = (int)(sl_member(cpus, "allowed") & 0xffff);
	c->cpus_online = (int)(sl_member(cpus, "online") & 0xffff);
}

static void read_packets(struct sl_case *c, const json_t *modules)
{
	for (size_t i = 0; i < json_array_size(modules); i++) {
		const json_t *one = json_array_get(modules, i);
		uint64_t m = sl_member(one, "module");

		if (!json_is_integer(json_object_get(one, "module")) || m >= SL_CASE_MODULES)
			continue;
		c->module[m].sampled = sl_member(one, "sampled");
		c->module[m].longest_payload = (uint32_t)sl_member(one, "longest_payload");
	}
}

/* ---- series ---- */

static uint64_t value_of(const json_t *value)
{
	json_int_t number = json_integer_value(value);

	return json_is_integer(value) && number >= 0 ? (uint64_t)number : SL_NO_VALUE;
}

static int read_values(const json_t *values, struct sl_case_series *s)
{
	size_t n = json_array_size(values);

	n = n < SAMPLES_MOST ? n : SAMPLES_MOST;
	s->value = calloc(n ? n : 1, sizeof(*s->value));
	if (!s->value)
		return -ENOMEM;
	s->n = n;
	for (size_t i = 0; i < n; i++)
		s->value[i] = value_of(json_array_get(values, i));
	return 0;
}

static int read_series(struct sl_case *c, const json_t *array)
{
	size_t n = json_array_size(array);
	int err = 0;

	n = n < SERIES_MOST ? n : SERIES_MOST;
	c->series = calloc(n ? n : 1, sizeof(*c->series));
	if (!c->series)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		const json_t *one = json_array_get(array, i);
		const json_t *values = json_object_get(one, "values");
		struct sl_case_series *s = &c->series[c->n_series];

		s->name = json_string_value(json_object_get(one, "name"));
		if (!s->name)
			continue;
		s->constant = value_of(json_object_get(one, "constant"));
		if (json_is_array(values))
			err = read_values(values, s);
		c->n_series++;
	}
	return err;
}

static int read_times(struct sl_case *c, const json_t *times)
{
	size_t n = json_array_size(times);

	n = n < SAMPLES_MOST ? n : SAMPLES_MOST;
	c->at_ns = calloc(n ? n : 1, sizeof(*c->at_ns));
	if (!c->at_ns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = value_of(json_array_get(times, i));

		/* Time goes on: what contradicts that ends the record. */
		if (at == SL_NO_VALUE || (i && at <= c->at_ns[i - 1]))
			break;
		c->at_ns[c->samples++] = at;
	}
	return 0;
}

static uint64_t last_of(const struct sl_case *c, const char *kind, const char *name)
{
	char text[80];
	uint64_t value;

	snprintf(text, sizeof(text), "%s.%s", kind, name);
	value = c->samples ? sl_series_of(sl_case_find(c, text), c->samples - 1) : SL_NO_VALUE;
	return value == SL_NO_VALUE ? 0 : value;
}

/* A run that crashed has no result: what the record ends with is its ledger. */
static void take_ledger(struct sl_case *c)
{
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		c->outcome[o] = last_of(c, "outcome", sl_outcome_name(o));
	for (unsigned k = SL_CAUSE_NONE + 1; k < SL_CAUSES; k++)
		c->cause[k] = last_of(c, "cause", sl_cause_name(k));
	for (unsigned d = 0; d < SL_DROPS; d++)
		c->drop[d] = last_of(c, "drop", sl_drop_name(d));
	c->packets = last_of(c, "link", "packets");
	c->bytes = last_of(c, "link", "bytes");
	c->marked = last_of(c, "link", "marked");
	c->notified = last_of(c, "link", "notified");
	c->frames = last_of(c, "frames", "settled");
	for (unsigned m = 0; m < c->modules; m++) {
		char name[16];

		snprintf(name, sizeof(name), "%u.sent", m);
		c->module[m].sent = last_of(c, "module", name);
		c->sent += c->module[m].sent;
	}
}

int sl_case_read_flight(struct sl_case *c, const char *text, size_t bytes, char *why,
			size_t why_bytes)
{
	json_error_t error;
	int err;

	c->flight = json_loadb(text, bytes, 0, &error);
	if (!json_is_object(c->flight) || sl_member(c->flight, "schema") != 1) {
		snprintf(why, why_bytes, "flight.json: %s",
			 c->flight ? "not a record of schema 1" : error.text);
		return -EINVAL;
	}
	c->has_flight = true;
	c->first_loss_ns = sl_member(c->flight, "first_loss_ns");
	if (!c->experiment[0])
		sl_member_text(c->flight, "experiment", c->experiment, sizeof(c->experiment));
	read_facts(c, json_object_get(c->flight, "facts"));
	read_packets(c, json_object_get(json_object_get(c->flight, "packets"), "modules"));
	err = read_times(c, json_object_get(c->flight, "at_ns"));
	if (!err)
		err = read_series(c, json_object_get(c->flight, "series"));
	if (err) {
		snprintf(why, why_bytes, "%s", strerror(-err));
		return err;
	}
	if (!c->has_result)
		take_ledger(c);
	return 0;
}

void sl_case_free(struct sl_case *c)
{
	for (size_t i = 0; c->series && i < c->n_series; i++)
		free(c->series[i].value);
	free(c->series);
	free(c->at_ns);
	json_decref(c->flight);
}
