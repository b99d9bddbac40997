/* transfers.c - one transfer's file out of the experiment's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config/node.h"
#include "base/log.h"
#include "experiment/transfers.h"

/* What a transfer may have for itself. */
static const char *const sections[] = {"control",  "link",    "ring",	 "unit",
				       "stages",   "sinks",   "threads", "frontend",
				       "feedback", "answers", NULL};

static bool good_name(const char *name)
{
	return name[0] && strlen(name) < SL_TRANSFER_NAME &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_")];
}

static int refuse(const struct sl_config *config, const struct sl_transfer_names *names,
		  const char *name)
{
	char known[512] = "";
	size_t used = 0;

	for (unsigned i = 0; i < names->n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 names->name[i]);
	if (!names->n)
		sl_error("%s: has no transfers, and so none that is called '%s'", config->file,
			 name);
	else if (name && name[0])
		sl_error("%s: no transfer is called '%s'; there are: %s", config->file, name,
			 known);
	else
		sl_error("%s: which transfer? there are: %s (--transfer NAME)", config->file,
			 known);
	return -EINVAL;
}

int sl_transfer_names(const struct sl_config *config, struct sl_transfer_names *names)
{
	struct sl_node *list = sl_node_get(config->root, "transfers");
	int err = 0;

	names->n = 0;
	if (!list || sl_node_is_null(list))
		return 0;
	if (list->kind != SL_NODE_MAP) {
		sl_config_error(config, list, "takes a map of names, as in  transfers: {full: {}}");
		return -EINVAL;
	}
	for (struct sl_node *node = list->child; node; node = node->next) {
		if (!good_name(node->key) || names->n == SL_TRANSFERS) {
			sl_config_error(config, node,
					"a transfer's name has 1 to %d letters, digits, - and _, "
					"and there are at most %d transfers",
					SL_TRANSFER_NAME - 1, SL_TRANSFERS);
			err = -EINVAL;
			continue;
		}
		if (node->kind != SL_NODE_MAP && !sl_node_is_null(node)) {
			sl_config_error(config, node, "takes a map of options");
			err = -EINVAL;
			continue;
		}
		/* Beside transfers of the file, --set makes no new one: its name is misspelt. */
		if (list->line && !node->line) {
			err = refuse(config, names, node->key);
			continue;
		}
		snprintf(names->name[names->n++], SL_TRANSFER_NAME, "%s", node->key);
	}
	return err;
}

static void lay_over(struct sl_config *config, struct sl_node *transfer)
{
	struct sl_node over = {.kind = SL_NODE_MAP};
	struct sl_node **last = &over.child;

	/* Only sections go up; the transfer's own options stay. */
	for (struct sl_node **at = &transfer->child; *at;) {
		struct sl_node *node = *at;
		bool section = false;

		for (size_t i = 0; sections[i]; i++)
			section |= !strcmp(node->key, sections[i]);
		if (!section) {
			at = &node->next;
			continue;
		}
		*at = node->next;
		node->next = NULL;
		node->parent = &over;
		*last = node;
		last = &node->next;
	}
	sl_node_lay_over(config->root, &over);
}

/* Counted in the order of the file. */
static unsigned port_offset(const struct sl_node *transfer)
{
	unsigned offset = 0;

	if (sl_node_child(sl_node_child(transfer, "control"), "port"))
		return 0;
	for (const struct sl_node *node = transfer->parent->child; node != transfer;
	     node = node->next)
		offset++;
	return offset;
}

int sl_transfer_choose(struct sl_config *config, const char *name,
		       struct sl_transfer_choice *choice)
{
	struct sl_transfer_names names;
	struct sl_node *node = NULL;
	int err = sl_transfer_names(config, &names);

	*choice = (struct sl_transfer_choice){NULL, 0, 0};
	if (err)
		return err;
	if (!name || !name[0]) {
		if (!names.n)
			return 0;
		name = names.n == 1 ? names.name[0] : "";
	}
	if (names.n)
		node = sl_node_get(sl_node_get(config->root, "transfers"), name);
	if (!node)
		return refuse(config, &names, name);
	choice->options = node;
	choice->port_offset = port_offset(node);
	choice->transfers = names.n;
	if (node->kind == SL_NODE_MAP)
		lay_over(config, node);
	return 0;
}
