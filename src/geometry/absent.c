/* absent.c - in the place of what needs HDF5, where that was not found when this was built. */
#include <errno.h>

#include "base/log.h"
#include "geometry/mask.h"
#include "geometry/nxmx.h"

int sl_mask_read_hdf5(const char *path, const char *dataset, const char *who,
		      struct sl_mask_image *image)
{
	sl_error("%s: '%s' is HDF5: libhdf5-dev was not found when this was built", who, path);
	return -ENOTSUP;
}

int sl_nxmx_stored(const char *path, struct sl_geometry *geometry, struct sl_plane **plane,
		   bool *assembled)
{
	return -ENOENT;
}

int sl_nxmx_geometry(const char *path, struct sl_nxmx_geometry *geometry)
{
	sl_error("'%s' is HDF5: libhdf5-dev was not found when this was built", path);
	return -ENOTSUP;
}
