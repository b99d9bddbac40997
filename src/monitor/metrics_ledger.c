/* metrics_ledger.c - metrics of modules: what became of their frames and why, the state of their
 * sources; and what the link did not place. */
#include <stdio.h>
#include <string.h>

#include <sluice/status.h>

#include "monitor/metrics_families.h"
#include "monitor/status_json.h"

#define LABELS(...) \
	((const struct sl_metric_label[]){{"session", session->name}, __VA_ARGS__, {NULL, NULL}})

/* ---- counts by name ---- */

typedef const char *name_fn(unsigned i);

static const char *outcome_name(unsigned i)
{
	return sl_outcome_name((enum sl_outcome)i);
}

static const char *cause_name(unsigned i)
{
	return sl_cause_name((enum sl_cause)i);
}

static const char *drop_name(unsigned i)
{
	return sl_drop_name((enum sl_drop)i);
}

/* A status leaves out what is 0: names that this program knows are written nevertheless. */
static bool is_known(const char *key, name_fn *name, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		if (!strcmp(name(i), key))
			return true;
	return false;
}

struct by_name { /* counts in an object, and the names that are always written */
	const json_t *counts;
	const char *label;
	name_fn *name;
	unsigned first, end;
};

static void write_by_name(struct sl_metrics_text *out, const struct sl_metric_session *session,
			  const struct by_name *n, struct sl_metric_label also)
{
	const char *key;
	json_t *value;
	uint64_t count;

	for (unsigned i = n->first; i < n->end; i++) {
		sl_metric_count_of(json_object_get(n->counts, n->name(i)), &count);
		sl_metrics_count(out, "", LABELS({n->label, n->name(i)}, also), count);
	}
	json_object_foreach((json_t *)n->counts, key, value)
	{
		if (!is_known(key, n->name, n->first, n->end) && sl_metric_count_of(value, &count))
			sl_metrics_count(out, "", LABELS({n->label, key}, also), count);
	}
}

/* ---- the ledger ---- */

static const json_t *modules_of(const struct sl_metric_session *session, const char *part)
{
	return json_object_get(json_object_get(session->status, part), "modules");
}

/* A count of each module: path[0] is the part of the status, path[1] the member. */
static void write_module(struct sl_metrics_text *out, const struct sl_metric_family *f,
			 const struct sl_metric_session *session)
{
	char module[SL_METRIC_INDEX];
	const json_t *column;
	size_t m;

	json_array_foreach(modules_of(session, f->path[0]), m, column)
		sl_metric_put(out, f, LABELS({"module", sl_metric_index(m, module)}),
			      json_object_get(column, f->path[1]));
}

static void write_outcomes(struct sl_metrics_text *out, const struct sl_metric_family *f,
			   const struct sl_metric_session *session)
{
	char module[SL_METRIC_INDEX];
	const json_t *column;
	size_t m;

	json_array_foreach(modules_of(session, "ledger"), m, column)
	{
		const struct by_name outcomes = {json_object_get(column, "outcomes"), "outcome",
						 outcome_name, SL_STORED, SL_OUTCOMES};

		if (outcomes.counts)
			write_by_name(
				out, session, &outcomes,
				(struct sl_metric_label){"module", sl_metric_index(m, module)});
	}
}

static void write_causes(struct sl_metrics_text *out, const struct sl_metric_family *f,
			 const struct sl_metric_session *session)
{
	const struct by_name causes = {sl_metric_at(session->status, f->path), "cause", cause_name,
				       SL_CAUSE_NONE + 1, SL_CAUSES};

	if (causes.counts)
		write_by_name(out, session, &causes, (struct sl_metric_label){NULL, NULL});
}

static void write_drops(struct sl_metrics_text *out, const struct sl_metric_family *f,
			const struct sl_metric_session *session)
{
	const struct by_name drops = {sl_metric_at(session->status, f->path), "reason", drop_name,
				      0, SL_DROPS};

	if (drops.counts)
		write_by_name(out, session, &drops, (struct sl_metric_label){NULL, NULL});
}

/* ---- sources ---- */

static void write_source_state(struct sl_metrics_text *out, const struct sl_metric_family *f,
			       const struct sl_metric_session *session)
{
	char module[SL_METRIC_INDEX];
	const json_t *source;
	size_t m;

	json_array_foreach(modules_of(session, "sources"), m, source)
	{
		const char *state = json_string_value(json_object_get(source, "state"));

		if (state)
			sl_metrics_count(
				out, "",
				LABELS({"module", sl_metric_index(m, module)}, {"state", state}),
				1);
	}
}

static void write_sources(struct sl_metrics_text *out, const struct sl_metric_family *f,
			  const struct sl_metric_session *session)
{
	uint64_t count[SL_SOURCE_RETURNING + 1] = {0};
	const json_t *modules = modules_of(session, "sources"), *source;
	size_t m;

	json_array_foreach(modules, m, source)
	{
		const char *state = json_string_value(json_object_get(source, "state"));

		for (unsigned i = 0; state && i <= SL_SOURCE_RETURNING; i++)
			count[i] += !strcmp(state, sl_status_source_name(i));
	}
	for (unsigned i = 0; modules && i <= SL_SOURCE_RETURNING; i++)
		sl_metrics_count(out, "", LABELS({"state", sl_status_source_name(i)}), count[i]);
}

/* ---- the table ---- */

#define COUNTER SL_METRIC_COUNTER
#define GAUGE	SL_METRIC_GAUGE

const struct sl_metric_family sl_metric_ledger_families[] = {
	{"sluice_ledger_sent_total",
	 COUNTER,
	 "module",
	 "Module-frames that the source reports",
	 write_module,
	 {"ledger", "sent"}},
	{"sluice_ledger_settled_total",
	 COUNTER,
	 "module",
	 "Module-frames that have an outcome, or are pending",
	 write_module,
	 {"ledger", "settled"}},
	{"sluice_ledger_skipped_total",
	 COUNTER,
	 "module",
	 "Sequences that the source left out; they are among the lost",
	 write_module,
	 {"ledger", "skipped"}},
	{"sluice_ledger_pending",
	 GAUGE,
	 "module",
	 "Module-frames in files that are not safe yet",
	 write_module,
	 {"ledger", "pending"}},
	{"sluice_ledger_outcome_total", COUNTER, "outcome, module", "Module-frames by outcome",
	 write_outcomes},
	{"sluice_ledger_cause_total",
	 COUNTER,
	 "cause",
	 "Module-frames by the cause of their outcome",
	 write_causes,
	 {"ledger", "total", "causes"}},
	{"sluice_sources", GAUGE, "state", "Modules by the state of their source", write_sources},
	{"sluice_source_state", GAUGE, "module, state",
	 "1 for the state that the source of the module is in", write_source_state},
	{"sluice_source_reached_total",
	 COUNTER,
	 "module",
	 "One more than the highest sequence of which something arrived",
	 write_module,
	 {"sources", "reached"}},
	{"sluice_source_turned_away_total",
	 COUNTER,
	 "module",
	 "Module-frames that found no room",
	 write_module,
	 {"sources", "turned_away"}},
	{"sluice_source_returns_total",
	 COUNTER,
	 "module",
	 "How often another source went on for this module",
	 write_module,
	 {"sources", "returns"}},
	{"sluice_link_dropped_total",
	 COUNTER,
	 "reason",
	 "Packets that were not placed; full: receive-queue drops, each a packet or a batch",
	 write_drops,
	 {"link", "dropped"}},
	{NULL},
};
