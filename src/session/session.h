/* session.h - what the program sluice needs of a session beyond sluice/sluice.h. */
#ifndef SL_SESSION_SESSION_H
#define SL_SESSION_SESSION_H

#include <sluice/sluice.h>

struct sl_experiment;

struct sl_session_hooks {
	/* Change the experiment once it is read; -errno, logged: do not run. NULL: as it is. */
	int (*change)(void *arg, struct sl_experiment *experiment);
	void *arg;
	const char *truth; /* one more file that the program will write: it must not collide */
	/* On the control thread, when a run has ended or could not begin. NULL: not wanted. */
	void (*ended)(void *arg, const struct sl_status *status, const struct sl_error *error);
	/* The run folder that the program which started this one has made, as
	 * sl_run_folder_give() writes it. NULL: the options' root has a new one. */
	const char *folder;
	/* Where a flight record goes beside, in the place of the summary; "": nowhere. NULL: the
	 * summary's place. */
	const char *flight;
	bool probe;  /* try plug-ins in another process before the first run */
	bool report; /* the front end that is started prints one, too */
	bool still;  /* do not log what is waited for */
	bool quiet;  /* do not log where threads run */
	/* One run: front ends are not asked to stay for another, and the socket takes no configure,
	 * arm and start. */
	bool single;
	bool any_name;	      /* the session's name is taken: choose NAME-2, -3 ... */
	bool may_lack_socket; /* it cannot be made: warn, and go on without */
};

/* As sl_session_open(). hooks: NULL: none. */
int sl_session_open_with(const struct sl_session_options *options,
			 const struct sl_session_hooks *hooks, struct sl_session **session,
			 struct sl_error *error);

/* A client of the status socket wants the session to be closed: the program does that. Any thread.
 */
bool sl_session_asked_to_close(const struct sl_session *session);

/* The program that started this one says that no front end will come. In a signal handler, too. */
void sl_session_no_front_end(struct sl_session *session);

/* Armed: start, and be paused behind so many frames. Paused and drained: go on for so many frames.
 * The state is RUNNING until they are settled, then PAUSED. -EAGAIN: another state. -ENOTSUP: a
 * source cannot wait. */
int sl_session_start_for(struct sl_session *session, uint64_t frames);
int sl_session_resume_for(struct sl_session *session, uint64_t frames);

#endif
