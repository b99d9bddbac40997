/* summary.c - a run's result for programs. The one place with <jansson.h>. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "monitor/report.h"
#include "monitor/summary.h"

static json_t *number(const _Atomic uint64_t *counter)
{
	return json_integer((json_int_t)atomic_load_explicit(counter, memory_order_relaxed));
}

/* Names of files may hold any bytes; JSON is UTF-8. */
static json_t *text(const char *bytes)
{
	json_t *json = json_string(bytes);
	char plain[1024];
	size_t i;

	if (json)
		return json;
	for (i = 0; bytes[i] && i < sizeof(plain) - 1; i++)
		plain[i] = bytes[i] & 0x80 ? '?' : bytes[i];
	plain[i] = 0;
	return json_string(plain);
}

static json_t *outcomes_of(const struct sl_tally *tally)
{
	json_t *object = json_object();

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		json_object_set_new(object, sl_outcome_name(o), number(&tally->outcome[o]));
	return object;
}

static json_t *causes_of(const struct sl_tally *tally)
{
	json_t *object = json_object();

	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++)
		json_object_set_new(object, sl_cause_name(c), number(&tally->cause[c]));
	return object;
}

/* The same histogram over all modules. */
static void total_of(const struct sl_ledger *ledger, struct sl_tally *total)
{
	memset(total, 0, sizeof(*total));
	for (uint32_t m = 0; m < ledger->modules; m++) {
		total->sent += ledger->tally[m].sent;
		total->skipped += ledger->tally[m].skipped;
		for (unsigned o = 0; o < SL_OUTCOMES; o++)
			total->outcome[o] += ledger->tally[m].outcome[o];
		for (unsigned c = 0; c < SL_CAUSES; c++)
			total->cause[c] += ledger->tally[m].cause[c];
	}
}

static json_t *module_json(const struct sl_receiver *r, uint32_t m)
{
	const struct sl_tally *tally = &r->ledger.tally[m];
	const struct sl_source_status *s = &r->source[m];
	json_t *module = json_pack("{s:i, s:o, s:o, s:o, s:o, s:s}", "module", (int)m, "sent",
				   number(&tally->sent), "skipped", number(&tally->skipped),
				   "outcomes", outcomes_of(tally), "causes", causes_of(tally),
				   "source", s->state == SL_SOURCE_GONE ? "vanished" : "done");

	if (s->offered)
		json_object_set_new(module, "offered", json_integer((json_int_t)s->offered));
	if (s->returns)
		json_object_set_new(module, "returns", json_integer(s->returns));
	if (s->first)
		json_object_set_new(module, "first", json_integer((json_int_t)s->first));
	if (s->unfinished_packets)
		json_object_set_new(module, "unfinished",
				    json_pack("{s:I, s:I}", "sequence",
					      (json_int_t)s->unfinished_sequence, "packets",
					      (json_int_t)s->unfinished_packets));
	return module;
}

static json_t *ledger_json(const struct sl_receiver *r)
{
	json_t *modules = json_array();
	struct sl_tally total;

	total_of(&r->ledger, &total);
	for (uint32_t m = 0; m < r->ledger.modules; m++)
		json_array_append_new(modules, module_json(r, m));
	return json_pack("{s:b, s:{s:o, s:o, s:o, s:o}, s:o, s:i, s:o}", "closed",
			 sl_ledger_closed(&r->ledger), "total", "sent", number(&total.sent),
			 "skipped", number(&total.skipped), "outcomes", outcomes_of(&total),
			 "causes", causes_of(&total), "modules", modules, "sources_vanished",
			 (int)r->ledger.source_died, "misuse", number(&r->ledger.misuse));
}

