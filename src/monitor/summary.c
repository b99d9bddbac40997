/* summary.c - a run's result for programs. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/log.h"
#include "client/text.h"
#include "monitor/detectors_json.h"
#include "monitor/forecast_json.h"
#include "monitor/metadata_json.h"
#include "monitor/pace_json.h"
#include "monitor/report.h"
#include "monitor/summary.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *outcomes_of(const struct sl_status_column *column)
{
	json_t *object = json_object();

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		json_object_set_new(object, sl_outcome_name(o), number(column->outcome[o]));
	return object;
}

static json_t *causes_of(const struct sl_status_column *column)
{
	json_t *object = json_object();

	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++)
		json_object_set_new(object, sl_cause_name(c), number(column->cause[c]));
	return object;
}

/* The same histogram over all modules. */
static struct sl_status_column total_of(const struct sl_status *s)
{
	struct sl_status_column total = {.sent = 0};

	for (uint32_t m = 0; m < s->modules; m++) {
		total.sent += s->column[m].sent;
		total.skipped += s->column[m].skipped;
		for (unsigned o = 0; o < SL_OUTCOMES; o++)
			total.outcome[o] += s->column[m].outcome[o];
		for (unsigned c = 0; c < SL_CAUSES; c++)
			total.cause[c] += s->column[m].cause[c];
	}
	return total;
}

static json_t *module_json(const struct sl_status *status, uint32_t m)
{
	const struct sl_status_column *column = &status->column[m];
	const struct sl_status_source *s = &status->source[m];
	json_t *module = json_pack("{s:i, s:o, s:o, s:o, s:o, s:s}", "module", (int)m, "sent",
				   number(column->sent), "skipped", number(column->skipped),
				   "outcomes", outcomes_of(column), "causes", causes_of(column),
				   "source", s->state == SL_SOURCE_GONE ? "vanished" : "done");

	if (s->offered)
		json_object_set_new(module, "offered", number(s->offered));
	if (s->returns)
		json_object_set_new(module, "returns", number(s->returns));
	if (s->first)
		json_object_set_new(module, "first", number(s->first));
	if (s->unfinished_packets)
		json_object_set_new(module, "unfinished",
				    json_pack("{s:o, s:o}", "sequence",
					      number(s->unfinished_sequence), "packets",
					      number(s->unfinished_packets)));
	return module;
}

static json_t *ledger_json(const struct sl_status *s)
{
	struct sl_status_column total = total_of(s);
	json_t *modules = json_array();

	for (uint32_t m = 0; m < s->modules; m++)
		json_array_append_new(modules, module_json(s, m));
	return json_pack("{s:b, s:{s:o, s:o, s:o, s:o}, s:o, s:i, s:o}", "closed",
			 sl_status_closed(s), "total", "sent", number(total.sent), "skipped",
			 number(total.skipped), "outcomes", outcomes_of(&total), "causes",
			 causes_of(&total), "modules", modules, "sources_vanished",
			 (int)s->sources_gone, "misuse", number(s->misuse));
}

static json_t *latency_json(const struct sl_status *s)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < s->latencies; i++) {
		const struct sl_status_latency *l = &s->latency[i];

		if (l->count)
			json_object_set_new(
				object, sl_latency_name(i),
				json_pack("{s:f, s:f, s:f, s:f, s:o}", "p50",
					  (double)l->p50_ns * 1e-3, "p99", (double)l->p99_ns * 1e-3,
					  "p999", (double)l->p999_ns * 1e-3, "max",
					  (double)l->max_ns * 1e-3, "count", number(l->count)));
	}
	return object;
}

static json_t *link_json(const struct sl_status *s)
{
	json_t *dropped = json_object();

	for (unsigned d = 0; d < SL_DROPS; d++)
		json_object_set_new(dropped, sl_drop_name(d), number(s->dropped[d]));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", s->link, "guard",
			 s->guard, "proof", s->proof, "packets", number(s->packets), "bytes",
			 number(s->packet_bytes), "turned_away", dropped, "marked",
			 number(s->marked), "notified", number(s->notified), "receive_buffer",
			 number(s->receive_buffer_bytes));
}

static json_t *threads_json(const struct sl_status_threads *t)
{
	json_t *cpus = json_array();

	for (unsigned i = 0; i < t->cpus; i++)
		json_array_append_new(cpus, json_integer(t->cpu[i]));
	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "polling", t->polling, "crowded",
			 (int)t->crowded, "cpus", cpus, "ring_node",
			 t->ring_node < 0 ? json_null() : json_integer(t->ring_node), "pollers",
			 number(t->pollers), "workers", number(t->workers));
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

