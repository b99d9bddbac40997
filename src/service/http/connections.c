/* connections.c - the connections that there are. libmicrohttpd cuts those that are idle; this cuts
 * those that send or take a byte now and then, for which no idle time ever comes. */
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "service/http/private.h"

enum { HEAD_S = 20 };
#define SECOND_NS UINT64_C(1000000000)

static void cut_late(struct sl_http_connections *c)
{
	uint64_t now_ns = sl_clock_ns();

	for (struct sl_http_connection *one = c->first; one; one = one->next)
		if (one->deadline_ns <= now_ns) {
			shutdown(one->fd, SHUT_RDWR); /* libmicrohttpd sees that and closes it */
			one->deadline_ns = UINT64_MAX;
		}
}

static void *watch(void *arg)
{
	struct sl_http_connections *c = arg;
	struct timespec until;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		cut_late(c);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&c->wake, &c->lock, &until);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int sl_http_connections_open(struct sl_http_connections *c)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	return sl_thread_start(&c->thread, "http-limits", NULL, watch, c);
}

void sl_http_connections_close(struct sl_http_connections *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	sl_thread_join(&c->thread);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
}

struct sl_http_connection *sl_http_connection_add(struct sl_http_connections *c, int fd)
{
	struct sl_http_connection *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->fd = fd;
	pthread_mutex_lock(&c->lock);
	one->over = c->n >= SL_HTTP_CONNECTIONS;
	one->deadline_ns = sl_clock_ns() + HEAD_S * SECOND_NS;
	one->next = c->first;
	if (c->first)
		c->first->previous = one;
	c->first = one;
	c->n++;
	pthread_mutex_unlock(&c->lock);
	return one;
}

void sl_http_connection_remove(struct sl_http_connections *c, struct sl_http_connection *one)
{
	pthread_mutex_lock(&c->lock);
	if (one->previous)
		one->previous->next = one->next;
	else
		c->first = one->next;
	if (one->next)
		one->next->previous = one->previous;
	c->n--;
	pthread_mutex_unlock(&c->lock);
	free(one);
}

void sl_http_connection_limit(struct sl_http_connections *c, struct sl_http_connection *one,
			      unsigned seconds)
{
	if (!one)
		return;
	pthread_mutex_lock(&c->lock);
	one->deadline_ns = seconds ? sl_clock_ns() + seconds * SECOND_NS : UINT64_MAX;
	pthread_mutex_unlock(&c->lock);
}
