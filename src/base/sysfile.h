/* sysfile.h - the small files of /proc and /sys.
 *
 * Model:     every path begins with a root folder: "" for this host, or one that holds a copy (or
 *            an invention) of another host's /proc and /sys.
 * Threads:   no state. Not for data threads. */
#ifndef SL_BASE_SYSFILE_H
#define SL_BASE_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of root + path, without its end. False: there is no such file, or it is empty. */
bool sl_sysfile_line(const char *root, char *text, size_t bytes, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/* The number that it begins with. */
bool sl_sysfile_number(const char *root, long long *number, const char *path, ...)
	__attribute__((format(printf, 3, 4)));

/* What follows the key and its colon or blanks, for files such as /proc/self/status. */
bool sl_sysfile_value(const char *root, const char *path, const char *key, char *text,
		      size_t bytes);

#endif
