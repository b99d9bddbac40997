/* sync.c - fdatasync() of growing data files, and the end of closed ones, on another thread. */
#include "hdf5/rolled/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

struct sl_h5_sync_job {
	struct sl_h5_sync_job *next;
	struct sl_h5 *file;
	uint64_t mark;
	bool closed;
};

static void fail(struct sl_h5_sync *sync, int status)
{
	int none = 0;

	atomic_compare_exchange_strong(&sync->status, &none, status);
}

static void do_job(struct sl_h5_sync *sync, const struct sl_h5_sync_job *job)
{
	int status = job->file->status;

	if (!status && job->closed) {
		status = sl_h5_settle(job->file);
	} else if (!status && fdatasync(job->file->disk.fd)) {
		status = -errno;
		sl_error("%s: cannot sync: %s", job->file->path, strerror(errno));
	}
	if (job->closed)
		sl_h5_forget(job->file);
	if (status) {
		fail(sync, status);
	} else if (!atomic_load(&sync->status)) {
		atomic_store_explicit(&sync->durable, job->mark, memory_order_release);
		if (job->closed)
			atomic_fetch_add_explicit(&sync->settled, 1, memory_order_release);
	}
}

static void *sync_main(void *arg)
{
	struct sl_h5_sync *sync = arg;
	struct sl_h5_sync_job *job;

	sl_h5_prepare();
	for (;;) {
		pthread_mutex_lock(&sync->lock);
		while (!sync->first && !sync->end)
			pthread_cond_wait(&sync->work, &sync->lock);
		job = sync->first;
		if (job)
			sync->first = job->next;
		if (!sync->first)
			sync->last = NULL;
		pthread_mutex_unlock(&sync->lock);
		if (!job)
			return NULL;
		do_job(sync, job);
		free(job);
	}
}

int sl_h5_sync_open(struct sl_h5_sync *sync)
{
	*sync = (struct sl_h5_sync){.threaded = sl_h5_is_threadsafe()};
	pthread_mutex_init(&sync->lock, NULL);
	pthread_cond_init(&sync->work, NULL);
	return sync->threaded ? sl_thread_start(&sync->thread, "hdf5-sync", NULL, sync_main, sync)
			      : 0;
}

static int ask(struct sl_h5_sync *sync, struct sl_h5 *file, uint64_t mark, bool closed)
{
	struct sl_h5_sync_job *job = malloc(sizeof(*job));

	if (!job)
		return -ENOMEM;
	*job = (struct sl_h5_sync_job){.file = file, .mark = mark, .closed = closed};
	if (!sync->threaded) {
		do_job(sync, job);
		free(job);
		return 0;
	}
	pthread_mutex_lock(&sync->lock);
	if (sync->last && sync->last->file == file && !sync->last->closed) {
		sync->last->mark = mark; /* it has not begun: it serves for both */
		sync->last->closed = closed;
		free(job);
	} else {
		*(sync->last ? &sync->last->next : &sync->first) = job;
		sync->last = job;
	}
	pthread_cond_signal(&sync->work);
	pthread_mutex_unlock(&sync->lock);
	return 0;
}

int sl_h5_sync_flush(struct sl_h5_sync *sync, struct sl_h5 *file, uint64_t mark)
{
	return ask(sync, file, mark, false);
}

int sl_h5_sync_closed(struct sl_h5_sync *sync, struct sl_h5 *file, uint64_t mark)
{
	return ask(sync, file, mark, true);
}

int sl_h5_sync_close(struct sl_h5_sync *sync)
{
	pthread_mutex_lock(&sync->lock);
	sync->end = true;
	pthread_cond_signal(&sync->work);
	pthread_mutex_unlock(&sync->lock);
	sl_thread_join(&sync->thread);
	pthread_mutex_destroy(&sync->lock);
	pthread_cond_destroy(&sync->work);
	return atomic_load(&sync->status);
}
