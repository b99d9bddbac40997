/* part_private.h - what the files of part_file.h share. */
#ifndef SL_BASE_PART_PRIVATE_H
#define SL_BASE_PART_PRIVATE_H

#include <string.h>

#include "base/file/part_file.h"
#include "base/log.h"

/* Logs "PATH: cannot VERB: why"; -error. */
static inline int sl_part_refused(const char *path, const char *verb, int error)
{
	sl_error("%s: cannot %s: %s", path, verb, strerror(error));
	return -error;
}

/* Whether the name is that of the file that was at file->path when it was last looked at. */
bool sl_part_is_old(const struct sl_part_file *file, const char *path);

/* A file that was set aside gets its name back, if that is free. */
void sl_part_bring_back(const struct sl_part_file *file);

#endif
