/* print.h - text to stdout that is not waited for without end. */
#ifndef SL_CMD_PRINT_H
#define SL_CMD_PRINT_H

#include <stddef.h>

/* All of it, or -errno. -ETIMEDOUT: stdout is a pipe that no program has read for 10 seconds. */
int sl_print_bounded(const char *text, size_t bytes);

#endif
