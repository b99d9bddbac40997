/* hdf5_absent.c - stands in for commands that need HDF5, where it was not found. */
#include <errno.h>

#include "base/log.h"
#include "cmd/show/show.h"
#include "cmd/truth.h"

bool sl_show_is_file(const char *path)
{
	return false;
}

int sl_show_file(const char *path, uint64_t index, struct sl_picture *picture, uint64_t *number)
{
	return -ENOTSUP;
}

int sl_truth_write(const struct sl_args *args, const char *transfer, const char *path,
		   uint64_t most)
{
	sl_error("cannot write '%s': libhdf5-dev was not found when this was built", path);
	return -ENOTSUP;
}

int sl_cmd_convert(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no file can be written");
	return 1;
}

int sl_cmd_cut(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no file can be written");
	return 1;
}

int sl_cmd_densify(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no file can be read");
	return 1;
}

int sl_cmd_audit(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no file can be read");
	return 2;
}

int sl_cmd_recover(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no file can be read");
	return 1;
}

int sl_cmd_truth(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libhdf5-dev was not found when this was built: no truth can be written");
	return 1;
}
