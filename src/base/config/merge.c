/* merge.c - one map laid over another. */
#include <errno.h>
#include <string.h>

#include "base/config/node.h"

void sl_node_unlink(struct sl_node *node)
{
	struct sl_node **at = &node->parent->child;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->next = NULL;
}

static void append(struct sl_node *parent, struct sl_node *node)
{
	struct sl_node **at = &parent->child;

	while (*at)
		at = &(*at)->next;
	*at = node;
	node->parent = parent;
}

void sl_node_lay_over(struct sl_node *under, struct sl_node *over)
{
	for (struct sl_node *node = over->child, *next; node; node = next) {
		struct sl_node *old = sl_node_child(under, node->key);

		next = node->next;
		if (old && old->kind == SL_NODE_MAP && node->kind == SL_NODE_MAP) {
			sl_node_lay_over(old, node);
			continue;
		}
		sl_node_unlink(node);
		if (old)
			sl_node_unlink(old);
		append(under, node);
	}
}

void sl_node_fold(struct sl_node *under, struct sl_node *over)
{
	sl_node_lay_over(under, over);
	sl_node_unlink(over);
}
