/* log.h - what the program sets about its log; <sluice/log.h> writes to it.
 *
 * Model:     where lines go is a property of the thread: a thread that sl_thread_start() makes has
 *            the target of the thread that made it, so that two sessions of one process have two
 *            logs.
 * Threads:   any thread but data threads. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include <sluice/log.h>

struct sl_log_target {
	sl_log_fn *line; /* NULL: stderr */
	void *arg;
};

/* Of the calling thread; NULL: stderr. The target must outlive the thread, or be replaced. */
void sl_log_set_target(const struct sl_log_target *target);
const struct sl_log_target *sl_log_target(void);

/* Lines above this level are not written. Default SL_LOG_INFO. */
void sl_log_level(enum sl_log_level level);

/* Erase a live progress line before the next log line; the caller draws it again. */
void sl_log_progress_shown(int shown);

/* From now on a line that was written already is not written again: for a program that reads the
 * same file several times. Call this before any other thread logs. */
void sl_log_once(void);

#endif
