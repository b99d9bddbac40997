/* run_log.h - the lines of a run's log, in a file of its folder.
 *
 * Model:     "2024-01-31T12:34:56.789Z warning text", one write() each. A line that cannot be
 *            written, since the disk is full for instance, is counted and does not fail the run.
 * Threads:   any thread writes lines, open and close on one.
 * Cost:      a lock and a write() for each line. */
#ifndef SL_SESSION_RUN_LOG_H
#define SL_SESSION_RUN_LOG_H

#include <pthread.h>
#include <stdint.h>

#include <sluice/log.h>

struct sl_run_log {
	pthread_mutex_t lock;
	int fd;	       /* -1: lines go nowhere */
	uint64_t lost; /* lines that could not be written */
	int err;       /* why the first of them could not: -errno */
};

void sl_run_log_init(struct sl_run_log *log);
void sl_run_log_fini(struct sl_run_log *log);

/* A new file in the folder `dir`. -errno, not logged. */
int sl_run_log_open(struct sl_run_log *log, int dir, const char *name);
void sl_run_log_line(struct sl_run_log *log, enum sl_log_level level, const char *line);
/* How many lines were lost so far; *err: why, -errno. */
uint64_t sl_run_log_lost(struct sl_run_log *log, int *err);
void sl_run_log_close(struct sl_run_log *log);

#endif