static json_t *latency_json(const struct sl_receiver *r)
{
	json_t *object = json_object();

	for (unsigned l = 0; l < SL_LATENCIES; l++) {
		const struct sl_histogram *h = &r->latency[l];

		if (!sl_histogram_count(h))
			continue;
		json_object_set_new(object, sl_latency_name(l),
				    json_pack("{s:f, s:f, s:f, s:f, s:I}", "p50",
					      (double)sl_histogram_percentile(h, 0.5) * 1e-3, "p99",
					      (double)sl_histogram_percentile(h, 0.99) * 1e-3,
					      "p999",
					      (double)sl_histogram_percentile(h, 0.999) * 1e-3,
					      "max", (double)sl_histogram_max(h) * 1e-3, "count",
					      (json_int_t)sl_histogram_count(h)));
	}
	return object;
}

static json_t *link_json(const struct sl_receiver *r)
{
	json_t *dropped = json_object();

	for (unsigned d = 0; d < SL_DROPS; d++)
		json_object_set_new(dropped, sl_drop_name(d), number(&r->counters.dropped[d]));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", r->env.link,
			 "guard", r->env.guard, "proof", r->env.proof, "packets",
			 number(&r->counters.packets), "bytes", number(&r->counters.bytes),
			 "turned_away", dropped, "marked", number(&r->counters.marked), "notified",
			 number(&r->counters.notified), "receive_buffer",
			 number(&r->counters.receive_buffer));
}

static json_t *threads_json(const struct sl_receiver *r)
{
	static const char *const polling[] = {"adaptive", "latency", "cores"};
	const struct sl_placement *p = &r->placement;
	json_t *cpus = json_array();

	for (unsigned i = 0; p->pinned && i < p->threads; i++)
		json_array_append_new(cpus, json_integer(p->cpu[i]));
	return json_pack("{s:s, s:b, s:o, s:o}", "polling", polling[r->experiment->threads.polling],
			 "crowded", p->crowded, "cpus", cpus, "ring_node",
			 r->ring_node < 0 ? json_null() : json_integer(r->ring_node));
}

/* Words that version 2 has changed. */
static const struct {
	const char *now, *was;
} former_words[] = {
	{"device_ring_frames_good", "ring_frames_good"},
	{"device_ring_frames_lapped", "ring_frames_lapped"},
	{"device_ring_frames_published", "ring_frames_published"},
	{"device_ring_frames_unanswered", "ring_frames_unanswered"},
	{"device_ring_frames_wrong", "ring_frames_wrong"},
	{"feedback_unsent", "answers_unsent"},
};

static const char *former_word(const char *word)
{
	for (size_t i = 0; i < sizeof(former_words) / sizeof(former_words[0]); i++)
		if (!strcmp(word, former_words[i].now))
			return former_words[i].was;
	return word;
}

struct figures {
	json_t *object;
	uint32_t version;
};

static void add_figure(void *arg, const char *name, uint64_t value, int failed)
{
	struct figures *figures = arg;

	json_object_set_new(figures->object, figures->version < 2 ? former_word(name) : name,
			    json_integer((json_int_t)value));
}

static json_t *sinks_json(const struct sl_receiver *r, uint32_t version)
{
	const struct sl_experiment *e = r->experiment;
	json_t *array = json_array();

	for (unsigned i = 0; i < e->sinks; i++) {
		struct figures figures = {json_object(), version};
		const char *where = e->sink[i]->where ? e->sink[i]->where(e->sink_state[i]) : NULL;

		if (e->sink[i]->figures)
			e->sink[i]->figures(e->sink_state[i], add_figure, &figures);
		json_array_append_new(
			array,
			json_pack("{s:s, s:o, s:o, s:s?}", "name", e->sink[i]->name, "where",
				  where ? text(where) : json_null(), "figures", figures.object,
				  "error", r->sink_error[i] ? strerror(-r->sink_error[i]) : NULL));
	}
	return array;
}

static json_t *unit_json(const struct sl_receiver *r, uint32_t version)
{
	const struct sl_experiment *e = r->experiment;
	struct figures figures = {json_object(), version};

	if (e->unit->figures)
		e->unit->figures(e->unit_state, add_figure, &figures);
	return json_pack("{s:s, s:o}", "name", e->unit->name, "figures", figures.object);
}

