/* create.c - the beginning of a master and of its first data file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/handle.h"
#include "hdf5/rolled/private.h"

/* The first data file. Those of the earlier run are aside then. */
static int begin_rolled(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	int r = sl_h5_sync_open(&rolled->sync);

	rolled->syncs = !r;
	if (!r)
		r = rolled->file_set[0] ? 0 : sl_h5_file_set_make(rolled->file_set);
	if (!r)
		r = sl_h5_attribute_text(file, "/", "file_set", rolled->file_set);
	if (!r)
		r = sl_h5_old_set_aside(file->path, &rolled->old);
	return r ? r : sl_h5_begin_data(file);
}

/* file_set NULL: a new one. Data files that are kept are no earlier run's. */
static int create(const char *path, bool overwrite, const char *file_set, uint32_t kept,
		  struct sl_h5 **created)
{
	struct sl_h5_rolled *rolled = calloc(1, sizeof(*rolled));
	struct sl_h5 *file;
	int r = !rolled ? -ENOMEM : kept ? 0 : sl_h5_old_find(path, overwrite, &rolled->old);

	if (!r)
		r = sl_h5_create_over(path, overwrite, &file);
	if (r) {
		if (rolled)
			free(rolled->old.file);
		free(rolled);
		return r;
	}
	if (file_set)
		snprintf(rolled->file_set, sizeof(rolled->file_set), "%s", file_set);
	rolled->kept = kept;
	file->rolled = rolled;
	r = begin_rolled(file);
	if (r) {
		sl_h5_abandon(file);
		return r;
	}
	*created = file;
	return 0;
}

int sl_h5_create_rolled(const char *path, bool overwrite, struct sl_h5 **created)
{
	return create(path, overwrite, NULL, 0, created);
}

int sl_h5_resume_rolled(const char *path, bool overwrite, const char *file_set, uint32_t kept,
			struct sl_h5 **created)
{
	return create(path, overwrite, file_set, kept, created);
}

int sl_h5_set_access(struct sl_h5 *file, const struct sl_file_access *access)
{
	struct sl_h5 *home = sl_h5_home(file);
	int r = sl_part_file_set_access(&file->disk, access);

	if (!r && home != file)
		r = sl_part_file_set_access(&home->disk, access);
	if (r && !file->status)
		file->status = r;
	return r;
}

int sl_h5_create_single(const char *path, struct sl_h5 **created)
{
	struct sl_h5_old old = {.n = 0};
	int r = sl_h5_old_find_own(path, &old);

	if (!r)
		r = sl_h5_create(path, created);
	if (!r)
		(*created)->old = old;
	else
		free(old.file);
	return r;
}
