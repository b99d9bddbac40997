/* site.c - find site files, check them, lay them under and over an experiment. */
#include "experiment/site.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config/layers.h"
#include "base/log.h"
#include "experiment/parts.h"

static const char *const lists[SL_SITE_LISTS] = {"stages", "sinks"};

/* ---- which files ---- */

static int refuse_writable(const char *path, const struct stat *st)
{
	if (st->st_uid != 0) {
		sl_error("%s: belongs to user %u, who could change what all users of this host "
			 "run; make it root's (chown root)",
			 path, (unsigned)st->st_uid);
		return -EPERM;
	}
	/* Group 0 is root's own. */
	if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0)) {
		sl_error("%s: others than root can write it, and so change what all users of this "
			 "host run; take that away (chmod go-w)",
			 path);
		return -EPERM;
	}
	return 0;
}

int sl_site_trust(int fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	if (fstat(fd, &st)) {
		sl_error("%s: cannot read: %s", path, strerror(errno));
		return -errno;
	}
	if (refuse_writable(path, &st))
		return -EPERM;
	if (stat(folder[0] ? folder : "/", &st)) {
		sl_error("%s: cannot read: %s", folder, strerror(errno));
		return -errno;
	}
	return refuse_writable(folder, &st);
}

/* The user's own; an empty text: there is no such place. */
static void user_path(char *path, size_t bytes)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	path[0] = 0;
	/* The XDG specification: a relative path is to be ignored. */
	if (config && config[0] == '/')
		snprintf(path, bytes, "%s/sluice/site.yaml", config);
	else if (home && home[0] == '/')
		snprintf(path, bytes, "%s/.config/sluice/site.yaml", home);
}

/* ---- what is in them ---- */

/* Take the maps of add-ons and the transfers out, which do not merge key by key. */
static int take_apart(struct sl_config *config, const char *name, struct sl_site_map *part)
{
	struct sl_node *map = sl_node_child(config->root, name);

	*part = (struct sl_site_map){0};
	if (!map || sl_node_is_null(map))
		return 0;
	if (map->kind != SL_NODE_MAP) {
		sl_config_error(config, map, "takes a map of the keys of an experiment file");
		return -EINVAL;
	}
	part->map = map;
	for (unsigned i = 0; i < SL_SITE_LISTS; i++) {
		struct sl_node *node = sl_node_child(map, lists[i]);

		if (!node || node->kind != SL_NODE_MAP)
			continue;
		sl_node_unlink(node);
		part->item[i] = node;
	}
	part->transfers = sl_node_child(map, "transfers");
	return 0;
}

/* The same reader as for experiments, so that every key and every value is looked at. */
static int check_map(struct sl_config *config, struct sl_site_map *part)
{
	struct sl_reader r = {.site = true};
	struct sl_node *root = config->root;

	if (!part->map)
		return 0;
	r.e = calloc(1, sizeof(*r.e));
	if (!r.e)
		return -ENOMEM;
	r.e->config = config;
	config->root = part->map;
	sl_experiment_read(&r);
	for (unsigned i = 0; i < SL_SITE_LISTS; i++)
		if (part->item[i])
			sl_experiment_read_items(&r, lists[i], part->item[i]);
	config->root = root;
	r.e->config = NULL; /* not the experiment's to close */
	sl_experiment_close(r.e);
	if (part->transfers)
		sl_node_unlink(part->transfers);
	return r.err;
}

static int check_values(const struct sl_config *config, const struct sl_node *map)
{
	int err = 0;

	for (const struct sl_node *node = map->child; node; node = node->next)
		if (node->kind == SL_NODE_MAP) {
			err = check_values(config, node) ? -EINVAL : err;
		} else if (sl_node_is_null(node)) {
			sl_config_error(config, node, "has no value; a locked key needs one");
			err = -EINVAL;
		}
	return err;
}

static int check_locked(const struct sl_config *config, const struct sl_site_map *locked)
{
	int err = locked->map ? check_values(config, locked->map) : 0;

	for (unsigned i = 0; i < SL_SITE_LISTS; i++)
		if (locked->item[i] && check_values(config, locked->item[i]))
			err = -EINVAL;
	if (locked->transfers) {
		sl_config_error(config, locked->transfers,
				"transfers cannot be locked; lock keys of sections instead");
		err = -EINVAL;
	}
	return err;
}

