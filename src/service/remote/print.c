/* print.c - answers of the API as people read them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/outcome.h>

#include "service/remote/remote.h"

static const char *text_of(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);

	return json_is_string(value) ? json_string_value(value) : "";
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

static const json_t *at(const json_t *json, const char *a, const char *b)
{
	return json_object_get(json_object_get(json, a), b);
}

static json_t *parse(const struct sl_api_answer *answer)
{
	return answer->body ? json_loadb(answer->body, answer->bytes, 0, NULL) : NULL;
}

/* ---- errors ---- */

void sl_api_print_error(FILE *out, const struct sl_api_answer *answer)
{
	json_t *json = parse(answer);
	const json_t *error = json_object_get(json, "error"), *one;
	size_t i;

	if (!error)
		fprintf(out, "the service answered with status %u\n", answer->status);
	else if (!json_array_size(json_object_get(json, "errors")))
		fprintf(out, "%s%s%s\n", text_of(error, "message"),
			text_of(error, "hint")[0] ? "; " : "", text_of(error, "hint"));
	json_array_foreach(json_object_get(json, "errors"), i, one) fprintf(
		out, "%s%s%s%s%s\n", text_of(one, "where"), text_of(one, "where")[0] ? ": " : "",
		text_of(one, "message"), text_of(one, "hint")[0] ? "; " : "", text_of(one, "hint"));
	json_decref(json);
}

void sl_api_text(const struct sl_api_answer *answer, const char *key, char *text, size_t bytes)
{
	json_t *json = parse(answer);

	snprintf(text, bytes, "%s", text_of(json, key));
	json_decref(json);
}

/* ---- tables ---- */

/* Module-frames that are lost or damaged, as `sluice ps` counts them. */
static long long lost_of(const json_t *total)
{
	json_int_t lost = 0;

	for (int outcome = SL_INCOMPLETE; outcome <= SL_LOST; outcome++)
		lost += json_integer_value(
			at(total, "outcomes", sl_outcome_name((enum sl_outcome)outcome)));
	return (long long)lost;
}

static void print_sessions(FILE *out, const json_t *json)
{
	const json_t *one;
	size_t i;

	fprintf(out, "%-20s %-10s %6s %12s %12s  %s\n", "SESSION", "STATE", "RUN", "FRAMES", "LOST",
		"EXPERIMENT");
	json_array_foreach(json_object_get(json, "sessions"), i, one)
	{
		const json_t *status = json_object_get(one, "status");
		const json_t *total = json_object_get(json_object_get(status, "ledger"), "total");

		fprintf(out, "%-20s %-10s %6lld %12lld %12lld  %s\n", text_of(one, "name"),
			json_is_true(json_object_get(one, "crashed"))
				? "crashed"
				: or_dash(text_of(one, "state")),
			(long long)json_integer_value(json_object_get(one, "run")),
			(long long)json_integer_value(at(status, "frames", "settled")),
			lost_of(total), text_of(one, "experiment"));
	}
}

static void print_runs(FILE *out, const json_t *json)
{
	const json_t *one;
	size_t i;

	fprintf(out, "%6s %-8s %-10s %12s %10s  %-24s  %s\n", "RUN", "STATE", "RESULT", "FRAMES",
		"LOST", "STARTED", "EXPERIMENT");
	json_array_foreach(json_object_get(json, "runs"), i, one)
		fprintf(out, "%06lld %-8s %-10s %12lld %10lld  %-24s  %s\n",
			(long long)json_integer_value(json_object_get(one, "run")),
			text_of(one, "state"), or_dash(text_of(one, "result")),
			(long long)json_integer_value(json_object_get(one, "frames")),
			(long long)json_integer_value(json_object_get(one, "lost")) +
				json_integer_value(json_object_get(one, "damaged")),
			or_dash(text_of(one, "started")), or_dash(text_of(one, "experiment")));
}

