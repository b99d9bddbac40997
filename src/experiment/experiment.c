/* experiment.c - YAML sections to add-ons and option structs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/node.h"
#include "base/log.h"
#include "core/registry.h"
#include "experiment/parts.h"

struct reader { /* collects errors so that a file's mistakes are all told at once */
	struct sl_experiment *e;
	int err;
};

static void fill(struct reader *r, struct sl_node *node, const struct sl_option *common,
		 void *common_base, const struct sl_option *own, void *own_base)
{
	static const char *const also[] = {"kind", NULL};
	struct sl_option_set sets[2];
	size_t n = 0;

	if (common)
		sets[n++] = (struct sl_option_set){common, common_base};
	if (own)
		sets[n++] = (struct sl_option_set){own, own_base};
	if (sl_config_fill(r->e->config, node, sets, n, common && own ? also : NULL))
		r->err = -EINVAL;
}

/* Names of one kind of add-on, for messages. */
static void names_of(const char *kind, char *text, size_t bytes)
{
	size_t used = 0;

#define LIST(table)                                         \
	for (size_t i = 0; (table)[i] && used < bytes; i++) \
	used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", (table)[i]->name)
	text[0] = 0;
	if (!strcmp(kind, "detector"))
		LIST(sl_detectors);
	else if (!strcmp(kind, "link"))
		LIST(sl_links);
	else if (!strcmp(kind, "unit"))
		LIST(sl_units);
	else if (!strcmp(kind, "stage"))
		LIST(sl_stages);
	else
		LIST(sl_sinks);
#undef LIST
}

static void unknown(struct reader *r, const struct sl_node *node, const char *kind,
		    const char *name)
{
	char known[512];

	for (const struct sl_absent *a = sl_absents; a->name; a++)
		if (!strcmp(a->kind, kind) && !strcmp(a->name, name)) {
			sl_config_error(r->e->config, node, "%s '%s' is not in this program: %s",
					kind, name, a->why);
			r->err = -EINVAL;
			return;
		}
	names_of(kind, known, sizeof(known));
	sl_config_error(r->e->config, node, "no %s is called '%s'; there are: %s", kind, name,
			known);
	r->err = -EINVAL;
}

/* The add-on's zeroed state. */
static void *state_of(struct reader *r, size_t bytes)
{
	void *state = calloc(1, bytes ? bytes : 1);

	if (!state)
		r->err = -ENOMEM;
	return state;
}

/* A section of the file. One without a value ("ring:") asks for the defaults, as if it were not
 * there. */
static struct sl_node *section_of(struct reader *r, const char *name)
{
	struct sl_node *node = sl_node_get(r->e->config->root, name);

	return node && !sl_node_is_null(node) ? node : NULL;
}

/* The name in a section's `kind`, or the default; the section itself in *section. */
static const char *kind_of(struct reader *r, const char *name, const char *def,
			   struct sl_node **section, struct sl_node **at)
{
	struct sl_node *node = section_of(r, name), *kind;

	*section = node;
	*at = node ? node : r->e->config->root;
	if (node && node->kind != SL_NODE_MAP) {
		sl_config_error(r->e->config, node, "takes a map, as in  %s: {kind: ...}", name);
		r->err = -EINVAL;
		*section = NULL;
		return NULL;
	}
	kind = node ? sl_node_get(node, "kind") : NULL;
	if (kind && kind->kind != SL_NODE_SCALAR) {
		sl_config_error(r->e->config, kind, "takes one name");
		r->err = -EINVAL;
		return NULL;
	}
	if (kind) {
		*at = kind;
		return kind->text;
	}
	if (!def) {
		sl_config_error(r->e->config, *at, "%s needs a kind, as in  %s: {kind: ...}", name,
				name);
		r->err = -EINVAL;
	}
	return def;
}

static void read_detector(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "detector", NULL, &node, &at);

	if (!kind)
		return;
	e->generator = sl_detector_find(kind);
	if (!e->generator) {
		unknown(r, at, "detector", kind);
		return;
	}
	e->generator_state = state_of(r, e->generator->state_bytes);
	if (e->generator_state)
		fill(r, node, sl_detector_options, &e->cut.generator_options, e->generator->options,
		     e->generator_state);
}

/* What the transfer carries of the detector. */
static void read_cut(struct reader *r, struct sl_node *transfer)
{
	struct sl_experiment *e = r->e;
	char why[256];

	e->detector = e->generator;
	e->detector_state = e->generator_state;
	e->run = e->cut.generator_options;
	fill(r, transfer && !sl_node_is_null(transfer) ? transfer : NULL, NULL, NULL,
	     sl_cut_options, &e->cut.options);
	if (!transfer || r->err)
		return;
	snprintf(e->transfer, sizeof(e->transfer), "%s", transfer->key);
	if (sl_cut_apply(&e->cut.options, &e->cut.generator_options, &e->run, why, sizeof(why))) {
		sl_config_error(e->config, transfer, "%s", why);
		r->err = -EINVAL;
	}
	e->cut.generator = e->generator;
	e->cut.generator_state = e->generator_state;
	sl_cut_detector(&e->cut, &e->cut_detector);
	e->detector = &e->cut_detector;
	e->detector_state = &e->cut;
}

