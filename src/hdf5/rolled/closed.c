/* closed.c - the list of a run's data files that are closed. */
#include "hdf5/rolled/closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

int sl_h5_closed_add(struct sl_h5_closed **list, struct sl_h5 *data)
{
	struct sl_h5_closed *c = calloc(1, sizeof(*c));

	if (!c || !(c->path = strdup(data->path))) {
		free(c);
		return -ENOMEM;
	}
	c->next = *list;
	*list = data->closed = c;
	return 0;
}

int sl_h5_closed_again(struct sl_h5 *data)
{
	struct sl_h5_closed *c = data->closed;
	struct stat st;
	int r = data->status;

	c->path[strlen(c->path) - strlen(SL_H5_AGAIN)] = 0;
	if (!r && lstat(c->path, &st)) {
		r = -errno;
		sl_error("%s: cannot go on with it: %s", c->path, strerror(-r));
	}
	if (!r)
		*c = (struct sl_h5_closed){c->next, c->path, st.st_dev, st.st_ino, st.st_size};
	sl_part_file_discard(&data->disk);
	sl_h5_forget(data);
	return r;
}

int sl_h5_closed_check(const struct sl_h5_closed *list)
{
	for (const struct sl_h5_closed *c = list; c; c = c->next) {
		struct stat st;

		if (!lstat(c->path, &st) && st.st_dev == c->device && st.st_ino == c->inode &&
		    st.st_size == c->bytes)
			continue;
		sl_error("%s: is no longer at this name, was cut, or another file was put in its "
			 "place, after this run had closed it",
			 c->path);
		return -ESTALE;
	}
	return 0;
}

void sl_h5_closed_free(struct sl_h5_closed **list)
{
	while (*list) {
		struct sl_h5_closed *next = (*list)->next;

		free((*list)->path);
		free(*list);
		*list = next;
	}
}
