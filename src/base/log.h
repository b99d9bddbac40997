/* log.h - lines for the user, on stderr or through a function of the program that uses the library.
 *
 * Model:     the function that first decides that something is an error logs it, once, with what to
 *            do about it. Where lines go is a property of the thread: a thread that
 *            sl_thread_start() makes has the target of the thread that made it, so that two
 *            sessions of one process have two logs.
 * Threads:   any thread but data threads; a line is written whole. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include <stdarg.h>

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

void sl_log(enum sl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define sl_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_warn(...)  sl_log(SL_LOG_WARN, __VA_ARGS__)
#define sl_info(...)  sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#endif
