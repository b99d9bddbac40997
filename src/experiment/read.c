/* read.c - YAML sections to add-ons and option structs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/layers.h"
#include "base/config/node.h"
#include "core/registry.h"
#include "experiment/parts.h"

static void fill(struct sl_reader *r, struct sl_node *node, const struct sl_option *common,
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

static void unknown(struct sl_reader *r, const struct sl_node *node, const char *kind,
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
static void *state_of(struct sl_reader *r, size_t bytes)
{
	void *state = calloc(1, bytes ? bytes : 1);

	if (!state)
		r->err = -ENOMEM;
	return state;
}

/* A section of the file. One without a value ("ring:") asks for the defaults, as if it were not
 * there. */
static struct sl_node *section_of(struct sl_reader *r, const char *name)
{
	struct sl_node *node = sl_node_get(r->e->config->root, name);

	return node && !sl_node_is_null(node) ? node : NULL;
}

/* The name in a section's `kind`, or the default; the section itself in *section. */
static const char *kind_of(struct sl_reader *r, const char *name, const char *def,
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
	if (!def && !r->site) {
		sl_config_error(r->e->config, *at, "%s needs a kind, as in  %s: {kind: ...}", name,
				name);
		r->err = -EINVAL;
	}
	return def;
}

/* Another link or unit is a change of one word: keys that only the others have may stay in the
 * file. */
static void let_pass(struct sl_node *section, const struct sl_option *options)
{
	for (; section && options && options->name; options++)
		sl_node_get(section, options->name); /* marks it as read */
}

/* Of other detectors' options only those of a site file may be there. */
static void let_pass_site(struct sl_node *section, const struct sl_option *options)
{
	for (; section && options && options->name; options++) {
		struct sl_node *node = sl_node_child(section, options->name);

		if (node && sl_config_is_site(node))
			node->read = true;
	}
}

static void read_detector(struct sl_reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "detector", NULL, &node, &at);

	for (size_t i = 0; sl_detectors[i]; i++)
		(r->site && !kind ? let_pass : let_pass_site)(node, sl_detectors[i]->options);
	if (!kind && r->site && !r->err)
		fill(r, node, sl_detector_options, &e->cut.generator_options, NULL, NULL);
	if (!kind)
		return;
	e->generator = sl_detector_find(kind);
	if (!e->generator) {
		unknown(r, at, "detector", kind);
		return;
	}
	e->generator_state = state_of(r, e->generator->state_bytes);
	sl_config_drop_unused(node, sl_detector_options, e->generator->options);
	if (e->generator_state)
		fill(r, node, sl_detector_options, &e->cut.generator_options, e->generator->options,
		     e->generator_state);
	if (e->generator_state && e->generator->finite &&
	    e->generator->finite(e->generator_state) && !sl_node_child(node, "frames"))
		e->cut.generator_options.frames = 0;
}

/* What the transfer carries of the detector. */
static void read_cut(struct sl_reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *transfer = r->transfer;
	char why[256];

	e->detector = e->generator;
	e->detector_state = e->generator_state;
	e->run = e->cut.generator_options;
	fill(r, transfer && !sl_node_is_null(transfer) ? transfer : NULL, NULL, NULL,
	     sl_cut_options, &e->cut.options);
	if (!transfer || r->err || r->bad & SL_SECTION_DETECTOR)
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

static void read_link(struct sl_reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "link", r->site ? NULL : "udp", &node, &at);

	for (size_t i = 0; sl_links[i]; i++)
		let_pass(node, sl_links[i]->options);
	if (!kind && r->site && !r->err)
		fill(r, node, sl_link_options, &e->link_options, NULL, NULL);
	if (!kind)
		return;
	e->link = sl_link_find(kind);
	if (!e->link) {
		unknown(r, at, "link", kind);
		return;
	}
	e->link_state = state_of(r, e->link->state_bytes);
	sl_config_drop_unused(node, sl_link_options, e->link->options);
	if (e->link_state)
		fill(r, node, sl_link_options, &e->link_options, e->link->options, e->link_state);
	if (!r->err && !r->site && sl_experiment_check_link(e, at))
		r->err = -EINVAL;
}

static void read_unit(struct sl_reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "unit", r->site ? NULL : "cpu", &node, &at);

	for (size_t i = 0; sl_units[i]; i++)
		let_pass(node, sl_units[i]->options);
	if (!kind && r->site && !r->err)
		fill(r, node, sl_unit_options, &e->unit_options, NULL, NULL);
	if (!kind)
		return;
	e->unit = sl_unit_find(kind);
	if (!e->unit) {
		unknown(r, at, "unit", kind);
		return;
	}
	e->unit_state = state_of(r, e->unit->state_bytes);
	sl_config_drop_unused(node, sl_unit_options, e->unit->options);
	if (e->unit_state)
		fill(r, node, sl_unit_options, &e->unit_options, e->unit->options, e->unit_state);
}

