/* push.c - sockets, their pullers, and buffers under way. */
#include "sink/stream2/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "base/clock.h"
#include "base/log.h"

enum { LOOK_MS = 20, IO_THREADS_MOST = 4, KEEPALIVE_S = 10, EVENT_BYTES = 6 };
enum {
	FAILURES = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
		   ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
};

/* ---- buffers ---- */

struct sl_push_buffer *sl_push_buffer_get(struct sl_push *p)
{
	struct sl_push_buffer *buffer;

	pthread_mutex_lock(&p->lock);
	buffer = p->free;
	if (buffer)
		p->free = buffer->next;
	pthread_mutex_unlock(&p->lock);
	if (!buffer)
		buffer = malloc(sizeof(*buffer) + p->options.buffer_bytes);
	if (buffer)
		*buffer = (struct sl_push_buffer){.push = p};
	return buffer;
}

/* The last one back is the next one out: its memory is in the cache. */
void sl_push_buffer_put(struct sl_push_buffer *buffer)
{
	struct sl_push *p = buffer->push;

	pthread_mutex_lock(&p->lock);
	if (buffer->socket)
		atomic_fetch_sub_explicit(&buffer->socket->queued, 1, memory_order_release);
	buffer->socket = NULL;
	buffer->next = p->free;
	p->free = buffer;
	pthread_cond_signal(&p->room);
	pthread_mutex_unlock(&p->lock);
}

/* For ZeroMQ, when it needs the memory no longer. */
static void give_back(void *data, void *hint)
{
	(void)data;
	sl_push_buffer_put(hint);
}

static uint32_t queued(const struct sl_push_socket *s)
{
	return atomic_load_explicit(&s->queued, memory_order_acquire);
}

/* Until a buffer comes back, at most LOOK_MS. */
static void wait_for_room(struct sl_push *p, const struct sl_push_socket *s, uint32_t at_most)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&p->lock);
	if (queued(s) > at_most)
		pthread_cond_timedwait(&p->room, &p->lock, &until);
	pthread_mutex_unlock(&p->lock);
}

/* ---- pullers ---- */

/* Copied by ZeroMQ. */
static int send_copy(struct sl_push_socket *s, const void *message, size_t bytes)
{
	int sent;

	do
		sent = zmq_send(s->socket, message, bytes, ZMQ_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void greet(struct sl_push *p, struct sl_push_socket *s)
{
	if (s->state == SL_PUSH_WAITING && s->pullers && p->start &&
	    !send_copy(s, p->start, p->start_bytes))
		s->state = SL_PUSH_ACTIVE;
}

static void puller_came(struct sl_push *p, struct sl_push_socket *s)
{
	s->pullers++;
	if (s->pullers == 1)
		s->first = s->accepted == 1 ? s->last : -1;
	if (s->accepted)
		s->accepted--;
	if (s->pullers > 1) {
		p->extra++;
		sl_warn("stream2: %d pullers are connected to %s: each image goes to only one of "
			"them. To do: give each its own port (option sockets)",
			s->pullers, s->endpoint);
	} else if (s->state == SL_PUSH_ABSENT) {
		sl_info("stream2: a puller connected to %s during the series: it gets images from "
			"the next run on",
			s->endpoint);
	}
}

/* A second puller may leave. Where it is not known which one has left, the one that stays may have
 * come without the start message. */
static void puller_left(struct sl_push *p, struct sl_push_socket *s, int descriptor)
{
	bool second = s->pullers > 1 && s->first >= 0 && descriptor != s->first;

	if (s->pullers)
		s->pullers--;
	if (second || s->state != SL_PUSH_ACTIVE)
		return;
	s->state = SL_PUSH_ABSENT;
	p->lost++;
	sl_warn("stream2: the puller of %s has disconnected: its images are dropped until the next "
		"run",
		s->endpoint);
}

/* An event of the monitor is two frames: number and value, then the endpoint. 0: there is none. */
static int next_event(void *monitor, int *value)
{
	uint8_t head[EVENT_BYTES];
	char endpoint[8]; /* the rest is cut */
	uint16_t event;

	if (zmq_recv(monitor, head, sizeof(head), ZMQ_DONTWAIT) < EVENT_BYTES)
		return 0;
	zmq_recv(monitor, endpoint, sizeof(endpoint), 0);
	memcpy(&event, head, sizeof(event));
	memcpy(value, head + sizeof(event), sizeof(*value));
	return event;
}

/* value: the descriptor of the connection, where the event has one. */
static void note(struct sl_push *p, struct sl_push_socket *s, int event, int value)
{
	if (event == ZMQ_EVENT_ACCEPTED) {
		s->accepted++;
		s->last = value;
	} else if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
		puller_came(p, s);
	} else if (event & FAILURES) {
		s->failed++; /* a program that is no puller; its disconnection follows */
		if (s->accepted)
			s->accepted--;
	} else if (event == ZMQ_EVENT_DISCONNECTED && s->failed) {
		s->failed--;
	} else if (event == ZMQ_EVENT_DISCONNECTED) {
		puller_left(p, s, value);
	}
}

/* What has happened since the last look. */
static void look(struct sl_push *p, struct sl_push_socket *s)
{
	int event, value;

	while ((event = next_event(s->monitor, &value)))
		note(p, s, event, value);
	greet(p, s);
}

static uint32_t without_puller(struct sl_push *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->sockets; i++) {
		look(p, &p->socket[i]);
		n += !p->socket[i].pullers;
	}
	return n;
}

