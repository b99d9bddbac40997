/* bench.c - sluice bench: hands over to sluice-bench, a program of its own (bench/): measuring is
 * not part of the product. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"

enum { PATHS = 1024 };

/* Where sluice-bench may lie: in the build folder, and as it is installed (libexec). */
static const char *const places[] = {"bench", SL_LIBEXEC};

int sl_cmd_bench(const struct sl_command *command, int argc, char **argv)
{
	char self[PATHS / 2], folder[PATHS / 2], path[PATHS];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0) {
		sl_error("bench: cannot tell where this program lies: %s", strerror(errno));
		return 1;
	}
	self[n] = '\0';
	setenv("SLUICE", self, 1); /* rows that measure whole runs start this program */
	memcpy(folder, self, (size_t)n + 1);
	dirname(folder);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s%s/sluice-bench",
			 places[i][0] == '/' ? "" : folder, places[i][0] == '/' ? "" : "/",
			 places[i]);
		execv(path, argv); /* argv[0] is "bench" */
		if (errno != ENOENT) {
			sl_error("bench: %s: %s", path, strerror(errno));
			return 1;
		}
	}
	sl_error("bench: there is no sluice-bench in %s/%s or %s; 'make' builds it", folder,
		 places[0], places[1]);
	return 1;
}
