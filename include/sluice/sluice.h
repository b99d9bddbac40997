/* sluice.h - run experiments from a program of your own.
 *
 * Model:     a session holds one experiment and takes runs one after another. open reads and checks
 *            the experiment and, with a name, makes the status socket; it touches nothing else: no
 *            network, ring or data file. arm opens outputs, memory and link, and plans the
 *            sources. start lets them send. stop asks them to end; what they sent is processed and
 *            stored. A run has ended when its files are closed and its ledger is final; then the
 *            session can be armed again.
 *
 *              open -> CONFIGURED -arm-> ARMED -start-> RUNNING <-pause,resume-> PAUSED
 *                         |  ^                             `-stop-> STOPPING -> ENDED -arm-> ...
 *                         v  '-configure- FAULT or ENDED
 *                       FAULT (from any state: the error is in sl_session_error())
 *
 *            start in CONFIGURED or ENDED arms first. arm, start, pause, resume and stop return at
 *            once; the state follows (sl_session_wait). docs/reference/states.md has the table.
 *            Sources that hear nothing (native UDP) may send from arm on.
 * Threads:   each session has a control thread of its own, and one for its status socket, where it
 *            has a name. Calls may come from any thread.
 *            sl_session_stop() may be called in a signal handler.
 * Process:   the library installs no signal handler, changes no limit, umask, locale or working
 *            directory, and writes to stderr only while no log function is set. It waits for its
 *            own child alone, and tells HDF5 not to print errors.
 *            Several sessions may be open at once; each has its own ring, ports and files.
 * Ownership: texts in options are copied. close ends what runs (as stop), waits for it, and may be
 *            called in any state, but neither in the log function nor while another call on the
 *            session is under way.
 * Errors:    0 or -errno; -EPROTO: not in this state. Why a run could not begin, or what of its
 *            outputs failed, is in sl_session_error(). Every reason goes to the log function,
 *            once. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/error.h>
#include <sluice/log.h>
#include <sluice/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_session_options {
	size_t bytes;	      /* sizeof(struct sl_session_options): members are only added */
	const char *path;     /* the experiment file; NULL: `text` */
	const char *text;     /* its content; relative paths in it begin at the working directory */
	const char *transfer; /* NULL: the file has one, or none has a name */
	const char *const *set; /* [sets]: "path=value", as --set */
	size_t sets;
	int emulate; /* 1: start the detector side as a child process, whatever the file says */
	/* Files to write; NULL: none. summary: the outcome as JSON; outcomes: a line for each
	 * module-frame; port_file: the control port, once front ends may come. */
	const char *summary, *outcomes, *port_file;
	uint32_t summary_version; /* 0: the newest */
	/* The program that is started as `emulate`; NULL: sluice, where PATH has it. */
	const char *program;
	sl_log_fn *log; /* NULL: stderr */
	void *log_arg;
	/* Each run gets a folder ROOT/NNNNNN of its own; relative paths of sinks, summary and
	 * outcomes begin there. open warns of runs in ROOT that have crashed. NULL: no folder,
	 * files lie where the experiment says. docs/reference/run-folders.md */
	const char *root;
	/* The status socket's name, for `sluice ps` and `sluice ctl`: open fails where another
	 * session has it, or the socket cannot be made. NULL: no socket. */
	const char *name;
	/* 1: for people who look on: a sink `share` (latest_Hz: 10) where the experiment has none,
	 * and a picture of each run in its folder. */
	int live;
};

struct sl_session;

/* error: NULL, or filled when open fails. */
int sl_session_open(const struct sl_session_options *options, struct sl_session **session,
		    struct sl_error *error);
void sl_session_close(struct sl_session *session); /* NULL is fine */

/* Read the experiment again, with these overrides behind those of the options. */
int sl_session_configure(struct sl_session *session, const char *const *set, size_t sets);
int sl_session_arm(struct sl_session *session);
int sl_session_start(struct sl_session *session);

/* Sources get no more credits from the next frame on. status.drained says when all that was on its
 * way has its outcome. -ENOTSUP: a source cannot wait; the log names its module. */
int sl_session_pause(struct sl_session *session);
int sl_session_resume(struct sl_session *session);

/* reason: for the summary, at most 15 characters ("SIGINT"); copied; NULL: "request". No effect
 * when no run is under way. */
void sl_session_stop(struct sl_session *session, const char *reason);
/* As stop, without waiting for sources: those that still run are counted as lost. */
void sl_session_abort(struct sl_session *session, const char *reason);

/* Wait until the state is one of `states` (bits: 1 << SL_STATE_RUNNING ...), or the run has ended.
 * The state, or -ETIMEDOUT. timeout_ms -1: no limit. */
int sl_session_wait(struct sl_session *session, uint32_t states, int timeout_ms);

/* The state, counts and ledger now; after the end, those of the last run. bytes: sizeof(*status) of
 * the caller; what the library does not know is 0. */
int sl_session_status(struct sl_session *session, struct sl_status *status, size_t bytes);
void sl_session_error(struct sl_session *session,
		      struct sl_error *error); /* the first of the run */

/* What users say of a run: for the status, and for what runs leave behind. A change while a run is
 * under way (from arm or start to its end) is that run's; at other times it is for all later runs.
 * Keys of the experiment's section `metadata` are checked as there; others are free: at most 64
 * keys of 1 to 63 characters of A-Z a-z 0-9 . _ -, and values of 1023 bytes. NULL removes it. */
int sl_session_set_metadata(struct sl_session *session, const char *key, const char *value);

const char *sl_version(void);
int sl_result_exit(enum sl_result result); /* 0 intact or empty, 1, 2 or 3 */

/* The exit status that `sluice run` has: of the error, if there is one, else of the result. */
int sl_session_exit(struct sl_session *session);

#ifdef __cplusplus
}
#endif

#endif
