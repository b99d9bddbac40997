/* parameters.c - section `parameters`: what users of a run form may set. What a parameter leaves
 * out is as the option has it that it names. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/node.h"
#include "experiment/parts.h"

/* Of one parameter: as it is written. */
struct written {
	char path[SL_PARAMETER_TEXT], label[SL_PARAMETER_TEXT], unit[64], doc[512];
	uint32_t type;
	double min, max;
};

static const struct sl_option options[] = {
	SL_STRING(struct written, path, "", "the option that it sets, as --set names it"),
	SL_STRING(struct written, label, "", "what a form calls it; empty: its name"),
	SL_CHOICE(struct written, type, auto, "auto|integer|number|boolean|text|choice",
		  "what it takes; auto: as the option does"),
	SL_F64(struct written, min, -1.7e308, -1.7e308, 1.7e308, "",
	       "of a number: the least, where the option takes less"),
	SL_F64(struct written, max, 1.7e308, -1.7e308, 1.7e308, "", "likewise, the most"),
	SL_STRING(struct written, unit, "", "empty: that of the option"),
	SL_STRING(struct written, doc, "", "one sentence; empty: that of the option"),
	SL_OPTION_END,
};

const char *sl_parameter_type_name(enum sl_parameter_type type)
{
	static const char *const names[] = {"auto",    "integer", "number",
					    "boolean", "text",	  "choice"};

	return names[type];
}

static void refuse(struct sl_reader *r, const struct sl_node *node, const char *why)
{
	sl_config_error(r->e->config, node, "%s", why);
	r->err = -EINVAL;
}

