/* metrics.h - sessions as metrics for Prometheus: docs/reference/metrics.md lists them.
 *
 * Model:     a function of a list of sessions with their status, as `sluice ps --json` prints it
 *            (sl_remote_list_json()). The label `session` tells sessions apart; of two with one
 *            name the living one counts. Counters are of the run: they begin again with the next
 *            one, which Prometheus takes for a restart. Outcomes, causes, drops and states are
 *            there from the beginning, with 0, so that increase() sees the first loss.
 * Input:     of other processes: any JSON is taken, and what is missing or of another type is left
 *            out. tests/fuzz/metrics_fuzz.c feeds it with any bytes.
 * Threads:   any but data threads: it allocates.
 * Cost:      about 0.2 ms for a session of 2 modules, 40 KB of text; 0.9 ms for 64 modules. */
#ifndef SL_MONITOR_METRICS_H
#define SL_MONITOR_METRICS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/metrics_text.h"

/* The metrics of these sessions, to a text that has been begun. -EINVAL: not an array. */
int sl_metrics_sessions(struct sl_metrics_text *out, const json_t *sessions);

/* The version of this program. */
void sl_metrics_build(struct sl_metrics_text *out);

/* CPU seconds, memory, descriptors and start of this process, for a program that is asked again
 * and again. What /proc does not tell is left out. */
void sl_metrics_process(struct sl_metrics_text *out);

/* Both of the first, as one text, and how long it took to ask the sessions: what `sluice ps
 * --metrics` prints. -EINVAL, -ENOMEM. */
int sl_metrics_text_of(const char *sessions, size_t bytes, uint64_t collect_ns, char **text);

/* The tables of docs/reference/metrics.md, on stdout. */
void sl_metrics_print_reference(void);

#endif