static void print_experiments(FILE *out, const json_t *json)
{
	const json_t *one, *parameter;
	size_t i, k;

	fprintf(out, "%-24s %-8s %-12s %s\n", "EXPERIMENT", "VALID", "DETECTOR", "TITLE");
	json_array_foreach(json_object_get(json, "experiments"), i, one)
	{
		fprintf(out, "%-24s %-8s %-12s %s\n", text_of(one, "name"),
			json_is_true(json_object_get(one, "valid")) ? "yes" : "no",
			or_dash(text_of(one, "detector")), text_of(one, "title"));
		json_array_foreach(json_object_get(one, "parameters"), k, parameter)
		{
			char *value =
				json_dumps(json_object_get(parameter, "value"), JSON_ENCODE_ANY);

			fprintf(out, "  %s=%s %s: %s\n", text_of(parameter, "name"),
				value ? value : "", text_of(parameter, "unit"),
				text_of(parameter, "doc"));
			free(value);
		}
	}
}

static void print_ledger(FILE *out, const json_t *json)
{
	const json_t *total = at(json, "ledger", "total"), *one;
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach(json_object_get(total, "outcomes"), name, value)
		fprintf(out, "%-12s %12lld\n", name, (long long)json_integer_value(value));
	fprintf(out, "the ledger %s\n",
		json_is_true(at(json, "ledger", "closed")) ? "closes" : "is open");
	json_array_foreach(json_object_get(json, "words"), i, one)
		fprintf(out, "%s: %s%s%s\n", text_of(one, "cause"), text_of(one, "words"),
			text_of(one, "hint")[0] ? "; " : "", text_of(one, "hint"));
}

static void print_check(FILE *out, const json_t *json)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(json, "errors"), i, one) fprintf(
		out, "error: %s: %s%s%s\n", or_dash(text_of(one, "where")), text_of(one, "message"),
		text_of(one, "hint")[0] ? "; " : "", text_of(one, "hint"));
	json_array_foreach(json_object_get(json, "warnings"), i, one) fprintf(
		out, "warning: %s: %s\n", or_dash(text_of(one, "where")), text_of(one, "message"));
	if (json_is_true(json_object_get(json, "valid")))
		fprintf(out, "no mistake\n");
}

/* ---- explanations: the same words as those of `sluice explain` ---- */

static void print_best_cause(FILE *out, const json_t *best)
{
	const json_t *proof;
	size_t i;

	fprintf(out, "%s\n\n", text_of(best, "sentence"));
	json_array_foreach(json_object_get(best, "proof"), i, proof)
		fprintf(out, "  %-28s %.6g%s%s\n", text_of(proof, "name"),
			json_number_value(json_object_get(proof, "value")),
			text_of(proof, "unit")[0] ? " " : "", text_of(proof, "unit"));
	fprintf(out, "\nTo mend it: %s\n", text_of(best, "advice"));
	if (text_of(best, "command")[0])
		fprintf(out, "\n    %s\n", text_of(best, "command"));
}

/* Whether it is the first cause of its group of losses. */
static bool is_first(const json_t *causes, size_t cause)
{
	const char *group = text_of(json_array_get(causes, cause), "group");

	for (size_t i = 0; i < cause; i++)
		if (!strcmp(text_of(json_array_get(causes, i), "group"), group))
			return false;
	return true;
}

static void print_other_causes(FILE *out, const json_t *causes, bool first, const char *lead)
{
	const json_t *one;
	size_t i;

	json_array_foreach(causes, i, one)
	{
		if (!i || is_first(causes, i) != first)
			continue;
		fprintf(out, "%s  %s (%s%lld module-frames): %s\n", lead, text_of(one, "cause"),
			json_is_true(json_object_get(one, "at_most")) ? "at most " : "",
			(long long)json_integer_value(json_object_get(one, "module_frames")),
			text_of(one, "sentence"));
		if (text_of(one, "command")[0])
			fprintf(out, "    To mend it: %s\n", text_of(one, "command"));
		lead = "";
	}
}

