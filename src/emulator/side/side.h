/* side.h - a detector side that stays: run after run, configured from outside, by other programs.
 *
 * Model:     it holds an experiment file, as a session does, and takes the same calls: configure
 *            (read the file again, with other overrides), arm (open the detector, make its frames
 *            ready, offer them to the receivers), start, stop, abort. Armed: every receiver has
 *            given its plans. It sends once its receiver has started the run and start was called.
 *            A run has ended when the receivers have said that everything is stored; then it can
 *            be armed again. Between two runs the connections stay; after configure they are made
 *            anew. A receiver that vanishes during a run is waited for, and gets the frames that
 *            are left. Each transfer of the file has a receiver, a thread and senders of its own.
 * Threads:   a control thread, one for each transfer during a run, one for the status socket.
 *            Functions here may be called from any thread; open and close are the owner's.
 * Ownership: texts in options are copied.
 * Errors:    0 or -errno, logged. */
#ifndef SL_EMULATOR_SIDE_SIDE_H
#define SL_EMULATOR_SIDE_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/error.h>
#include <sluice/status.h>

struct sl_side;

struct sl_side_options {
	const char *path;		    /* the experiment file */
	const char *name;		    /* of the status socket */
	bool any_name;			    /* it is taken: choose NAME-2, -3 ... */
	const char *transfer;		    /* "": all of the file's */
	uint32_t first_module, last_module; /* UINT32_MAX: to the end */
	const char *const *set;		    /* [sets]: "path=value" */
	size_t sets;
	bool once;  /* a receiver that vanishes ends the run */
	bool quiet; /* log no more than what is wrong */
};

int sl_side_open(const struct sl_side_options *options, struct sl_side **side);
/* Ends what runs, as stop; waits for good-byes 5 s at most. NULL is fine. */
void sl_side_close(struct sl_side *side);

/* As the status socket has them; -EPROTO: not in this state (not logged). */
int sl_side_configure(struct sl_side *side, const char *const *set, size_t sets);
int sl_side_arm(struct sl_side *side);
int sl_side_start(struct sl_side *side);
void sl_side_stop(struct sl_side *side, const char *reason);
void sl_side_abort(struct sl_side *side, const char *reason);

enum sl_state sl_side_state(struct sl_side *side);
void sl_side_error(struct sl_side *side, struct sl_error *error);
const char *sl_side_name(const struct sl_side *side);
bool sl_side_asked_to_close(const struct sl_side *side);

#endif
