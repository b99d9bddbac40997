/* run.h - a run for another command: as `sluice run`, with the experiment changed once it is read.
 *
 * Model:     the same process from file to ledger, and the same exit status.
 * Threads:   the main one. */
#ifndef SL_CMD_RUN_RUN_H
#define SL_CMD_RUN_RUN_H

#include "cmd/cmd.h"
#include "experiment/experiment.h"
#include "monitor/result.h"

struct sl_run_plan {
	const struct sl_args *args; /* plain[0] is the file */
	const char *transfer;	    /* "": the only one */
	const char *summary;	    /* "": none is written */
	uint32_t summary_version;
	bool quiet;
	/* -errno: do not run; logged there. */
	int (*change)(void *arg, struct sl_experiment *experiment);
	void *arg;
};

enum sl_result sl_run(const struct sl_run_plan *plan);

#endif