static void print_one_explanation(FILE *out, const json_t *one)
{
	const json_t *causes = json_object_get(one, "causes");
	const char *run = text_of(one, "run"), *transfer = text_of(one, "transfer");
	long long lost = json_integer_value(json_object_get(one, "lost")),
		  sent = json_integer_value(json_object_get(one, "sent"));
	const char *so_far = json_is_true(json_object_get(one, "live")) ? " so far" : "";
	bool unclosed = json_is_true(json_object_get(one, "unclosed"));

	if (run[0])
		fprintf(out, "%s%s%s: ", run, transfer[0] ? ", transfer " : "", transfer);
	if (!lost && !unclosed) {
		fprintf(out, "nothing was lost%s: %lld module-frames were sent.\n", so_far, sent);
		return;
	}
	if (lost)
		fprintf(out, "%lld of %lld module-frames were lost or damaged%s.\n\n", lost, sent,
			so_far);
	else
		fprintf(out,
			"the run is unclosed%s: of %lld module-frames that are known to have been "
			"sent none was lost, and more may have been sent.\n\n",
			so_far, sent);
	if (!json_array_size(causes)) {
		fprintf(out, "The cause is not known. Looked at: %s.\n", text_of(one, "looked_at"));
		return;
	}
	print_best_cause(out, json_array_get(causes, 0));
	print_other_causes(out, causes, true, "\nAlso:\n");
	print_other_causes(out, causes, false, "\nLess likely:\n");
	if (!json_is_true(json_object_get(one, "has_flight")))
		fprintf(out, "\nThere is no flight record: this is what the ledger alone says.\n");
}

static void print_explanation(FILE *out, const json_t *json)
{
	const json_t *transfers = json_object_get(json, "transfers"), *one;
	size_t i;

	if (!json_is_array(transfers))
		print_one_explanation(out, json);
	json_array_foreach(transfers, i, one)
	{
		if (i)
			fputc('\n', out);
		print_one_explanation(out, one);
	}
}

static void print_metadata(FILE *out, const json_t *json)
{
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(json, "metadata"), key, value)
		fprintf(out, "%s=%s\n", key, json_is_string(value) ? json_string_value(value) : "");
}

static void print_capabilities(FILE *out, const json_t *json)
{
	static const char *const kinds[] = {"detectors", "links", "units", "stages", "sinks"};
	const json_t *one;
	size_t k;

	fprintf(out, "%s: sluice %s, %lld cpus, %.3g GB of memory free; you are %s (%s)\n",
		text_of(json, "host"), text_of(json, "version"),
		(long long)json_integer_value(json_object_get(json, "cpus")),
		json_number_value(at(json, "memory", "available_bytes")) * 1e-9,
		text_of(json, "user"), text_of(json, "role"));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		fprintf(out, "%-10s", kinds[i]);
		json_array_foreach(at(json, "addons", kinds[i]), k, one)
			fprintf(out, " %s", text_of(one, "name"));
		fputc('\n', out);
	}
}

static bool ends_with(const char *path, const char *ending)
{
	size_t n = strcspn(path, "?"), m = strlen(ending);

	return n >= m && !strncmp(path + n - m, ending, m);
}

bool sl_api_print(FILE *out, const char *path, const struct sl_api_answer *answer)
{
	static const struct {
		const char *ending;
		void (*print)(FILE *out, const json_t *json);
	} table[] = {{"/api/v1", print_capabilities}, {"/sessions", print_sessions},
		     {"/runs", print_runs},	      {"/experiments", print_experiments},
		     {"/ledger", print_ledger},	      {"/check", print_check},
		     {"/metadata", print_metadata},   {"/explain", print_explanation}};
	json_t *json = parse(answer);
	bool printed = false;

	for (size_t i = 0; json && i < sizeof(table) / sizeof(*table) && !printed; i++) {
		printed = ends_with(path, table[i].ending);
		if (printed)
			table[i].print(out, json);
	}
	json_decref(json);
	return printed;
}
