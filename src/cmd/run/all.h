/* all.h - sluice run of a file with several transfers: a receiver for each, as children. */
#ifndef SL_CMD_RUN_ALL_H
#define SL_CMD_RUN_ALL_H

#include "cmd/cmd.h"
#include "experiment/transfers.h"

/* Tells a receiver the folder of the run; the first argument, if there is one. */
#define SL_RUN_IN_FOLDER "--in-folder"
/* Tells a receiver beside which summary its flight record goes; likewise. */
#define SL_RUN_FLIGHT "--flight-beside"

struct sl_run_all {
	const struct sl_args *args;
	const struct sl_transfer_names *names;
	bool emulate; /* start the detector side, too */
	bool live;    /* receivers are told the same */
	/* It hears answers: it stays so long for the last of them, and has a say in the result. 0:
	 * it does not. */
	double feedback_wait_s;
	bool quiet;
	uint32_t summary_version;
	const char *summary, *outcomes; /* "" : not wanted; outcomes gets .NAME behind */
	const char *root;		/* of run folders; "": none */
	char token_file[384];		/* of the transfers; it may name a descriptor */
	const char *name;		/* of sessions, with .TRANSFER behind; "": the file's */
};

/* The worst exit status of all receivers; of the front end, too, where it hears answers. */
int sl_run_all(const struct sl_run_all *run);

#endif
