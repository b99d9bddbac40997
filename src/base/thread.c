/* thread.c - named threads that leave signals to the main thread. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"

enum { STACK_BYTES = 1 << 20 };

static int create(pthread_t *id, const cpu_set_t *cpus, void *(*run)(void *), void *arg)
{
	pthread_attr_t attributes;
	size_t stack = 0;
	int err;

	pthread_attr_init(&attributes);
	/* The default is `ulimit -s`, which may be less than any thread of ours needs. */
	err = pthread_attr_getstacksize(&attributes, &stack);
	if (!err && stack < STACK_BYTES)
		err = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!err && cpus)
		err = pthread_attr_setaffinity_np(&attributes, sizeof(*cpus), cpus);
	if (!err)
		err = pthread_create(id, &attributes, run, arg);
	pthread_attr_destroy(&attributes);
	return err;
}

/* The thread logs where the one that made it does. */
static void *begin(void *arg)
{
	struct sl_thread *thread = arg;

	sl_log_set_target(thread->log);
	return thread->run(thread->arg);
}

int sl_thread_start(struct sl_thread *thread, const char *name, const cpu_set_t *cpus,
		    void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	thread->run = run;
	thread->arg = arg;
	thread->log = sl_log_target();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = create(&thread->id, cpus, begin, thread);
	if (err == EINVAL && cpus) { /* taken away since we looked */
		sl_warn("thread '%s' cannot have the cpu that it should have, and runs anywhere",
			name);
		err = create(&thread->id, NULL, begin, thread);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		sl_error("cannot start thread '%s': %s", name, strerror(err));
		return -err;
	}
	pthread_setname_np(thread->id, name);
	thread->running = 1;
	return 0;
}

void sl_thread_join(struct sl_thread *thread)
{
	if (thread->running)
		pthread_join(thread->id, NULL);
	thread->running = 0;
}
