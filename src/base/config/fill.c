/* fill.c - from a section of the tree to structs, by option tables; and what to say when it
 * does not fit. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/config.h"
#include "base/config/layers.h"
#include "base/config/node.h"
#include "base/log.h"

/* The names that a section may have. */
struct names {
	const struct sl_option_set *sets;
	size_t n_sets;
	const char *const *also;
};

/* "exp.yaml:12: unit.slots: ", or "--set unit.slots: ": where something is said of a node. */
static void describe_place(const struct sl_config *config, const struct sl_node *node, char *text,
			   size_t bytes)
{
	const char *path = node && node->path ? node->path : "";

	if (!node)
		snprintf(text, bytes, "%s: ", config->file);
	else if (!node->line)
		snprintf(text, bytes, "--set %s: ", path);
	else
		snprintf(text, bytes, "%s:%u: %s%s", node->file ? node->file : config->file,
			 node->line, path, *path ? ": " : "");
}

void sl_config_error(const struct sl_config *config, const struct sl_node *node, const char *format,
		     ...)
{
	char message[3072], place[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	describe_place(config, node, place, sizeof(place));
	sl_error("%s%s", place, message);
}

void sl_config_warn(const struct sl_config *config, const struct sl_node *node, const char *format,
		    ...)
{
	char message[512], place[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	describe_place(config, node, place, sizeof(place));
	sl_warn("%s%s", place, message);
}

/* Every name that is known here, in the order of the tables, one per call. NULL: no more. */
static const char *name_at(const struct names *names, size_t index)
{
	for (size_t s = 0; s < names->n_sets; s++)
		for (const struct sl_option *o = names->sets[s].options; o->name; o++)
			if (!index--)
				return o->name;
	for (const char *const *also = names->also; also && *also; also++)
		if (!index--)
			return *also;
	return NULL;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's. */
size_t sl_config_distance(const char *a, const char *b)
{
	size_t row[SL_CONFIG_KEY_BYTES + 1], n = strlen(b), diagonal, above;

	if (n > SL_CONFIG_KEY_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

/* The known name that the user probably meant, or NULL. */
static const char *closest(const struct names *names, const char *key)
{
	size_t best = strlen(key) / 3 + 2, distance; /* short names may be off by one letter */
	const char *name, *guess = NULL;

	best = best > 4 ? 4 : best;
	for (size_t i = 0; (name = name_at(names, i)); i++) {
		distance = sl_config_distance(key, name);
		if (distance < best && distance < strlen(name)) {
			best = distance;
			guess = name;
		}
	}
	return guess;
}

static void unknown_key(const struct sl_config *config, const struct sl_node *node,
			const struct names *names)
{
	const char *name, *guess = closest(names, node->key);
	char known[2048] = "nothing";
	size_t used = 0;

	for (size_t i = 0; (name = name_at(names, i)) && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 name);
	if (guess)
		sl_config_error(config, node, "unknown key; did you mean '%s'? known here: %s",
				guess, known);
	else
		sl_config_error(config, node, "unknown key; known here: %s", known);
}

static bool is_also(const char *const *also, const char *key)
{
	for (; also && *also; also++)
		if (!strcmp(*also, key))
			return true;
	return false;
}

/* What is wrong with a text that an option refused. */
static const char *verdict(const struct sl_option *option, int err)
{
	if (err == -ERANGE)
		return sl_option_is_text(option) ? "is too long" : "is out of range";
	switch (option->type) {
	case SL_OPTION_U32:
	case SL_OPTION_U64:
		return "is not a whole number";
	case SL_OPTION_F64:
		return "is not a number";
	default:
		return "is not one of its values";
	}
}

void sl_config_excerpt(const char *text, char *out, size_t bytes)
{
	static const char more[] = "...";
	size_t length = strlen(text), room = bytes - sizeof(more);

	if (length > room) {
		length = room;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--; /* not within a character of several bytes */
	}
	for (size_t i = 0; i < length; i++)
		out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
	strcpy(out + length, text[length] ? more : "");
}

/* Nothing is quoted. */
static int fill_secret(const struct sl_config *config, const struct sl_node *node,
		       const struct sl_option *option, void *base)
{
	char why[256];

	if (node->origin == SL_ORIGIN_SET) {
		sl_config_error(config, node,
				"every user of this host can read a command line: put the secret "
				"into a file and use --set %s_file=FILE",
				node->path);
		return -EINVAL;
	}
	if (!sl_option_set(option, base, node->text, why, sizeof(why)))
		return 0;
	sl_config_error(config, node, "is not right; %s", why);
	return -EINVAL;
}

static int fill_one(const struct sl_config *config, const struct sl_node *node,
		    const struct sl_option *option, void *base)
{
	char why[256], text[48];
	int err;

	sl_option_takes(option, why, sizeof(why));
	if (sl_node_is_null(node)) {
		sl_config_error(config, node, "has no value; takes %s", why);
		return -EINVAL;
	}
	if (node->kind != SL_NODE_SCALAR) {
		sl_config_error(config, node, "is a %s; takes %s",
				node->kind == SL_NODE_MAP ? "map" : "list", why);
		return -EINVAL;
	}
	if (option->type == SL_OPTION_SECRET)
		return fill_secret(config, node, option, base);
	err = sl_option_set(option, base, node->text, why, sizeof(why));
	if (!err)
		return 0;
	sl_config_excerpt(node->text, text, sizeof(text));
	if (err == -ERANGE && !sl_option_is_text(option))
		sl_config_error(config, node, "%s %s; %s", text, verdict(option, err), why);
	else
		sl_config_error(config, node, "'%s' %s; %s", text, verdict(option, err), why);
	return -EINVAL;
}

struct sl_node *sl_config_option(const struct sl_node *section, const struct sl_option *option)
{
	struct sl_node *now = section ? sl_node_child(section, option->name) : NULL;
	struct sl_node *former = section && option->was ? sl_node_child(section, option->was)
							: NULL;

	if (!now || !former)
		return now ? now : former;
	/* Of two --set, the one by the former name is taken. */
	return former->origin > now->origin ||
			       (former->origin == now->origin && now->origin >= SL_ORIGIN_SET)
		       ? former
		       : now;
}

/* A key by its former name: taken with a warning, unless the same file has the new one, too. The
 * stronger origin wins by either name. */
static int fill_former(const struct sl_config *config, struct sl_node *section,
		       struct sl_node *node, const struct sl_option *option, void *base)
{
	const struct sl_node *now = sl_node_get(section, option->name);

	node->read = true;
	if (now && now->origin == SL_ORIGIN_LOCKED && node->origin < SL_ORIGIN_LOCKED)
		return sl_config_same(node, now) ? 0 : sl_config_refuse_locked(config, node, now);
	if (now && now->origin > node->origin)
		return 0; /* --set says otherwise, by the new name */
	if (now && now->origin == node->origin && node->line) {
		sl_config_error(config, node, "is the former name of '%s', which is set, too",
				option->name);
		return -EINVAL;
	}
	sl_config_warn(config, node, "is called '%s' now; the former name still works",
		       option->name);
	return fill_one(config, node, option, base);
}

static int fill_key(const struct sl_config *config, struct sl_node *section, struct sl_node *node,
		    const struct names *names)
{
	const struct sl_option *option;

	for (size_t s = 0; s < names->n_sets; s++) {
		option = sl_option_find(names->sets[s].options, node->key);
		if (!option)
			continue;
		node->read = true;
		if (sl_config_option(section, option) != node) {
			if (node->origin == SL_ORIGIN_SITE)
				sl_node_unlink(node); /* two names in one text could not be read */
			return 0; /* the former one is stronger: fill_former() */
		}
		return fill_one(config, node, option, names->sets[s].base);
	}
	for (size_t s = 0; s < names->n_sets; s++) {
		option = sl_option_find_former(names->sets[s].options, node->key);
		if (option)
			return fill_former(config, section, node, option, names->sets[s].base);
	}
	if (is_also(names->also, node->key) || node->read) {
		node->read = true;
		return 0;
	}
	unknown_key(config, node, names);
	return -EINVAL;
}

int sl_config_fill(const struct sl_config *config, struct sl_node *section,
		   const struct sl_option_set *sets, size_t n_sets, const char *const *also)
{
	const struct names names = {sets, n_sets, also};
	int err = 0;

	for (size_t s = 0; s < n_sets; s++)
		sl_options_defaults(sets[s].options, sets[s].base);
	if (!section)
		return 0;
	section->read = true;
	if (sl_node_is_null(section)) /* "veto:" alone asks for the defaults */
		return 0;
	if (section->kind != SL_NODE_MAP) {
		sl_config_error(config, section, "is a %s; takes a map of options",
				section->kind == SL_NODE_LIST ? "list" : "single value");
		return -EINVAL;
	}
	for (struct sl_node *node = section->child, *next; node; node = next) {
		next = node->next;
		if (fill_key(config, section, node, &names))
			err = -EINVAL;
	}
	return err;
}
