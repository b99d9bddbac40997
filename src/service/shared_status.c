/* shared_status.c - one request to a session for all callers that ask for its status. */
#include "service/shared_status.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define APART_NS UINT64_C(20000000)

struct session {
	char name[64];
	unsigned callers; /* 0: free */
	bool asks;	  /* one of them does */
	uint64_t tickets; /* that callers took */
	uint64_t served;  /* callers with tickets up to this one have the answer */
	uint64_t began_ns;
	int err; /* the answer */
	json_t *status;
	struct sl_remote_error error;
};

struct sl_shared_status {
	pthread_mutex_t lock;
	pthread_cond_t served;
	struct session session[SL_SHARED_STATUS_CALLERS];
};

struct sl_shared_status *sl_shared_status_open(void)
{
	struct sl_shared_status *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	pthread_mutex_init(&shared->lock, NULL);
	pthread_cond_init(&shared->served, NULL);
	return shared;
}

void sl_shared_status_close(struct sl_shared_status *shared)
{
	if (!shared)
		return;
	for (unsigned i = 0; i < SL_SHARED_STATUS_CALLERS; i++)
		json_decref(shared->session[i].status);
	pthread_cond_destroy(&shared->served);
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

/* ---- under the lock ---- */

/* That of the name, or a free one: it keeps when its last request began. NULL: too many callers. */
static struct session *take(struct sl_shared_status *shared, const char *name)
{
	struct session *free_one = NULL;

	for (unsigned i = 0; i < SL_SHARED_STATUS_CALLERS; i++) {
		struct session *s = &shared->session[i];

		if (!strcmp(s->name, name)) {
			s->callers++;
			return s;
		}
		if (!s->callers && (!free_one || s->began_ns < free_one->began_ns))
			free_one = s;
	}
	if (!free_one)
		return NULL;
	json_decref(free_one->status);
	memset(free_one, 0, sizeof(*free_one));
	snprintf(free_one->name, sizeof(free_one->name), "%s", name);
	free_one->callers = 1;
	return free_one;
}

/* For all that have a ticket when it begins. Lets the lock go meanwhile. */
static void ask_for_all(struct sl_shared_status *shared, struct session *s,
			int (*ask)(void *arg, const char *name, json_t **status,
				   struct sl_remote_error *error))
{
	uint64_t until_ns = s->began_ns + APART_NS, tickets;
	struct sl_remote_error error = {.message = ""};
	json_t *status = NULL;
	int err;

	s->asks = true;
	pthread_mutex_unlock(&shared->lock);
	sl_clock_sleep_until(until_ns);
	pthread_mutex_lock(&shared->lock);
	tickets = s->tickets;
	s->began_ns = sl_clock_ns();
	pthread_mutex_unlock(&shared->lock);
	err = ask(NULL, s->name, &status, &error);
	pthread_mutex_lock(&shared->lock);
	json_decref(s->status);
	s->status = status;
	s->err = err;
	s->error = error;
	s->served = tickets;
	s->asks = false;
	pthread_cond_broadcast(&shared->served);
}

int sl_shared_status_ask(struct sl_shared_status *shared, const char *name,
			 int (*ask)(void *arg, const char *name, json_t **status,
				    struct sl_remote_error *error),
			 json_t **status, struct sl_remote_error *error)
{
	struct session *s;
	uint64_t ticket;
	int err;

	pthread_mutex_lock(&shared->lock);
	s = take(shared, name);
	if (!s) {
		pthread_mutex_unlock(&shared->lock);
		return ask(NULL, name, status, error);
	}
	ticket = ++s->tickets;
	while (s->served < ticket) {
		if (s->asks)
			pthread_cond_wait(&shared->served, &shared->lock);
		else
			ask_for_all(shared, s, ask);
	}
	err = s->err;
	*status = json_incref(s->status);
	*error = s->error;
	s->callers--;
	pthread_mutex_unlock(&shared->lock);
	return err;
}
