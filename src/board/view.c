/* view.c - a status becomes what is shown of it. */
#include "board/view.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- members ---- */

static uint64_t number(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);
	json_int_t n = json_is_real(value) ? (json_int_t)0 : json_integer_value(value);

	return n > 0 ? (uint64_t)n : 0;
}

/* Below 0: there is none. */
static double real(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);
	double x = json_is_number(value) ? json_number_value(value) : -1;

	return x >= 0 ? x : -1;
}

static bool flag(const json_t *json, const char *key)
{
	return json_is_true(json_object_get(json, key));
}

static void text(const json_t *json, const char *key, char *to, size_t bytes)
{
	const char *value = json_string_value(json_object_get(json, key));

	snprintf(to, bytes, "%s", value ? value : "");
}

/* ---- parts ---- */

static void read_column(const json_t *json, struct sl_view_column *c)
{
	const json_t *outcomes = json_object_get(json, "outcomes");
	const json_t *causes = json_object_get(json, "causes");

	c->sent = number(json, "sent");
	c->settled = number(json, "settled");
	c->skipped = number(json, "skipped");
	c->pending = number(json, "pending");
	for (unsigned i = SL_NO_OUTCOME + 1; i < SL_OUTCOMES; i++)
		c->outcome[i] = number(outcomes, sl_outcome_name((enum sl_outcome)i));
	for (unsigned i = SL_CAUSE_NONE + 1; i < SL_CAUSES; i++)
		c->cause[i] = number(causes, sl_cause_name((enum sl_cause)i));
}

static void read_ledger(const json_t *json, struct sl_view *v)
{
	const json_t *modules = json_object_get(json, "modules"), *module;
	size_t i;

	v->closed = flag(json, "closed");
	v->misuse = number(json, "misuse");
	read_column(json_object_get(json, "total"), &v->total);
	json_array_foreach(modules, i, module)
	{
		if (v->modules < SL_VIEW_MODULES)
			read_column(module, &v->module[v->modules++]);
	}
}

static void read_hops(const json_t *json, struct sl_view *v)
{
	const char *name;
	json_t *hop;

	json_object_foreach((json_t *)json, name, hop)
	{
		if (v->hops == SL_VIEW_HOPS || !number(hop, "count"))
			continue;
		snprintf(v->hop[v->hops].name, sizeof(v->hop[0].name), "%s", name);
		v->hop[v->hops].p50_us = real(hop, "p50") * 1e-3;
		v->hop[v->hops].p99_us = real(hop, "p99") * 1e-3;
		v->hop[v->hops++].max_us = real(hop, "max") * 1e-3;
	}
}

static void read_gauge(const json_t *json, struct sl_view_gauge *gauge)
{
	gauge->now = number(json, "now");
	gauge->most = number(json, "most");
	gauge->of = number(json, "of");
}

static void read_drops(const json_t *json, struct sl_view *v)
{
	const char *name;
	json_t *packets;

	json_object_foreach((json_t *)json, name, packets)
	{
		if (v->drops == SL_VIEW_DROPS || json_integer_value(packets) <= 0)
			continue;
		snprintf(v->drop[v->drops].name, sizeof(v->drop[0].name), "%s", name);
		v->drop[v->drops++].packets = (uint64_t)json_integer_value(packets);
	}
}