static int read_maps(struct sl_site_file *file)
{
	static const char *const known[] = {"defaults", "locked", NULL};
	struct sl_config *config = file->config;
	int err = sl_config_fill(config, config->root, NULL, 0, known);

	if (take_apart(config, "defaults", &file->defaults) ||
	    take_apart(config, "locked", &file->locked))
		return -EINVAL;
	if (check_locked(config, &file->locked))
		err = -EINVAL;
	if (check_map(config, &file->defaults))
		err = -EINVAL;
	if (check_map(config, &file->locked))
		err = -EINVAL;
	return err;
}

/* ---- open ---- */

/* `found`: a file that is not there is an error. `system`: only root may be able to write it. */
static int add(struct sl_site *site, const char *path, bool found, bool system)
{
	struct sl_site_file *file = &site->file[site->files];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	if ((err == -ENOENT || err == -ENOTDIR) && !found)
		return 0;
	if (err) {
		sl_error("site file %s: cannot open: %s", path, strerror(-err));
		return err;
	}
	if (system)
		err = sl_site_trust(fd, path);
	if (!err)
		err = sl_config_read(fd, path, &file->config);
	close(fd);
	if (err)
		return err;
	site->files++;
	return read_maps(file);
}

int sl_site_add(struct sl_site *site, const char *path)
{
	return add(site, path, true, false);
}

int sl_site_open(struct sl_site *site)
{
	const char *named = getenv("SLUICE_SITE");
	char path[PATH_MAX];
	int err;

	*site = (struct sl_site){0};
	if (named && (!named[0] || !strcmp(named, "none")))
		return 0;
	if (named)
		return sl_site_add(site, named);
	err = add(site, SL_SITE_SYSTEM, false, true);
	user_path(path, sizeof(path));
	if (!err && path[0])
		err = add(site, path, false, false);
	return err;
}

void sl_site_close(struct sl_site *site)
{
	for (unsigned i = 0; i < site->files; i++)
		sl_config_close(site->file[i].config);
	site->files = 0;
}

/* ---- use ---- */

static int add_transfers(struct sl_config *config, const struct sl_node *transfers)
{
	struct sl_node *there = sl_node_child(config->root, "transfers");

	if (there && !sl_node_is_null(there))
		return 0;
	if (there)
		sl_node_unlink(there);
	return sl_node_copy(sl_tree_of(config), config->root, transfers, SL_ORIGIN_SITE, NULL);
}

int sl_site_defaults(const struct sl_site *site, struct sl_config *config)
{
	int err = 0;

	for (unsigned i = site->files; i-- && !err;) { /* the strongest first */
		const struct sl_site_map *from = &site->file[i].defaults;

		if (from->map)
			err = sl_config_defaults(config, from->map);
		if (!err && from->transfers)
			err = add_transfers(config, from->transfers);
	}
	return err;
}

int sl_site_lock(const struct sl_site *site, struct sl_config *config)
{
	int err = 0;

	for (unsigned i = 0; i < site->files; i++)
		if (site->file[i].locked.map && sl_config_lock(config, site->file[i].locked.map))
			err = -EINVAL;
	return err;
}

int sl_site_finish(const struct sl_site *site, struct sl_config *config)
{
	int err = 0;

	for (unsigned list = 0; list < SL_SITE_LISTS; list++) {
		struct sl_node *node = sl_node_child(config->root, lists[list]);

		for (unsigned i = site->files; node && i--;)
			if (site->file[i].defaults.item[list] &&
			    sl_config_item_defaults(config, node,
						    site->file[i].defaults.item[list]))
				err = -EINVAL;
		for (unsigned i = 0; node && i < site->files; i++)
			if (site->file[i].locked.item[list] &&
			    sl_config_item_lock(config, node, site->file[i].locked.item[list]))
				err = -EINVAL;
	}
	if (sl_site_lock(site, config))
		err = -EINVAL;
	sl_config_settle(config);
	return err;
}
