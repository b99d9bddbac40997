/* list.c - sluice list: what there is, with its options, and what is missing and why; with
 * --markdown all of it as the page docs/reference/options.md. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "core/link.h"
#include "core/registry.h"
#include "experiment/experiment.h"
#include "monitor/metrics.h"
#include "monitor/result.h"
#include "plugin/plugin.h"
#include "session/states.h"

struct list_options {
	bool markdown;
};

static const struct sl_option options[] = {
	SL_BOOL(struct list_options, markdown, false,
		"everything with all options as a Markdown page (docs/reference/options.md is "
		"one)"),
	SL_OPTION_END,
};

static const char *const kinds[] = {"detector", "link", "unit", "stage", "sink", "section"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* add_on: the descriptor of a detector, link, unit, stage or sink. */
typedef void visit_fn(void *arg, const char *kind, const void *add_on, const char *name,
		      const char *doc, const struct sl_option *options);

static void for_each(const char *kind, visit_fn *visit, void *arg)
{
#define VISIT(name_of_kind, table)                                         \
	for (size_t i = 0; !strcmp(kind, name_of_kind) && (table)[i]; i++) \
	visit(arg, kind, (table)[i], (table)[i]->name, (table)[i]->doc, (table)[i]->options)
	VISIT("detector", sl_detectors);
	VISIT("link", sl_links);
	VISIT("unit", sl_units);
	VISIT("stage", sl_stages);
	VISIT("sink", sl_sinks);
#undef VISIT
	for (const struct sl_section *s = sl_sections; !strcmp(kind, "section") && s->name; s++)
		visit(arg, kind, NULL, s->name, s->doc, s->options);
}

/* What a module of the real detector sends, with the options as they are by default; empty where
 * there is no real one. */
static void describe_rate(const char *kind, const char *name, char *text, size_t bytes)
{
	const struct sl_detector *d = strcmp(kind, "detector") == 0 ? sl_detector_find(name) : NULL;
	struct sl_detector_options run;
	struct sl_geometry g;
	void *state;

	text[0] = 0;
	if (!d || !(d->rate_Hz > 0))
		return;
	state = calloc(1, d->state_bytes);
	if (!state)
		return;
	sl_options_defaults(sl_detector_options, &run);
	sl_options_defaults(d->options, state);
	if (d->open(state, &run, &g) == 0)
		snprintf(text, bytes,
			 "a module sends %llu bytes, the real one %.10g times a second: %.0f MB/s",
			 (unsigned long long)g.module_bytes, d->rate_Hz,
			 (double)g.module_bytes * d->rate_Hz / 1e6);
	d->close(state);
	free(state);
}

/* ---- for a terminal ---- */

/* "link" for "link" and "links". */
static bool names_kind(const char *word, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(word, kind, n) && (!word[n] || !strcmp(word + n, "s"));
}

struct lister {
	const char *word; /* NULL: everything */
	bool full;	  /* options too */
	unsigned shown;
};

/* What is in this program but cannot be used on this host. */
static void show_unavailable(const char *kind, const char *name)
{
	const struct sl_link *link = strcmp(kind, "link") == 0 ? sl_link_find(name) : NULL;
	const struct sl_unit *unit = strcmp(kind, "unit") == 0 ? sl_unit_find(name) : NULL;
	const char *why = link && link->unavailable   ? link->unavailable()
			  : unit && unit->unavailable ? unit->unavailable()
						      : NULL;

	if (why)
		printf("  %-10s %-10s (not usable here: %s)\n", "", "", why);
}

/* Where it came from, unless it is built in. */
static void show_origin(const void *add_on)
{
	const char *path;
	const struct sl_plugin *plugin = sl_plugin_of(add_on, &path);

	if (plugin)
		printf("  %-10s %-10s (plug-in %s%s%s: %s)\n", "", "", plugin->name,
		       plugin->version ? " " : "", plugin->version ? plugin->version : "", path);
}

