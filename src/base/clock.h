/* clock.h - time. */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t sl_clock_ns(void); /* CLOCK_MONOTONIC */

/* The same, of the last tick of the kernel: up to 10 ms ago, and cheaper to read. */
uint64_t sl_clock_coarse_ns(void);

/* Until that time on CLOCK_MONOTONIC; returns early on a signal. */
void sl_clock_sleep_until(uint64_t ns);

uint64_t sl_clock_unix_ns(void); /* CLOCK_REALTIME */

/* That time, UTC, "2024-01-31T12:34:56.789Z". */
void sl_clock_iso8601(uint64_t unix_ns, char *text, size_t bytes);

/* Identifies this boot of this host: equal means comparable clocks. */
uint64_t sl_clock_host(void);

#endif