/* A list item is a name, or a map of one name to its options. */
static const char *item_name(struct sl_reader *r, struct sl_node *item, struct sl_node **options)
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

static struct sl_node *list_of(struct sl_reader *r, const char *name)
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

static void read_stages(struct sl_reader *r)
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
		sl_experiment_check_words(r, options, e->stage[i]->options, e->stage_state[i]);
		e->stages++;
	}
}

static void read_sinks(struct sl_reader *r)
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
		sl_experiment_check_words(r, options, e->sink[i]->options, e->sink_state[i]);
		e->sinks++;
	}
}

/* A section by its name, or by the one that it had before. */
static void read_renamed(struct sl_reader *r, const char *name, const char *was,
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

static void read_plain(struct sl_reader *r, const struct sl_plain_section *s)
{
	void *base = (char *)r->e + s->offset;
	struct sl_node *node = section_of(r, s->name);

	if (s->part == SL_SECTION_GEOMETRY)
		sl_experiment_read_geometry(r, node);
	else if (s->part == SL_SECTION_METADATA)
		sl_experiment_read_metadata(r, node);
	else if (s->part == SL_SECTION_RING && node && node->kind == SL_NODE_MAP &&
		 sl_ring_options_flatten(r->e->config, node))
		r->err = -EINVAL;
	else if (s->was && !r->site)
		read_renamed(r, s->name, s->was, s->options, base);
	else
		fill(r, node, NULL, NULL, s->options, base);
}

static void read_emulate(struct sl_reader *r)
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
static void check_top(struct sl_reader *r)
{
	static const char *const known[] = {
		"detector",    "link",	    "ring",    "unit",	   "stages",	 "sinks",
		"threads",     "frontend",  "control", "feroce",   "emulate",	 "transfers",
		"calibration", "feedback",  "plugins", "geometry", "goniometer", "metadata",
		"parameters",  "detectors", NULL};

	if (sl_config_fill(r->e->config, r->e->config->root, NULL, 0, known))
		r->err = -EINVAL;
}

/* An error of one part leaves the others to be read. */
static void begin(struct sl_reader *r, int *before)
{
	*before = r->err;
	r->err = 0;
}

static void end(struct sl_reader *r, unsigned part, int before)
{
	if (r->err)
		r->bad |= part;
	r->err = r->err == -ENOMEM || !before ? r->err : before;
}

void sl_experiment_read(struct sl_reader *r)
{
	static const struct {
		enum sl_section_bit part;
		void (*read)(struct sl_reader *r);
	} table[] = {
		{SL_SECTION_DETECTOR, read_detector},
		{SL_SECTION_DETECTOR, read_cut},
		{SL_SECTION_DETECTORS, sl_experiment_read_attachment},
		{SL_SECTION_LINK, read_link},
		{SL_SECTION_UNIT, read_unit},
		{SL_SECTION_STAGES, read_stages},
		{SL_SECTION_SINKS, read_sinks},
		{SL_SECTION_EMULATE, read_emulate},
		{SL_SECTION_GONIOMETER, sl_experiment_read_goniometer},
		{SL_SECTION_PARAMETERS, sl_experiment_read_parameters},
	};
	int before;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(r, &before);
		if (table[i].read != read_cut || (r->e->generator_state && !r->site))
			table[i].read(r);
		end(r, table[i].part, before);
	}
	for (const struct sl_plain_section *s = sl_plain_sections; s->name; s++) {
		begin(r, &before);
		read_plain(r, s);
		end(r, s->part, before);
	}
	begin(r, &before);
	check_top(r);
	end(r, 0, before);
}

/* Options of an add-on, only to see whether they are right. */
static void try_options(struct sl_reader *r, struct sl_node *node, const struct sl_option *options,
			size_t bytes)
{
	void *state = state_of(r, bytes);

	if (state) {
		fill(r, node, NULL, NULL, options, state);
		sl_experiment_check_words(r, node, options, state);
	}
	free(state);
}

void sl_experiment_read_items(struct sl_reader *r, const char *list, struct sl_node *map)
{
	bool stages = !strcmp(list, "stages");

	for (struct sl_node *node = map->child; node; node = node->next) {
		const struct sl_stage *stage = stages ? sl_stage_find(node->key) : NULL;
		const struct sl_sink *sink = stages ? NULL : sl_sink_find(node->key);

		if (stage)
			try_options(r, node, stage->options, stage->state_bytes);
		else if (sink)
			try_options(r, node, sink->options, sink->state_bytes);
		else
			unknown(r, node, stages ? "stage" : "sink", node->key);
	}
}
