/* crew.c - a mutex and two conditions: rounds begin, and end. */
#include "sink/verify/crew.h"

#include <errno.h>

static void take_jobs(struct sl_crew *crew, unsigned worker)
{
	for (;;) {
		/* Relaxed: what jobs read and write is handed over by the lock. */
		uint32_t n = atomic_fetch_add_explicit(&crew->next, 1, memory_order_relaxed);

		if (n >= crew->jobs)
			return;
		crew->job(crew->arg, worker, n);
	}
}

static void *member_main(void *arg)
{
	struct sl_crew_member *member = arg;
	struct sl_crew *crew = member->crew;
	uint64_t seen = 0;

	pthread_mutex_lock(&crew->lock);
	for (;;) {
		while (crew->round == seen && !crew->end)
			pthread_cond_wait(&crew->begin, &crew->lock);
		if (crew->end)
			break;
		seen = crew->round;
		pthread_mutex_unlock(&crew->lock);
		take_jobs(crew, member->worker);
		pthread_mutex_lock(&crew->lock);
		if (!--crew->active)
			pthread_cond_signal(&crew->done);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

int sl_crew_open(struct sl_crew *crew, unsigned threads, const char *name)
{
	int err = 0;

	if (threads < 1 || threads > SL_CREW_THREADS)
		return -EINVAL;
	*crew = (struct sl_crew){.threads = 1};
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->begin, NULL);
	pthread_cond_init(&crew->done, NULL);
	while (!err && crew->threads < threads) {
		struct sl_crew_member *member = &crew->member[crew->threads];

		member->crew = crew;
		member->worker = crew->threads;
		err = sl_thread_start(&member->thread, name, NULL, member_main, member);
		crew->threads += !err;
	}
	if (err)
		sl_crew_close(crew);
	return err;
}

void sl_crew_close(struct sl_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->end = true;
	pthread_cond_broadcast(&crew->begin);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 1; i < crew->threads; i++)
		sl_thread_join(&crew->member[i].thread);
	pthread_cond_destroy(&crew->done);
	pthread_cond_destroy(&crew->begin);
	pthread_mutex_destroy(&crew->lock);
}

void sl_crew_run(struct sl_crew *crew, uint32_t jobs, sl_crew_job *job, void *arg)
{
	if (crew->threads == 1 || jobs < 2) {
		for (uint32_t n = 0; n < jobs; n++)
			job(arg, 0, n);
		return;
	}
	pthread_mutex_lock(&crew->lock);
	crew->job = job;
	crew->arg = arg;
	crew->jobs = jobs;
	atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
	crew->active = crew->threads - 1;
	crew->round++;
	pthread_cond_broadcast(&crew->begin);
	pthread_mutex_unlock(&crew->lock);
	take_jobs(crew, 0);
	pthread_mutex_lock(&crew->lock);
	while (crew->active)
		pthread_cond_wait(&crew->done, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}