static json_t *figures_json(const struct sl_status *s, const struct sl_status_addon *addon,
			    uint32_t version)
{
	const struct sl_status_figure *f = &s->figure[addon->first_figure];
	json_t *object = json_object();

	for (uint32_t i = 0; i < addon->figures; i++, f++)
		json_object_set_new(object, version < 2 ? former_word(f->name) : f->name,
				    number(f->value));
	return object;
}

static json_t *texts_json(const struct sl_status *s, uint32_t addon)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < s->texts && i < SL_STATUS_TEXTS; i++)
		if (s->text[i].addon == addon)
			json_object_set_new(object, s->text[i].name,
					    sl_json_text(s->text[i].value));
	return object;
}

static json_t *sinks_json(const struct sl_status *s, uint32_t version)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->addons; i++) {
		const struct sl_status_addon *a = &s->addon[i];

		if (!a->is_sink)
			continue;
		json_array_append_new(
			array,
			json_pack("{s:s, s:o, s:o, s:o, s:s?, s:b, s:o}", "name", a->name, "where",
				  a->has_place ? sl_json_text(a->where) : json_null(), "figures",
				  figures_json(s, a, version), "texts", texts_json(s, i), "error",
				  a->error ? strerror(-a->error) : NULL, "required", !a->optional,
				  "pace", sl_json_pace(s, i)));
	}
	return array;
}

static json_t *unit_json(const struct sl_status *s, uint32_t version)
{
	for (uint32_t i = 0; i < s->addons; i++)
		if (!s->addon[i].is_sink)
			return json_pack("{s:s, s:o}", "name", s->addon[i].name, "figures",
					 figures_json(s, &s->addon[i], version));
	return json_null();
}

static json_t *gauge_json(const struct sl_status_gauge *gauge)
{
	return json_pack("{s:o, s:o}", "now", number(gauge->now), "most", number(gauge->most));
}

static json_t *backlog_json(const struct sl_status *s)
{
	json_t *slots = gauge_json(&s->slots);

	json_object_set_new(slots, "of", number(s->slots.of));
	return json_pack("{s:o, s:o, s:o}", "slots", slots, "unit", gauge_json(&s->at_unit),
			 "sinks", gauge_json(&s->at_sinks));
}

static json_t *rates_json(const struct sl_status *s)
{
	double seconds = (double)(s->last_ns - s->first_ns) * 1e-9;
	double per_second = seconds > 0 ? 1 / seconds : 0;
	json_t *rates = json_pack("{s:f, s:f, s:f, s:f}", "seconds", seconds, "frames_per_s",
				  (double)s->frames * per_second, "GB_per_s",
				  (double)s->pixel_bytes * 1e-9 * per_second, "unit_busy",
				  sl_report_busy(s, seconds));

	/* An image is its own event. */
	if (rates && s->items > 1)
		json_object_set_new(
			rates, "events_per_s",
			json_real((double)(s->frames - s->broken) * s->items * per_second));
	return rates;
}

/* Version 1 did not say which it is. */
static json_t *with_schema(json_t *json, uint32_t version)
{
	if (json && version >= 2)
		json_object_set_new(json, "schema", json_integer(version));
	return json;
}

static json_t *summary(const struct sl_status *s, uint32_t version)
{
	enum sl_result result = s->result < 0 ? SL_RESULT_ERROR : (enum sl_result)s->result;
	char started[64], ended[64];
	json_t *json;

	sl_clock_iso8601(s->started_unix_ns, started, sizeof(started));
	sl_clock_iso8601(s->ended_unix_ns, ended, sizeof(ended));
	json = json_pack("{s:s, s:o, s:s, s:s, s:s, s:s?, s:s?, s:s, s:i, s:{s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o, s:o, s:o}, "
			 "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "sluice", SL_VERSION, "experiment", sl_json_text(s->experiment),
			 "transfer", s->transfer, "started", started, "ended", ended, "stopped_by",
			 s->stopped_by[0] ? s->stopped_by : NULL, "ended_early",
			 s->early[0] ? s->early : NULL, "result", sl_result_name(result), "exit",
			 sl_result_exit(result), "frames", "settled", number(s->frames), "kept",
			 number(s->kept), "broken", number(s->broken), "partial",
			 number(s->partial), "prescaled", number(s->prescaled), "late",
			 number(s->late), "dark", number(s->dark), "dark_expected",
			 number(s->dark_expected), "repeated", number(s->repeated), "backlog",
			 backlog_json(s), "ledger", ledger_json(s), "link", link_json(s),
			 "latency_us", latency_json(s), "rates", rates_json(s), "sinks",
			 sinks_json(s, version), "threads", threads_json(&s->threads), "unit",
			 unit_json(s, version), "watermark", number(s->watermark));
	if (json)
		json_object_set_new(json, "forecast", sl_json_forecast(s));
	if (json && version >= 2)
		json_object_set_new(json, "flight",
				    s->flight[0] ? sl_json_text(s->flight) : json_null());
	if (json && s->detectors)
		json_object_set_new(json, "detectors", sl_json_detectors(s));
	return json;
}

