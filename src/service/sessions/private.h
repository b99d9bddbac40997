/* private.h - sessions between their files: watch.c looks, json.c shows, start.c starts, call.c
 * asks. */
#ifndef SL_SERVICE_SESSIONS_PRIVATE_H
#define SL_SERVICE_SESSIONS_PRIVATE_H

#include <pthread.h>

#include "base/thread.h"
#include "service/sessions/sessions.h"

struct sl_entry {
	struct sl_seen seen;
	struct sl_remote *remote; /* the watcher's own connection */
	uint64_t patient_ns;	  /* it did not answer: ask again then */
	bool found;		  /* in this round */
};

struct sl_starter { /* a thread that has not become nicer, since its children have its nice value */
	pthread_mutex_t lock, one; /* one: held by the caller whose job it is */
	pthread_cond_t wake, done;
	const struct sl_detached *job;
	int result, alive;
	bool has_job, stop;
	struct sl_thread thread;
};

struct sl_sessions {
	struct sl_sessions_options options;
	char program[1024], root[1024], folder[1024], logs[1024];
	pthread_mutex_t lock; /* of entry, entries, refusal, stop */
	pthread_cond_t wake;
	struct sl_entry entry[SL_SESSIONS_MOST];
	unsigned entries;
	bool stop;
	char refusal[512];	      /* of the folder of sockets; "": none */
	uint64_t wanted, begun, seen; /* rounds: asked for, begun, over */
	pthread_cond_t looked;
	char listed[65536]; /* the words of the last list that was published, to see changes */
	struct sl_thread thread;
	struct sl_starter starter;
	pthread_mutex_t starting; /* names are chosen one after another */
};

/* start.c */
int sl_starter_open(struct sl_starter *starter);
void sl_starter_close(struct sl_starter *starter);

/* json.c, under the lock */
json_t *sl_seen_json(const struct sl_seen *seen, bool with_status);
json_t *sl_sessions_json(const struct sl_sessions *sessions, bool with_status);

#endif
