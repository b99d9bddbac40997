/* plugin.h - loading shared objects with add-ons in them; include/sluice/plugin.h has the model.
 *
 * Files:     trust.c who can change a file; check.c whether a plug-in is complete and of this
 *            version; load.c from a path to the registry.
 * Threads:   any; loading takes a lock.
 * Errors:    functions with `why` leave one line there and log nothing, so that the caller can say
 *            where the path came from. */
#ifndef SL_PLUGIN_PLUGIN_H
#define SL_PLUGIN_PLUGIN_H

#include <stddef.h>

#include <sluice/plugin.h>

enum { SL_PLUGIN_WHY = 1024 };

/* A file that only root and this user can change or replace, as a descriptor (O_PATH); or
 * -errno. Every folder on the way, also on that of symbolic links, belongs to root or this user and
 * no other user can write it. A sticky folder that others can write, as /tmp, passes only on the
 * way to a folder of root's or this user's: no other user can rename that one. In a program with
 * capabilities (setcap) this user does not count: only root does. */
int sl_trust_open(const char *path, char *why, size_t bytes);

/* The plug-in is of this ABI and every descriptor in it has what its kind requires. */
int sl_plugin_check(const struct sl_plugin *plugin, char *why, size_t bytes);

/* As sl_plugin_load(), with the reason in `why`. */
int sl_plugin_open(const char *path, char *why, size_t bytes);

/* Load what is in the folders, "a:b"; NULL: none. Logged. */
int sl_plugin_load_folders(const char *folders);

/* The plug-in that the detector, stage or sink came with and its file; NULL: it is built in. */
const struct sl_plugin *sl_plugin_of(const void *add_on, const char **path);

#endif
