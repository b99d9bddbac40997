/* paths.h - several files named by one text.
 *
 * Model:     a path as it is, when there is such a file. Otherwise names separated by commas, each
 *            of which may be a pattern (* ? [ ]; in the order of the numbers in the names) or
 *            numbered (one %d, %u or %06d: from 0 or 1 on, as far as there are files).
 * Threads:   any.
 * Ownership: the list is the caller's, until sl_paths_free(). */
#ifndef SL_BASE_PATHS_H
#define SL_BASE_PATHS_H

#include <stddef.h>

enum { SL_PATHS_MOST = 100000 };

struct sl_paths {
	char **path;
	size_t n;
};

/* A name without a pattern is taken over whether or not there is such a file. -ENOENT: a pattern
 * that fits nothing, or a number left out; -EINVAL: no pattern; -E2BIG: too many. `why` says so. */
int sl_paths_expand(const char *text, struct sl_paths *paths, char *why, size_t why_bytes);
void sl_paths_free(struct sl_paths *paths);

/* A numbered name without a folder of files behind it: the k-th of "data_%06u". 0, or -EINVAL when
 * there is not exactly one number in it, -ENAMETOOLONG. */
int sl_paths_number(const char *pattern, unsigned k, char *name, size_t bytes);

#endif
