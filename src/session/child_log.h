/* child_log.h - what a child writes to stderr becomes lines of the session's log.
 *
 * Model:     a pipe. Lines of sluice keep their level; others are warnings. A child that fills the
 *            pipe (64 KiB) waits until the control thread reads it.
 * Threads:   the control thread. */
#ifndef SL_SESSION_CHILD_LOG_H
#define SL_SESSION_CHILD_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define SL_CHILD_LOG_PREFIX "front end: "

struct sl_child_log {
	int fd;	   /* to read; -1: the child has our stderr */
	int child; /* the child's end, until it is started; -1: none */
	size_t used;
	char line[1024];
};

int sl_child_log_open(struct sl_child_log *log); /* -errno */
void sl_child_log_started(struct sl_child_log *log);
void sl_child_log_poll(struct sl_child_log *log); /* log what there is */
void sl_child_log_close(struct sl_child_log *log);

#endif
