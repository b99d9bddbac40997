/* attach.c - a follower and its share's socket: memory, pings, messages. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "share/follower.h"

enum {
	FAREWELL_MS = 1000, /* for the rest of a message, when a follower closes */
	CONNECT_MS = 5000,
	ANSWER_MOST = 8192, /* bytes of the longest frame that is no message */
};

static int wait_for(const struct sl_follower *f, short events, uint64_t end_ns)
{
	struct pollfd p = {.fd = f->socket, .events = events};
	int n;

	do
		n = poll(&p, 1, sl_share_left_ms(end_ns));
	while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : -ETIMEDOUT;
}

/* One message always has room. What a connection that is over still has is in the kernel's buffers,
 * and is not much. */
static bool has_room(const struct sl_follower *f)
{
	uint64_t bytes = f->in.skips ? 0 : f->in.head.bytes;

	return f->over || !f->inbox.first ||
	       (f->inbox.bytes + bytes <= f->queue_bytes &&
		f->inbox.messages < sl_share_most_messages(f->queue_bytes));
}

/* A frame that is whole: a message goes to the inbox, the end is remembered, others are the
 * caller's. */
static int sort(struct sl_follower *f)
{
	int err = 0;

	switch (f->in.head.type) {
	case SL_SHARE_FRAME_MESSAGE:
		if (!has_room(f))
			return -ENOBUFS; /* the frame stays */
		err = sl_share_inbox_put(&f->inbox, 0, &f->in);
		break;
	case SL_SHARE_FRAME_FAREWELL:
	case SL_SHARE_FRAME_ENDED:
		f->ended = true;
		break;
	default:
		return 1;
	}
	sl_share_in_next(&f->in);
	return err;
}

/* Only a message may be longer than any answer. One that is too long is read and forgotten. */
static int read_frame(struct sl_follower *f)
{
	bool short_queue = f->queue_bytes < ANSWER_MOST;
	int got = sl_share_in_read(&f->in, f->socket, short_queue ? f->queue_bytes : ANSWER_MOST);

	if (got != -EMSGSIZE)
		return got;
	if (f->in.head.type != SL_SHARE_FRAME_MESSAGE) {
		got = sl_share_in_read(&f->in, f->socket, ANSWER_MOST);
		return got == -EMSGSIZE ? -EPROTO : got;
	}
	if (f->in.head.bytes > f->queue_bytes)
		sl_share_in_skip(&f->in);
	return sl_share_in_read(&f->in, f->socket, f->queue_bytes);
}

int sl_follower_take_arrived(struct sl_follower *f)
{
	int got;

	do
		got = read_frame(f);
	while (got == 1 && !(got = sort(f)));
	return got == -ECONNRESET && f->ended ? -EPIPE : got;
}

void sl_follower_discard(struct sl_follower *f)
{
	if (f->in.head.type == SL_SHARE_FRAME_ATTACHED ||
	    f->in.head.type == SL_SHARE_FRAME_CONNECTED)
		f->asked = false; /* the next attempt asks again */
	sl_share_in_next(&f->in);
}

static bool has_ended(const struct sl_follower *f)
{
	return f->words && __atomic_load_n(&f->words->state, __ATOMIC_ACQUIRE) == SL_SHARE_ENDED;
}

int sl_follower_hear_the_last(struct sl_follower *f)
{
	f->over = true;
	while (sl_follower_take_arrived(f) == 1)
		sl_follower_discard(f);
	return f->ended || has_ended(f) ? -EPIPE : -ECONNRESET;
}

int sl_follower_hear(struct sl_follower *f, uint64_t end_ns)
{
	for (;;) {
		int got = sl_follower_take_arrived(f);

		if (got)
			return got < 0 ? got : 0;
		got = wait_for(f, POLLIN, end_ns);
		if (got)
			return got;
	}
}

/* Read until there is a frame of this type. */
static int wait_for_frame(struct sl_follower *f, enum sl_share_frame_type type, uint64_t end_ns)
{
	for (;;) {
		int err = sl_follower_hear(f, end_ns);

		if (err || f->in.head.type == type)
			return err;
		sl_follower_discard(f); /* an answer that came too late for its call */
	}
}

/* What waits to be sent. While the socket is full, messages of the share are taken, so that two
 * full sockets do not wait for each other. */