static bool is_name(const char *text)
{
	return strlen(text) < sizeof(((struct sl_parameter *)0)->name) &&
	       text[strspn(text,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
		       0 &&
	       text[strspn(text, "0123456789")];
}

/* ---- as it is written ---- */

static void read_values(struct sl_reader *r, struct sl_node *list, struct sl_parameter *p)
{
	if (list->kind != SL_NODE_LIST || !list->child) {
		refuse(r, list, "takes a list, as in  values: [fast, slow]");
		return;
	}
	for (const struct sl_node *item = list->child; item; item = item->next) {
		if (item->kind != SL_NODE_SCALAR || strlen(item->text) >= sizeof(p->value[0]))
			refuse(r, item, "a value is a text of at most 63 bytes, or a number");
		else if (p->values == SL_PARAMETER_VALUES)
			refuse(r, item, "more than 32 values");
		else
			snprintf(p->value[p->values++], sizeof(p->value[0]), "%s", item->text);
		if (r->err)
			return;
	}
}

static void read_one(struct sl_reader *r, struct sl_node *node, struct sl_parameter *p)
{
	static const char *const also[] = {"values", NULL};
	struct written w;
	struct sl_option_set set = {options, &w};
	struct sl_node *values;

	if (!is_name(node->key)) {
		refuse(r, node,
		       "a name of a parameter has 1 to 63 of A-Z a-z 0-9 _ and is no number");
		return;
	}
	if (sl_config_fill(r->e->config, node, &set, 1, also)) {
		r->err = -EINVAL;
		return;
	}
	snprintf(p->name, sizeof(p->name), "%s", node->key);
	snprintf(p->path, sizeof(p->path), "%s", w.path);
	snprintf(p->label, sizeof(p->label), "%s", w.label[0] ? w.label : node->key);
	snprintf(p->unit, sizeof(p->unit), "%s", w.unit);
	snprintf(p->doc, sizeof(p->doc), "%s", w.doc);
	p->type = w.type;
	p->min = w.min;
	p->max = w.max;
	p->node = node;
	values = node->kind == SL_NODE_MAP ? sl_node_get(node, "values") : NULL;
	if (values)
		read_values(r, values, p);
	if (!r->err && p->min > p->max)
		refuse(r, node, "min is larger than max");
	if (!r->err && !p->path[0])
		refuse(r, node,
		       "has no path: name the option that it sets, as in  path: detector.frames");
	if (!r->err && values && p->type != SL_PARAMETER_AUTO && p->type != SL_PARAMETER_CHOICE)
		refuse(r, values, "are for type: choice alone");
}

void sl_experiment_read_parameters(struct sl_reader *r)
{
	struct sl_node *map = sl_node_get(r->e->config->root, "parameters");
	struct sl_parameters *p = r->e->parameters;

	if (!map || sl_node_is_null(map))
		return;
	if (map->kind != SL_NODE_MAP) {
		refuse(r, map, "takes a map, as in  parameters: {frames: {path: detector.frames}}");
		return;
	}
	if (!p)
		p = r->e->parameters = calloc(1, sizeof(*p));
	if (!p) {
		r->err = -ENOMEM;
		return;
	}
	p->n = 0;
	for (struct sl_node *node = map->child; node && r->err != -ENOMEM; node = node->next) {
		node->read = true;
		if (p->n == SL_PARAMETERS) {
			refuse(r, node, "more than 64 parameters");
			return;
		}
		memset(&p->parameter[p->n], 0, sizeof(p->parameter[0]));
		read_one(r, node, &p->parameter[p->n++]);
	}
}

/* ---- with the option that it names ---- */

/* The item of a list that has one key, this one. */
static const struct sl_node *item_of(const struct sl_node *list, const char *name)
{
	for (const struct sl_node *item = list->child; item; item = item->next)
		if (item->kind == SL_NODE_MAP && item->child && !strcmp(item->child->key, name))
			return item->child;
	return NULL;
}

/* As --set finds it: "stages.veto.threshold", "stages[1].veto.threshold". */
static const struct sl_node *find(const struct sl_node *node, const char *path)
{
	while (node && *path) {
		size_t length = strcspn(path, ".[");
		char key[SL_CONFIG_KEY_BYTES + 1], *end;

		if (*path == '[') {
			unsigned long index = strtoul(path + 1, &end, 10);

			node = *end == ']' && end > path + 1 && node->kind == SL_NODE_LIST
				       ? node->child
				       : NULL;
			for (; node && index; index--)
				node = node->next;
			path = node ? end + 1 : path;
		} else {
			if (!length || length >= sizeof(key))
				return NULL;
			snprintf(key, sizeof(key), "%.*s", (int)length, path);
			node = node->kind == SL_NODE_LIST  ? item_of(node, key)
			       : node->kind == SL_NODE_MAP ? sl_node_child(node, key)
							   : NULL;
			path += length;
		}
		if (node && *path == '.' && path[1] && path[1] != '.')
			path++;
		else if (node && *path && *path != '[')
			return NULL;
	}
	return node;
}

static uint32_t type_of(const struct sl_option *o)
{
	switch (o->type) {
	case SL_OPTION_U32:
	case SL_OPTION_U64:
		return SL_PARAMETER_INTEGER;
	case SL_OPTION_F64:
		return SL_PARAMETER_NUMBER;
	case SL_OPTION_BOOL:
		return SL_PARAMETER_BOOLEAN;
	case SL_OPTION_CHOICE:
		return SL_PARAMETER_CHOICE;
	default:
		return SL_PARAMETER_TEXT_TYPE;
	}
}

static bool takes_number(const struct sl_option *o)
{
	return o->type == SL_OPTION_U32 || o->type == SL_OPTION_U64 || o->type == SL_OPTION_F64;
}

/* Those of the option: "a|b|c". */
static void copy_choices(const struct sl_option *o, struct sl_parameter *p)
{
	for (const char *at = o->choices; at && *at && p->values < SL_PARAMETER_VALUES;) {
		size_t n = strcspn(at, "|");

		snprintf(p->value[p->values++], sizeof(p->value[0]), "%.*s", (int)n, at);
		at += n + (at[n] == '|');
	}
}

/* Whether the option would take that value; options of plug-ins, too. */
static bool option_takes(const struct sl_option *o, const char *value, char *why, size_t bytes)
{
	void *scratch = calloc(1, o->offset + o->size);
	bool takes = scratch && !sl_option_set(o, scratch, value, why, bytes);

	free(scratch);
	return takes;
}

static int wrong(const struct sl_experiment *e, const struct sl_parameter *p, const char *why)
{
	sl_config_error(e->config, p->node, "%s", why);
	return -EINVAL;
}

static int check_type(const struct sl_experiment *e, struct sl_parameter *p,
		      const struct sl_option *o)
{
	char why[400];

	if (p->type == SL_PARAMETER_AUTO)
		p->type = p->values ? SL_PARAMETER_CHOICE : type_of(o);
	if (p->type == SL_PARAMETER_CHOICE && !p->values)
		copy_choices(o, p);
	if (p->type == SL_PARAMETER_CHOICE && !p->values)
		return wrong(e, p, "type: choice needs values: [...]");
	if ((p->type == SL_PARAMETER_INTEGER || p->type == SL_PARAMETER_NUMBER) &&
	    !takes_number(o)) {
		snprintf(why, sizeof(why), "%s takes no number", p->path);
		return wrong(e, p, why);
	}
	if (p->type == SL_PARAMETER_NUMBER && o->type != SL_OPTION_F64)
		p->type = SL_PARAMETER_INTEGER;
	if (p->type == SL_PARAMETER_BOOLEAN && o->type != SL_OPTION_BOOL) {
		snprintf(why, sizeof(why), "%s takes no true or false", p->path);
		return wrong(e, p, why);
	}
	for (unsigned i = 0; i < p->values; i++) {
		char text[600], reason[300] = "";

		if (option_takes(o, p->value[i], reason, sizeof(reason)))
			continue;
		snprintf(text, sizeof(text), "%s does not take the value '%s': %s", p->path,
			 p->value[i], reason);
		return wrong(e, p, text);
	}
	return 0;
}

/* The option takes no more than its table says; nor may the parameter promise it. */
static int check_range(const struct sl_experiment *e, struct sl_parameter *p,
		       const struct sl_option *o)
{
	double now;
	char why[400];

	if (p->type != SL_PARAMETER_INTEGER && p->type != SL_PARAMETER_NUMBER)
		return 0;
	if (p->min > o->max || p->max < o->min) {
		snprintf(why, sizeof(why), "%s takes %.9g to %.9g: min and max allow none of it",
			 p->path, o->min, o->max);
		return wrong(e, p, why);
	}
	p->min = p->min < o->min ? o->min : p->min;
	p->max = p->max > o->max ? o->max : p->max;
	now = strtod(p->now, NULL);
	if (now >= p->min && now <= p->max)
		return 0;
	snprintf(why, sizeof(why),
		 "the experiment has %s: %s, which is not from min (%.9g) to max (%.9g)", p->path,
		 p->now, p->min, p->max);
	return wrong(e, p, why);
}

static int check_one(struct sl_experiment *e, const struct sl_config *resolved,
		     struct sl_parameter *p)
{
	const struct sl_node *node = find(resolved->root, p->path);
	const struct sl_option *o = node ? node->option : NULL;
	char why[SL_PARAMETER_TEXT + 100];

	if (!o) {
		snprintf(why, sizeof(why),
			 "path: the experiment has no option '%s'; sluice check shows all",
			 p->path);
		return wrong(e, p, why);
	}
	if (o->type == SL_OPTION_SECRET)
		return wrong(e, p, "path: a secret cannot be a parameter");
	snprintf(p->now, sizeof(p->now), "%s", node->text);
	if (!p->unit[0] && o->unit)
		snprintf(p->unit, sizeof(p->unit), "%s", o->unit);
	if (!p->doc[0])
		snprintf(p->doc, sizeof(p->doc), "%s", o->doc);
	return check_type(e, p, o) || check_range(e, p, o) ? -EINVAL : 0;
}

int sl_experiment_check_parameters(struct sl_experiment *e)
{
	struct sl_config *resolved;
	int err;

	if (!e->parameters || !e->parameters->n)
		return 0;
	err = sl_experiment_resolved_tree(e, &resolved);
	if (err)
		return err;
	for (unsigned i = 0; i < e->parameters->n; i++)
		if (check_one(e, resolved, &e->parameters->parameter[i]))
			err = -EINVAL;
	sl_config_close(resolved);
	return err;
}
