/* absent.c - where the program was built without HDF5: gains come from raw files alone. */
#include <errno.h>

#include "base/log.h"
#include "calibration/field.h"
#include "calibration/tables.h"

static int refuse(const char *path)
{
	sl_error("%s: this program was built without HDF5 and has no calibration files", path);
	return -ENOTSUP;
}

int sl_calibration_read(const char *path, struct sl_tables *tables)
{
	return refuse(path);
}

int sl_calibration_look(const char *path, struct sl_geometry *geometry)
{
	return refuse(path);
}

int sl_calibration_write(const char *path, const struct sl_tables *tables)
{
	return refuse(path);
}

int sl_field_read_hdf5(const char *path, const char *dataset, const char *what,
		       const struct sl_geometry *geometry, float *field)
{
	sl_error("%s: %s: this program was built without HDF5; raw float32 can be read", what,
		 path);
	return -ENOTSUP;
}
