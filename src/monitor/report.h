/* report.h - what the user sees of a run: one live line, then the ledger, latencies, and where
 * things are. */
#ifndef SL_MONITOR_REPORT_H
#define SL_MONITOR_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "monitor/result.h"
#include "receiver/receiver.h"

struct sl_progress {
	uint64_t expected; /* frames; 0: unknown */
	uint64_t start_ns, shown_ns, shown_bytes;
	int terminal; /* stderr is one: the line is redrawn in place */
	int drawn;
};

void sl_progress_begin(struct sl_progress *progress, uint64_t expected);

/* Draw the line if it is time to; cheap when it is not. */
void sl_progress_draw(struct sl_progress *progress, const struct sl_receiver *receiver);
void sl_progress_end(struct sl_progress *progress, const struct sl_receiver *receiver);

/* The ledger as a table, causes, drops, latency per hop, files, and the result in words; early: why
 * it ended before its time, or NULL. */
void sl_report(FILE *out, const struct sl_receiver *receiver, enum sl_result result,
	       const char *early);

/* The share of that time in which workers worked. */
double sl_report_busy(const struct sl_receiver *receiver, double seconds);

#endif
