/* resolved.c - the whole experiment as text: every option of the sections and add-ons that are
 * used, found through their tables, and where its value comes from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/parts.h"

enum { TEXT_BYTES = 1024 }; /* longer than the longest string option */

/* The tree that is made to be written; errors are collected. */
struct maker {
	const struct sl_experiment *e;
	struct sl_config *config;
	int err;
};

static struct sl_node *add(struct maker *m, struct sl_node *parent, const char *key,
			   enum sl_node_kind kind)
{
	struct sl_node *node = NULL;

	if (!m->err && parent)
		m->err = sl_node_add(sl_tree_of(m->config), parent, key, kind, 1, &node);
	return node;
}

/* `from`: the node that has set the value; NULL: none has. */
static struct sl_node *add_value(struct maker *m, struct sl_node *parent, const char *key,
				 const char *text, const struct sl_node *from)
{
	struct sl_node *node = add(m, parent, key, SL_NODE_SCALAR);

	if (!node)
		return NULL;
	node->text = sl_tree_text(sl_tree_of(m->config), text, strlen(text));
	if (!node->text)
		m->err = -ENOMEM;
	node->origin = from ? from->origin : SL_ORIGIN_DEFAULT;
	node->file = from ? from->file : NULL;
	node->line = from ? from->line : 0;
	node->secret = from && from->secret;
	return node;
}

static void add_options(struct maker *m, struct sl_node *parent, const struct sl_node *section,
			const struct sl_option *options, const void *base)
{
	char text[TEXT_BYTES];

	for (; options && options->name; options++) {
		struct sl_node *node;

		sl_option_print(options, base, text, sizeof(text));
		node = add_value(m, parent, options->name, text,
				 sl_config_option(section, options));
		if (node)
			node->option = options;
	}
}

static struct sl_node *section_of(const struct sl_experiment *e, const char *name, const char *was)
{
	struct sl_node *node = sl_node_child(e->config->root, name);

	return node || !was ? node : sl_node_child(e->config->root, was);
}

/* A section with a kind: what all kinds have, then the kind's own; to `node`. */
static void add_kind(struct maker *m, struct sl_node *node, const char *name, const char *kind,
		     const struct sl_option *common, const void *common_base,
		     const struct sl_option *own, const void *own_base)
{
	const struct sl_node *section = section_of(m->e, name, NULL);

	add_value(m, node, "kind", kind, sl_node_child(section, "kind"));
	add_options(m, node, section, common, common_base);
	add_options(m, node, section, own, own_base);
}

static void add_moved_modules(struct maker *m, struct sl_node *parent,
			      const struct sl_node *section)
{
	const struct sl_refine_options *g = &m->e->geometry;
	const struct sl_node *list = sl_node_child(section, "modules");
	const struct sl_node *from = list ? list->child : NULL;
	struct sl_node *to = g->modules ? add(m, parent, "modules", SL_NODE_LIST) : NULL;

	for (unsigned i = 0; i < g->modules; i++, from = from ? from->next : NULL)
		add_options(m, add(m, to, NULL, SL_NODE_MAP), from, sl_refine_module_options,
			    &g->module[i]);
}

/* Those that no table has. */
static void add_free_keys(struct maker *m, struct sl_node *parent, const struct sl_node *section)
{
	const struct sl_node *keys = sl_node_child(section, "keys");
	struct sl_node *map = keys && keys->child ? add(m, parent, "keys", SL_NODE_MAP) : NULL;

	for (const struct sl_node *node = map ? keys->child : NULL; node; node = node->next)
		add_value(m, map, node->key, node->text, node);
}

static void add_plain(struct maker *m, struct sl_node *parent, const struct sl_plain_section *s)
{
	struct sl_node *node = add(m, parent, s->name, SL_NODE_MAP);

	add_options(m, node, section_of(m->e, s->name, s->was), s->options,
		    (const char *)m->e + s->offset);
	if (s->part == SL_SECTION_GEOMETRY)
		add_moved_modules(m, node, section_of(m->e, s->name, s->was));
	if (s->part == SL_SECTION_METADATA)
		add_free_keys(m, node, section_of(m->e, s->name, s->was));
}

/* An item of stages or sinks; `from` is what the experiment has for it. */
static void add_item(struct maker *m, struct sl_node *list, const struct sl_node *from,
		     const char *name, const struct sl_option *options, const void *state)
{
	struct sl_node *item;

	if (!options || !options->name) {
		add_value(m, list, NULL, name, from);
		return;
	}
	item = add(m, list, NULL, SL_NODE_MAP);
	add_options(m, add(m, item, name, SL_NODE_MAP),
		    from->kind == SL_NODE_MAP ? from->child : NULL, options, state);
}

static void add_stages(struct maker *m)
{
	const struct sl_node *section = section_of(m->e, "stages", NULL);
	const struct sl_node *from = section ? section->child : NULL;
	struct sl_node *list = add(m, m->config->root, "stages", SL_NODE_LIST);

	for (unsigned i = 0; i < m->e->stages && from; i++, from = from->next)
		add_item(m, list, from, m->e->stage[i]->name, m->e->stage[i]->options,
			 m->e->stage_state[i]);
	if (list && !list->child)
		list->origin = SL_ORIGIN_DEFAULT;
}

static void add_sinks(struct maker *m)
{
	const struct sl_node *section = section_of(m->e, "sinks", NULL);
	const struct sl_node *from = section ? section->child : NULL;
	struct sl_node *list = add(m, m->config->root, "sinks", SL_NODE_LIST);

	for (unsigned i = 0; i < m->e->sinks && from; i++, from = from->next)
		add_item(m, list, from, m->e->sink[i]->name, m->e->sink[i]->options,
			 m->e->sink_state[i]);
}

