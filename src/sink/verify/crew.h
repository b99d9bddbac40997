/* crew.h - jobs that are independent of each other, by several threads.
 *
 * Model:     sl_crew_run() calls `job(arg, worker, n)` once for each n below `jobs`, on the
 *            caller's thread and on those of the crew, and returns when all calls have returned.
 * Threads:   one caller at a time. Worker 0 is the caller. Not for data threads: it locks and
 *            blocks.
 * Ownership: `arg` is the jobs' until run() returns.
 * Cost:      two hand-overs between threads, some tens of microseconds; none with one thread. */
#ifndef SL_SINK_VERIFY_CREW_H
#define SL_SINK_VERIFY_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

enum { SL_CREW_THREADS = 64 };

typedef void sl_crew_job(void *arg, unsigned worker, uint32_t n);

struct sl_crew {
	unsigned threads; /* with the caller's */
	struct sl_crew_member {
		struct sl_crew *crew;
		struct sl_thread thread;
		unsigned worker;
	} member[SL_CREW_THREADS];
	pthread_mutex_t lock;
	pthread_cond_t begin, done;
	/* Guarded by `lock`. */
	uint64_t round;	 /* runs so far */
	unsigned active; /* members that are at work on this round */
	bool end;
	/* Of the round under way. */
	sl_crew_job *job;
	void *arg;
	uint32_t jobs;
	_Atomic uint32_t next;
};

/* threads: 1 to SL_CREW_THREADS; 1 starts none. `name` as in base/thread.h. 0 or -errno; close() is
 * due only after 0. */
int sl_crew_open(struct sl_crew *crew, unsigned threads, const char *name);
void sl_crew_close(struct sl_crew *crew);

void sl_crew_run(struct sl_crew *crew, uint32_t jobs, sl_crew_job *job, void *arg);

#endif
