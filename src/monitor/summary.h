/* summary.h - the outcome of a run as JSON; docs/reference/summary.md lists the fields. A function
 * of a status. */
#ifndef SL_MONITOR_SUMMARY_H
#define SL_MONITOR_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/status.h>

#include "core/metadata/metadata.h"

enum { SL_SUMMARY_VERSION = 2 };

struct sl_part_file;

/* Into a file that was opened when the run began, so that no two runs have the same: written whole
 * and published, or discarded; closed in any case. version: of the summary's words,
 * SL_SUMMARY_VERSION, or 1 for the former ones. metadata: NULL: none. Logs and returns -errno. */
int sl_summary_write(struct sl_part_file *file, const struct sl_status *status,
		     const struct sl_metadata *metadata, uint32_t version);

/* One summary of a run with several receivers, out of theirs: {"result", "exit", "transfers":
 * {name: summary or null}}. */
int sl_summary_join(struct sl_part_file *to, const char *const *name, const char *const *file,
		    size_t n, int status, uint32_t version);

/* What a run folder's result says beside the summary. Texts may be NULL. */
struct sl_summary_run {
	uint64_t number;
	const char *folder, *state; /* state: "ended" or "fault" */
	int exit;
	const char *file, *working_directory;	   /* where the experiment came from */
	const char *code, *message, *where, *hint; /* of the error; code NULL: there was none */
	const struct sl_metadata *metadata;	   /* NULL: none */
	uint64_t log_lines_lost;		   /* lines that run.log does not have */
	uint64_t started_unix_ns, ended_unix_ns;
};

/* result.json as text, malloc'ed; NULL: there is no memory. It is the summary with the run's own
 * members. A run that never began (its result is SL_RESULT_ERROR) has no ledger. */
char *sl_summary_result(const struct sl_status *status, const struct sl_summary_run *run);

/* The same of a run with several receivers, out of their result files. One of them in state "fault"
 * makes the state of the run "fault". */
char *sl_summary_join_result(const char *const *name, const char *const *file, size_t n,
			     const struct sl_summary_run *run);

#endif
