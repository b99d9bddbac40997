/* site.h - site files: what a beamline sets for all of its experiments.
 *
 * Model:     a site file has two maps. `defaults` has the keys of an experiment file and is used
 *            where the experiment says nothing; `locked` has keys that neither experiment nor --set
 *            may change. Files: /etc/sluice/site.yaml, then that of the user in
 *            $XDG_CONFIG_HOME/sluice (~/.config/sluice), whose defaults are stronger and whose
 *            locks are weaker; or the one that SLUICE_SITE in the environment names, instead of
 *            both; none where SLUICE_SITE is empty or "none". `--site` of a command sets
 *            SLUICE_SITE, so that child processes read the same file.
 *            `stages` and `sinks` may be lists, used whole, or maps from names to options, used
 *            for each add-on of that name.
 * Threads:   one.
 * Ownership: the caller owns the struct; what is laid into a config is copied.
 * Errors:    logged with file and line. Locks prevent mistakes; they are no access control, since
 *            any user may run the program with --site none. */
#ifndef SL_EXPERIMENT_SITE_H
#define SL_EXPERIMENT_SITE_H

#include "base/config/config.h"

enum { SL_SITE_FILES = 2, SL_SITE_LISTS = 2 /* stages and sinks */ };

#define SL_SITE_SYSTEM "/etc/sluice/site.yaml"

struct sl_site_map {
	struct sl_node *map;		     /* NULL: the file has none */
	struct sl_node *item[SL_SITE_LISTS]; /* maps in the place of lists */
	struct sl_node *transfers;	     /* taken whole, or not at all */
};

struct sl_site {
	unsigned files;
	struct sl_site_file {
		struct sl_config *config;
		struct sl_site_map defaults, locked;
	} file[SL_SITE_FILES];
};

/* Read the site files of this process. 0 also where there is none. */
int sl_site_open(struct sl_site *site);
void sl_site_close(struct sl_site *site);

/* Read one more file. -ENOENT is logged, too. */
int sl_site_add(struct sl_site *site, const char *path);

/* Lay the defaults under a file that was read. */
int sl_site_defaults(const struct sl_site *site, struct sl_config *config);
/* Check and set locked keys. Again after --set, and again after a transfer was chosen. */
int sl_site_lock(const struct sl_site *site, struct sl_config *config);
/* When stages, sinks and kinds are final: the rest, with the locks. */
int sl_site_finish(const struct sl_site *site, struct sl_config *config);

/* Whether only root can write an open file and replace it in its folder. -EPERM: logged, with what
 * to do. */
int sl_site_trust(int fd, const char *path);

#endif
