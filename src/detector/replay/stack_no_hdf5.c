/* stack_no_hdf5.c - where the program was built without HDF5: raw binary alone. */
#include <errno.h>

#include "base/log.h"
#include "detector/replay/origin.h"
#include "detector/replay/stack.h"

bool sl_stack_hdf5_is(const char *path)
{
	return false;
}

int sl_stack_hdf5_open(const char *path, const char *dataset, struct sl_stack_part *part,
		       struct sl_stack_shape *shape)
{
	return -ENOTSUP;
}

int sl_stack_hdf5_read(const struct sl_stack_part *part, uint64_t image, void *data, size_t bytes)
{
	return -ENOTSUP;
}

void sl_stack_hdf5_close(struct sl_stack_part *part)
{
}

int sl_stack_hdf5_dataset(const char *path, const char *asked, unsigned k, char *name, size_t bytes)
{
	sl_error("replay: '%s': this program was built without HDF5 and plays raw binary alone",
		 path);
	return -ENOTSUP;
}

int sl_origin_hdf5(const char *path, struct sl_origin_file *from)
{
	return 0;
}
