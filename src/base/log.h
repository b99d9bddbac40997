/* log.h - what the program sets about its log; <sluice/log.h> writes to it.
 *
 * Model:     where lines go is a property of the thread: a thread that sl_thread_start() makes has
 *            the target of the thread that made it, so that two sessions of one process have two
 *            logs.
 * Threads:   any thread but data threads. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include <stddef.h>

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

/* A line that another place has formatted: no limit, no cut. */
void sl_log_line(enum sl_log_level level, const char *line);

/* Text for stderr, as it is: written whole, or not at all when that would wait. */
void sl_log_write(const char *text, size_t bytes);

/* Say how many lines were left out because a place had logged too often; at the end of a run and of
 * the program. */
void sl_log_left_out(void);

/* From now on a line that was written already is not written again: for a program that reads the
 * same file several times. Call this before any other thread logs. */
void sl_log_once(void);

#endif
