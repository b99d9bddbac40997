/* thread.c - named threads that leave signals to the main thread. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "pipeline/thread.h"

int sl_thread_start(struct sl_thread *thread, const char *name, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread->id, NULL, run, arg);
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
