/* list.c - sluice list: what there is, with its options, and what is missing and why. */
#include <stdio.h>
#include <string.h>

#include <sluice/registry.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "pipeline/experiment.h"

/* "link" for "link" and "links". */
static bool names_kind(const char *word, const char *kind)
{
	size_t n = strlen(kind);

	return !strncmp(word, kind, n) && (!word[n] || !strcmp(word + n, "s"));
}

struct lister {
	const char *word; /* NULL: everything */
	const char *kind;
	bool full; /* options too */
	unsigned shown;
};

static void show(struct lister *l, const char *name, const char *doc,
		 const struct sl_option *options)
{
	bool named = l->word && !strcmp(l->word, name);

	if (l->word && !names_kind(l->word, l->kind) && !named)
		return;
	l->shown++;
	printf("  %-10s %-10s %s\n", l->kind, name, doc);
	if (l->full)
		sl_print_options(options, "               ");
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

static void show_all(struct lister *l)
{
	l->kind = "detector";
	for (size_t i = 0; sl_detectors[i]; i++)
		show(l, sl_detectors[i]->name, sl_detectors[i]->doc, sl_detectors[i]->options);
	l->kind = "link";
	for (size_t i = 0; sl_links[i]; i++)
		show(l, sl_links[i]->name, sl_links[i]->doc, sl_links[i]->options);
	l->kind = "unit";
	for (size_t i = 0; sl_units[i]; i++)
		show(l, sl_units[i]->name, sl_units[i]->doc, sl_units[i]->options);
	l->kind = "stage";
	for (size_t i = 0; sl_stages[i]; i++)
		show(l, sl_stages[i]->name, sl_stages[i]->doc, sl_stages[i]->options);
	l->kind = "sink";
	for (size_t i = 0; sl_sinks[i]; i++)
		show(l, sl_sinks[i]->name, sl_sinks[i]->doc, sl_sinks[i]->options);
	l->kind = "section";
	for (const struct sl_section *s = sl_sections; s->name; s++)
		show(l, s->name, s->doc, s->options);
	show_absent(l);
}

int sl_cmd_list(const struct sl_command *command, int argc, char **argv)
{
	struct lister l = {0};
	struct sl_args args;
	int err = sl_args_read(command, NULL, NULL, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	l.word = args.plains ? args.plain[0] : NULL;
	l.full = l.word != NULL;
	show_all(&l);
	if (!l.shown) {
		sl_error("nothing is called '%s'; sluice list shows everything", l.word);
		return 1;
	}
	if (!l.full)
		printf("\n  sluice list KIND or sluice list NAME shows the options.\n");
	return 0;
}
