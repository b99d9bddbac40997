/* geometry.c - the section `geometry`: its list of modules, and the detector opened as it says. */
#include <errno.h>

#include "experiment/parts.h"

static int read_modules(struct sl_reader *r, struct sl_node *list)
{
	struct sl_refine_options *g = &r->e->geometry;
	int err = 0;

	if (list->kind != SL_NODE_LIST) {
		sl_config_error(r->e->config, list,
				"takes a list, as in  modules: [{module: 3, right_m: 1e-4}]");
		return -EINVAL;
	}
	for (struct sl_node *item = list->child; item; item = item->next) {
		struct sl_option_set set = {sl_refine_module_options, &g->module[g->modules]};

		if (g->modules == SL_LAYOUT_MODULES) {
			sl_config_error(r->e->config, item, "more than %d modules",
					SL_LAYOUT_MODULES);
			return -EINVAL;
		}
		if (sl_config_fill(r->e->config, item, &set, 1, NULL))
			err = -EINVAL;
		else if (!sl_node_child(item, "module")) {
			sl_config_error(r->e->config, item,
					"which module? as in  {module: 3, ...}");
			err = -EINVAL;
		}
		g->modules++;
	}
	return err;
}

void sl_experiment_read_geometry(struct sl_reader *r, struct sl_node *node)
{
	static const char *const also[] = {"modules", NULL};
	struct sl_option_set set = {sl_refine_options, &r->e->geometry};
	struct sl_node *list;

	r->e->geometry.modules = 0;
	if (sl_config_fill(r->e->config, node, &set, 1, also))
		r->err = -EINVAL;
	list = node && node->kind == SL_NODE_MAP ? sl_node_get(node, "modules") : NULL;
	if (list && !sl_node_is_null(list) && read_modules(r, list))
		r->err = -EINVAL;
}

static int refine(void *arg, struct sl_geometry *geometry)
{
	struct sl_experiment *e = arg;

	return sl_refine(&e->geometry, geometry, &e->refined);
}

int sl_experiment_open_detector(struct sl_experiment *e, struct sl_geometry *geometry)
{
	int err;

	e->cut.refine = refine;
	e->cut.refine_arg = e;
	err = e->detector->open(e->detector_state, &e->run, geometry);
	e->cut.refine = NULL;
	if (!err && e->detector == e->generator)
		err = refine(e, geometry);
	return err;
}
