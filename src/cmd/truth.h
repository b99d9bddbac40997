/* truth.h - what the emulated detector knows of its frames, in a file. */
#ifndef SL_CMD_TRUTH_H
#define SL_CMD_TRUTH_H

#include <stdint.h>

#include "cmd/cmd.h"

/* The truth of an experiment's frames as HDF5; `transfer` may be "". most: frames, 0: all of them.
 * 0 or -errno, logged. */
int sl_truth_write(const struct sl_args *args, const char *transfer, const char *path,
		   uint64_t most);

#endif