/* Another link or unit is a change of one word: keys that only the others have may stay in the
 * file. */
static void let_pass(struct sl_node *section, const struct sl_option *options)
{
	for (; section && options && options->name; options++)
		sl_node_get(section, options->name); /* marks it as read */
}

static void read_link(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "link", "udp", &node, &at);

	if (!kind)
		return;
	e->link = sl_link_find(kind);
	if (!e->link) {
		unknown(r, at, "link", kind);
		return;
	}
	e->link_state = state_of(r, e->link->state_bytes);
	for (size_t i = 0; sl_links[i]; i++)
		let_pass(node, sl_links[i]->options);
	if (e->link_state)
		fill(r, node, sl_link_options, &e->link_options, e->link->options, e->link_state);
	if (sl_experiment_check_link(e, at))
		r->err = -EINVAL;
}

static void read_unit(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "unit", "cpu", &node, &at);

	if (!kind)
		return;
	e->unit = sl_unit_find(kind);
	if (!e->unit) {
		unknown(r, at, "unit", kind);
		return;
	}
	e->unit_state = state_of(r, e->unit->state_bytes);
	for (size_t i = 0; sl_units[i]; i++)
		let_pass(node, sl_units[i]->options);
	if (e->unit_state)
		fill(r, node, sl_unit_options, &e->unit_options, e->unit->options, e->unit_state);
}

/* A list item is a name, or a map of one name to its options. */
static const char *item_name(struct reader *r, struct sl_node *item, struct sl_node **options)
{
	*options = NULL;
	if (item->kind == SL_NODE_SCALAR)
		return item->text;
	if (item->kind == SL_NODE_MAP && item->child && !item->child->next) {
		*options = item->child->kind == SL_NODE_MAP ? item->child : NULL;
		if (!*options && !sl_node_is_null(item->child)) {
			sl_config_error(r->e->config, item->child,
					"takes a map of options, as in  - %s: {...}",
					item->child->key);
			r->err = -EINVAL;
			return NULL;
		}
		return item->child->key;
	}
	sl_config_error(r->e->config, item,
			"takes one name, with or without options: - name: {...}");
	r->err = -EINVAL;
	return NULL;
}

static struct sl_node *list_of(struct reader *r, const char *name)
{
	struct sl_node *list = section_of(r, name);

	if (list && list->kind != SL_NODE_LIST) {
		sl_config_error(r->e->config, list, "takes a list, as in  %s: [name, name: {...}]",
				name);
		r->err = -EINVAL;
		return NULL;
	}
	return list ? list->child : NULL;
}

static void read_stages(struct reader *r)
{
	struct sl_experiment *e = r->e;

	for (struct sl_node *item = list_of(r, "stages"); item; item = item->next) {
		struct sl_node *options;
		const char *name = item_name(r, item, &options);
		unsigned i = e->stages;

		if (!name)
			continue;
		if (i == SL_EXPERIMENT_STAGES) {
			sl_config_error(e->config, item, "more than %d stages",
					SL_EXPERIMENT_STAGES);
			r->err = -EINVAL;
			return;
		}
		e->stage[i] = sl_stage_find(name);
		if (!e->stage[i]) {
			unknown(r, item, "stage", name);
			continue;
		}
		e->stage_state[i] = state_of(r, e->stage[i]->state_bytes);
		if (!e->stage_state[i])
			return;
		fill(r, options, NULL, NULL, e->stage[i]->options, e->stage_state[i]);
		e->stages++;
	}
}

static void read_sinks(struct reader *r)
{
	struct sl_experiment *e = r->e;

	for (struct sl_node *item = list_of(r, "sinks"); item; item = item->next) {
		struct sl_node *options;
		const char *name = item_name(r, item, &options);
		unsigned i = e->sinks;

		if (!name)
			continue;
		if (i == SL_EXPERIMENT_SINKS) {
			sl_config_error(e->config, item, "more than %d sinks", SL_EXPERIMENT_SINKS);
			r->err = -EINVAL;
			return;
		}
		e->sink[i] = sl_sink_find(name);
		if (!e->sink[i]) {
			unknown(r, item, "sink", name);
			continue;
		}
		e->sink_state[i] = state_of(r, e->sink[i]->state_bytes);
		if (!e->sink_state[i])
			return;
		fill(r, options, NULL, NULL, e->sink[i]->options, e->sink_state[i]);
		e->sinks++;
	}
}

static void read_plain(struct reader *r, const char *name, const struct sl_option *options,
		       void *base)
{
	fill(r, section_of(r, name), NULL, NULL, options, base);
}

