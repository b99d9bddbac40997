/* distrust.c - experiments of other hosts: paths stay under some folders, and code is not what this
 * process could have written.
 *
 * Every text of the file is looked at, not only options that are known to be paths: an option that
 * a new add-on brings is safe, too. Texts of the section `metadata` name no files, and options with
 * "dataset" in their names are paths inside of files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config/node.h"
#include "experiment/parts.h"

static struct {
	bool on, file;
	const char *const *roots;
	size_t n;
} rule;

void sl_experiment_distrust(const char *const *roots, size_t n, bool file)
{
	rule.on = true;
	rule.file = file;
	rule.roots = roots;
	rule.n = n;
}

static bool is_distrusted(const struct sl_node *node)
{
	return rule.on &&
	       (node->origin == SL_ORIGIN_SET || (rule.file && node->origin == SL_ORIGIN_FILE));
}

/* ---- code ---- */

/* The path itself, and every folder on its way, cannot be written; root could write them all. */
static bool is_out_of_reach(const char *path)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return false;
	for (char *end = real + strlen(real); end; end = strrchr(real, '/')) {
		if (end == real) {
			return euidaccess("/", W_OK) != 0;
		}
		*end = 0;
		if (!euidaccess(real, W_OK))
			return false;
	}
	return true;
}

static int refuse_code(const struct sl_config *config, const struct sl_node *node, const char *path)
{
	sl_config_error(
		config, node,
		"'%s' is code, and this user (%u) could write it or a folder on its way: over the "
		"network "
		"plug-ins and scripts are taken only from folders that the service cannot write",
		path, (unsigned)geteuid());
	return -EACCES;
}

int sl_experiment_distrust_plugin(const struct sl_config *config, const struct sl_node *node)
{
	if (!is_distrusted(node) || is_out_of_reach(node->text))
		return 0;
	return refuse_code(config, node, node->text);
}

/* ---- paths ---- */

static bool climbs(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/'))
			return true;
	}
	return false;
}

/* What there is of the path, without symbolic links. */
static bool resolve(const char *path, char real[PATH_MAX])
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	while (!realpath(part, real)) {
		char *slash = strrchr(part, '/');

		if (errno != ENOENT || !slash || climbs(part))
			return false;
		*slash = 0;
		if (slash == part)
			return snprintf(real, PATH_MAX, "/") > 0;
	}
	return true;
}

static bool is_below(const char *path, const char *root)
{
	size_t n = strlen(root);

	while (n > 1 && root[n - 1] == '/')
		n--;
	return !strncmp(path, root, n) && (n == 1 || !path[n] || path[n] == '/');
}

static bool is_allowed(const char *path)
{
	char real[PATH_MAX], root[PATH_MAX];

	/* Of "/data/{sample}/run.nxs" the part before the word counts: words have no slashes. */
	if (!resolve(path, real))
		return false;
	for (size_t i = 0; i < rule.n; i++)
		if (realpath(rule.roots[i], root) && is_below(real, root))
			return true;
	return false;
}

static bool is_dataset(const char *key)
{
	return key && strstr(key, "dataset");
}

/* A piece of a text between commas: "FILE", "FILE:/dataset", "http://..." */
static int check_piece(const struct sl_experiment *e, const struct sl_node *node, const char *piece,
		       size_t length)
{
	char path[PATH_MAX];
	char *inside;

	while (length && *piece == ' ') {
		piece++;
		length--;
	}
	if (length >= sizeof(path))
		length = sizeof(path) - 1;
	snprintf(path, sizeof(path), "%.*s", (int)length, piece);
	if (path[0] != '/' && path[0] != '~' && !climbs(path))
		return 0;
	inside = strstr(path, ":/");
	if (inside)
		*inside = 0;
	if (climbs(path)) { /* from where, only the run decides */
		sl_config_error(e->config, node,
				"'%s': '..' is not taken in experiments over the network", path);
		return -EACCES;
	}
	if (is_allowed(path))
		return 0;
	sl_config_error(e->config, node,
			"'%s' is outside of the folders that experiments over the network may use "
			"(sluice serve --data_roots)",
			path);
	return -EACCES;
}

struct code {
	const char *text; /* of the node that is looked at */
	bool is_code;
};

static void compare(void *arg, enum sl_file_use use, const char *path)
{
	struct code *code = arg;

	code->is_code |= use == SL_FILE_CODE && path[0] && !strcmp(path, code->text);
}

static int check_text(const struct sl_experiment *e, const struct sl_node *node, bool whole)
{
	struct code code = {node->text, false};
	int err = 0;

	if (whole)
		sl_experiment_files(e, compare, &code);
	if (code.is_code) {
		/* An interpreter by its name is found in PATH, which is the service's own. */
		if (strchr(node->text, '/') ? is_out_of_reach(node->text)
					    : !strncmp(node->text, "python3", 7))
			return 0;
		return refuse_code(e->config, node, node->text);
	}
	for (const char *piece = node->text; piece && !err;) {
		const char *comma = strchr(piece, ',');

		err = check_piece(e, node, piece, comma ? (size_t)(comma - piece) : strlen(piece));
		piece = comma ? comma + 1 : NULL;
	}
	return err;
}

static int check_tree(const struct sl_experiment *e, const struct sl_node *node, bool whole)
{
	int err = 0;

	if (node->kind == SL_NODE_SCALAR)
		return is_distrusted(node) && !is_dataset(node->key) ? check_text(e, node, whole)
								     : 0;
	for (const struct sl_node *child = node->child; child; child = child->next)
		if (check_tree(e, child, whole))
			err = -EACCES;
	return err;
}

int sl_experiment_distrust_paths(const struct sl_experiment *e, bool whole)
{
	int err = 0;

	for (const struct sl_node *section = e->config->root->child; rule.on && section;
	     section = section->next) {
		/* Plug-ins were looked at before they were loaded. */
		if (strcmp(section->key, "metadata") && strcmp(section->key, "plugins") &&
		    strcmp(section->key, "parameters") && check_tree(e, section, whole))
			err = -EACCES;
	}
	return err;
}
