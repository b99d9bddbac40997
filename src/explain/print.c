/* print.c - an explanation for people, and for programs. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/text.h"
#include "explain/explain.h"

/* ---- for people ---- */

static void print_proof(FILE *out, const struct sl_finding *f)
{
	for (unsigned i = 0; i < f->evidence; i++) {
		const struct sl_evidence *p = &f->proof[i];

		fprintf(out, "  %-28s %.6g%s%s\n", p->name, p->value, p->unit[0] ? " " : "",
			p->unit);
	}
}

/* The first line says it; then what it rests on, and what mends it. */
static void print_cause(FILE *out, const struct sl_finding *f)
{
	fprintf(out, "%s\n\n", f->sentence);
	print_proof(out, f);
	fprintf(out, "\nTo mend it: %s\n", f->advice);
	if (f->command[0])
		fprintf(out, "\n    %s\n", f->command);
}

static void print_briefly(FILE *out, const struct sl_finding *f)
{
	fprintf(out, "  %s (%s%llu module-frames): %s\n", f->cause, f->at_most ? "at most " : "",
		(unsigned long long)f->module_frames, f->sentence);
	if (f->command[0])
		fprintf(out, "    To mend it: %s\n", f->command);
}

/* Other losses have causes of their own; of the same losses, others fit less. */
static void print_others(FILE *out, const struct sl_explanation *e)
{
	const char *lead[] = {"\nAlso:\n", "\nLess likely:\n"};

	for (int same = 0; same < 2; same++) {
		bool any = false;

		for (unsigned i = 1; i < e->findings; i++) {
			const struct sl_finding *f = &e->finding[i];
			bool first = true;

			for (unsigned k = 0; k < i; k++)
				first &= strcmp(e->finding[k].group, f->group) != 0;
			if (first == (same == 1))
				continue;
			if (!any)
				fputs(lead[same], out);
			print_briefly(out, f);
			any = true;
		}
	}
}

static void print_head(FILE *out, const struct sl_explanation *e)
{
	if (e->run[0])
		fprintf(out, "%s%s%s: ", e->run, e->transfer[0] ? ", transfer " : "", e->transfer);
	if (!e->lost && e->is_unclosed)
		fprintf(out,
			"the run is unclosed%s: of %llu module-frames that are known to have been "
			"sent none was lost, and more may have been sent.\n\n",
			e->is_live ? " so far" : "", (unsigned long long)e->sent);
	else if (!e->lost)
		fprintf(out, "nothing was lost%s: %llu module-frames were sent.\n",
			e->is_live ? " so far" : "", (unsigned long long)e->sent);
	else
		fprintf(out, "%llu of %llu module-frames were lost or damaged%s.\n\n",
			(unsigned long long)e->lost, (unsigned long long)e->sent,
			e->is_live ? " so far" : "");
}

void sl_explain_print(FILE *out, const struct sl_explanation *e)
{
	print_head(out, e);
	if (!e->lost && !e->is_unclosed)
		return;
	if (!e->findings) {
		fprintf(out, "The cause is not known. Looked at: %s.\n", e->looked_at);
		return;
	}
	print_cause(out, &e->finding[0]);
	print_others(out, e);
	if (!e->has_flight)
		fprintf(out, "\nThere is no flight record: this is what the ledger alone says.\n");
}

/* ---- for programs ---- */

static json_t *proof_json(const struct sl_finding *f)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < f->evidence; i++)
		json_array_append_new(array, json_pack("{s:s, s:f, s:s}", "name", f->proof[i].name,
						       "value", f->proof[i].value, "unit",
						       f->proof[i].unit));
	return array;
}

static json_t *finding_json(const struct sl_finding *f)
{
	return json_pack("{s:s, s:s, s:I, s:b, s:f, s:o, s:o, s:o, s:o}", "cause", f->cause,
			 "group", f->group, "module_frames", (json_int_t)f->module_frames,
			 "at_most", (int)f->at_most, "score", f->score, "sentence",
			 sl_json_text(f->sentence), "advice", sl_json_text(f->advice), "command",
			 f->command[0] ? sl_json_text(f->command) : json_null(), "proof",
			 proof_json(f));
}

static json_t *explanation_json(const struct sl_explanation *e)
{
	json_t *causes = json_array();

	for (unsigned i = 0; i < e->findings; i++)
		json_array_append_new(causes, finding_json(&e->finding[i]));
	return json_pack(
		"{s:i, s:o, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:b, s:b, s:b}", "schema", 1, "run",
		e->run[0] ? sl_json_text(e->run) : json_null(), "transfer",
		e->transfer[0] ? sl_json_text(e->transfer) : json_null(), "sent",
		(json_int_t)e->sent, "lost", (json_int_t)e->lost, "unclosed", (int)e->is_unclosed,
		"cause", e->findings ? json_string(e->finding[0].cause) : json_null(), "causes",
		causes, "looked_at", e->looked_at[0] ? sl_json_text(e->looked_at) : json_null(),
		"has_result", (int)e->has_result, "has_flight", (int)e->has_flight, "live",
		(int)e->is_live);
}

char *sl_explain_json(const struct sl_explanation *e, size_t n)
{
	json_t *json = n == 1 ? explanation_json(e) : json_object();
	json_t *transfers = n == 1 ? NULL : json_array();
	char *text;

	for (size_t i = 0; transfers && i < n; i++)
		json_array_append_new(transfers, explanation_json(&e[i]));
	if (transfers)
		json_object_set_new(json, "transfers", transfers);
	text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;
	json_decref(json);
	return text;
}
