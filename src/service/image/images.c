/* images.c - the thread that talks to image processes, and the calls of other threads. */
#include "service/image/images.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/registry.h"
#include "service/image/images_private.h"

enum {
	IDLE_S = 60,
	STALLED_MS = 5000,
	FIRST_CHILD = 1,
	FIRST_CALL = FIRST_CHILD + SL_IMAGE_SERVICE_PROCESSES
};
#define MS	UINT64_C(1000000)
#define TURN_NS (1000 * MS)

/* ---- the thread ---- */

static struct sl_image_call *take_inbox(struct sl_image_service *images, bool *ends)
{
	struct sl_image_call *newest, *oldest = NULL;

	pthread_mutex_lock(&images->lock);
	newest = images->inbox;
	images->inbox = NULL;
	*ends = images->ends;
	pthread_mutex_unlock(&images->lock);
	while (newest) {
		struct sl_image_call *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

static void take_all(struct sl_image_service *images, struct sl_image_call *calls, bool ends)
{
	while (calls) {
		struct sl_image_call *call = calls;

		calls = call->next;
		call->next = images->call;
		images->call = call;
		if (ends)
			sl_image_call_fail(images, call, 503, "the service ends");
		else
			sl_image_call_begin(images, call);
	}
}

/* A process that has answered nothing for long is stuck: it goes, and takes its calls along. */
static void look_after(struct sl_image_service *images, struct sl_image_child *child,
		       uint64_t now_ns)
{
	uint64_t since_ns = child->answered_ns > child->started_ns ? child->answered_ns
								   : child->started_ns;

	if (child->control >= 0 && now_ns > since_ns + images->options.stalled_ms * MS)
		sl_image_child_gone(images, child, true);
}

/* Calls that have waited long enough. When the next one has. */
static uint64_t expire(struct sl_image_service *images)
{
	uint64_t now_ns = sl_clock_ns(), next_ns = now_ns + TURN_NS;
	struct sl_image_call *call = images->call;

	while (call) {
		struct sl_image_call *next = call->next;

		if (now_ns >= call->until_ns) {
			look_after(images, call->child, now_ns);
			sl_image_call_fail(images, call, 503,
					   "the process that makes images does not answer");
		} else if (call->until_ns < next_ns) {
			next_ns = call->until_ns;
		}
		call = next;
	}
	return next_ns;
}

struct interest { /* what a turn waits for */
	struct pollfd fd[FIRST_CALL + SL_IMAGE_SERVICE_CALLS];
	struct sl_image_call *of[FIRST_CALL + SL_IMAGE_SERVICE_CALLS];
	uint64_t
		started_ns[SL_IMAGE_SERVICE_PROCESSES]; /* another process may get the descriptor */
	nfds_t n;
};

static void collect(struct sl_image_service *images, struct interest *in)
{
	in->n = FIRST_CALL;
	in->fd[0] = (struct pollfd){.fd = images->bell, .events = POLLIN};
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++) {
		in->fd[FIRST_CHILD + i] = (struct pollfd){.fd = images->child[i].control};
		in->started_ns[i] = images->child[i].started_ns;
	}
	for (struct sl_image_call *call = images->call; call; call = call->next) {
		in->of[in->n] = call;
		in->fd[in->n++] = (struct pollfd){.fd = call->fd, .events = POLLIN};
	}
}

static void turn(struct sl_image_service *images)
{
	uint64_t until_ns = expire(images), now_ns = sl_clock_ns(), count;
	int ms = until_ns > now_ns ? (int)((until_ns - now_ns + MS - 1) / MS) : 0;
	struct interest in;

	collect(images, &in);
	if (poll(in.fd, in.n, ms) <= 0) {
		sl_image_children_reap(images);
		return;
	}
	if (in.fd[0].revents && read(images->bell, &count, sizeof(count)) < 0)
		errno = 0; /* it was another's turn */
	/* What they have answered before they ended is read first. */
	for (nfds_t i = FIRST_CALL; i < in.n; i++)
		if (in.fd[i].revents)
			sl_image_call_read(images, in.of[i]);
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++) {
		struct sl_image_child *child = &images->child[i];

		if (in.fd[FIRST_CHILD + i].revents && child->control >= 0 &&
		    child->started_ns == in.started_ns[i])
			sl_image_child_gone(images, child, false);
	}
}

