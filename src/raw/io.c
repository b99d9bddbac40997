/* io.c - what both kinds of writing share, and the kind with threads. */
#include "raw/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "raw/format.h"

enum { THREADS = 4, STUCK_MOST = 8 };

struct plain {
	struct raw_io_options options;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct raw_write *first, **last; /* guarded by lock, likewise: */
	bool end;
	struct sl_thread thread[THREADS];
};

/* A file system may accept O_DIRECT and refuse writes with it. */
static bool give_up_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_DIRECT) && !fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

bool raw_write_went(struct raw_write *write, int64_t result, int *error)
{
	*error = 0;
	if (result > 0 && write->written + (uint64_t)result >= write->bytes)
		return true;
	/* The rest begins at a block again; what it has of this block is written twice. */
	if (result >= RAW_BLOCK) {
		write->written += (uint32_t)result / RAW_BLOCK * RAW_BLOCK;
		write->stuck = 0;
		return false;
	}
	if ((result == -EINVAL || result == -EOPNOTSUPP) && give_up_direct(write->fd))
		return false;
	if ((result >= 0 || result == -EINTR || result == -EAGAIN) && ++write->stuck < STUCK_MOST) {
		if (result == -EAGAIN)
			usleep(1000);
		return false;
	}
	*error = result < 0 ? (int)result : -EIO;
	return true;
}

int raw_write_now(struct raw_write *write)
{
	int64_t result;
	int error;

	do {
		result = pwrite(write->fd, write->data + write->written,
				write->bytes - write->written,
				(off_t)(write->offset + write->written));
		if (result < 0)
			result = -errno;
	} while (!raw_write_went(write, result, &error));
	return error;
}

static void *plain_main(void *arg)
{
	struct plain *p = arg;
	struct raw_write *write;

	for (;;) {
		pthread_mutex_lock(&p->lock);
		while (!p->first && !p->end)
			pthread_cond_wait(&p->work, &p->lock);
		write = p->first;
		if (write)
			p->first = write->next;
		if (!p->first)
			p->last = &p->first;
		pthread_mutex_unlock(&p->lock);
		if (!write)
			return NULL;
		p->options.done(p->options.arg, write, raw_write_now(write));
	}
}

static void plain_submit(void *state, struct raw_write *write)
{
	struct plain *p = state;

	write->next = NULL;
	pthread_mutex_lock(&p->lock);
	*p->last = write;
	p->last = &write->next;
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

static void plain_close(void *state)
{
	struct plain *p = state;

	pthread_mutex_lock(&p->lock);
	p->end = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (int i = 0; i < THREADS; i++)
		sl_thread_join(&p->thread[i]);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int plain_open(const struct raw_io_options *options, void **state)
{
	struct plain *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->last = &p->first;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	for (int i = 0; i < THREADS && !r; i++)
		r = sl_thread_start(&p->thread[i], "raw-write", NULL, plain_main, p);
	if (r)
		plain_close(p);
	else
		*state = p;
	return r;
}

const struct raw_io_kind raw_plain = {plain_open, plain_submit, plain_close};

int raw_io_open(struct raw_io *io, bool plain, const struct raw_io_options *options)
{
	int r = plain ? -ENOSYS : raw_uring.open(options, &io->state);

	io->kind = r ? &raw_plain : &raw_uring;
	if (!r)
		return 0;
	/* The caller asked for it, or the program was built without it: nothing to say. */
	if (r != -ENOSYS && r != -ENOMEM)
		sl_info("raw: this system refuses io_uring (%s): writing by pwrite() on %d "
			"threads, which may be slower",
			strerror(-r), THREADS);
	r = r == -ENOMEM ? r : raw_plain.open(options, &io->state);
	if (r)
		io->kind = NULL;
	return r;
}

void raw_io_close(struct raw_io *io)
{
	if (io->kind)
		io->kind->close(io->state);
	io->kind = NULL;
}
