/* live.c - a sink `share` for viewers, where the file has none: they can look at any run. */
#include <string.h>

#include "experiment/parts.h"

static bool is_share(const struct sl_node *item)
{
	if (item->kind == SL_NODE_SCALAR)
		return !strcmp(item->text, "share");
	return sl_node_child(item, "share") != NULL;
}

static int add(struct sl_tree *tree, struct sl_node *parent, const char *key, const char *text,
	       struct sl_node **made)
{
	struct sl_node *node;
	int err = sl_node_add(tree, parent, key, text ? SL_NODE_SCALAR : SL_NODE_MAP, 0, &node);

	if (err)
		return err;
	node->text = text;
	node->origin = SL_ORIGIN_PROGRAM;
	if (made)
		*made = node;
	return 0;
}

int sl_experiment_add_live(struct sl_config *config)
{
	static const char *const options[][2] = {
		{"latest_Hz", "10"}, {"results", "auto"}, {"may_lack", "true"}};
	struct sl_node *list = sl_node_child(config->root, "sinks"), *item, *share;
	struct sl_tree *tree = sl_tree_of(config);
	unsigned sinks = 0;
	int err;

	/* No list of sinks, or none at all, is for the reader of the section to complain of. */
	if (!list || list->kind != SL_NODE_LIST || !list->child)
		return 0;
	for (item = list->child; item; item = item->next, sinks++)
		if (is_share(item))
			return 0;
	if (sinks >= SL_EXPERIMENT_SINKS) {
		sl_config_warn(config, list,
			       "has %u sinks, the most there can be: this run cannot be followed",
			       sinks);
		return 0;
	}
	err = add(tree, list, NULL, NULL, &item);
	if (!err)
		err = add(tree, item, "share", NULL, &share);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && !err; i++)
		err = add(tree, share, options[i][0], options[i][1], NULL);
	return err;
}
