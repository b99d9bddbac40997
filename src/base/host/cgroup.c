/* cgroup.c - the cgroups of this process. */
#include "base/host/cgroup.h"

#include <stdio.h>
#include <string.h>

static bool has_word(const char *list, size_t length, const char *word)
{
	size_t n = strlen(word);

	if (!n)
		return !length;
	for (const char *end = list + length; list <= end;) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		size_t next = (size_t)((comma ? comma : end) - list);

		if (next == n && !memcmp(list, word, n))
			return true;
		list += next + 1;
	}
	return false;
}

/* The path in a line "4:memory:/a/b" if it is of this controller; NULL: it is not. */
static char *path_in(char *line, const char *controller)
{
	char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	char *path = second ? second + 1 : NULL;

	if (!path || *path != '/' || !has_word(first + 1, (size_t)(second - first - 1), controller))
		return NULL;
	path[strcspn(path, "\n")] = 0;
	return path;
}

void sl_cgroup_go_up(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash == path ? path + 1 : slash) = 0;
}

bool sl_cgroup_find(const char *root, const char *controller, char group[SL_CGROUP_PATH])
{
	char name[512], line[4200], *path = NULL;
	FILE *file;

	snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
	file = fopen(name, "re");
	while (file && !path && fgets(line, sizeof(line), file))
		path = path_in(line, controller);
	if (file)
		fclose(file);
	if (!path)
		return false;
	if (strstr(path, "/.."))
		path[1] = 0;
	while (strlen(path) >= SL_CGROUP_PATH)
		sl_cgroup_go_up(path);
	snprintf(group, SL_CGROUP_PATH, "%s", path);
	return true;
}