static int flush(struct sl_follower *f, uint64_t end_ns)
{
	for (;;) {
		int err = sl_share_out_send(&f->out, f->socket);

		if (err == -EPIPE || err == -ECONNRESET)
			return sl_follower_hear_the_last(f);
		if (err != -EAGAIN)
			return err;
		sl_follower_take_arrived(f);
		if (wait_for(f, POLLOUT, end_ns))
			return -EAGAIN;
	}
}

/* Half a frame would spoil the connection: the rest of one that has begun stays in the queue, and
 * goes before the next one. */
int sl_follower_say(struct sl_follower *f, enum sl_share_frame_type type, uint64_t value,
		    const void *payload, uint64_t bytes, uint64_t end_ns)
{
	int err = flush(f, end_ns);

	if (!err)
		err = sl_share_out_put(&f->out, type, value, payload, bytes, NULL, 0);
	if (err)
		return err;
	err = flush(f, end_ns);
	if (err == -EAGAIN && f->out.first->sent)
		return 0;
	if (err)
		sl_share_out_fini(&f->out);
	return err;
}

/* ---- memory ---- */

static void use(struct sl_follower *f, const struct sl_share_header *header,
		struct sl_share_memory *memory)
{
	sl_share_memory_fini(&f->memory);
	f->memory = *memory;
	f->words = &memory->header->words;
	sl_follower_describe(f, header);
}

int sl_follower_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_header header;
	struct sl_share_memory memory;
	char why[SL_SHARE_WHY];
	int err = f->asked ? 0
			   : sl_follower_say(f, SL_SHARE_FRAME_HELLO, SL_SHARE_VERSION, NULL, 0,
					     end_ns);

	f->asked = f->asked || !err;
	if (!err)
		err = wait_for_frame(f, SL_SHARE_FRAME_ATTACHED, end_ns);
	if (err == -EPIPE)
		return sl_share_code(error, err, f->name, "it has ended");
	if (err == -ECONNRESET)
		return sl_share_code(error, err, f->name,
				     "it ended, belongs to another user, or has as many followers "
				     "as it takes");
	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	f->asked = false;
	err = sl_share_memory_map(f->in.fd, f->in.fds, &header, &memory, why, sizeof(why));
	f->in.fds = 0; /* they were taken */
	sl_share_in_next(&f->in);
	if (err)
		return sl_share_code(error, err, f->name, why);
	use(f, &header, &memory);
	return 0;
}

/* ---- open and close ---- */

static int absent(struct sl_remote_error *error, const char *url)
{
	return sl_share_fail(error, -ENOENT, "absent",
			     "no share is called '%s'; sluice share lists those there are", url);
}

/* As many connections as a listener keeps may wait to be accepted just now. */
static int connect_in(int folder, const char *name, uint64_t end_ns)
{
	int fd;

	while ((fd = sl_registry_connect(folder, name)) == -EAGAIN && sl_share_left_ms(end_ns))
		poll(NULL, 0, 1);
	return fd;
}

static int connect_to(struct sl_follower *f, const char *name, uint64_t end_ns,
		      struct sl_remote_error *error)
{
	int folder[SL_REGISTRY_PLACES], err = -ENOENT;
	char why[SL_SHARE_WHY];
	unsigned places = sl_share_places(folder, why, sizeof(why));

	for (unsigned i = 0; i < places; i++) {
		if (err < 0)
			err = connect_in(folder[i], name, end_ns);
		close(folder[i]);
	}
	if (why[0])
		return sl_share_fail(error, -EPERM, "absent", "%s", why);
	if (err == -ENOENT || err == -ECONNREFUSED) /* refused: it crashed and left its socket */
		return absent(error, name);
	if (err < 0)
		return sl_share_code(error, err, name, strerror(-err));
	f->socket = err;
	return 0;
}

static int open_here(struct sl_follower *f, const char *url, uint64_t end_ns,
		     struct sl_remote_error *error)
{
	const char *name = sl_share_name_of(url);
	uint64_t p;
	int err;

