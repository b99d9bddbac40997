/* uring.c - writes through io_uring: submitted by any thread, reaped by one. */
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "raw/io.h"

struct uring {
	struct raw_io_options options;
	struct io_uring ring;
	bool fixed; /* the kernel knows the buffers */
	int event;
	_Atomic bool end;
	pthread_mutex_t lock; /* of the submission side */
	bool broken;	      /* guarded by lock: the kernel takes no more; pwrite() instead */
	struct sl_thread thread;
};

static void prepare(const struct uring *u, struct io_uring_sqe *sqe, struct raw_write *write)
{
	const uint8_t *data = write->data + write->written;
	uint32_t bytes = write->bytes - write->written;
	uint64_t offset = write->offset + write->written;

	if (u->fixed)
		io_uring_prep_write_fixed(sqe, write->fd, data, bytes, offset, 0);
	else
		io_uring_prep_write(sqe, write->fd, data, bytes, offset);
	io_uring_sqe_set_data(sqe, write);
}

/* False: the kernel refused. */
static bool push(struct uring *u, struct raw_write *write)
{
	struct io_uring_sqe *sqe;
	int r;

	pthread_mutex_lock(&u->lock);
	sqe = u->broken ? NULL : io_uring_get_sqe(&u->ring);
	if (!sqe) {
		pthread_mutex_unlock(&u->lock);
		return false;
	}
	prepare(u, sqe, write);
	while ((r = io_uring_submit(&u->ring)) < 0 && (r == -EAGAIN || r == -EBUSY || r == -EINTR))
		usleep(100); /* the kernel is short of memory for requests */
	if (r < 0) {
		sl_warn("raw: io_uring fails (%s): going on with pwrite()", strerror(-r));
		u->broken = true;
	}
	pthread_mutex_unlock(&u->lock);
	return r >= 0;
}

static void submit(void *state, struct raw_write *write)
{
	struct uring *u = state;

	if (!push(u, write))
		u->options.done(u->options.arg, write, raw_write_now(write));
}

static void reap(struct uring *u)
{
	struct io_uring_cqe *cqe;
	struct raw_write *write;
	int result, error;

	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		write = io_uring_cqe_get_data(cqe);
		result = cqe->res;
		io_uring_cqe_seen(&u->ring, cqe);
		/* Pairs with the unlock in push(): the write is seen as it was submitted. */
		pthread_mutex_lock(&u->lock);
		pthread_mutex_unlock(&u->lock);
		if (raw_write_went(write, result, &error))
			u->options.done(u->options.arg, write, error);
		else
			submit(u, write);
	}
}

/* The kernel adds to the event whenever a write is over; close_ring() does, too. */
static void *reap_main(void *arg)
{
	struct uring *u = arg;
	uint64_t events;

	while (!atomic_load(&u->end)) {
		if (read(u->event, &events, sizeof(events)) < 0 && errno != EINTR)
			usleep(1000);
		reap(u);
	}
	return NULL;
}

static void close_ring(void *state)
{
	struct uring *u = state;
	const uint64_t one = 1;

	atomic_store(&u->end, true);
	while (write(u->event, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	sl_thread_join(&u->thread);
	io_uring_queue_exit(&u->ring);
	close(u->event);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static int open_ring(const struct raw_io_options *options, void **state)
{
	struct iovec memory = {.iov_base = options->memory,
			       .iov_len = (size_t)options->buffers * options->buffer_bytes};
	struct uring *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->options = *options;
	pthread_mutex_init(&u->lock, NULL);
	u->event = eventfd(0, EFD_CLOEXEC);
	r = u->event < 0 ? -errno : io_uring_queue_init(options->buffers, &u->ring, 0);
	if (r)
		goto undo_event;
	/* Refused where more memory would be locked than the user may: it is only a saving. */
	u->fixed = !io_uring_register_buffers(&u->ring, &memory, 1);
	r = io_uring_register_eventfd(&u->ring, u->event);
	if (!r)
		r = sl_thread_start(&u->thread, "raw-reap", NULL, reap_main, u);
	if (r)
		goto undo_ring;
	*state = u;
	return 0;
undo_ring:
	io_uring_queue_exit(&u->ring);
undo_event:
	if (u->event >= 0)
		close(u->event);
	pthread_mutex_destroy(&u->lock);
	free(u);
	return r == -ENOMEM ? -EPERM : r; /* a limit of locked memory: a refusal, too */
}

const struct raw_io_kind raw_uring = {open_ring, submit, close_ring};
