/* log_limit.h - how often one place in the program may log; for log.c.
 *
 * Threads:   any. */
#ifndef SL_BASE_LOG_LIMIT_H
#define SL_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* So many lines in a period; after so many in all, one in a period. */
enum { SL_LOG_LIMIT_LINES = 200, SL_LOG_LIMIT_TOTAL = 1000 };
#define SL_LOG_LIMIT_NS UINT64_C(10000000000)

/* Whether the place with this format may log now; if so, how many of its lines were left out since
 * the last one. */
bool sl_log_may(const char *format, uint64_t now_ns, uint64_t *left_out);

/* Of all places, not said so far; and each may log again as at first, as a run ends. */
uint64_t sl_log_take_left_out(void);

#endif
