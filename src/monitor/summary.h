/* summary.h - the outcome of a run as JSON; docs/reference/summary.md lists the fields. A function
 * of a status. */
#ifndef SL_MONITOR_SUMMARY_H
#define SL_MONITOR_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/status.h>

enum { SL_SUMMARY_VERSION = 2 };

/* Written whole or not at all. version: of the summary's words, SL_SUMMARY_VERSION, or 1 for the
 * former ones. Logs and returns -errno. */
int sl_summary_write(const char *path, const struct sl_status *status, uint32_t version);

/* One summary of a run with several receivers, out of theirs: {"result", "exit", "transfers":
 * {name: summary or null}}. */
int sl_summary_join(const char *path, const char *const *name, const char *const *file, size_t n,
		    int status, uint32_t version);

#endif
