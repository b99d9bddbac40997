/* workers.c - a few threads for handlers that may block. */
#include "service/http/private.h"

static struct sl_http_request *take(struct sl_http_workers *w)
{
	struct sl_http_request *request;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->stop)
		pthread_cond_wait(&w->wake, &w->lock);
	request = w->first;
	if (request) {
		w->first = request->next;
		w->waiting--;
	}
	pthread_mutex_unlock(&w->lock);
	return request;
}

static void *work(void *arg)
{
	struct sl_http_workers *w = arg;
	struct sl_http_request *request;

	while ((request = take(w))) {
		sl_http_run(request);
		sl_http_resume(request);
	}
	return NULL;
}

int sl_http_workers_open(struct sl_http_workers *w)
{
	int err = 0;

	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	for (unsigned i = 0; i < SL_HTTP_WORKERS && !err; i++)
		err = sl_thread_start(&w->thread[i], "http-worker", NULL, work, w);
	return err;
}

/* What waits is still done. */
void sl_http_workers_close(struct sl_http_workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < SL_HTTP_WORKERS; i++)
		sl_thread_join(&w->thread[i]);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
}

bool sl_http_workers_give(struct sl_http_workers *w, struct sl_http_request *request)
{
	bool room;

	pthread_mutex_lock(&w->lock);
	room = w->waiting < SL_HTTP_JOBS && !w->stop;
	if (room) {
		request->next = NULL;
		if (w->first)
			w->last->next = request;
		else
			w->first = request;
		w->last = request;
		w->waiting++;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	return room;
}
