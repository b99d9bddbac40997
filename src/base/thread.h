/* thread.h - the only place that makes threads. */
#ifndef SL_BASE_THREAD_H
#define SL_BASE_THREAD_H

#include <pthread.h>
#include <sched.h>

struct sl_log_target;

struct sl_thread { /* stays where it is while the thread runs */
	pthread_t id;
	int running;
	void *(*run)(void *);
	void *arg;
	const struct sl_log_target *log;
};

/* `name` (at most 15 characters) shows in top and gdb. Signals stay with the main thread. cpus:
 * where it runs from its first instruction on, so that its stack is near, too; NULL: anywhere. */
int sl_thread_start(struct sl_thread *thread, const char *name, const cpu_set_t *cpus,
		    void *(*run)(void *), void *arg);
void sl_thread_join(struct sl_thread *thread); /* nothing when it never ran */

#endif
