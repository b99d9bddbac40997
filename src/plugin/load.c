/* load.c - from a path to the registry. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/registry.h"
#include "plugin/plugin.h"

enum { PLUGINS = 64 };

/* Only added to, under the lock: `loads` is written last, and pairs with the read in
 * sl_plugin_of(). */
static struct {
	const struct sl_plugin *plugin;
	char *path;
	dev_t device;
	ino_t inode;
} loaded[PLUGINS];
static unsigned loads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What the dynamic loader said, without the name that the file has for it alone. */
static const char *reason(const char *name)
{
	const char *text = dlerror();

	if (!text)
		return "no reason is known";
	if (!strncmp(text, name, strlen(name)) && !strncmp(text + strlen(name), ": ", 2))
		text += strlen(name) + 2;
	return text;
}

/* The symbol `sl_plugin` of the file behind the descriptor. *object: it is mapped. */
static int map_object(int fd, void **object, const struct sl_plugin **plugin, char *why,
		      size_t bytes)
{
	char name[40];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	*object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!*object) {
		snprintf(why, bytes,
			 "it cannot be loaded: %s; build it with  cc -shared -fPIC FILE.c "
			 "$(pkg-config --cflags --libs sluice)",
			 reason(name));
		return -ENOEXEC;
	}
	*plugin = dlsym(*object, "sl_plugin");
	if (*plugin)
		return 0;
	snprintf(why, bytes,
		 "it has no symbol sl_plugin: define  SL_PUBLIC const struct sl_plugin sl_plugin "
		 "(sluice/plugin.h)");
	return -ENOEXEC;
}

static bool is_loaded(const struct stat *st)
{
	for (unsigned i = 0; i < loads; i++)
		if (loaded[i].device == st->st_dev && loaded[i].inode == st->st_ino)
			return true;
	return false;
}

static int enter(const struct sl_plugin *plugin, const char *path, const struct stat *st, char *why,
		 size_t bytes)
{
	int err = sl_plugin_check(plugin, why, bytes);

	if (err)
		return err;
	if (loads == PLUGINS || sl_registry_add(plugin)) {
		snprintf(why, bytes, "there is no room for more plug-ins in one process");
		return -ENOSPC;
	}
	loaded[loads].plugin = plugin;
	loaded[loads].device = st->st_dev;
	loaded[loads].inode = st->st_ino;
	loaded[loads].path = realpath(path, NULL);
	__atomic_store_n(&loads, loads + 1, __ATOMIC_RELEASE);
	return 0;
}

/* The descriptor of an object that was mapped stays open: the dynamic loader knows the object by
 * the name /proc/self/fd/N, and would take another file with the same N for this one. */
static int open_locked(const char *path, char *why, size_t bytes)
{
	const struct sl_plugin *plugin;
	void *object = NULL;
	struct stat st;
	int err = 0, fd = sl_trust_open(path, why, bytes);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		err = -errno;
		snprintf(why, bytes, "%s", strerror(errno));
	}
	if (!err && !is_loaded(&st)) {
		err = map_object(fd, &object, &plugin, why, bytes);
		if (!err)
			err = enter(plugin, path, &st, why, bytes);
	}
	if (!object)
		close(fd);
	else if (err)
		dlclose(object);
	return err;
}

int sl_plugin_open(const char *path, char *why, size_t bytes)
{
	char text[SL_PLUGIN_WHY] = "";
	int err;

	pthread_mutex_lock(&lock);
	err = open_locked(path, text, sizeof(text));
	pthread_mutex_unlock(&lock);
	if (err)
		snprintf(why, bytes, "plug-in %s: %s", path, text);
	return err;
}

int sl_plugin_load(const char *path)
{
	char why[SL_PLUGIN_WHY + PATH_MAX];
	int err = sl_plugin_open(path, why, sizeof(why));

	if (err)
		sl_error("%s", why);
	return err;
}

static int is_object(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 3 && entry->d_name[0] != '.' && !strcmp(entry->d_name + length - 3, ".so");
}

int sl_plugin_load_folder(const char *folder)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, is_object, alphasort), err = 0;

	if (n < 0) {
		err = -errno;
		sl_error("cannot read the folder of plug-ins %s: %s (--plugins or SLUICE_PLUGINS)",
			 folder, strerror(errno));
		return err;
	}
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		if (!err) {
			snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
			err = sl_plugin_load(path);
		}
		free(entry[i]);
	}
	free(entry);
	return err;
}

int sl_plugin_load_folders(const char *folders)
{
	char *list = folders ? strdup(folders) : NULL, *rest = list, *folder;
	int err = folders && !list ? -ENOMEM : 0;

	while (!err && (folder = strsep(&rest, ":")))
		if (folder[0])
			err = sl_plugin_load_folder(folder);
	free(list);
	return err;
}

static bool has(const void *const *table, const void *add_on)
{
	for (; table && *table; table++)
		if (*table == add_on)
			return true;
	return false;
}

const struct sl_plugin *sl_plugin_of(const void *add_on, const char **path)
{
	unsigned n = __atomic_load_n(&loads, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		const struct sl_plugin *p = loaded[i].plugin;

		if (!has((const void *const *)p->detectors, add_on) &&
		    !has((const void *const *)p->stages, add_on) &&
		    !has((const void *const *)p->sinks, add_on))
			continue;
		*path = loaded[i].path ? loaded[i].path : "";
		return p;
	}
	return NULL;
}
