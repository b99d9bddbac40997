/* summary.h - the outcome of a run as JSON; docs/reference/summary.md lists the fields. */
#ifndef SL_MONITOR_SUMMARY_H
#define SL_MONITOR_SUMMARY_H

#include "monitor/result.h"
#include "receiver/receiver.h"

struct sl_summary_facts {
	const char *file;	/* the experiment */
	const char *started;	/* ISO 8601 */
	const char *stopped_by; /* name of the signal; NULL: it ended by itself */
	const char *early;	/* why it ended before its time, in words; NULL: it did not */
	enum sl_result result;
	uint32_t version; /* of the summary's words: SL_SUMMARY_VERSION, or 1 for the former ones */
};

enum { SL_SUMMARY_VERSION = 2 };

/* Written whole or not at all. Logs and returns -errno. */
int sl_summary_write(const char *path, const struct sl_receiver *receiver,
		     const struct sl_summary_facts *run);

/* One summary of a run with several receivers, out of theirs: {"result", "exit", "transfers":
 * {name: summary or null}}. */
int sl_summary_join(const char *path, const char *const *name, const char *const *file, size_t n,
		    int status, uint32_t version);

#endif
