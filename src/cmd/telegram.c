/* telegram.c - sluice ctl --telegram: an XML document of requests, from a file or standard
 * input. */
#include "telegram/telegram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "monitor/result.h"

/* One byte more than a telegram may have: then it is refused for that. -errno. */
static ssize_t read_all(int fd, char *bytes, size_t room)
{
	size_t used = 0;
	ssize_t n = 1;

	while (n && used < room) {
		n = read(fd, bytes + used, room - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	return (ssize_t)used;
}

int sl_cmd_telegram(const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	char *document = malloc(SL_TELEGRAM_BYTES + 1), *reply = NULL;
	ssize_t bytes = fd < 0 ? -errno : -ENOMEM;
	bool failed = true;

	if (fd >= 0 && document)
		bytes = read_all(fd, document, SL_TELEGRAM_BYTES + 1);
	if (fd > STDIN_FILENO)
		close(fd);
	if (bytes < 0)
		sl_error("--telegram %s: %s", path, strerror((int)-bytes));
	else
		reply = sl_telegram_serve(document, (size_t)bytes, &sl_telegram_local, NULL,
					  &failed);
	if (bytes >= 0 && !reply)
		sl_error("--telegram %s: no memory", path);
	if (reply && (fputs(reply, stdout) < 0 || fflush(stdout))) {
		sl_error("the reply could not be written: %s", strerror(errno));
		failed = true;
	}
	free(reply);
	free(document);
	return failed ? SL_RESULT_ERROR : 0;
}
