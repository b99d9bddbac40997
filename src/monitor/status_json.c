/* status_json.c - a status as JSON. */
#include "monitor/status_json.h"
#include "monitor/detectors_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/text.h"
#include "monitor/detector_json.h"
#include "monitor/forecast_json.h"
#include "monitor/metadata_json.h"
#include "monitor/pace_json.h"
#include "monitor/result.h"

static json_t *number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *number_or_null(uint64_t value)
{
	return value ? number(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? sl_json_text(text) : json_null();
}

static json_t *truth(uint32_t value)
{
	return json_boolean(value != 0);
}

/* ---- frames and ledger ---- */

static json_t *frames_json(const struct sl_status *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "settled",
			 number(s->frames), "expected", number_or_null(s->expected_frames), "kept",
			 number(s->kept), "broken", number(s->broken), "partial",
			 number(s->partial), "prescaled", number(s->prescaled), "late",
			 number(s->late), "pixel_bytes", number(s->pixel_bytes), "items",
			 number(s->items));
}

static json_t *rates_json(const struct sl_rates *r)
{
	if (!r->window_ns)
		return json_null();
	return json_pack("{s:o, s:f, s:f}", "window_ns", number(r->window_ns), "frames_per_s",
			 r->frames_per_s, "bytes_per_s", r->bytes_per_s);
}

/* Those that are not 0, by name. */
static json_t *outcomes_json(const uint64_t *count)
{
	json_t *object = json_object();

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		if (count[o])
			json_object_set_new(object, sl_outcome_name(o), number(count[o]));
	return object;
}

static json_t *causes_json(const uint64_t *count)
{
	json_t *object = json_object();

	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++)
		if (count[c])
			json_object_set_new(object, sl_cause_name(c), number(count[c]));
	return object;
}

static json_t *column_json(const struct sl_status_column *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "settled", number(c->settled), "sent",
			 number(c->sent), "skipped", number(c->skipped), "pending",
			 number(c->pending), "outcomes", outcomes_json(c->outcome), "causes",
			 causes_json(c->cause));
}

static void add_column(struct sl_status_column *sum, const struct sl_status_column *c)
{
	sum->settled += c->settled;
	sum->sent += c->sent;
	sum->skipped += c->skipped;
	sum->pending += c->pending;
	for (unsigned o = 0; o < SL_OUTCOMES; o++)
		sum->outcome[o] += c->outcome[o];
	for (unsigned i = 0; i < SL_CAUSES; i++)
		sum->cause[i] += c->cause[i];
}

static json_t *ledger_json(const struct sl_status *s)
{
	struct sl_status_column total = {.sent = 0};
	json_t *modules = json_array();

	for (uint32_t m = 0; m < s->modules; m++) {
		json_array_append_new(modules, column_json(&s->column[m]));
		add_column(&total, &s->column[m]);
	}
	return json_pack("{s:b, s:o, s:b, s:o, s:o}", "closed", s->modules && sl_status_closed(s),
			 "misuse", number(s->misuse), "unsaved", s->unsaved != 0, "total",
			 column_json(&total), "modules", modules);
}

/* ---- sources and link ---- */

const char *sl_status_source_name(uint32_t state)
{
	static const char *const name[] = {"absent", "planned", "running",  "done",
					   "ended",  "gone",	"returning"};

	return state < sizeof(name) / sizeof(name[0]) ? name[state] : "unknown";
}

static json_t *source_json(const struct sl_status_source *s)
{
	json_t *unfinished = s->unfinished_packets
				     ? json_pack("{s:o, s:o}", "sequence",
						 number(s->unfinished_sequence), "packets",
						 number(s->unfinished_packets))
				     : json_null();

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state",
			 sl_status_source_name(s->state), "fell_short", truth(s->fell_short),
			 "first", number(s->first), "offered", number_or_null(s->offered),
			 "reached", number(s->reached), "turned_away", number(s->turned_away),
			 "returns", number(s->returns), "unfinished", unfinished);
}