static int write_whole(struct sl_part_file *file, json_t *json)
{
	int err = json ? 0 : -ENOMEM;

	errno = 0;
	if (!err && json_dumpfd(json, file->fd, JSON_INDENT(2) | JSON_REAL_PRECISION(6)))
		err = errno ? -errno : -EIO;
	json_decref(json);
	if (!err)
		return sl_part_file_publish(file);
	sl_error("cannot write the summary '%s': %s", file->path, strerror(-err));
	sl_part_file_discard(file);
	return err;
}

int sl_summary_write(struct sl_part_file *file, const struct sl_status *status,
		     const struct sl_metadata *metadata, uint32_t version)
{
	json_t *json = with_schema(summary(status, version), version);

	if (json && version >= 2)
		json_object_set_new(json, "metadata", sl_json_metadata(metadata));
	return write_whole(file, json);
}

int sl_summary_join(struct sl_part_file *to, const char *const *name, const char *const *file,
		    size_t n, int status, uint32_t version)
{
	json_t *transfers = json_object();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_load_file(file[i], 0, NULL);

		json_object_set_new(transfers, name[i], one ? one : json_null());
	}
	return write_whole(to,
			   with_schema(json_pack("{s:s, s:s, s:i, s:o}", "sluice", SL_VERSION,
						 "result", sl_result_name((enum sl_result)status),
						 "exit", status, "transfers", transfers),
				       version));
}

/* ---- of a run folder ---- */

static json_t *text_or_null(const char *bytes)
{
	return bytes && bytes[0] ? sl_json_text(bytes) : json_null();
}

static json_t *error_json(const struct sl_summary_run *run)
{
	if (!run->code)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o}", "code", run->code, "message",
			 text_or_null(run->message), "where", text_or_null(run->where), "hint",
			 text_or_null(run->hint));
}

/* They stand over those of the same name in the summary. */
static json_t *run_json(const struct sl_summary_run *run)
{
	char started[64], ended[64];

	sl_clock_iso8601(run->started_unix_ns, started, sizeof(started));
	sl_clock_iso8601(run->ended_unix_ns, ended, sizeof(ended));
	return json_pack("{s:i, s:s, s:o, s:o, s:s, s:i, s:s, s:s, s:o, s:{s:o, s:o}, s:o, s:o}",
			 "schema", SL_SUMMARY_VERSION, "sluice", SL_VERSION, "run",
			 number(run->number), "folder", text_or_null(run->folder), "state",
			 run->state, "exit", run->exit, "started", started, "ended", ended, "error",
			 error_json(run), "origin", "file", text_or_null(run->file),
			 "working_directory", text_or_null(run->working_directory), "metadata",
			 sl_json_metadata(run->metadata), "log_lines_lost",
			 number(run->log_lines_lost));
}

static char *text_of(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;

	json_decref(json);
	return text;
}

char *sl_summary_result(const struct sl_status *s, const struct sl_summary_run *run)
{
	bool began = s->result >= 0 && s->result != SL_RESULT_ERROR;
	json_t *json = began ? summary(s, SL_SUMMARY_VERSION)
			     : json_pack("{s:o, s:s, s:s}", "experiment",
					 sl_json_text(s->experiment), "transfer", s->transfer,
					 "result", sl_result_name(SL_RESULT_ERROR));
	json_t *more = run_json(run);

	if (!json || !more || json_object_update(json, more)) {
		json_decref(json);
		json = NULL;
	}
	json_decref(more);
	return text_of(json);
}

char *sl_summary_join_result(const char *const *name, const char *const *file, size_t n,
			     const struct sl_summary_run *run)
{
	json_t *json = run_json(run), *transfers = json_object();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_load_file(file[i], 0, NULL);
		const char *state = json_string_value(json_object_get(one, "state"));

		if (state && !strcmp(state, "fault"))
			json_object_set_new(json, "state", json_string("fault"));
		json_object_set_new(transfers, name[i], one ? one : json_null());
	}
	json_object_set_new(json, "result", json_string(sl_result_name((enum sl_result)run->exit)));
	json_object_set_new(json, "transfers", transfers);
	return text_of(json);
}