static void show(void *arg, const char *kind, const void *add_on, const char *name, const char *doc,
		 const struct sl_option *table)
{
	struct lister *l = arg;
	char rate[160];

	if (l->word && !names_kind(l->word, kind) && strcmp(l->word, name) != 0)
		return;
	l->shown++;
	printf("  %-10s %-10s %s\n", kind, name, doc);
	show_origin(add_on);
	show_unavailable(kind, name);
	if (!l->full)
		return;
	describe_rate(kind, name, rate, sizeof(rate));
	if (rate[0])
		printf("  %-10s %-10s %s\n", "", "", rate);
	sl_print_options(table, "               ");
}

static void show_absent(struct lister *l)
{
	for (const struct sl_absent *a = sl_absents; a->name; a++) {
		if (l->word && !names_kind(l->word, a->kind) && strcmp(l->word, a->name) != 0)
			continue;
		printf("  %-10s %-10s (not in this program: %s)\n", a->kind, a->name, a->why);
		l->shown++;
	}
}

/* ---- as a page ---- */

/* A cell of a table: what would end it is escaped. */
static void print_cell(const char *text)
{
	fputs("| ", stdout);
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
	putchar(' ');
}

static void print_row(const struct sl_option *option)
{
	struct sl_option plain = *option;
	char takes[200];

	plain.unit = ""; /* it has a column of its own */
	sl_option_takes(&plain, takes, sizeof(takes));
	printf("| `%s` ", option->name);
	print_cell(takes);
	if (option->def && option->def[0])
		printf("| `%s` ", option->def);
	else
		print_cell("");
	print_cell(option->unit ? option->unit : "");
	print_cell(option->doc);
	puts("|");
}

static void print_table(const struct sl_option *table)
{
	if (!table || !table->name) {
		puts("\nNo options.");
		return;
	}
	puts("\n| option | takes | default | unit | what it is |\n|---|---|---|---|---|");
	for (; table->name; table++)
		print_row(table);
}

/* Docs begin small, since they follow a name elsewhere. */
static void print_doc(const char *doc)
{
	printf("\n%c%s.\n", toupper((unsigned char)doc[0]), doc + 1);
}

static void print_add_on(void *arg, const char *kind, const void *add_on, const char *name,
			 const char *doc, const struct sl_option *table)
{
	char rate[160];

	printf("\n### %s: %s\n", kind, name);
	print_doc(doc);
	describe_rate(kind, name, rate, sizeof(rate));
	if (rate[0])
		print_doc(rate);
	print_table(table);
}

/* The section that all of a kind share, or one of its own. */
static void print_section(void *arg, const char *kind, const void *add_on, const char *name,
			  const char *doc, const struct sl_option *table)
{
	if (strcmp(arg, name) != 0)
		return;
	print_doc(doc);
	print_table(table);
}

static void print_page(void)
{
	/* In the order of the experiment file; what has add-ons is followed by them. */
	static const struct {
		const char *key, *kind;
	} parts[] = {{"detector", "detector"}, {"calibration", ""}, {"geometry", ""},
		     {"geometry.modules", ""}, {"link", "link"},    {"ring", ""},
		     {"unit", "unit"},	       {"stages", "stage"}, {"sinks", "sink"},
		     {"metadata", ""},	       {"threads", ""},	    {"control", ""},
		     {"flight", ""},	       {"feroce", ""},	    {"frontend", ""},
		     {"feedback", ""}};

	puts("# Options\n\n"
	     "Written by `sluice list --markdown`: do not edit. What the sections are for is in "
	     "[experiment-file.md](experiment-file.md).\n\n"
	     "Numbers may end in k, M, G (powers of 1000) or Ki, Mi, Gi (powers of 1024); whole "
	     "numbers may be written 0x hexadecimal.");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		printf("\n## %s\n", parts[i].key);
		for_each("section", print_section, (void *)parts[i].key);
		for_each(parts[i].kind, print_add_on, NULL);
		for (const struct sl_absent *a = sl_absents; a->name; a++)
			if (!strcmp(a->kind, parts[i].kind))
				printf("\n### %s: %s\n\n(not in this program: %s)\n", a->kind,
				       a->name, a->why);
	}
}

