/* goniometer.c - section `goniometer`: a list of axes, from the sample outwards. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/config/node.h"
#include "experiment/parts.h"

const struct sl_option sl_axis_options[] = {
	SL_F64(struct sl_axis, x, -1, -1e6, 1e6, "",
	       "direction about which it turns, right-handed: to the left along the beam"),
	SL_F64(struct sl_axis, y, 0, -1e6, 1e6, "", "likewise, up"),
	SL_F64(struct sl_axis, z, 0, -1e6, 1e6, "", "likewise, along the beam"),
	SL_F64(struct sl_axis, start_deg, 0, -1e6, 1e6, "degrees",
	       "where it is when the first frame after the dark ones begins"),
	SL_F64(struct sl_axis, increment_deg, 0, -360, 360, "degrees",
	       "how far it turns from one frame to the next; 0: it stands still"),
	SL_OPTION_END,
};

static void refuse(struct sl_reader *r, const struct sl_node *node, const char *why)
{
	sl_config_error(r->e->config, node, "%s", why);
	r->err = -EINVAL;
}

/* It becomes the name of a field in files. */
static bool is_name(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return strlen(text) < SL_NAME_BYTES && strchr(letters, text[0]) && text[0] &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				 "0123456789")] == 0;
}

static void check_axis(struct sl_reader *r, const struct sl_node *node, struct sl_axis *axis)
{
	const struct sl_goniometer *g = &r->e->goniometer;
	double length = sqrt(axis->x * axis->x + axis->y * axis->y + axis->z * axis->z);

	if (!(length > 0)) {
		refuse(r, node, "x, y and z are all 0: that is no direction");
		return;
	}
	axis->x /= length;
	axis->y /= length;
	axis->z /= length;
	for (uint32_t i = 0; i < g->axes; i++) {
		if (!strcmp(g->axis[i].name, axis->name))
			refuse(r, node, "is there twice: axes need names of their own");
		if (g->axis[i].increment_deg != 0 && axis->increment_deg != 0)
			refuse(r, node,
			       "turns, and so does one before it: one axis turns in a run");
	}
}

void sl_experiment_read_goniometer(struct sl_reader *r)
{
	struct sl_goniometer *g = &r->e->goniometer;
	struct sl_node *list = sl_node_get(r->e->config->root, "goniometer");

	g->axes = 0;
	if (!list || sl_node_is_null(list))
		return;
	if (list->kind != SL_NODE_LIST) {
		refuse(r, list,
		       "takes a list of axes, as in  goniometer: [omega: {increment_deg: 0.1}]");
		return;
	}
	for (struct sl_node *item = list->child; item; item = item->next) {
		struct sl_node *options = item->kind == SL_NODE_MAP ? item->child : NULL;
		const char *name = options ? options->key : item->text;
		struct sl_axis axis = {.x = 0};
		struct sl_option_set set = {sl_axis_options, &axis};

		if (item->kind == SL_NODE_LIST || (options && options->next) || !is_name(name) ||
		    (options && options->kind != SL_NODE_MAP && !sl_node_is_null(options))) {
			refuse(r, item,
			       "takes a name of letters, digits and _, with its options: "
			       "- omega: {increment_deg: 0.1}");
			continue;
		}
		if (g->axes == SL_AXES) {
			refuse(r, item, "at most 6 axes");
			return;
		}
		snprintf(axis.name, sizeof(axis.name), "%s", name);
		if (options && sl_node_is_null(options))
			options = NULL;
		if (sl_config_fill(r->e->config, options, &set, 1, NULL))
			r->err = -EINVAL;
		else
			check_axis(r, item, &axis);
		g->axis[g->axes++] = axis;
	}
}