/* A section by its name, or by the one that it had before. */
static void read_renamed(struct reader *r, const char *name, const char *was,
			 const struct sl_option *options, void *base)
{
	struct sl_node *node = section_of(r, name), *former = section_of(r, was);

	if (former)
		sl_config_warn(r->e->config, former,
			       "is called '%s' now; the former name still works", name);
	if (node && former && node->line && former->line) {
		sl_config_error(r->e->config, former,
				"is the former name of '%s', which is there, too", name);
		r->err = -EINVAL;
	} else if (node && former) { /* what --set says wins, by either name */
		struct sl_node *set = former->line ? node : former,
			       *file = former->line ? former : node;

		if (set->kind == SL_NODE_MAP)
			sl_node_fold(file, set);
		node = set->kind == SL_NODE_MAP ? file : set; /* no map: fill() says so */
	}
	fill(r, node ? node : former, NULL, NULL, options, base);
}

static void read_ring(struct reader *r)
{
	struct sl_node *node = section_of(r, "ring");

	if (node && node->kind == SL_NODE_MAP && sl_ring_options_flatten(r->e->config, node))
		r->err = -EINVAL;
	fill(r, node, NULL, NULL, sl_ring_options, &r->e->ring);
}

static void read_emulate(struct reader *r)
{
	struct sl_node *node = sl_node_get(r->e->config->root, "emulate");

	if (!node)
		return;
	if (node->kind == SL_NODE_SCALAR && !strcmp(node->text, "local"))
		r->e->emulate_local = true;
	else if (node->kind != SL_NODE_SCALAR || strcmp(node->text, "none") != 0) {
		sl_config_error(r->e->config, node,
				"takes local (run starts the front end itself) or none");
		r->err = -EINVAL;
	}
}

/* Whatever no reader asked for. */
static void check_top(struct reader *r)
{
	static const char *const known[] = {"detector",	   "link",     "ring",	  "unit",
					    "stages",	   "sinks",    "threads", "frontend",
					    "control",	   "feroce",   "emulate", "transfers",
					    "calibration", "feedback", NULL};

	if (sl_config_fill(r->e->config, r->e->config->root, NULL, 0, known))
		r->err = -EINVAL;
}

static int open_config(const char *path, const char *const *overrides, size_t n,
		       struct sl_config **config)
{
	int err = sl_config_open(path, config);

	for (size_t i = 0; i < n && !err; i++)
		err = sl_config_override(*config, overrides[i]);
	return err;
}

int sl_experiment_transfers(const char *path, const char *const *overrides, size_t n,
			    struct sl_transfer_names *names)
{
	struct sl_config *config = NULL;
	int err = open_config(path, overrides, n, &config);

	if (!err)
		err = sl_transfer_names(config, names);
	if (config)
		sl_config_close(config);
	return err;
}

int sl_experiment_open(const char *path, const char *transfer, const char *const *overrides,
		       size_t n, struct sl_experiment **experiment)
{
	struct reader r = {.e = calloc(1, sizeof(*r.e))};
	struct sl_transfer_choice choice;

	if (!r.e)
		return -ENOMEM;
	r.err = open_config(path, overrides, n, &r.e->config);
	if (!r.err)
		r.err = sl_transfer_choose(r.e->config, transfer, &choice);
	if (r.err)
		goto undo;
	r.e->transfers = choice.transfers;
	read_detector(&r);
	if (r.e->generator_state)
		read_cut(&r, choice.options);
	read_link(&r);
	read_ring(&r);
	read_unit(&r);
	read_stages(&r);
	read_sinks(&r);
	read_plain(&r, "frontend", sl_fault_options, &r.e->faults);
	read_renamed(&r, "feedback", "answers", sl_feedback_options, &r.e->feedback);
	read_plain(&r, "calibration", sl_calibration_options, &r.e->calibration);
	read_plain(&r, "threads", sl_threads_options, &r.e->threads);
	read_plain(&r, "control", sl_control_options, &r.e->control);
	if (r.e->control.port)
		r.e->control.port += choice.port_offset;
	read_plain(&r, "feroce", sl_feroce_options, &r.e->feroce);
	read_emulate(&r);
	check_top(&r);
	if (!r.err)
		r.err = sl_experiment_check(r.e);
	/* The text is stored with the run: who may read the file must not learn the secret. */
	if (!r.err && r.e->control.token[0])
		r.err = sl_config_override(r.e->config, "control.token=(not stored)");
	if (!r.err && !(r.e->text = sl_config_text(r.e->config)))
		r.err = -ENOMEM;
	if (r.err)
		goto undo;
	*experiment = r.e;
	return 0;

undo:
	sl_experiment_close(r.e);
	return r.err;
}

void sl_experiment_close(struct sl_experiment *e)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_STAGES; i++)
		free(e->stage_state[i]);
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		free(e->sink_state[i]);
	free(e->generator_state);
	free(e->link_state);
	free(e->unit_state);
	free(e->text);
	if (e->config)
		sl_config_close(e->config);
	free(e);
}
