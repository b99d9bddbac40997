/* layers.c - defaults under a file, and locked keys over it. */
#include "base/config/layers.h"

#include <errno.h>
#include <string.h>

#include "base/config/node.h"

/* ---- equal values ---- */

static bool equal_as(enum sl_option_type type, size_t size, const char *a, const char *b)
{
	const struct sl_option row = {.type = type, .size = size, .min = -1e300, .max = 1e300};
	uint64_t x = 0, y = 0; /* as large as the largest of these types */

	return !sl_option_set(&row, &x, a, NULL, 0) && !sl_option_set(&row, &y, b, NULL, 0) &&
	       x == y;
}

/* "4Ki" and "4096", "yes" and "true" mean the same. */
static bool same_scalar(const struct sl_node *a, const struct sl_node *b)
{
	if (sl_node_is_null(a) || sl_node_is_null(b))
		return sl_node_is_null(a) == sl_node_is_null(b);
	return !strcmp(a->text, b->text) ||
	       equal_as(SL_OPTION_U64, sizeof(uint64_t), a->text, b->text) ||
	       equal_as(SL_OPTION_F64, sizeof(double), a->text, b->text) ||
	       equal_as(SL_OPTION_BOOL, sizeof(bool), a->text, b->text);
}

bool sl_config_same(const struct sl_node *a, const struct sl_node *b)
{
	if (a->kind != b->kind || !a->key != !b->key || (a->key && strcmp(a->key, b->key) != 0))
		return false;
	if (a->kind == SL_NODE_SCALAR)
		return same_scalar(a, b);
	for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
		if (!sl_config_same(a, b))
			return false;
	return !a && !b;
}

/* Errors after which no more is tried; those of locks are collected. */
static bool is_final(int err)
{
	return err == -ENOMEM || err == -E2BIG;
}

/* ---- defaults ---- */

static int lay_under(struct sl_tree *tree, struct sl_node *over, const struct sl_node *under);

/* "section:" without a value gets the children of the default. */
static int fill_null(struct sl_tree *tree, struct sl_node *over, const struct sl_node *under)
{
	int err = 0;

	over->kind = under->kind;
	over->text = NULL;
	if (under->kind == SL_NODE_MAP)
		return lay_under(tree, over, under);
	for (const struct sl_node *item = under->child; item && !err; item = item->next)
		err = sl_node_copy(tree, over, item, SL_ORIGIN_SITE, NULL);
	return err;
}

static int lay_under(struct sl_tree *tree, struct sl_node *over, const struct sl_node *under)
{
	int err = 0;

	for (const struct sl_node *node = under->child; node && !err; node = node->next) {
		struct sl_node *there = sl_node_child(over, node->key);

		if (!there)
			err = sl_node_copy(tree, over, node, SL_ORIGIN_SITE, NULL);
		else if (there->kind == SL_NODE_MAP && node->kind == SL_NODE_MAP)
			err = lay_under(tree, there, node);
		else if (sl_node_is_null(there) && node->kind != SL_NODE_SCALAR)
			err = fill_null(tree, there, node);
	}
	return err;
}

int sl_config_defaults(struct sl_config *config, const struct sl_node *defaults)
{
	return lay_under(sl_tree_of(config), config->root, defaults);
}

void sl_config_settle(struct sl_config *config)
{
	for (struct sl_node *map = config->root->child; map; map = map->next) {
		const struct sl_node *kind = sl_node_kind_of(map);

		for (struct sl_node *node = map->child, *next; node; node = next) {
			next = node->next;
			if (node->only_kind && (!kind || strcmp(kind->text, node->only_kind) != 0))
				sl_node_unlink(node);
		}
	}
}

bool sl_config_is_site(const struct sl_node *node)
{
	return node->origin == SL_ORIGIN_SITE || node->origin == SL_ORIGIN_LOCKED;
}

static bool has_option(const struct sl_option *options, const char *key)
{
	return options && (sl_option_find(options, key) || sl_option_find_former(options, key));
}

void sl_config_drop_unused(struct sl_node *section, const struct sl_option *common,
			   const struct sl_option *own)
{
	for (struct sl_node *node = section ? section->child : NULL, *next; node; node = next) {
		next = node->next;
		if (node->read && sl_config_is_site(node) && strcmp(node->key, "kind") != 0 &&
		    !has_option(common, node->key) && !has_option(own, node->key))
			sl_node_unlink(node);
	}
}

/* ---- locked keys ---- */

