/* uring_absent.c - liburing was not there when this was built. */
#include <errno.h>

#include "raw/io.h"

static int no_ring(const struct raw_io_options *options, void **state)
{
	return -ENOSYS;
}

const struct raw_io_kind raw_uring = {no_ring, NULL, NULL};
