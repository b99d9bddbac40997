/* list.c - which shares of this user live on this host. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "share/private.h"

static bool is_listening(int folder, const char *name)
{
	int fd = sl_registry_connect(folder, name);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN;
}

static int list_in(int folder, char (**names)[64], size_t *n)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);
		char name[SL_REGISTRY_NAME];
		void *more;

		if (length <= 5 || length - 5 >= sizeof(name) ||
		    strcmp(entry->d_name + length - 5, ".sock"))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - 5), entry->d_name);
		if (!sl_registry_name_is_valid(name) || !is_listening(folder, name))
			continue;
		more = realloc(*names, (*n + 1) * sizeof(**names));
		if (!more) {
			closedir(dir);
			return -ENOMEM;
		}
		*names = more;
		memcpy((*names)[(*n)++], name, sizeof(name));
	}
	if (dir)
		closedir(dir);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int sl_share_list(char (**names)[64], size_t *n)
{
	int folder[SL_REGISTRY_PLACES], err = 0;
	char why[SL_SHARE_WHY];
	unsigned places = sl_share_places(folder, why, sizeof(why));

	*names = NULL;
	*n = 0;
	if (why[0])
		return -EPERM;
	for (unsigned i = 0; i < places; i++) {
		if (!err)
			err = list_in(folder[i], names, n);
		close(folder[i]);
	}
	if (!err && *n)
		qsort(*names, *n, sizeof(**names), by_name);
	return err;
}