	if (!name)
		return sl_share_fail(error, -EINVAL, "request",
				     "'%s' is no share: share:NAME, or rdma://HOST:PORT/NAME", url);
	f->ops = &sl_follower_here;
	snprintf(f->name, sizeof(f->name), "%s", name);
	err = connect_to(f, name, end_ns, error);
	if (!err)
		err = sl_follower_attach(f, end_ns, error);
	/* One that ends just now may still have answered. */
	if (err == -EPIPE || (!err && has_ended(f)))
		return absent(error, name);
	if (err)
		return err;
	/* The first element that it gets is the newest that is there. */
	p = __atomic_load_n(&f->words->published, __ATOMIC_ACQUIRE);
	f->next = p > f->first ? p - 1 : f->first;
	return 0;
}

int sl_follow_open(const char *url, const struct sl_follow_options *options,
		   struct sl_follower **follower, struct sl_remote_error *error)
{
	int timeout_ms = options && options->timeout_ms ? options->timeout_ms : CONNECT_MS;
	uint64_t end_ns = sl_share_end_ns(timeout_ms);
	struct sl_follower *f;
	int err;

	if (options && options->bytes < sizeof(*options))
		return sl_share_fail(error, -EINVAL, "request",
				     "options.bytes is not sizeof(struct sl_follow_options)");
	f = calloc(1, sizeof(*f));
	if (!f)
		return sl_share_fail(error, -ENOMEM, "memory", "no memory");
	f->socket = f->memory.fd = f->memory.second_fd = -1;
	f->timeout_ms = timeout_ms;
	f->longest = UINT64_MAX;
	f->queue_bytes = options && options->queue_bytes ? options->queue_bytes
							 : SL_FOLLOWER_QUEUE_BYTES;
	sl_share_inbox_init(&f->inbox);
	sl_share_out_init(&f->out);
	err = strncmp(url, "rdma://", 7) ? open_here(f, url, end_ns, error)
					 : sl_follower_open_remote(f, url, options, end_ns, error);
	if (err)
		sl_follow_close(f);
	else
		*follower = f;
	return err;
}

void sl_follow_close(struct sl_follower *f)
{
	if (!f)
		return;
	if (f->socket >= 0) {
		flush(f, sl_share_end_ns(FAREWELL_MS));
		close(f->socket);
	}
	sl_share_out_fini(&f->out);
	sl_share_in_fini(&f->in);
	sl_share_inbox_fini(&f->inbox);
	if (f->ops)
		f->ops->close(f);
	free(f);
}

/* ---- pings and messages ---- */

int sl_follow_ping(struct sl_follower *f, int timeout_ms, uint64_t *round_trip_ns)
{
	uint64_t end_ns = sl_share_end_ns(timeout_ms), number = ++f->pings;
	struct timespec from, to;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &from);
	err = sl_follower_say(f, SL_SHARE_FRAME_PING, number, NULL, 0, end_ns);
	while (!err) {
		err = wait_for_frame(f, SL_SHARE_FRAME_PONG, end_ns);
		if (err || f->in.head.value == number)
			break;
		sl_share_in_next(&f->in); /* of an earlier call */
	}
	if (err)
		return err;
	sl_share_in_next(&f->in);
	clock_gettime(CLOCK_MONOTONIC, &to);
	*round_trip_ns = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec -
			 (uint64_t)from.tv_nsec;
	return 0;
}

int sl_follow_send(struct sl_follower *f, uint32_t kind, const void *data, uint64_t bytes,
		   int timeout_ms)
{
	if (bytes > f->longest)
		return -EMSGSIZE;
	return sl_follower_say(f, SL_SHARE_FRAME_MESSAGE, kind, data, bytes,
			       sl_share_end_ns(timeout_ms));
}

int sl_follow_receive(struct sl_follower *f, int timeout_ms, struct sl_share_message *message)
{
	uint64_t end_ns = sl_share_end_ns(timeout_ms);

	for (;;) {
		int got = sl_share_inbox_take(&f->inbox, message);

		if (got)
			return got < 0 ? got : 0;
		sl_share_out_send(&f->out, f->socket);
		got = sl_follower_take_arrived(f);
		if (got == 1)
			sl_follower_discard(f);
		if (got < 0 && !f->inbox.first)
			return got == -ECONNRESET ? sl_follower_hear_the_last(f) : got;
		if (got == 0 && !f->inbox.first) {
			if (f->ended)
				return -EPIPE; /* its last frame is behind all messages */
			got = wait_for(f, f->out.first ? POLLIN | POLLOUT : POLLIN, end_ns);
			if (got)
				return got;
		}
	}
}
