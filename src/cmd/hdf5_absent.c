/* hdf5_absent.c - stands in for commands that need HDF5, where it was not found. */
#include <errno.h>

#include "base/log.h"
#include "cmd/show.h"

bool sl_show_is_file(const char *path)
{
	return false;
}

int sl_show_file(const char *path, uint64_t index, struct sl_picture *picture, uint64_t *number)
{
	return -ENOTSUP;
}
