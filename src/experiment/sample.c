/* sample.c - the name of the sample: what users said of the run, else an option of a sink. */
#include <stdio.h>
#include <string.h>

#include "experiment/parts.h"

struct wanted {
	char *text;
	size_t bytes;
};

static void note(void *to, const char *key, const char *value)
{
	const struct wanted *wanted = to;

	if (!strcmp(key, "sample"))
		snprintf(wanted->text, wanted->bytes, "%s", value);
}

/* The first sink that the file gives a `sample`. */
static const char *of_sinks(const struct sl_experiment *e)
{
	const struct sl_node *list = sl_node_child(e->config->root, "sinks");
	const struct sl_node *item = list && list->kind == SL_NODE_LIST ? list->child : NULL;

	for (; item; item = item->next) {
		struct sl_node *options = item->kind == SL_NODE_MAP ? item->child : NULL, *node;

		node = options && options->kind == SL_NODE_MAP ? sl_node_child(options, "sample")
							       : NULL;
		if (node && node->kind == SL_NODE_SCALAR)
			return node->text;
	}
	return "";
}

void sl_experiment_sample(const struct sl_experiment *e, char *text, size_t bytes)
{
	struct wanted wanted = {text, bytes};

	text[0] = 0;
	if (e->metadata)
		e->metadata->each(e->metadata->arg, note, &wanted);
	if (!text[0])
		snprintf(text, bytes, "%s", of_sinks(e));
}
