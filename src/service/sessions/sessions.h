/* sessions.h - the sessions of this user on this host: seen, started, told what to do.
 *
 * Model:     sessions are processes of their own. One thread looks for them in the folder of status
 *            sockets twice a second, asks each for its status, and keeps the latest; it publishes
 *            what has changed as events. A session that does not answer within 300 ms is asked
 *            again after a while; the status stays what it was, with its own time in it. Everything
 *            here can be forgotten at any time: it comes back from the sockets. Events:
 *            "sessions" (the list, when a session came, went or changed its state or run), "status"
 *            (of each session that lives, twice a second).
 * Threads:   any; each call has a connection of its own and a time limit.
 * Ownership: JSON objects are references of the caller. Those with a status are never changed.
 * Errors:    0 or -errno with struct sl_remote_error, as of <sluice/client.h>. */
#ifndef SL_SERVICE_SESSIONS_H
#define SL_SERVICE_SESSIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/client.h>

struct sl_events;
struct sl_sessions;

enum { SL_SESSIONS_LOOK_MS = 500, SL_SESSIONS_MOST = 64, SL_SESSIONS_SETS = 100 };

struct sl_sessions_options {
	const char *program; /* sluice itself */
	const char *root;    /* of run folders of sessions that are started here */
	/* in which sessions run: relative paths of experiments begin there */
	const char *folder;
	const char *logs; /* folder for what they print; it is there */
	bool systemd;	  /* start them as transient units */
	struct sl_events *events;
};

struct sl_seen { /* a session, as it was seen last */
	struct sl_remote_info info;
	char state[16];	    /* "" : not known */
	json_t *status;	    /* NULL: not known */
	uint64_t status_ns; /* CLOCK_MONOTONIC, when that came */
	bool answers;	    /* it did when it was asked last */
};

/* Looks once before it returns. The thread that starts sessions has the nice value of the caller.
 */
int sl_sessions_open(const struct sl_sessions_options *options, struct sl_sessions **sessions);
/* The thread that looks: from then on. */
int sl_sessions_watch(struct sl_sessions *sessions);
void sl_sessions_close(struct sl_sessions *sessions); /* NULL is fine */

/* ---- what was seen ---- */

/* {"sessions": [{name, alive, crashed, state, experiment, run, started_unix_ns, ..., status}]} */
json_t *sl_sessions_list(struct sl_sessions *sessions);
/* One of these; NULL: there is none of that name. */
json_t *sl_sessions_one(struct sl_sessions *sessions, const char *name);
/* The folder of sockets is refused, since others could enter it; 512 bytes say why. */
bool sl_sessions_refused(struct sl_sessions *sessions, char *why, size_t bytes);
/* A function for each, under the lock: it must not block. status may be kept by json_incref(). */
void sl_sessions_each(struct sl_sessions *sessions,
		      void (*each)(void *arg, const struct sl_seen *seen), void *arg);
/* Look again, since something has just been done: returns when that has been seen, within a second.
 */
void sl_sessions_look(struct sl_sessions *sessions);

/* ---- what is done ---- */

struct sl_session_start {
	const char *experiment; /* path */
	const char *name;	/* NULL: that of the file, with -2, -3 ... where it is taken */
	const char *transfer;	/* NULL: none */
	const char *outcomes;	/* a file of the run's folder; NULL: none */
	const char *const *set;
	size_t sets;
};
/* Returns once it answers, or has failed: within half a minute. name: what it is called. */
int sl_sessions_start(struct sl_sessions *sessions, const struct sl_session_start *start,
		      char name[64], struct sl_remote_error *error);

/* A request of docs/reference/status.md (consumed), with its reply: any call but wait and watch. */
int sl_sessions_ask(struct sl_sessions *sessions, const char *name, json_t *request, json_t **reply,
		    struct sl_remote_error *error);
/* Forget what a crashed session has left in the folder of sockets; its data stay. */
int sl_sessions_forget(struct sl_sessions *sessions, const char *name,
		       struct sl_remote_error *error);

#endif
