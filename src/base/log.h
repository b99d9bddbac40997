/* log.h - lines for the user on stderr.
 *
 * Model:     who first decides that something is an error logs it, once, with what to do about it.
 * Threads:   any thread but data threads; a line is written whole. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include <stdarg.h>

enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARN, SL_LOG_INFO, SL_LOG_DEBUG };

/* Lines above this level are not written. Default SL_LOG_INFO. */
void sl_log_level(enum sl_log_level level);

/* Erase a live progress line before the next log line; the caller draws it again. */
void sl_log_progress_shown(int shown);

void sl_log(enum sl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define sl_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_warn(...)  sl_log(SL_LOG_WARN, __VA_ARGS__)
#define sl_info(...)  sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#endif
