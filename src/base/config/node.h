/* node.h - how the files of this folder see the tree that config.h shows.
 *
 * Model:     a config sits in a tree, which owns every node and string in blocks that are freed
 *            together; nothing is freed singly, so a replaced text stays valid.
 * Threads:   one. */
#ifndef SL_BASE_CONFIG_NODE_H
#define SL_BASE_CONFIG_NODE_H

#include "base/config/config.h"

enum {
	SL_CONFIG_DEPTH = 16,	   /* maps and lists within each other, the root included */
	SL_CONFIG_NODES = 10000,   /* in one file: keeps paths and look-ups small */
	SL_CONFIG_KEY_BYTES = 128, /* libyaml wants a key and its colon within 1024 characters */
	SL_CONFIG_FILE_BYTES = 1 << 20, /* a larger experiment file is some other kind of file */
	SL_CONFIG_LAYERS = 4		/* files that the nodes of one tree come from */
};

struct sl_block;

struct sl_tree {
	struct sl_config config;
	struct sl_block *blocks;
	unsigned nodes;
	char *layer[SL_CONFIG_LAYERS]; /* names of files that were laid under the tree's own */
};

/* The tree that a config sits in. */
static inline struct sl_tree *sl_tree_of(struct sl_config *config)
{
	return (struct sl_tree *)config; /* its first member */
}

/* Memory until sl_config_close(); NULL when there is none. */
void *sl_tree_alloc(struct sl_tree *tree, size_t bytes);
char *sl_tree_text(struct sl_tree *tree, const char *text, size_t bytes);

/* A new node at the end of `parent` (NULL: the root), with its path. `key` NULL: a list item. */
int sl_node_add(struct sl_tree *tree, struct sl_node *parent, const char *key,
		enum sl_node_kind kind, unsigned line, struct sl_node **node);

/* The `kind` of a section; NULL: it names none. */
const struct sl_node *sl_node_kind_of(const struct sl_node *map);

/* A copy of `from`, which may be of another tree, at the end of `parent`. Defaults of a section
 * with a kind are marked with it (only_kind). -E2BIG, logged: the tree would have more than
 * SL_CONFIG_NODES. */
int sl_node_copy(struct sl_tree *tree, struct sl_node *parent, const struct sl_node *from,
		 enum sl_origin origin, struct sl_node **made);

/* Take a node out of its parent. Its memory stays the tree's. */
void sl_node_unlink(struct sl_node *node);

/* Whether messages must not quote its value: it is marked, or named as every option of type
 * SL_OPTION_SECRET is. Layers are compared before a reader with option tables has marked it. */
bool sl_node_is_secret(const struct sl_node *node);

/* A text for a message: on one line, and of a long one the beginning. */
void sl_config_excerpt(const char *text, char *out, size_t bytes);

/* The child of that key without marking it as read. */
struct sl_node *sl_node_child(const struct sl_node *map, const char *key);

/* What `over` has, `under` gets: maps key by key, anything else in place of what was there. Moved,
 * not copied: nodes keep their lines and paths, so that errors name where the user wrote them. */
void sl_node_lay_over(struct sl_node *under, struct sl_node *over);
/* The same, and `over` leaves the tree. */
void sl_node_fold(struct sl_node *under, struct sl_node *over);

/* "~", "null" or nothing, unquoted, are no value. They keep their spelling in `text`, and are told
 * from the same text in quotes by address: sl_null_text() gives that address, or NULL when the text
 * is none of these. */
const char *sl_null_text(const char *text, size_t bytes);
bool sl_node_is_null(const struct sl_node *node);

/* Decode one character: its bytes (1..4), or 0 when this is not valid UTF-8. */
size_t sl_utf8_decode(const char *text, unsigned *code);

#endif
