/* tree.h - a hash tree over leaves that come one after another.
 *
 * Model:     the tree of RFC 6962 (2.1): SHA-256 of 0x00 and the leaf's bytes, of 0x01 and two
 *            nodes; the left part of n leaves has as many as the largest power of two below n. The
 *            root of no leaves is SHA-256 of nothing.
 * Threads:   one at a time.
 * Ownership: plain data.
 * Cost:      2 KiB; a leaf costs two hashes of one node on average, a root at most 64. */
#ifndef SL_AUDIT_TREE_H
#define SL_AUDIT_TREE_H

#include "audit/hash.h"

struct sl_tree { /* zeroed: no leaves */
	uint64_t leaves;
	struct sl_hash node[64]; /* [i]: over 2^i leaves, where bit i of `leaves` is set */
};

struct sl_hash sl_tree_leaf(const void *leaf, size_t bytes);
void sl_tree_add(struct sl_tree *tree, const struct sl_hash *leaf);
struct sl_hash sl_tree_root(const struct sl_tree *tree);

#endif