static json_t *gauge_json(const struct sl_gauge *gauge)
{
	return json_pack("{s:o, s:o}", "now", number(&gauge->now), "most", number(&gauge->most));
}

static json_t *backlog_json(const struct sl_receiver *r)
{
	json_t *slots = gauge_json(&r->slots_used);

	json_object_set_new(slots, "of", json_integer(r->ring.slots));
	return json_pack("{s:o, s:o, s:o}", "slots", slots, "unit", gauge_json(&r->at_unit),
			 "sinks", gauge_json(&r->at_sinks));
}

static json_t *rates_json(const struct sl_receiver *r)
{
	double seconds = (double)(r->last_ns - r->first_ns) * 1e-9;
	double per_second = seconds > 0 ? 1 / seconds : 0;
	uint32_t items = sl_geometry_frame_items(&r->geometry);
	json_t *rates = json_pack("{s:f, s:f, s:f, s:f}", "seconds", seconds, "frames_per_s",
				  (double)r->frames * per_second, "GB_per_s",
				  (double)r->bytes * 1e-9 * per_second, "unit_busy",
				  sl_report_busy(r, seconds));

	/* An image is its own event. */
	if (rates && items > 1)
		json_object_set_new(
			rates, "events_per_s",
			json_real((double)(r->frames - r->broken) * items * per_second));
	return rates;
}

/* Version 1 did not say which it is. */
static json_t *with_schema(json_t *json, uint32_t version)
{
	if (json && version >= 2)
		json_object_set_new(json, "schema", json_integer(version));
	return json;
}

static json_t *summary(const struct sl_receiver *r, const struct sl_summary_facts *run)
{
	char now[64];

	sl_clock_iso8601(now, sizeof(now));
	return json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:s?, s:s?, s:s, s:i, s:{s:o, s:o, s:o, s:o, s:o, s:o}, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"sluice", SL_VERSION, "experiment", text(run->file), "transfer",
		r->experiment->transfer, "started", run->started, "ended", now, "stopped_by",
		run->stopped_by, "ended_early", run->early, "result", sl_result_name(run->result),
		"exit", sl_result_exit(run->result), "frames", "settled", number(&r->frames),
		"kept", number(&r->kept), "broken", number(&r->broken), "partial",
		number(&r->partial), "prescaled", number(&r->prescaled), "late", number(&r->late),
		"backlog", backlog_json(r), "ledger", ledger_json(r), "link", link_json(r),
		"latency_us", latency_json(r), "rates", rates_json(r), "sinks",
		sinks_json(r, run->version), "threads", threads_json(r), "unit",
		unit_json(r, run->version));
}

static int write_whole(const char *path, json_t *json)
{
	char part[4096];
	int err = 0;

	if (!json)
		return -ENOMEM;
	snprintf(part, sizeof(part), "%s.part", path);
	if (json_dump_file(json, part, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0)
		err = errno ? -errno : -EIO;
	else if (rename(part, path) != 0)
		err = -errno;
	json_decref(json);
	if (err) {
		sl_error("cannot write the summary '%s': %s", path, strerror(-err));
		unlink(part);
	}
	return err;
}

int sl_summary_write(const char *path, const struct sl_receiver *r,
		     const struct sl_summary_facts *run)
{
	return write_whole(path, with_schema(summary(r, run), run->version));
}

int sl_summary_join(const char *path, const char *const *name, const char *const *file, size_t n,
		    int status, uint32_t version)
{
	json_t *transfers = json_object();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_load_file(file[i], 0, NULL);

		json_object_set_new(transfers, name[i], one ? one : json_null());
	}
	return write_whole(path,
			   with_schema(json_pack("{s:s, s:s, s:i, s:o}", "sluice", SL_VERSION,
						 "result", sl_result_name((enum sl_result)status),
						 "exit", status, "transfers", transfers),
				       version));
}