static json_t *sources_json(const struct sl_status *s)
{
	json_t *modules = json_array();

	for (uint32_t m = 0; m < s->modules; m++)
		json_array_append_new(modules, source_json(&s->source[m]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "alive", number(s->sources_alive), "gone",
			 number(s->sources_gone), "one_way", truth(s->one_way), "same_clock",
			 truth(s->same_clock), "modules", modules);
}

static json_t *link_json(const struct sl_status *s)
{
	json_t *dropped = json_object();

	for (unsigned d = 0; d < SL_DROPS; d++)
		if (s->dropped[d])
			json_object_set_new(dropped, sl_drop_name(d), number(s->dropped[d]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
			 text_or_null(s->link), "guard", text_or_null(s->guard), "proof",
			 text_or_null(s->proof), "packets", number(s->packets), "bytes",
			 number(s->packet_bytes), "marked", number(s->marked), "notified",
			 number(s->notified), "receive_buffer_bytes",
			 number(s->receive_buffer_bytes), "dropped", dropped);
}

/* ---- times, gauges, threads ---- */

/* Up to the last one that is not 0. */
static json_t *buckets_json(const struct sl_status_latency *l)
{
	json_t *array = json_array();
	unsigned n = SL_STATUS_BUCKETS;

	while (n && !l->bucket[n - 1])
		n--;
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(array, number(l->bucket[i]));
	return array;
}

static json_t *latency_json(const struct sl_status *s)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < s->latencies; i++) {
		const struct sl_status_latency *l = &s->latency[i];

		if (l->count)
			json_object_set_new(object, sl_latency_name(i),
					    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
						      "count", number(l->count), "sum",
						      number(l->sum_ns), "p50", number(l->p50_ns),
						      "p99", number(l->p99_ns), "p999",
						      number(l->p999_ns), "max", number(l->max_ns),
						      "buckets", buckets_json(l)));
	}
	return object;
}

static json_t *gauge_json(const struct sl_status_gauge *g)
{
	return json_pack("{s:o, s:o, s:o}", "now", number(g->now), "most", number(g->most), "of",
			 number_or_null(g->of));
}

static json_t *age_json(uint64_t taken_ns, uint64_t at_ns)
{
	return at_ns ? number(taken_ns > at_ns ? taken_ns - at_ns : 0) : json_null();
}

static json_t *threads_json(const struct sl_status *s)
{
	const struct sl_status_threads *t = &s->threads;
	json_t *cpus = json_array(), *progress = json_array();

	for (uint32_t i = 0; i < t->cpus && i < SL_STATUS_CPUS; i++)
		json_array_append_new(cpus, json_integer(t->cpu[i]));
	for (uint32_t i = 0; i < s->progress_threads && i < SL_STATUS_PROGRESS; i++)
		json_array_append_new(progress,
				      json_pack("{s:s, s:o}", "name", s->progress[i].name, "age_ns",
						age_json(s->taken_ns, s->progress[i].at_ns)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "polling",
			 text_or_null(t->polling), "crowded", truth(t->crowded), "ring_node",
			 t->ring_node < 0 ? json_null() : json_integer(t->ring_node), "cpus", cpus,
			 "pollers", number(t->pollers), "workers", number(t->workers), "busy_ns",
			 number(t->busy_ns), "progress", progress);
}

uint64_t sl_status_progress_age_ns(const struct sl_status *s)
{
	uint64_t last = s->last_ns;

	for (uint32_t i = 0; i < s->progress_threads && i < SL_STATUS_PROGRESS; i++)
		if (s->progress[i].at_ns > last)
			last = s->progress[i].at_ns;
	if (!last)
		return UINT64_MAX;
	return s->taken_ns > last ? s->taken_ns - last : 0;
}

static json_t *progress_age_json(const struct sl_status *s)
{
	uint64_t age = sl_status_progress_age_ns(s);

	return age == UINT64_MAX ? json_null() : number(age);
}

/* ---- add-ons ---- */

static json_t *addon_json(const struct sl_status *s, uint32_t addon)
{
	const struct sl_status_addon *a = &s->addon[addon];
	json_t *figures = json_object(), *texts = json_object();

	for (uint32_t i = a->first_figure;
	     i < a->first_figure + a->figures && i < SL_STATUS_FIGURES; i++)
		json_object_set_new(figures, s->figure[i].name, number(s->figure[i].value));
	for (uint32_t i = 0; i < s->texts && i < SL_STATUS_TEXTS; i++)
		if (s->text[i].addon == (uint32_t)(a - s->addon))
			json_object_set_new(texts, s->text[i].name, sl_json_text(s->text[i].value));
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "name",
			 sl_json_text(a->name), "kind", a->is_sink ? "sink" : "unit", "where",
			 a->has_place ? sl_json_text(a->where) : json_null(), "error",
			 a->error ? json_string(strerror(-a->error)) : json_null(), "age_ns",
			 age_json(s->taken_ns, a->taken_ns), "figures", figures, "texts", texts,
			 "required", !a->optional, "pace", sl_json_pace(s, addon));
}

static json_t *addons_json(const struct sl_status *s)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->addons && i < SL_STATUS_ADDONS; i++)
		json_array_append_new(array, addon_json(s, i));
	return array;
}

/* ---- what a session knows beside it ---- */

static json_t *detector_json(const struct sl_status *s)
{
	if (!s->detector[0])
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:f}", "kind", sl_json_text(s->detector), "frames",
			 number_or_null(s->detector_frames), "dark_frames",
			 number(s->detector_dark_frames), "rate_Hz", s->detector_rate_Hz);
}

