/* state.h - between the files of sluice run: a run that is under way, and its steps in their order.
 *
 * Threads:   the control thread. */
#ifndef SL_CMD_RUN_STATE_H
#define SL_CMD_RUN_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/cmd.h"
#include "cmd/run/handover.h"
#include "cmd/run/run.h"
#include "control/controls.h"
#include "experiment/transfers.h"
#include "monitor/report.h"

enum { SL_RUN_POLL_MS = 10 };

struct sl_run_options {
	bool emulate, quiet, still;
	uint32_t summary_version;
	char summary[1024], outcomes[1024], port_file[1024], truth[1024],
		transfer[SL_TRANSFER_NAME];
};

struct sl_run_state {
	struct sl_run_options options;
	struct sl_args args;
	struct sl_experiment *experiment;
	struct sl_receiver *receiver;
	struct sl_controls controls;
	bool started; /* the receiver's threads run */
	struct sl_progress_line progress;
	struct sl_status status; /* when last taken */
	uint64_t started_unix_ns;
	struct sl_run_handover handover;
	pid_t child;				   /* 0: none */
	int child_status;			   /* once it has ended */
	char transfer_path[SL_TRANSFER_NAME + 16]; /* of its sections in the file */
	uint64_t stopping_ns;		/* since when sources are asked to end; 0: they are not */
	const struct sl_run_plan *plan; /* NULL: as the file says */
};

/* ---- sources.c ---- */

/* From now on front ends may come, or are listened to. Logs. */
int sl_run_open_controls(struct sl_run_state *run);
int sl_run_write_port_file(const struct sl_run_state *run);
/* The detector side as a process of its own. */
int sl_run_spawn_child(struct sl_run_state *run);
/* Until every module has a plan and every source is ready. Logs. */
int sl_run_wait_for_sources(struct sl_run_state *run);
/* For SL_RUN_POLL_MS at most. */
void sl_run_poll_sources(struct sl_run_state *run);

/* ---- acquire.c ---- */

/* Until every frame is settled. */
void sl_run_acquire(struct sl_run_state *run);

#endif