int sl_config_refuse_locked(const struct sl_config *config, const struct sl_node *node,
			    const struct sl_node *lock)
{
	char value[64] = "another value";

	if (sl_node_is_secret(lock) || sl_node_is_secret(node)) {
		sl_config_error(config, node,
				"is locked by %s:%u, to a value that is not shown; leave it out",
				lock->file, lock->line);
		return -EINVAL;
	}
	if (lock->kind == SL_NODE_SCALAR)
		sl_config_excerpt(lock->text, value, sizeof(value));
	sl_config_error(config, node,
			"is locked to %s%s%s by %s:%u; leave it out, or set it to that",
			lock->kind == SL_NODE_SCALAR ? "'" : "", value,
			lock->kind == SL_NODE_SCALAR ? "'" : "", lock->file, lock->line);
	return -EINVAL;
}

/* Put the locked value in the place of `there` (NULL: it is missing). */
static int replace(struct sl_tree *tree, struct sl_node *map, struct sl_node *there,
		   const struct sl_node *lock)
{
	struct sl_node *made, **at;
	int err = sl_node_copy(tree, map, lock, SL_ORIGIN_LOCKED, &made);

	if (err || !there)
		return err;
	sl_node_unlink(made);
	for (at = &map->child; *at != there;)
		at = &(*at)->next;
	made->next = there->next;
	made->read = there->read;
	*at = made;
	return 0;
}

static int lock_value(struct sl_config *config, struct sl_node *map, struct sl_node *there,
		      const struct sl_node *lock)
{
	int err = 0, refused = 0;

	if (there && there->origin == SL_ORIGIN_PROGRAM)
		return 0;
	if (there && !sl_config_same(there, lock)) {
		/* The first of two locks holds. */
		if (there->origin == SL_ORIGIN_LOCKED)
			return sl_config_refuse_locked(config, lock, there);
		refused = sl_config_refuse_locked(config, there, lock);
	}
	if (!there || there->origin != SL_ORIGIN_LOCKED)
		err = replace(sl_tree_of(config), map, there, lock);
	return err ? err : refused;
}

static int lock_map(struct sl_config *config, struct sl_node *map, const struct sl_node *locked)
{
	int err = 0;

	for (const struct sl_node *lock = locked->child; lock && !is_final(err);
	     lock = lock->next) {
		struct sl_node *there = sl_node_child(map, lock->key);
		int one = 0;

		if (there && sl_node_is_null(there) && lock->kind == SL_NODE_MAP) {
			there->kind = SL_NODE_MAP;
			there->text = NULL;
		}
		if (there && there->kind == SL_NODE_MAP && lock->kind == SL_NODE_MAP)
			one = lock_map(config, there, lock);
		else if (!there || lock->kind != SL_NODE_MAP)
			one = lock_value(config, map, there, lock);
		/* Else no map where a section belongs: the section's reader reports it. */
		err = one ? one : err;
	}
	return err;
}

int sl_config_lock(struct sl_config *config, const struct sl_node *locked)
{
	return lock_map(config, config->root, locked);
}

/* ---- add-ons in lists ---- */

/* The options of a list item, if it is the add-on `name`; *options NULL: it is another. */
static int options_of(struct sl_tree *tree, struct sl_node *item, const char *name,
		      struct sl_node **options)
{
	char *key;

	*options = NULL;
	if (item->kind == SL_NODE_MAP && item->child && !item->child->next && item->child->key &&
	    !strcmp(item->child->key, name)) {
		if (sl_node_is_null(item->child)) {
			item->child->kind = SL_NODE_MAP;
			item->child->text = NULL;
		}
		*options = item->child->kind == SL_NODE_MAP ? item->child : NULL;
		return 0;
	}
	if (item->kind != SL_NODE_SCALAR || strcmp(item->text, name) != 0)
		return 0;
	key = sl_tree_text(tree, name, strlen(name));
	if (!key)
		return -ENOMEM;
	item->kind = SL_NODE_MAP;
	item->text = NULL;
	if (sl_node_add(tree, item, key, SL_NODE_MAP, item->line, options))
		return -ENOMEM;
	(*options)->origin = item->origin;
	(*options)->file = item->file;
	return 0;
}

static int for_items(struct sl_config *config, struct sl_node *list, const struct sl_node *layer,
		     bool lock)
{
	struct sl_tree *tree = sl_tree_of(config);
	int err = 0;

	if (list->kind != SL_NODE_LIST)
		return 0;
	for (const struct sl_node *from = layer->child; from; from = from->next)
		for (struct sl_node *item = list->child; item && !is_final(err);
		     item = item->next) {
			struct sl_node *options;
			int one;

			if (from->kind != SL_NODE_MAP || !from->child)
				continue;
			one = options_of(tree, item, from->key, &options);
			if (!one && options)
				one = lock ? lock_map(config, options, from)
					   : lay_under(tree, options, from);
			err = one ? one : err;
		}
	return err;
}

int sl_config_item_defaults(struct sl_config *config, struct sl_node *list,
			    const struct sl_node *options)
{
	return for_items(config, list, options, false);
}

int sl_config_item_lock(struct sl_config *config, struct sl_node *list,
			const struct sl_node *options)
{
	return for_items(config, list, options, true);
}
