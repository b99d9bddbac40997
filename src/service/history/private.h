/* private.h - the history between its files: runs.c lists and rows, watch.c what changes, seen.c
 * what was seen of live runs, recover.c after crashes. */
#ifndef SL_SERVICE_HISTORY_PRIVATE_H
#define SL_SERVICE_HISTORY_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "base/thread.h"
#include "service/history/history.h"
#include "session/folder/folder.h"

enum { SL_HISTORY_ROWS = 2048, SL_HISTORY_LIVE = 256, SL_HISTORY_CRASHED = 1024 };

struct sl_history_seen { /* of a run that lives */
	uint64_t run;	 /* 0: free */
	json_t *status;
	uint64_t written_ns; /* CLOCK_MONOTONIC; 0: not yet */
};

struct sl_history {
	char program[1024], root[1024], own[1024];
	bool recovers;
	struct sl_events *events;

	pthread_mutex_t lock; /* of all below */
	uint64_t *number;     /* of all runs, the highest first */
	size_t numbers;
	struct timespec listed; /* when the root was changed last, as it was listed */
	struct {		/* rows of runs that are over, by number modulo the length */
		uint64_t run;
		json_t *row;
	} kept[SL_HISTORY_ROWS];
	uint64_t live[SL_HISTORY_LIVE]; /* runs that live, or are being made */
	unsigned lives;
	uint64_t highest;		      /* run that was looked at */
	uint64_t crashed[SL_HISTORY_CRASHED]; /* to be recovered */
	unsigned crashes;
	pthread_cond_t wake;
	bool stop;
	struct sl_thread watcher, recoverer;

	json_t *(*status_of)(void *arg, uint64_t run);
	void *arg;
	struct sl_history_seen seen[SL_HISTORY_LIVE]; /* of the watcher alone */
};

/* runs.c */
/* The numbers again where the root has changed; under the lock. */
int sl_history_refresh(struct sl_history *history);
/* An opened folder of a run; or -errno. */
int sl_history_open_run(const struct sl_history *history, uint64_t run);
enum sl_run_state sl_history_state(const struct sl_history *history, uint64_t run);
void sl_history_forget(struct sl_history *history, uint64_t run); /* its row */
json_t *sl_history_read_json(int folder, const char *name);
/* Counts of a result or status; of several transfers their sum. */
json_int_t sl_history_frames(const json_t *result);
json_int_t sl_history_lost(const json_t *result);
json_int_t sl_history_damaged(const json_t *result);

/* watch.c: threads */
void *sl_history_watch(void *history);
void sl_history_publish(struct sl_history *history, uint64_t run);
/* seen.c: the watcher calls these */
void sl_history_see(struct sl_history *history, uint64_t run);
/* crashed: what was seen of it is kept; else it has a result of its own. */
void sl_history_end_seen(struct sl_history *history, uint64_t run, bool crashed);
void sl_history_close_seen(struct sl_history *history);
/* Any thread. NULL: nothing. */
json_t *sl_history_last_seen(const struct sl_history *history, uint64_t run);
/* recover.c */
void *sl_history_recover(void *history);
/* Under the lock: unless that was done already. */
void sl_history_to_recover(struct sl_history *history, uint64_t run);
/* What recovery said; NULL: nothing yet. */
json_t *sl_history_recovered(const struct sl_history *history, uint64_t run);

#endif