static void *run(void *arg)
{
	struct sl_image_service *images = arg;
	bool ends = false;

	while (!ends) {
		struct sl_image_call *calls = take_inbox(images, &ends);

		take_all(images, calls, ends);
		if (!ends)
			turn(images);
	}
	while (images->call)
		sl_image_call_fail(images, images->call, 503, "the service ends");
	sl_image_children_end(images);
	return NULL;
}

/* ---- the calls of other threads ---- */

static void ring(const struct sl_image_service *images)
{
	const uint64_t one = 1;

	if (write(images->bell, &one, sizeof(one)) < 0)
		return; /* it rings already */
}

int sl_image_service_open(const struct sl_image_service_options *options,
			  struct sl_image_service **made)
{
	struct sl_image_service *images = calloc(1, sizeof(*images));
	int err;

	if (!images)
		return -ENOMEM;
	images->options = *options;
	snprintf(images->program, sizeof(images->program), "%s", options->program);
	if (!images->options.idle_s)
		images->options.idle_s = IDLE_S;
	if (!images->options.stalled_ms)
		images->options.stalled_ms = STALLED_MS;
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++)
		images->child[i].control = -1;
	pthread_mutex_init(&images->lock, NULL);
	images->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = images->bell < 0 ? -errno : 0;
	if (!err)
		err = sl_thread_start(&images->thread, "images", NULL, run, images);
	if (!err) {
		*made = images;
		return 0;
	}
	if (images->bell >= 0)
		close(images->bell);
	pthread_mutex_destroy(&images->lock);
	free(images);
	return err;
}

void sl_image_service_end(struct sl_image_service *images)
{
	if (!images)
		return;
	pthread_mutex_lock(&images->lock);
	images->ends = true;
	pthread_mutex_unlock(&images->lock);
	ring(images);
	sl_thread_join(&images->thread);
}

void sl_image_service_close(struct sl_image_service *images)
{
	if (!images)
		return;
	sl_image_service_end(images);
	close(images->bell);
	pthread_mutex_destroy(&images->lock);
	free(images);
}

int sl_image_service_ask(struct sl_image_service *images, const char *session, const char *query,
			 uint32_t timeout_ms, sl_image_done *done, void *arg)
{
	struct sl_image_call *call;
	bool busy;

	if (!sl_registry_name_is_valid(session) || strlen(query) >= sizeof(call->query))
		return -EINVAL;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	snprintf(call->session, sizeof(call->session), "%s", session);
	snprintf(call->query, sizeof(call->query), "%s", query);
	call->until_ns = sl_clock_ns() + timeout_ms * MS;
	call->done = done;
	call->arg = arg;
	call->fd = -1;
	pthread_mutex_lock(&images->lock);
	busy = images->calls >= SL_IMAGE_SERVICE_CALLS || images->ends;
	if (!busy) {
		images->calls++;
		call->next = images->inbox;
		images->inbox = call;
	}
	pthread_mutex_unlock(&images->lock);
	if (busy)
		free(call);
	else
		ring(images);
	return busy ? -EBUSY : 0;
}

int sl_image_service_process_of(struct sl_image_service *images, const char *session)
{
	int pid = 0;

	pthread_mutex_lock(&images->lock);
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++)
		if (!strcmp(images->child[i].session, session))
			pid = images->child[i].pid;
	pthread_mutex_unlock(&images->lock);
	return pid;
}

uint64_t sl_image_service_started(struct sl_image_service *images)
{
	uint64_t started;

	pthread_mutex_lock(&images->lock);
	started = images->started;
	pthread_mutex_unlock(&images->lock);
	return started;
}