/* ---- states and errors ---- */

static const char *states_of(uint32_t states, char *text, size_t bytes)
{
	size_t used = 0;

	if (states == (1u << SL_STATES) - 1)
		return "any";
	text[0] = 0;
	for (unsigned i = 0; i < SL_STATES && used < bytes; i++)
		if (states >> i & 1)
			used += (size_t)snprintf(text + used, bytes - used, "%s`%s`",
						 used ? ", " : "", sl_state_name(i));
	return text;
}

static void print_states(void)
{
	char from[128];

	puts("# States of a session\n\nWritten by `sluice list states`: do not edit. Calls are "
	     "those of "
	     "`<sluice/sluice.h>`.\n\n| state | meaning |\n|---|---|");
	for (unsigned i = 0; i < SL_STATES; i++)
		printf("| `%s` | %s |\n", sl_state_name(i), sl_state_doc(i));
	puts("\n| call | in state | leads to | what it does |\n|---|---|---|---|");
	for (unsigned i = 0; i < SL_CALLS; i++) {
		const struct sl_session_rule *rule = &sl_session_rules[i];

		printf("| %s | %s | `%s` | %s |\n", rule->name,
		       states_of(rule->from, from, sizeof(from)), sl_state_name(rule->to),
		       rule->doc);
	}
	puts("\nEvery call but `stop` and `abort` returns -EPROTO in another state, and logs why; "
	     "the run "
	     "that is under way does not notice.\nA run that cannot begin leads to `fault`, which "
	     "`configure` leaves; a stop before the start leads to `ended` with the error "
	     "`stopped`.");
}

static void print_errors(void)
{
	static const struct {
		enum sl_result result;
		const char *doc;
	} results[] = {
		{SL_RESULT_INTACT, "the ledger closes, nothing was lost, damaged or unwritten"},
		{SL_RESULT_EMPTY, "the ledger closes, and nothing was sent"},
		{SL_RESULT_ERROR, "it could not run, or an output could not be written"},
		{SL_RESULT_DAMAGED, "the ledger closes, but not everything arrived and was stored"},
		{SL_RESULT_UNCLOSED, "a source vanished, or the ledger does not close"},
	};

	puts("# Results, errors and exit status\n\nWritten by `sluice list errors`: do not "
	     "edit.\n\n"
	     "| result | exit status | meaning |\n|---|---|---|");
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		printf("| `%s` | %d | %s |\n", sl_result_name(results[i].result),
		       sl_result_exit(results[i].result), results[i].doc);
	puts("| | 130 | a second signal ended the program at once |\n\nA run that could not begin "
	     "has "
	     "an error: a word, the message that was logged, `where` (FILE:LINE) and a `hint`, "
	     "where there is one.\n\n| error | exit status | meaning |\n|---|---|---|");
	for (unsigned i = SL_ERROR_NONE + 1; i < SL_ERRORS; i++)
		printf("| `%s` | %d | %s |\n", sl_error_name(i), sl_error_exit(i), sl_error_doc(i));
}

int sl_cmd_list(const struct sl_command *command, int argc, char **argv)
{
	struct list_options o;
	struct lister l = {0};
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (o.markdown) {
		print_page();
		return 0;
	}
	l.word = args.plains ? args.plain[0] : NULL;
	if (l.word && !strcmp(l.word, "states")) {
		print_states();
		return 0;
	}
	if (l.word && !strcmp(l.word, "errors")) {
		print_errors();
		return 0;
	}
	if (l.word && !strcmp(l.word, "metrics")) {
		sl_metrics_print_reference();
		return 0;
	}
	l.full = l.word != NULL;
	for (size_t i = 0; i < KINDS; i++)
		for_each(kinds[i], show, &l);
	show_absent(&l);
	if (!l.shown) {
		sl_error("nothing is called '%s'; sluice list shows everything", l.word);
		return 1;
	}
	if (!l.full)
		printf("\n  sluice list KIND or sluice list NAME shows the options.\n");
	return 0;
}
