/* private.h - a session inside, between the files of this folder.
 *
 * Threads:   the control thread does all the work and owns every member, except: `wish`, `reason`
 *            and `state` are atomic, any thread; `lock` guards `receiver` (status from any thread
 *            must not see it go), `busy`, `last`, `error`, `run`, `asked` and `run_folder`;
 *            `folder.log` takes lines of any thread. While it is not busy the control thread
 *            rests, and configure() has the experiment. */
#ifndef SL_SESSION_PRIVATE_H
#define SL_SESSION_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <sluice/sluice.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "base/thread.h"
#include "control/controls.h"
#include "experiment/experiment.h"
#include "receiver/receiver.h"
#include "session/child_log.h"
#include "session/folder/folder.h"
#include "session/folder/picture.h"
#include "session/keeper.h"
#include "session/metadata.h"
#include "session/points/points.h"
#include "session/session.h"
#include "session/socket/socket.h"
#include "session/states.h"

enum { SL_SESSION_POLL_MS = 10, SL_SESSION_SOON_MS = 1, SL_SESSION_SETS = 128 };

enum sl_wish { /* what other threads want of the control thread */
	       SL_WISH_ARM = 1 << 0,
	       SL_WISH_START = 1 << 1,
	       SL_WISH_STOP = 1 << 2,
	       SL_WISH_ABORT = 1 << 3,
	       SL_WISH_CLOSE = 1 << 4,
	       SL_WISH_NO_FRONT_END = 1 << 5,
	       SL_WISH_PAUSE = 1 << 6,
};

struct sl_session_asked { /* what the experiment asks of the detector */
	char detector[SL_STATUS_NAME];
	uint64_t frames, dark_frames;
	double rate_Hz;
};
struct sl_recorder;

struct sl_session {
	const char *name; /* of the experiment, for messages: its path, or "text" */
	char *path, *transfer, *summary, *outcomes, *port_file, *program; /* "": none */
	/* The root of run folders, absolute; summary and outcomes as the options have them. */
	char *root, *summary_option, *outcomes_option;
	char *set[SL_SESSION_SETS];
	unsigned sets, option_sets; /* in use; those of the options */
	uint32_t summary_version;
	bool emulate, live;
	int text_fd; /* holds the experiment's text; -1: it is a file */
	struct sl_session_hooks hooks;

	struct sl_log_target log; /* notes the first error, then the program's */
	sl_log_fn *log_line;
	void *log_arg;
	struct sl_thread thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic uint32_t state;	       /* enum sl_state */
	_Atomic uint32_t wish;	       /* enum sl_wish */
	_Atomic uint32_t reason_state; /* 0: not stopped; 1: being written; 2: `reason` is there */
	char reason[16];	       /* why it was stopped */
	int wake;		       /* eventfd: there is a new wish */

	struct sl_experiment *experiment;
	struct sl_receiver *receiver; /* of a run; NULL: there is none */
	struct sl_receiver *kept;     /* between two runs: memory and stages; NULL: none */
	struct sl_env_metadata metadata_of_env; /* the metadata below, for sinks */
	struct sl_controls controls;
	struct sl_session_keeper keeper;
	bool started; /* the receiver's threads run */
	pid_t child;  /* 0: none */
	int child_status;
	bool child_stayed; /* from an earlier run */
	struct sl_child_log child_log;
	char transfer_path[SL_TRANSFER_NAME + 16]; /* of its sections in the file */
	uint64_t stopping_ns;			   /* 0: sources are not asked to end */
	uint64_t abandoned_ns;			   /* 0: they were not given up */
	uint64_t started_unix_ns;
	bool paused;

	/* The recorder is made for the first run that wants it. */
	struct sl_recorder *recorder;	  /* NULL: none. Set with `lock` held */
	int flight_dir;			  /* where its files go, in a run; -1: nowhere */
	char flight_path[SL_STATUS_PATH]; /* of flight.json, if it is there. With `lock` held */

	struct sl_part_file summary_file; /* locked while a run is under way; fd -1: none */
	struct sl_run_folder folder;	  /* of the run under way */
	uint64_t run;			  /* its number; 0: it has none yet. With `lock` held */
	uint64_t runs;			  /* that this session has begun */
	struct sl_session_asked asked;	  /* of the detector. With `lock` held */
	char *parameters;		  /* values by name, JSON; NULL: none. With `lock` held */
	char run_folder[SL_STATUS_PATH];  /* its path; empty: none. With `lock` held */