static void add_axes(struct maker *m)
{
	const struct sl_goniometer *g = &m->e->goniometer;
	const struct sl_node *section = section_of(m->e, "goniometer", NULL);
	const struct sl_node *from = section ? section->child : NULL;
	struct sl_node *list = NULL;

	if (g->axes)
		list = add(m, m->config->root, "goniometer", SL_NODE_LIST);
	for (uint32_t i = 0; i < g->axes && from; i++, from = from->next)
		add_item(m, list, from, g->axis[i].name, sl_axis_options, &g->axis[i]);
}

static void add_transfer(struct maker *m)
{
	const struct sl_experiment *e = m->e;
	struct sl_node *node;

	if (!e->transfer[0])
		return;
	node = add(m, m->config->root, "transfers", SL_NODE_MAP);
	add_options(m, add(m, node, e->transfer, SL_NODE_MAP),
		    sl_node_child(section_of(e, "transfers", NULL), e->transfer), sl_cut_options,
		    &e->cut.options);
}

static void add_plugins(struct maker *m)
{
	const struct sl_node *section = section_of(m->e, "plugins", NULL);
	const struct sl_node *from = section ? section->child : NULL;
	struct sl_node *list;

	if (!from)
		return;
	list = add(m, m->config->root, "plugins", SL_NODE_LIST);
	for (; from; from = from->next)
		add_value(m, list, NULL, from->text, from);
}

/* As it was written: what is left out follows from the options that it names. */
static void add_parameters(struct maker *m)
{
	const struct sl_node *section = section_of(m->e, "parameters", NULL);

	if (!m->err && section && section->kind == SL_NODE_MAP)
		m->err = sl_node_copy(sl_tree_of(m->config), m->config->root, section,
				      section->origin, NULL);
}

/* What describes a source: the options of the detector go to `detector`, its sections to
 * `parent`. */
static void add_source(struct maker *m, struct sl_node *parent, struct sl_node *detector)
{
	const struct sl_experiment *e = m->e;

	add_kind(m, detector, "detector", e->generator->name, sl_detector_options,
		 &e->cut.generator_options, e->generator->options, e->generator_state);
	add_transfer(m);
	add_kind(m, add(m, parent, "link", SL_NODE_MAP), "link", e->link->name, sl_link_options,
		 &e->link_options, e->link->options, e->link_state);
}

/* An item of detectors; `e` is its experiment, and `first` the one that defines events. */
static void add_detector(struct maker *m, struct sl_node *list, const struct sl_experiment *e,
			 bool first)
{
	const struct sl_experiment *outer = m->e;
	const struct sl_node *from = section_of(e, "detectors", NULL);
	struct sl_node *item = add(m, list, NULL, SL_NODE_MAP);
	struct sl_node *node = add(m, item, e->detector_name, SL_NODE_MAP);

	from = from ? from->child : NULL;
	while (from && strcmp(from->child->key, e->detector_name) != 0)
		from = from->next;
	from = from ? from->child : NULL;
	m->e = e;
	add_source(m, node, node);
	for (const struct sl_plain_section *s = sl_plain_sections; s->name; s++)
		if (s->part & SL_SECTIONS_OF_DETECTORS)
			add_plain(m, node, s);
	if (!first) {
		add_options(m, add(m, node, "key", SL_NODE_MAP),
			    from ? sl_node_child(from, "key") : NULL, sl_key_options, &e->key);
		add_options(m, node, from, sl_missing_options, &e->attach);
	}
	m->e = outer;
}

static void add_detectors(struct maker *m)
{
	const struct sl_experiment *e = m->e;
	struct sl_node *list = add(m, m->config->root, "detectors", SL_NODE_LIST);

	add_detector(m, list, e, !strcmp(e->detector_name, e->names.name[0]));
	for (unsigned i = 0; i < e->others; i++)
		add_detector(m, list, e->other[i].experiment, false);
}

static void add_all(struct maker *m)
{
	const struct sl_experiment *e = m->e;
	struct sl_node *root = m->config->root;

	add_plugins(m);
	if (e->detector_name[0])
		add_detectors(m);
	else
		add_source(m, root, add(m, root, "detector", SL_NODE_MAP));
	add_kind(m, add(m, root, "unit", SL_NODE_MAP), "unit", e->unit->name, sl_unit_options,
		 &e->unit_options, e->unit->options, e->unit_state);
	add_stages(m);
	add_sinks(m);
	add_axes(m);
	for (const struct sl_plain_section *s = sl_plain_sections; s->name; s++)
		if (!e->detector_name[0] || !(s->part & SL_SECTIONS_OF_DETECTORS))
			add_plain(m, root, s);
	add_value(m, root, "emulate", e->emulate_local ? "local" : "none",
		  section_of(e, "emulate", NULL));
	add_parameters(m);
}

int sl_experiment_resolved_tree(const struct sl_experiment *e, struct sl_config **config)
{
	struct maker m = {.e = e};

	m.err = sl_config_parse("resolved", "{}", 2, &m.config);
	if (m.err)
		return m.err;
	add_all(&m);
	if (m.err)
		sl_config_close(m.config);
	else
		*config = m.config;
	return m.err;
}

char *sl_experiment_resolved(const struct sl_experiment *e, bool origins)
{
	struct sl_config *config;
	char *text;

	if (sl_experiment_resolved_tree(e, &config))
		return NULL;
	text = origins ? sl_config_text_with_origins(config) : sl_config_text(config);
	sl_config_close(config);
	return text;
}
