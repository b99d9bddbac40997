/* metadata.c - the section `metadata`: known keys by their table, free ones in the map `keys`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "experiment/parts.h"

#define KEYS "keys"

static void refuse(struct sl_reader *r, const struct sl_node *node, const char *why)
{
	sl_config_error(r->e->config, node, "%s", why);
	r->err = -EINVAL;
}

/* ---- before the table reads the section ---- */

/* A list of users becomes one text. */
static void join_users(struct sl_reader *r, struct sl_node *node)
{
	char text[SL_METADATA_VALUE] = "", why[256];
	struct sl_metadata_user user[SL_METADATA_USERS];
	size_t used = 0;

	for (struct sl_node *item = node->child; item; item = item->next) {
		if (item->kind != SL_NODE_SCALAR || sl_node_is_null(item)) {
			refuse(r, item, "takes  Name <email> (affiliation)");
			return;
		}
		if (sl_metadata_parse_users(item->text, user, why, sizeof(why)) != 1) {
			refuse(r, item,
			       "an item of the list is one user: Name <email> "
			       "(affiliation)");
			return;
		}
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "",
					 item->text);
		if (used >= sizeof(text)) {
			refuse(r, item, "all users together have at most 1023 bytes");
			return;
		}
	}
	node->text = sl_tree_text(sl_tree_of(r->e->config), text, used);
	node->kind = SL_NODE_SCALAR;
	node->child = NULL;
	if (!node->text)
		r->err = -ENOMEM;
}

/* The value of a known key as the table takes it: without its unit. Its text is checked, too. */
static void prepare(struct sl_reader *r, struct sl_node *node, const struct sl_option *o)
{
	struct sl_metadata_known scratch = {.exposure_s = 0};
	char text[SL_METADATA_VALUE], why[300] = "";
	int err;

	if (node->kind != SL_NODE_SCALAR || sl_node_is_null(node))
		return; /* the table says what it takes */
	err = sl_metadata_check_known(o, node->text, text, &scratch, why, sizeof(why));
	if (!err && strcmp(text, node->text) != 0) {
		node->text = sl_tree_text(sl_tree_of(r->e->config), text, strlen(text));
		if (!node->text)
			r->err = -ENOMEM;
	} else if (err && !sl_option_set(o, &scratch, node->text, NULL, 0)) {
		refuse(r, node, why); /* what the table would let pass */
	} else if (err && strchr(node->text, ' ') && o->type == SL_OPTION_F64) {
		refuse(r, node, why);
		sl_node_unlink(node);
	}
}

static const struct sl_option *row_of(const char *key)
{
	const struct sl_option *o = sl_metadata_options;

	while (o->name && strcmp(o->name, key) != 0)
		o++;
	return o->name ? o : NULL;
}

static void prepare_all(struct sl_reader *r, struct sl_node *section)
{
	for (struct sl_node *node = section->child, *next; node && r->err != -ENOMEM; node = next) {
		const struct sl_option *o = row_of(node->key);
		const char *place = sl_metadata_elsewhere(node->key);

		next = node->next;
		if (!strcmp(node->key, "users") && node->kind == SL_NODE_LIST)
			join_users(r, node);
		if (o && r->err != -ENOMEM)
			prepare(r, node, o);
		if (place) {
			sl_config_error(r->e->config, node,
					"is %s, which files have already: set it there", place);
			r->err = -EINVAL;
			sl_node_unlink(node);
		}
	}
}

/* ---- what the section has, as a table of texts ---- */

static void add(struct sl_reader *r, const struct sl_node *at, const char *key, const char *value)
{
	struct sl_metadata_section *said = &r->e->said;
	uint32_t before = said->table.n;

	if (sl_metadata_set(&said->table, key, value)) {
		refuse(r, at, "more than 64 metadata");
		return;
	}
	if (said->table.n > before && at && at->origin == SL_ORIGIN_LOCKED)
		said->locked |= UINT64_C(1) << before;
}

static void read_free(struct sl_reader *r, struct sl_node *keys)
{
	char why[256];

	if (keys->kind != SL_NODE_MAP) {
		refuse(r, keys, "takes a map, as in  keys: {ring_current: 199.8 mA}");
		return;
	}
	for (struct sl_node *node = keys->child; node && !r->err; node = node->next) {
		node->read = true;
		if (node->kind != SL_NODE_SCALAR || sl_node_is_null(node))
			refuse(r, node, "takes a text, or a number with a unit: 199.8 mA");
		else if (sl_metadata_check_free(node->key, node->text, why, sizeof(why)))
			refuse(r, node, why);
		else
			add(r, node, node->key, node->text);
	}
}

