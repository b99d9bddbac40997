/* child_log.c - lines of a child. */
#include "session/child_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static void log_line(const char *line)
{
	static const struct {
		const char *prefix;
		enum sl_log_level level;
	} kinds[] = {
		{"sluice: error: ", SL_LOG_ERROR},
		{"sluice: warning: ", SL_LOG_WARN},
		{"sluice: debug: ", SL_LOG_DEBUG},
		{"sluice: ", SL_LOG_INFO},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].prefix);

		if (!strncmp(line, kinds[i].prefix, length)) {
			sl_log(kinds[i].level, SL_CHILD_LOG_PREFIX "%s", line + length);
			return;
		}
	}
	sl_warn(SL_CHILD_LOG_PREFIX "%s", line);
}

int sl_child_log_open(struct sl_child_log *log)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*log = (struct sl_child_log){.fd = ends[0], .child = ends[1]};
	return 0;
}

void sl_child_log_started(struct sl_child_log *log)
{
	if (log->child >= 0)
		close(log->child);
	log->child = -1;
}

/* Whole lines; a line longer than the buffer is cut in two. */
static void take(struct sl_child_log *log)
{
	char *end;

	log->line[log->used] = '\0';
	while ((end = memchr(log->line, '\n', log->used)) || log->used == sizeof(log->line) - 1) {
		size_t length = end ? (size_t)(end - log->line) : log->used;
		size_t rest = end ? length + 1 : length;

		log->line[length] = '\0';
		log_line(log->line);
		log->used -= rest;
		memmove(log->line, log->line + rest, log->used);
		log->line[log->used] = '\0';
	}
}

void sl_child_log_poll(struct sl_child_log *log)
{
	ssize_t n;

	while (log->fd >= 0 &&
	       (n = read(log->fd, log->line + log->used, sizeof(log->line) - 1 - log->used)) > 0) {
		log->used += (size_t)n;
		take(log);
	}
}

void sl_child_log_close(struct sl_child_log *log)
{
	sl_child_log_poll(log);
	if (log->used)
		log_line(log->line);
	sl_child_log_started(log);
	if (log->fd >= 0)
		close(log->fd);
	*log = (struct sl_child_log){.fd = -1, .child = -1};
}
