/* log.h - lines for the user: what happened, where, what to do.
 *
 * Model:     the library writes to stderr unless a program gives it a function of its own
 *            (sluice.h). A line has neither a prefix nor an end of line.
 * Threads:   called on any thread but a data thread, one line at a time for each thread. The
 *            function must not call the library, and must not block for long: what waits for it is
 *            the run's control thread or a sink. */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARN, SL_LOG_INFO, SL_LOG_DEBUG };

typedef void sl_log_fn(void *arg, enum sl_log_level level, const char *line);

#endif