uint32_t sl_push_wait(struct sl_push *p, uint64_t timeout_ns)
{
	uint64_t end_ns = sl_clock_ns() + timeout_ns;
	uint32_t missing = without_puller(p);

	while (missing && sl_clock_ns() < end_ns) {
		sl_clock_sleep_until(sl_clock_ns() + 2000000);
		missing = without_puller(p);
	}
	return missing;
}

void sl_push_start(struct sl_push *p, const void *message, size_t bytes)
{
	p->start = message;
	p->start_bytes = bytes;
	for (uint32_t i = 0; i < p->sockets; i++)
		look(p, &p->socket[i]);
}

/* The first image is due: a puller that comes from now on waits for the next series. */
static void begin_images(struct sl_push *p)
{
	for (uint32_t i = 0; i < p->sockets; i++) {
		struct sl_push_socket *s = &p->socket[i];

		look(p, s);
		if (s->state != SL_PUSH_WAITING)
			continue;
		s->state = SL_PUSH_ABSENT;
		sl_warn("stream2: no puller is connected to %s: its images are dropped until the "
			"next run",
			s->endpoint);
	}
	p->start = NULL;
}

/* ---- images ---- */

/* Whether the queue has room, after waiting for it where that is wished. */
static bool has_room(struct sl_push *p, struct sl_push_socket *s)
{
	uint64_t last_ns = sl_clock_ns();
	uint32_t before = queued(s);

	while (queued(s) >= p->options.queue) {
		if (!p->options.wait || s->given_up || s->state != SL_PUSH_ACTIVE)
			return false;
		if (queued(s) != before)
			last_ns = sl_clock_ns();
		before = queued(s);
		if (sl_clock_ns() - last_ns > p->options.timeout_ns) {
			s->given_up = true;
			sl_warn("stream2: the puller of %s has taken nothing for %.3g s: images "
				"that find its queue full are dropped for the rest of the run",
				s->endpoint, 1e-9 * (double)p->options.timeout_ns);
			return false;
		}
		wait_for_room(p, s, p->options.queue - 1);
		look(p, s);
	}
	return true;
}

static int drop(struct sl_push_socket *s, struct sl_push_buffer *buffer, int why)
{
	s->dropped++;
	if (why == -ENOBUFS && !s->told_full) {
		s->told_full = true;
		sl_warn("stream2: the puller of %s is too slow: images are dropped, and counted in "
			"the summary. To do: set on_slow: wait, a larger queue, or more sockets",
			s->endpoint);
	}
	sl_push_buffer_put(buffer);
	return why;
}

static int send_buffer(struct sl_push_socket *s, struct sl_push_buffer *buffer, size_t offset,
		       size_t bytes)
{
	zmq_msg_t message;
	int sent;

	if (zmq_msg_init_data(&message, buffer->memory + offset, bytes, give_back, buffer) < 0)
		return drop(s, buffer, -ENOMEM);
	buffer->socket = s;
	atomic_fetch_add_explicit(&s->queued, 1, memory_order_relaxed);
	do
		sent = zmq_msg_send(&message, s->socket, ZMQ_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0) {
		s->sent++;
		return 0;
	}
	zmq_msg_close(&message); /* gives the buffer back */
	s->dropped++;
	return -ENOTCONN;
}

int sl_push_image(struct sl_push *p, uint32_t socket, struct sl_push_buffer *buffer, size_t offset,
		  size_t bytes)
{
	struct sl_push_socket *s = &p->socket[socket];

	if (p->start)
		begin_images(p);
	look(p, s);
	if (s->state == SL_PUSH_ACTIVE && !has_room(p, s) && s->state == SL_PUSH_ACTIVE)
		return drop(s, buffer, -ENOBUFS);
	if (s->state != SL_PUSH_ACTIVE)
		return drop(s, buffer, -ENOTCONN);
	return send_buffer(s, buffer, offset, bytes);
}

/* ---- the end ---- */

