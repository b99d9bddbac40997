/* override.c - "--set path.to.key=value" edits the tree before anyone reads it. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/node.h"
#include "base/log.h"

/* One step of a path: a name, an index in brackets, or [+]: a new item behind the others. */
struct step {
	char name[SL_CONFIG_KEY_BYTES + 1];
	bool is_index, appends;
	size_t index;
};

/* Messages name the path and never the value, which may be a secret: also where the assignment is
 * malformed. */
struct override {
	struct sl_tree *tree;
	const char *assignment;
};

static int refuse(const struct override *override, const char *why)
{
	int shown = (int)strcspn(override->assignment, "=:{}\"' \t\r\n");

	sl_error("--set%s%.*s: %s", shown ? " " : "", shown, override->assignment, why);
	return -EINVAL;
}

/* Take the next step off the path. `at` ends up at the next step, or at the "=". */
static int next_step(const struct override *override, const char **at, struct step *step)
{
	const char *p = *at;
	size_t length = strcspn(p, ".[]=");
	char *end;

	*step = (struct step){.is_index = *p == '['};
	if (!strncmp(p, "[+]", 3)) {
		step->appends = true;
		p += 3;
		if (*p == '[')
			return refuse(override, "[+] is followed by a name or by the value");
	} else if (step->is_index) {
		if (!isdigit((unsigned char)p[1]))
			return refuse(override, "a number or + belongs between [ and ]");
		step->index = strtoul(p + 1, &end, 10);
		if (*end != ']')
			return refuse(override, "a number or + belongs between [ and ]");
		p = end + 1;
	} else {
		if (!length)
			return refuse(override,
				      "the path has an empty name; write path.to.key=value");
		if (length > SL_CONFIG_KEY_BYTES)
			return refuse(override, "a name in the path is longer than 128 bytes");
		memcpy(step->name, p, length);
		p += length;
	}
	if (*p == '.' && p[1] == '=')
		return refuse(override, "the path has an empty name; write path.to.key=value");
	if (*p == '.' && p[1] != '[')
		p++;
	else if (*p != '[' && *p != '=')
		return refuse(override, "not of the form path.to.key=value");
	*at = p;
	return 0;
}

/* "section:" without a value has nothing to keep: it becomes what the path needs. */
static void null_to_map(struct sl_node *node)
{
	if (!sl_node_is_null(node))
		return;
	node->kind = SL_NODE_MAP;
	node->text = NULL;
}

/* stages.veto: the value of the one-key item of that name. */
static int named_item(const struct override *override, struct sl_node *list, const char *name,
		      struct sl_node **found)
{
	struct sl_node *hit = NULL;

	for (struct sl_node *item = list->child; item; item = item->next) {
		struct sl_node *value = sl_node_child(item, name);

		if (!value || item->child->next)
			continue;
		if (hit)
			return refuse(override,
				      "the list has two items of that name; use [number]");
		hit = value;
	}
	if (!hit)
		return refuse(override, "the list has no such item; use its name or [number]");
	*found = hit;
	return 0;
}

/* Maps and lists from the root to here; a path by names may be shorter than the tree is deep. */
static unsigned depth_of(const struct sl_node *node)
{
	unsigned depth = 0;

	for (; node; node = node->parent)
		depth++;
	return depth;
}

/* What the item is, the rest of the path says: a value, or a map. */
static int append_item(const struct override *override, struct sl_node *list, struct sl_node **made)
{
	if (list->kind == SL_NODE_MAP && !list->child && list->parent) /* there was no such list */
		list->kind = SL_NODE_LIST;
	if (list->kind != SL_NODE_LIST)
		return refuse(override, "only a list takes [+]");
	if (depth_of(list) > SL_CONFIG_DEPTH)
		return refuse(override, "the path is deeper than 16 levels");
	return sl_node_add(override->tree, list, NULL, SL_NODE_MAP, 0, made);
}

static int take_step(const struct override *override, struct sl_node *node, const struct step *step,
		     struct sl_node **found)
{
	struct sl_node *child = node->child;
	char *key;

	null_to_map(node);
	if (step->appends)
		return append_item(override, node, found);
	if (step->is_index) {
		if (node->kind != SL_NODE_LIST)
			return refuse(override, "only a list takes [number]");
		for (size_t i = 0; child && i < step->index; i++)
			child = child->next;
		if (!child)
			return refuse(override, "the list has fewer items; the first is [0]");
		*found = child;
		return 0;
	}
	if (node->kind == SL_NODE_LIST)
		return named_item(override, node, step->name, found);
	if (node->kind == SL_NODE_SCALAR)
		return refuse(override, "the path goes through a value, which has no keys");
	*found = sl_node_child(node, step->name);
	if (*found)
		return 0;
	if (depth_of(node) > SL_CONFIG_DEPTH)
		return refuse(override, "the path is deeper than 16 levels");
	key = sl_tree_text(override->tree, step->name, strlen(step->name));
	if (!key)
		return -ENOMEM;
	return sl_node_add(override->tree, node, key, SL_NODE_MAP, 0, found);
}

static bool is_utf8(const char *text)
{
	unsigned code;
	size_t n;

	for (; *text; text += n) {
		n = sl_utf8_decode(text, &code);
		if (!n)
			return false;
	}
	return true;
}

/* Before anything is made for a path, all of it must be well-formed. */
static int check_form(const struct override *override, const char *value)
{
	const char *at = override->assignment;
	struct step step;
	int err;

	if (!is_utf8(override->assignment)) {
		sl_error("--set: the assignment is not UTF-8 text");
		return -EINVAL;
	}
	if (!value)
		return refuse(override, "not of the form path.to.key=value");
	if (*at == '!')
		return refuse(override, "a key does not begin with '!'");
	if (*at == '[' || *at == '=')
		return refuse(override, "the path must start with a name");
	while (*at != '=') {
		err = next_step(override, &at, &step);
		if (err)
			return err;
	}
	return 0;
}

static int assign(struct sl_config *config, const char *assignment, enum sl_origin origin)
{
	const struct override override = {sl_tree_of(config), assignment};
	const char *value = strchr(override.assignment, '=');
	const char *at = override.assignment;
	struct sl_node *node = config->root;
	struct step step;
	char *text;
	int err = check_form(&override, value);

	if (err)
		return err;
	while (*at != '=') {
		err = next_step(&override, &at, &step);
		if (!err)
			err = take_step(&override, node, &step, &node);
		if (err)
			return err;
	}
	if (node->kind == SL_NODE_LIST || node->child)
		return refuse(&override, "that is a section, not a value; set one of its keys");
	text = sl_tree_text(override.tree, value + 1, strlen(value + 1));
	if (!text)
		return -ENOMEM;
	node->kind = SL_NODE_SCALAR;
	node->text = text;
	node->line = 0;
	node->file = NULL;
	node->only_kind = NULL;
	node->origin = origin;
	return 0;
}

int sl_config_override(struct sl_config *config, const char *assignment)
{
	return assign(config, assignment, SL_ORIGIN_SET);
}

int sl_config_override_own(struct sl_config *config, const char *assignment)
{
	return assign(config, assignment, SL_ORIGIN_PROGRAM);
}
