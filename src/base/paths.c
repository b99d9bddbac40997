/* paths.c - patterns and numbered names become lists of files. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static int add(struct sl_paths *paths, const char *path)
{
	char **more;

	if (paths->n == SL_PATHS_MOST)
		return -E2BIG;
	more = realloc(paths->path, (paths->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	paths->path = more;
	more[paths->n] = strdup(path);
	if (!more[paths->n])
		return -ENOMEM;
	paths->n++;
	return 0;
}

/* The text is the user's, so it is never a format for printf. */
int sl_paths_number(const char *pattern, unsigned k, char *name, size_t bytes)
{
	size_t used = 0;
	int numbers = 0;

	for (const char *p = pattern; *p; p++) {
		char piece[32] = {*p, 0};

		if (*p == '%' && p[1] == '%') {
			p++;
		} else if (*p == '%') {
			unsigned width = 0;
			bool zeros = p[1] == '0';

			for (p++; *p >= '0' && *p <= '9'; p++)
				width = width * 10 + (unsigned)(*p - '0');
			if ((*p != 'd' && *p != 'u') || width > 20)
				return -EINVAL;
			snprintf(piece, sizeof(piece), zeros ? "%0*u" : "%*u", (int)width, k);
			numbers++;
		}
		if (used + strlen(piece) >= bytes)
			return -ENAMETOOLONG;
		strcpy(name + used, piece);
		used += strlen(piece);
	}
	return numbers == 1 ? 0 : -EINVAL;
}

static int add_numbered(struct sl_paths *paths, const char *pattern, char *why, size_t why_bytes)
{
	char name[PATH_MAX];
	unsigned k = 0;
	size_t before = paths->n;
	int err = sl_paths_number(pattern, k, name, sizeof(name));

	if (err) {
		snprintf(why, why_bytes, "'%s' takes one number, as in %%d or %%06d", pattern);
		return err;
	}
	if (!is_there(name))
		k = 1;
	while (!err && !sl_paths_number(pattern, k, name, sizeof(name)) && is_there(name)) {
		err = add(paths, name);
		k++;
	}
	if (err)
		return err;
	if (paths->n == before) {
		snprintf(why, why_bytes, "there is no '%s' for number 0 or 1", pattern);
		return -ENOENT;
	}
	/* What follows a hole would be played in the wrong place. */
	if (!sl_paths_number(pattern, k + 1, name, sizeof(name)) && is_there(name)) {
		snprintf(why, why_bytes, "'%s' is there, and number %u before it is not", name, k);
		return -ENOENT;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int add_pattern(struct sl_paths *paths, const char *pattern, char *why, size_t why_bytes)
{
	glob_t found;
	int err = 0;

	if (glob(pattern, GLOB_NOSORT, NULL, &found)) {
		snprintf(why, why_bytes, "no file is called '%s'", pattern);
		globfree(&found);
		return -ENOENT;
	}
	qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), by_number);
	for (size_t i = 0; i < found.gl_pathc && !err; i++)
		err = add(paths, found.gl_pathv[i]);
	globfree(&found);
	return err;
}

static int add_item(struct sl_paths *paths, const char *item, char *why, size_t why_bytes)
{
	if (!is_there(item) && strpbrk(item, "*?["))
		return add_pattern(paths, item, why, why_bytes);
	if (!is_there(item) && strchr(item, '%'))
		return add_numbered(paths, item, why, why_bytes);
	return add(paths, item);
}

int sl_paths_expand(const char *text, struct sl_paths *paths, char *why, size_t why_bytes)
{
	struct sl_paths found = {0};
	char *copy = strdup(text), *rest = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	why[0] = 0;
	if (!err && is_there(text))
		err = add(&found, text);
	else
		while (!err && (item = strsep(&rest, ","))) {
			item += strspn(item, " ");
			if (item[0])
				err = add_item(&found, item, why, why_bytes);
		}
	free(copy);
	if (!err && !found.n) {
		snprintf(why, why_bytes, "no file is named");
		err = -EINVAL;
	}
	if (err && !why[0])
		snprintf(why, why_bytes, "'%s': %s", text, strerror(-err));
	if (err)
		sl_paths_free(&found);
	else
		*paths = found;
	return err;
}

void sl_paths_free(struct sl_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free(paths->path[i]);
	free(paths->path);
	*paths = (struct sl_paths){0};
}