static json_t *error_json(const struct sl_error *e)
{
	if (!e || !e->code)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o}", "code", sl_error_name(e->code), "message",
			 sl_json_text(e->message), "where", text_or_null(e->where), "hint",
			 text_or_null(e->hint));
}

static json_t *parameters_json(const char *text)
{
	json_t *values = text ? json_loads(text, 0, NULL) : NULL;

	return values ? values : json_object();
}

/* ---- the whole ---- */

static json_t *head_json(const struct sl_status_document *d)
{
	const struct sl_status *s = d->status;

	return json_pack(
		"{s:i, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"schema", SL_STATUS_SCHEMA, "session", text_or_null(s->session), "state",
		sl_state_name(s->state), "result",
		s->result < 0 ? json_null() : json_string(sl_result_name(s->result)), "run",
		number_or_null(s->run), "folder", text_or_null(s->folder), "experiment",
		text_or_null(s->experiment), "transfer", text_or_null(s->transfer), "taken_ns",
		number(s->taken_ns), "taken_unix_ns", number(d->taken_unix_ns), "started_unix_ns",
		number_or_null(s->started_unix_ns), "ended_unix_ns",
		number_or_null(s->ended_unix_ns), "progress_age_ns", progress_age_json(s),
		"drained", truth(s->drained), "overrun", truth(s->overrun), "deadline_us",
		number_or_null(s->deadline_us));
}

static json_t *document_json(const struct sl_status_document *d)
{
	const struct sl_status *s = d->status;
	json_t *json = head_json(d);
	json_t *rest = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}}",
		"early", text_or_null(s->early), "stopped_by", text_or_null(s->stopped_by),
		"frames", frames_json(s), "rates", rates_json(&d->rates), "ledger", ledger_json(s),
		"sources", sources_json(s), "link", link_json(s), "latency_ns", latency_json(s),
		"threads", threads_json(s), "addons", addons_json(s), "error", error_json(d->error),
		"gauges", "slots", gauge_json(&s->slots), "unit", gauge_json(&s->at_unit), "sinks",
		gauge_json(&s->at_sinks));

	if (json && rest)
		json_object_update(json, rest);
	json_decref(rest);
	if (json) {
		json_object_set_new(json, "kind",
				    json_string(d->detector ? "detector" : "session"));
		if (d->detector)
			json_object_set_new(json, "detector_side", sl_json_detector(d->detector));
		json_object_set_new(json, "metadata", sl_json_metadata(d->metadata));
		json_object_set_new(json, "parameters", parameters_json(d->parameters));
		json_object_set_new(json, "detector", detector_json(s));
		json_object_set_new(json, "forecast", sl_json_forecast(s));
		json_object_set_new(json, "flight", text_or_null(s->flight));
		json_object_set_new(json, "detectors", sl_json_detectors(s));
		json_object_set_new(json, "watermark", number(s->watermark));
		json_object_set_new(json, "too_slow",
				    s->too_slow ? sl_json_text(s->addon[s->too_slow - 1].name)
						: json_null());
	}
	return json;
}

static char *text_of(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

	json_decref(json);
	return text;
}

static char *line_of(json_t *json)
{
	char *text = text_of(json);
	size_t length = text ? strlen(text) : 0;
	char *line = text ? realloc(text, length + 2) : NULL;

	if (!line) {
		free(text);
		return NULL;
	}
	line[length] = '\n';
	line[length + 1] = '\0';
	return line;
}

char *sl_status_json(const struct sl_status_document *document)
{
	return text_of(document_json(document));
}

char *sl_reply_ok(const char *call, enum sl_state state)
{
	return line_of(json_pack("{s:i, s:b, s:s, s:s}", "schema", SL_STATUS_SCHEMA, "ok", 1,
				 "call", call, "state", sl_state_name(state)));
}

char *sl_reply_error(const struct sl_error *error)
{
	return line_of(json_pack("{s:i, s:b, s:o}", "schema", SL_STATUS_SCHEMA, "ok", 0, "error",
				 error_json(error)));
}

char *sl_reply_status(const char *call, const struct sl_status_document *document)
{
	return line_of(json_pack("{s:i, s:b, s:s, s:s, s:o}", "schema", SL_STATUS_SCHEMA, "ok", 1,
				 "call", call, "state", sl_state_name(document->status->state),
				 "status", document_json(document)));
}

char *sl_reply_metadata(const struct sl_metadata *metadata)
{
	return line_of(json_pack("{s:i, s:b, s:s, s:o}", "schema", SL_STATUS_SCHEMA, "ok", 1,
				 "call", "metadata", "metadata", sl_json_metadata(metadata)));
}

char *sl_reply_point(uint64_t point, enum sl_state state)
{
	return line_of(json_pack("{s:i, s:b, s:s, s:s, s:o}", "schema", SL_STATUS_SCHEMA, "ok", 1,
				 "call", "point", "state", sl_state_name(state), "point",
				 number(point)));
}
