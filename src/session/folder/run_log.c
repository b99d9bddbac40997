/* run_log.c - a line of the log, with its time and level, in one write(). */
#include "session/folder/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void sl_run_log_init(struct sl_run_log *log)
{
	*log = (struct sl_run_log){.fd = -1};
	pthread_mutex_init(&log->lock, NULL);
}

void sl_run_log_fini(struct sl_run_log *log)
{
	sl_run_log_close(log);
	pthread_mutex_destroy(&log->lock);
}

int sl_run_log_open(struct sl_run_log *log, int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0666);

	if (fd < 0)
		return -errno;
	pthread_mutex_lock(&log->lock);
	log->fd = fd;
	log->lost = 0;
	log->err = 0;
	pthread_mutex_unlock(&log->lock);
	return 0;
}

static const char *level_name(enum sl_log_level level)
{
	static const char *const name[] = {"error", "warning", "info", "debug"};

	return (unsigned)level <= SL_LOG_DEBUG ? name[level] : "info";
}

/* A line is in the file whole or not at all: half of one would be taken for a message. */
static int append(int fd, const char *text, size_t bytes)
{
	off_t before = lseek(fd, 0, SEEK_END);
	ssize_t n;

	do {
		n = write(fd, text, bytes);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)bytes)
		return 0;
	if (n < 0)
		return -errno;
	if (before < 0 || ftruncate(fd, before))
		return -EIO;
	return -ENOSPC;
}

void sl_run_log_line(struct sl_run_log *log, enum sl_log_level level, const char *line)
{
	char text[4200], time[40];
	size_t bytes;
	int n, err;

	sl_clock_iso8601(sl_clock_unix_ns(), time, sizeof(time));
	n = snprintf(text, sizeof(text) - 1, "%s %-7s %s", time, level_name(level), line);
	bytes = n < 0 ? 0 : (size_t)n < sizeof(text) - 1 ? (size_t)n : sizeof(text) - 2;
	for (size_t i = 0; i < bytes; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	text[bytes++] = '\n';
	pthread_mutex_lock(&log->lock);
	err = log->fd < 0 ? 0 : append(log->fd, text, bytes);
	if (err) {
		log->err = log->lost ? log->err : err;
		log->lost++;
	}
	pthread_mutex_unlock(&log->lock);
}

uint64_t sl_run_log_lost(struct sl_run_log *log, int *err)
{
	uint64_t lost;

	pthread_mutex_lock(&log->lock);
	lost = log->lost;
	*err = log->err;
	pthread_mutex_unlock(&log->lock);
	return lost;
}

void sl_run_log_close(struct sl_run_log *log)
{
	pthread_mutex_lock(&log->lock);
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
	pthread_mutex_unlock(&log->lock);
}
