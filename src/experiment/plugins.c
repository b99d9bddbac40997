/* plugins.c - the plug-ins that an experiment file names. */
#include <errno.h>
#include <limits.h>

#include "experiment/parts.h"
#include "plugin/plugin.h"

static int load(const struct sl_config *config, const struct sl_node *node)
{
	char why[SL_PLUGIN_WHY + PATH_MAX];
	int err;

	if (node->kind != SL_NODE_SCALAR || sl_node_is_null(node)) {
		sl_config_error(config, node, "takes the path of a shared object");
		return -EINVAL;
	}
	if (sl_experiment_distrust_plugin(config, node))
		return -EACCES;
	err = sl_plugin_open(node->text, why, sizeof(why));
	if (err)
		sl_config_error(config, node, "%s", why);
	return err;
}

int sl_experiment_plugins(struct sl_config *config)
{
	struct sl_node *list = sl_node_get(config->root, "plugins");
	int err = 0;

	if (!list || sl_node_is_null(list))
		return 0;
	if (list->kind != SL_NODE_LIST) {
		sl_config_error(config, list, "takes a list of paths, as in  plugins: [blank.so]");
		return -EINVAL;
	}
	for (struct sl_node *node = list->child; node && !err; node = node->next)
		err = load(config, node);
	return err;
}
