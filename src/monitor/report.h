/* report.h - what the user sees of a run: one live line, then the ledger, latencies, and where
 * things are. All of it out of a status (sluice/status.h), and nothing else. */
#ifndef SL_MONITOR_REPORT_H
#define SL_MONITOR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/status.h>

#include "monitor/result.h"

struct sl_progress_line {
	uint64_t start_ns, shown_ns, shown_bytes;
	uint64_t shown_waited_ns[SL_STATUS_ADDONS];
	bool terminal; /* stderr is one: the line is redrawn in place */
	bool drawn;
};

void sl_progress_line_begin(struct sl_progress_line *progress);

/* It is time to draw the line again. */
bool sl_progress_line_is_due(const struct sl_progress_line *progress);
void sl_progress_line_draw(struct sl_progress_line *progress, const struct sl_status *status);
void sl_progress_line_end(struct sl_progress_line *progress, const struct sl_status *status);

/* The ledger as a table, causes, drops, latency per hop, files, why it ended early, and the result
 * in words. */
void sl_report(FILE *out, const struct sl_status *status);

/* The share of that time in which workers worked. */
double sl_report_busy(const struct sl_status *status, double seconds);

#endif