static void collect(struct sl_reader *r, const struct sl_node *section)
{
	char text[SL_METADATA_VALUE];

	for (const struct sl_option *o = sl_metadata_options; o->name; o++) {
		sl_option_print(o, &r->e->known, text, sizeof(text));
		if (strcmp(text, o->def) != 0)
			add(r, sl_node_child(section, o->name), o->name, text);
	}
}

void sl_experiment_read_metadata(struct sl_reader *r, struct sl_node *node)
{
	static const char *const also[] = {KEYS, NULL};
	struct sl_option_set set = {sl_metadata_options, &r->e->known};
	bool is_map = node && node->kind == SL_NODE_MAP;
	struct sl_node *keys;

	memset(&r->e->said, 0, sizeof(r->e->said));
	r->e->said.frame_rate_Hz = r->e->cut.generator_options.frame_rate_Hz;
	if (is_map)
		prepare_all(r, node);
	if (r->err == -ENOMEM)
		return;
	if (sl_config_fill(r->e->config, node, &set, 1, also))
		r->err = -EINVAL;
	if (r->err)
		return;
	collect(r, is_map ? node : NULL);
	keys = is_map ? sl_node_get(node, KEYS) : NULL;
	if (keys && !sl_node_is_null(keys))
		read_free(r, keys);
}

/* ---- with other sections ---- */

/* What a sink's own options say of the same. */
static int check_sink(const struct sl_experiment *e, unsigned i, const struct sl_node *section)
{
	int err = 0;

	for (uint32_t k = 0; k < e->said.table.n && e->sink[i]->fact; k++) {
		const char *key = e->said.table.entry[k].key, *value = e->said.table.entry[k].value;
		const char *other = e->sink[i]->fact(e->sink_state[i], key);

		if (!other || !strcmp(other, value))
			continue;
		sl_config_error(e->config, section ? sl_node_child(section, key) : NULL,
				"is '%s', and sink %s says %s: '%s': leave it out there", value,
				e->sink[i]->name, key, other);
		err = -EINVAL;
	}
	return err;
}

int sl_experiment_check_metadata(const struct sl_experiment *e)
{
	const struct sl_node *section = sl_node_child(e->config->root, "metadata");
	double rate = e->cut.generator_options.frame_rate_Hz;
	char why[256];
	int err = 0;

	if (sl_metadata_check_exposure(e->known.exposure_s, rate, why, sizeof(why))) {
		sl_config_error(e->config, sl_node_child(section, "exposure_s"), "%s", why);
		err = -EINVAL;
	}
	if (e->known.polarization_degree < 1 &&
	    e->known.polarization != SL_POLARIZATION_HORIZONTAL &&
	    e->known.polarization != SL_POLARIZATION_VERTICAL) {
		sl_config_error(e->config, sl_node_child(section, "polarization_degree"),
				"of which polarization? set polarization to horizontal or "
				"vertical");
		err = -EINVAL;
	}
	for (unsigned i = 0; i < e->sinks; i++)
		if (check_sink(e, i, section))
			err = -EINVAL;
	return err;
}

/* ---- the sample's name ---- */

struct wanted {
	const char *key;
	char *text;
	size_t bytes;
};

static void note(void *to, const char *key, const char *value)
{
	const struct wanted *w = to;

	if (!strcmp(key, w->key))
		snprintf(w->text, w->bytes, "%s", value);
}

void sl_experiment_sample(const struct sl_experiment *e, char *text, size_t bytes)
{
	struct wanted wanted = {"sample", text, bytes};
	const char *value = sl_metadata_get(&e->said.table, wanted.key);

	text[0] = 0;
	if (e->metadata)
		e->metadata->each(e->metadata->arg, note, &wanted);
	else if (value)
		snprintf(text, bytes, "%s", value);
	for (unsigned i = 0; i < e->sinks && !text[0]; i++) {
		value = e->sink[i]->fact ? e->sink[i]->fact(e->sink_state[i], wanted.key) : NULL;
		if (value)
			snprintf(text, bytes, "%s", value);
	}
}
