/* node.c - the nodes of a config: memory, paths, look-up. */
#include "base/config/node.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct sl_block {
	struct sl_block *next;
	max_align_t data[];
};

void *sl_tree_alloc(struct sl_tree *tree, size_t bytes)
{
	struct sl_block *block = calloc(1, sizeof(*block) + bytes);

	if (!block)
		return NULL;
	block->next = tree->blocks;
	tree->blocks = block;
	return block->data;
}

char *sl_tree_text(struct sl_tree *tree, const char *text, size_t bytes)
{
	char *copy = sl_tree_alloc(tree, bytes + 1);

	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

void sl_config_close(struct sl_config *config)
{
	struct sl_tree *tree;

	if (!config)
		return;
	tree = sl_tree_of(config);
	while (tree->blocks) {
		struct sl_block *block = tree->blocks;

		tree->blocks = block->next;
		free(block);
	}
	free(tree);
}

static char *make_path(struct sl_tree *tree, const struct sl_node *parent, const char *key,
		       size_t index)
{
	const char *above = parent ? parent->path : "";
	size_t bytes = strlen(above) + (key ? strlen(key) : 0) + 32;
	char *path = sl_tree_alloc(tree, bytes);

	if (!path)
		return NULL;
	if (key)
		snprintf(path, bytes, "%s%s%s", above, *above ? "." : "", key);
	else if (parent)
		snprintf(path, bytes, "%s[%zu]", above, index);
	return path;
}

int sl_node_add(struct sl_tree *tree, struct sl_node *parent, const char *key,
		enum sl_node_kind kind, unsigned line, struct sl_node **node)
{
	struct sl_node *made = sl_tree_alloc(tree, sizeof(*made));
	struct sl_node **end = parent ? &parent->child : NULL;
	size_t index = 0;

	if (!made)
		return -ENOMEM;
	for (; end && *end; end = &(*end)->next)
		index++;
	*made = (struct sl_node){.kind = kind, .key = key, .line = line, .parent = parent};
	made->origin = line ? SL_ORIGIN_FILE : SL_ORIGIN_SET;
	made->file = line ? tree->config.file : NULL;
	made->text = kind == SL_NODE_SCALAR ? "" : NULL;
	made->path = make_path(tree, parent, key, index);
	if (!made->path)
		return -ENOMEM;
	if (end)
		*end = made;
	tree->nodes++;
	*node = made;
	return 0;
}

/* The tree's own copy of a file's name. */
static const char *layer_name(struct sl_tree *tree, const char *file)
{
	for (unsigned i = 0; file && i < SL_CONFIG_LAYERS; i++) {
		if (!tree->layer[i])
			tree->layer[i] = sl_tree_text(tree, file, strlen(file));
		if (tree->layer[i] && !strcmp(tree->layer[i], file))
			return tree->layer[i];
	}
	return NULL;
}

static const char *copy_text(struct sl_tree *tree, const struct sl_node *from)
{
	/* "No value" is known by its address. */
	return sl_node_is_null(from) ? from->text
				     : sl_tree_text(tree, from->text, strlen(from->text));
}

bool sl_node_is_secret(const struct sl_node *node)
{
	return node->secret || (node->key && !strcmp(node->key, "token"));
}

const struct sl_node *sl_node_kind_of(const struct sl_node *map)
{
	const struct sl_node *kind = sl_node_child(map, "kind");

	return kind && kind->kind == SL_NODE_SCALAR && !sl_node_is_null(kind) ? kind : NULL;
}

static int mark_kind(struct sl_tree *tree, const struct sl_node *from, struct sl_node *node)
{
	const struct sl_node *kind = sl_node_kind_of(from->parent);

	if (!kind || kind == from)
		return 0;
	node->only_kind = sl_tree_text(tree, kind->text, strlen(kind->text));
	return node->only_kind ? 0 : -ENOMEM;
}

int sl_node_copy(struct sl_tree *tree, struct sl_node *parent, const struct sl_node *from,
		 enum sl_origin origin, struct sl_node **made)
{
	const char *key = from->key ? sl_tree_text(tree, from->key, strlen(from->key)) : NULL;
	struct sl_node *node;
	int err = from->key && !key ? -ENOMEM : 0;

	if (!err && tree->nodes >= SL_CONFIG_NODES) {
		sl_error("%s: more than %d values, with those that %s adds", tree->config.file,
			 SL_CONFIG_NODES, from->file);
		return -E2BIG;
	}
	if (!err)
		err = sl_node_add(tree, parent, key, from->kind, from->line, &node);
	if (err)
		return err;
	node->origin = origin;
	node->file = layer_name(tree, from->file);
	node->secret = from->secret;
	if (from->kind == SL_NODE_SCALAR && !(node->text = copy_text(tree, from)))
		return -ENOMEM;
	if (origin == SL_ORIGIN_SITE)
		err = mark_kind(tree, from, node);
	for (const struct sl_node *child = from->child; child && !err; child = child->next)
		err = sl_node_copy(tree, node, child, origin, NULL);
	if (!err && made)
		*made = node;
	return err;
}

struct sl_node *sl_node_child(const struct sl_node *map, const char *key)
{
	if (!map || map->kind != SL_NODE_MAP)
		return NULL;
	for (struct sl_node *child = map->child; child; child = child->next)
		if (child->key && !strcmp(child->key, key))
			return child;
	return NULL;
}

struct sl_node *sl_node_get(struct sl_node *map, const char *key)
{
	struct sl_node *child = sl_node_child(map, key);

	if (child)
		child->read = true;
	return child;
}

/* The spellings of YAML 1.1. Their addresses are what tells them from quoted text. */
static const char nulls[][5] = {"", "~", "null", "Null", "NULL"};

const char *sl_null_text(const char *text, size_t bytes)
{
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		if (strlen(nulls[i]) == bytes && !memcmp(nulls[i], text, bytes))
			return nulls[i];
	return NULL;
}

bool sl_node_is_null(const struct sl_node *node)
{
	if (node->kind != SL_NODE_SCALAR)
		return false;
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		if (node->text == nulls[i])
			return true;
	return false;
}
