/* print.c - text to stdout that is not waited for without end. */
#include "cmd/print.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

int sl_print_bounded(const char *text, size_t bytes)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	if (fflush(stdout))
		return -errno;
	while (bytes) {
		/* A pipe that poll() calls writable takes this much at once. */
		size_t piece = bytes < PIPE_BUF ? bytes : PIPE_BUF;
		int ready = poll(&out, 1, PATIENCE_MS);
		ssize_t n;

		if (!ready)
			return -ETIMEDOUT;
		n = ready < 0 ? -1 : write(STDOUT_FILENO, text, piece);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
	return 0;
}