static int64_t figure(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json_object_get(json, "figures"), key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void read_sinks(const json_t *json, struct sl_view *v)
{
	const json_t *addon;
	size_t i;

	json_array_foreach(json, i, addon)
	{
		const char *kind = json_string_value(json_object_get(addon, "kind"));
		const json_t *pace = json_object_get(addon, "pace");
		struct sl_view_sink *s = &v->sink[v->sinks];

		if (v->sinks == SL_VIEW_SINKS || !kind || strcmp(kind, "sink") != 0)
			continue;
		v->sinks++;
		text(addon, "name", s->name, sizeof(s->name));
		text(addon, "where", s->where, sizeof(s->where));
		text(addon, "error", s->error, sizeof(s->error));
		s->required = flag(addon, "required");
		s->frames = figure(addon, "frames");
		s->bytes = figure(addon, "bytes");
		s->has_pace = json_is_object(pace);
		s->left_out = number(pace, "left_out");
		s->mark = number(pace, "mark");
		read_gauge(json_object_get(pace, "waiting"), &s->waiting);
	}
}

static void read_disks(const json_t *json, struct sl_view *v)
{
	const json_t *disk;
	size_t i;

	json_array_foreach(json, i, disk)
	{
		struct sl_view_disk *d = &v->disk[v->disks];

		if (v->disks == SL_VIEW_DISKS)
			return;
		v->disks++;
		text(disk, "path", d->path, sizeof(d->path));
		d->free_bytes = number(disk, "free_bytes");
		d->frames_fit = number(disk, "frames_fit");
		d->fits = !json_is_false(json_object_get(disk, "fits"));
	}
}

static void read_texts(const json_t *json, struct sl_view *v)
{
	const json_t *error = json_object_get(json, "error");
	char kind[16];

	text(json, "kind", kind, sizeof(kind));
	v->is_detector = !strcmp(kind, "detector");
	text(json, "session", v->name, sizeof(v->name));
	text(json, "state", v->state, sizeof(v->state));
	text(json, "result", v->result, sizeof(v->result));
	text(json, "experiment", v->experiment, sizeof(v->experiment));
	text(json, "transfer", v->transfer, sizeof(v->transfer));
	text(json, "folder", v->folder, sizeof(v->folder));
	text(json, "early", v->early, sizeof(v->early));
	text(json, "stopped_by", v->stopped_by, sizeof(v->stopped_by));
	text(json, "flight", v->flight, sizeof(v->flight));
	text(error, "message", v->error, sizeof(v->error));
	text(error, "hint", v->hint, sizeof(v->hint));
	text(json_object_get(json, "link"), "kind", v->link, sizeof(v->link));
}

static void read_numbers(const json_t *json, struct sl_view *v)
{
	const json_t *frames = json_object_get(json, "frames");
	const json_t *rates = json_object_get(json, "rates");
	const json_t *sources = json_object_get(json, "sources");
	const json_t *gauges = json_object_get(json, "gauges");

	v->run = number(json, "run");
	v->drained = flag(json, "drained");
	v->frames = number(frames, "settled");
	v->expected = number(frames, "expected");
	v->kept = number(frames, "kept");
	v->frames_per_s = real(rates, "frames_per_s");
	v->bytes_per_s = real(rates, "bytes_per_s");
	v->age_s = real(json, "progress_age_ns") < 0 ? -1 : real(json, "progress_age_ns") * 1e-9;
	v->begun_unix_s = real(json, "started_unix_ns") * 1e-9;
	v->ended_unix_s = real(json, "ended_unix_ns") * 1e-9;
	v->taken_unix_s = real(json, "taken_unix_ns") * 1e-9;
	v->alive = number(sources, "alive");
	v->gone = number(sources, "gone");
	read_gauge(json_object_get(gauges, "slots"), &v->slots);
	read_gauge(json_object_get(gauges, "unit"), &v->unit);
	read_gauge(json_object_get(gauges, "sinks"), &v->at_sinks);
}

/* ---- the whole ---- */

struct before { /* the status that this one follows */
	uint64_t run, lost;
	double taken_unix_s;
};

static void push(float *values, size_t n, double value)
{
	if (n == SL_VIEW_RATES)
		memmove(values, values + 1, (--n) * sizeof(*values));
	values[n] = (float)value;
}

static void add_history(struct sl_view *v, const struct before *before)
{
	uint64_t lost = sl_view_lost(&v->total), lost_before = before->lost;
	double since = v->taken_unix_s - before->taken_unix_s;

	if (v->run != before->run || lost_before > lost)
		lost_before = 0;
	push(v->rate, v->rates, strcmp(v->state, "running") ? 0 : v->frames_per_s);
	push(v->loss, v->rates, (double)(lost - lost_before));
	push(v->slots_used, v->rates, (double)v->slots.now);
	push(v->since_s, v->rates, v->rates && since > 0 && since < 3600 ? since : 0);
	v->rates += v->rates < SL_VIEW_RATES;
}

int sl_view_read(struct sl_view *v, const char *bytes, size_t n)
{
	json_t *json = json_loadb(bytes, n, 0, NULL);
	const json_t *status = json_object_get(json, "status");
	const struct before before = {v->run, sl_view_lost(&v->total), v->taken_unix_s};

	status = json_is_object(status) ? status : json;
	if (!json_is_string(json_object_get(status, "state")) ||
	    !json_is_object(json_object_get(status, "frames"))) {
		json_decref(json);
		return -EINVAL;
	}
	memset(v, 0, offsetof(struct sl_view, rates));
	read_texts(status, v);
	read_numbers(status, v);
	read_ledger(json_object_get(status, "ledger"), v);
	read_hops(json_object_get(status, "latency_ns"), v);
	read_drops(json_object_get(json_object_get(status, "link"), "dropped"), v);
	read_sinks(json_object_get(status, "addons"), v);
	read_disks(json_object_get(status, "forecast"), v);
	v->has_status = true;
	add_history(v, &before);
	json_decref(json);
	return 0;
}

bool sl_view_is_loss(enum sl_outcome outcome)
{
	return outcome != SL_STORED && outcome != SL_PRESCALED && outcome != SL_VETOED &&
	       outcome != SL_NO_OUTCOME;
}

uint64_t sl_view_lost(const struct sl_view_column *column)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < SL_OUTCOMES; i++)
		lost += sl_view_is_loss((enum sl_outcome)i) ? column->outcome[i] : 0;
	return lost;
}
