/* log.h - lines for the user: what happened, where, what to do.
 *
 * Model:     the function that first decides that something is an error logs it, once; callers only
 *            pass on the code. Lines go to stderr unless a program gives the library a function of
 *            its own (sluice.h). That function's line has neither a prefix nor an end of line.
 * Limits:    one place in the program writes at most 200 lines in 10 s, errors excepted; how many
 *            were left out is said. A line for which stderr has no room is left out, counted, and
 *            waits for nothing.
 * Threads:   any thread but data threads; a line is written whole. A program's function must not
 *            call the library, and must not block for long: what waits for it is the run's control
 *            thread or a sink. */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARN, SL_LOG_INFO, SL_LOG_DEBUG };

typedef void sl_log_fn(void *arg, enum sl_log_level level, const char *line);

void sl_log(enum sl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define sl_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_warn(...)  sl_log(SL_LOG_WARN, __VA_ARGS__)
#define sl_info(...)  sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