/* Whether the puller has taken all of it; gives up when it takes nothing for the timeout. */
static bool drain(struct sl_push *p, struct sl_push_socket *s)
{
	uint64_t last_ns = sl_clock_ns();
	uint32_t before = queued(s);

	while (queued(s) && s->state == SL_PUSH_ACTIVE) {
		if (queued(s) != before)
			last_ns = sl_clock_ns();
		before = queued(s);
		if (sl_clock_ns() - last_ns > p->options.timeout_ns)
			return false;
		wait_for_room(p, s, 0);
		look(p, s);
	}
	return s->state == SL_PUSH_ACTIVE;
}

static void set_linger(struct sl_push_socket *s, uint64_t ns)
{
	int ms = (int)(ns / 1000000);

	zmq_setsockopt(s->socket, ZMQ_LINGER, &ms, sizeof(ms));
}

uint64_t sl_push_end(struct sl_push *p, const void *message, size_t bytes)
{
	uint64_t untaken = 0;

	for (uint32_t i = 0; i < p->sockets; i++) {
		struct sl_push_socket *s = &p->socket[i];

		look(p, s);
		if (s->state == SL_PUSH_ACTIVE && drain(p, s) && !send_copy(s, message, bytes))
			set_linger(s, p->options.timeout_ns); /* for this message alone */
		untaken += s->state == SL_PUSH_ACTIVE ? queued(s) : 0;
	}
	return untaken;
}

static void free_buffers(struct sl_push *p)
{
	while (p->free) {
		struct sl_push_buffer *next = p->free->next;

		free(p->free);
		p->free = next;
	}
}

void sl_push_close(struct sl_push *p)
{
	if (!p->context)
		return;
	for (uint32_t i = 0; i < p->sockets; i++) {
		struct sl_push_socket *s = &p->socket[i];

		zmq_socket_monitor(s->socket, NULL, 0);
		if (s->monitor)
			zmq_close(s->monitor);
		zmq_close(s->socket);
		s->socket = s->monitor = NULL;
	}
	while (zmq_ctx_term(p->context) < 0 && errno == EINTR)
		;
	p->context = NULL;
	free_buffers(p); /* ZeroMQ has given all of them back */
	pthread_cond_destroy(&p->room);
	pthread_mutex_destroy(&p->lock);
}

/* ---- the beginning ---- */

static void set_options(void *socket)
{
	const int none = 0, one = 1, idle_s = KEEPALIVE_S;

	zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
	zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none)); /* `queued` is the limit */
	zmq_setsockopt(socket, ZMQ_TCP_KEEPALIVE, &one, sizeof(one));
	zmq_setsockopt(socket, ZMQ_TCP_KEEPALIVE_IDLE, &idle_s, sizeof(idle_s));
	zmq_setsockopt(socket, ZMQ_TCP_KEEPALIVE_INTVL, &idle_s, sizeof(idle_s));
}

/* The monitor first, so that no connection is missed. */
static int open_monitor(struct sl_push *p, struct sl_push_socket *s)
{
	const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | FAILURES |
			   ZMQ_EVENT_DISCONNECTED;
	const int none = 0;
	char name[48];

	snprintf(name, sizeof(name), "inproc://monitor-%td", s - p->socket);
	if (zmq_socket_monitor(s->socket, name, events) < 0)
		return -errno;
	s->monitor = zmq_socket(p->context, ZMQ_PAIR);
	if (!s->monitor)
		return -errno;
	zmq_setsockopt(s->monitor, ZMQ_LINGER, &none, sizeof(none));
	return zmq_connect(s->monitor, name) < 0 ? -errno : 0;
}

static int open_socket(struct sl_push *p, uint32_t i)
{
	struct sl_push_socket *s = &p->socket[i];
	int err;

	snprintf(s->endpoint, sizeof(s->endpoint), "tcp://%s:%u", p->options.address,
		 p->options.port + i);
	s->socket = zmq_socket(p->context, ZMQ_PUSH);
	if (!s->socket) {
		err = -errno;
		sl_error("stream2: no ZeroMQ socket: %s", zmq_strerror(errno));
		return err;
	}
	p->sockets++;
	set_options(s->socket);
	err = open_monitor(p, s);
	if (!err && zmq_bind(s->socket, s->endpoint) < 0)
		err = -errno;
	if (err)
		sl_error("stream2: cannot bind %s: %s. To do: set address to one of this host's "
			 "and port to one that is free",
			 s->endpoint, zmq_strerror(-err));
	return err;
}

int sl_push_open(struct sl_push *p, const struct sl_push_options *options)
{
	pthread_condattr_t clock;
	int err = 0;

	*p = (struct sl_push){.options = *options};
	p->context = zmq_ctx_new();
	if (!p->context)
		return -errno;
	zmq_ctx_set(p->context, ZMQ_IO_THREADS,
		    options->sockets < IO_THREADS_MOST ? (int)options->sockets : IO_THREADS_MOST);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p->room, &clock);
	pthread_condattr_destroy(&clock);
	for (uint32_t i = 0; i < options->sockets && !err; i++)
		err = open_socket(p, i);
	if (err)
		sl_push_close(p);
	return err;
}