	struct sl_session_pictures pictures; /* of a live session's runs */

	bool probed; /* the plug-ins of this configuration survive open() */

	bool busy;	       /* from arm() or start() until the run has ended; in configure() */
	bool arming;	       /* the former */
	struct sl_status last; /* of the run that ended, or its beginning */
	struct sl_error error; /* the first of the run */
	struct sl_points points;
	struct sl_session_metadata metadata;
	struct sl_socket *socket;	/* NULL: it has no name */
	struct sl_session_calls *calls; /* of the socket */
	char line[512]; /* the first error line of this step; empty: there was none */
};

/* ---- open.c ---- */
int sl_session_add_sets(struct sl_session *session, const char *const *set, size_t sets);
/* Read and check; the former experiment goes only if that succeeds. */
int sl_session_read(struct sl_session *session);
/* Values of the declared parameters, a JSON object; the caller frees it. NULL: none. Any thread. */
char *sl_session_copy_parameters(struct sl_session *session);

/* ---- calls.c ---- */
/* The session takes its name and listens. Logged, and the session's error set, where that fails.
 * hooks.may_lack_socket: warn and go on where the folder of sockets cannot be used. root: of run
 * folders; NULL: none. */
int sl_session_open_socket(struct sl_session *session, const char *name, const char *root);
void sl_session_close_socket(struct sl_session *session);

/* ---- session.c ---- */
void *sl_session_main(void *session); /* the control thread */
/* In a signal handler, too. */
void sl_session_wish(struct sl_session *session, uint32_t what);
void sl_session_set_state(struct sl_session *session, enum sl_state state);
/* Keep the first: code, and where this step has logged no error, this message. Returns err. */
int sl_session_fail(struct sl_session *session, enum sl_error_code code, int err,
		    const char *message);
void sl_session_forget_line(struct sl_session *session);
void sl_session_copy_reason(const struct sl_session *session, char *text, size_t bytes);
uint32_t sl_session_wishes(struct sl_session *session, uint32_t which); /* take them */
bool sl_session_wants(const struct sl_session *session, uint32_t which);
/* Whether a call would be refused now; unlike the call, it logs nothing. */
bool sl_session_takes(struct sl_session *session, enum sl_session_call call);

/* The first module whose source cannot be paused; -1: there is none. */
int sl_session_cannot_wait(struct sl_session *session);

/* ---- sources.c ---- */
int sl_session_open_controls(struct sl_session *session);
int sl_session_write_port_file(struct sl_session *session);
int sl_session_spawn_child(struct sl_session *session); /* the detector side */
bool sl_session_has_child(struct sl_session *session);	/* of an earlier run, and it lives */
/* Every module has a plan and every source is ready; wait for that. */
bool sl_session_sources_are_ready(const struct sl_session *session);
int sl_session_wait_for_sources(struct sl_session *session);
void sl_session_poll_sources(struct sl_session *session); /* SL_SESSION_POLL_MS at most */
/* A front end that listens for answers stays until it has them; that it failed is an error then. */
void sl_session_end_child(struct sl_session *session);

/* ---- session_folder.c ---- */
/* The run gets its number and, with a root, its folder: outputs begin there, log lines go there. */
int sl_session_begin_folder(struct sl_session *session);
/* The result is written, and the folder closed. `state` is the one in which the run ends. */
void sl_session_end_folder(struct sl_session *session, enum sl_state state);

/* A live session's run gets a picture; after its sinks were opened. */
void sl_session_begin_picture(struct sl_session *session);

/* ---- words.c ---- */
/* The outputs get their paths of this run, which has its number, and its folder if any. */
int sl_session_place_outputs(struct sl_session *session);

/* ---- flight.c ---- */
/* Every source has its plan; the receiver is about to start. */
void sl_session_begin_flight(struct sl_session *session);
/* Its status is final; before the receiver closes. Nothing where it was not begun. */
void sl_session_end_flight(struct sl_session *session);

/* ---- acquire.c ---- */
/* Until every frame is settled. */
void sl_session_acquire(struct sl_session *session);

/* ---- run.c ---- */
/* From arm to the end, on the control thread. */
void sl_session_run(struct sl_session *session);
/* Give up what was kept for the next run. No run is under way. last: none will follow. */
void sl_session_release(struct sl_session *session, bool last);

#endif
