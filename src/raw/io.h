/* io.h - aligned buffers to files, several at a time, by io_uring or by threads that pwrite().
 *
 * Model:     submit() hands a write over and returns; done() is called for each, in any order, once
 *            all of it is written or it failed. Short writes are gone on with, and a file that
 *            refuses O_DIRECT only when it is written to is written through the page cache. The
 *            two kinds are operation tables; raw_io_open() takes io_uring where the kernel lets us.
 * Threads:   submit: any thread. done() on threads of this object, without a lock of it held.
 * Ownership: a write is the object's from submit() until done(). */
#ifndef SL_RAW_IO_H
#define SL_RAW_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct raw_write {
	struct raw_write *next;
	int fd;
	uint32_t buffer; /* its number in the memory of raw_io_options */
	uint32_t bytes, written;
	uint32_t stuck; /* times that nothing was written */
	uint64_t offset;
	uint8_t *data;
};

typedef void raw_done(void *arg, struct raw_write *write, int error); /* 0 or -errno */

struct raw_io_options {
	uint8_t *memory; /* all buffers, one behind the other */
	uint32_t buffers, buffer_bytes;
	raw_done *done;
	void *arg;
};

struct raw_io_kind {
	int (*open)(const struct raw_io_options *options, void **state);
	void (*submit)(void *state, struct raw_write *write);
	void (*close)(void *state); /* when every write is done */
};

extern const struct raw_io_kind raw_plain;
extern const struct raw_io_kind raw_uring; /* where liburing is missing: open() is -ENOSYS */

struct raw_io {
	const struct raw_io_kind *kind; /* NULL: not open */
	void *state;
};

/* plain: no io_uring. -ENOMEM, -EAGAIN. */
int raw_io_open(struct raw_io *io, bool plain, const struct raw_io_options *options);
void raw_io_close(struct raw_io *io);

static inline void raw_io_submit(struct raw_io *io, struct raw_write *write)
{
	io->kind->submit(io->state, write);
}

/* Enter what one attempt gave: bytes, or -errno. True: the write is over, with 0 or -errno in
 * *error; false: the rest has to be tried again. */
bool raw_write_went(struct raw_write *write, int64_t result, int *error);

/* pwrite() until it is over; 0 or -errno. */
int raw_write_now(struct raw_write *write);

#endif
