/* tree.c - the nodes that are whole, from left to right. */
#include "audit/tree.h"

enum { LEAF, NODE };

static struct sl_hash join(const struct sl_hash *left, const struct sl_hash *right)
{
	return sl_hash_of(NODE, left->byte, SL_HASH_BYTES, right->byte, SL_HASH_BYTES);
}

struct sl_hash sl_tree_leaf(const void *leaf, size_t bytes)
{
	return sl_hash_of(LEAF, leaf, bytes, NULL, 0);
}

void sl_tree_add(struct sl_tree *tree, const struct sl_hash *leaf)
{
	struct sl_hash node = *leaf;
	unsigned i = 0;

	for (; tree->leaves >> i & 1; i++)
		node = join(&tree->node[i], &node);
	tree->node[i] = node;
	tree->leaves++;
}

struct sl_hash sl_tree_root(const struct sl_tree *tree)
{
	struct sl_hash root;
	unsigned i;

	if (!tree->leaves)
		return sl_hash_of_nothing();
	i = (unsigned)__builtin_ctzll(tree->leaves);
	root = tree->node[i];
	while (++i < 64)
		if (tree->leaves >> i & 1)
			root = join(&tree->node[i], &root);
	return root;
}
