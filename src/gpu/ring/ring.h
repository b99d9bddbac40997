/* ring.h - a ring of buffers that a device takes events out of: from the source's memory to a
 * decision, without a launch in between.
 *
 * Model:     event n goes into buffer n % buffers, and its turn is n + 1. Words, in the order of
 *            an event's life (docs/reference/device-rings.md has them bit by bit):
 *
 *              enable[b]   host to source    the turn that may be written into the buffer
 *              data[b]     source to device  the event
 *              meta[b]     source to device  bytes, flags, check, turn: the event is there
 *              result[b]   device to host    of an event that is kept
 *              completion[b]   device to host    outcome, bytes, score, turn: the device is through
 *
 *            The source writes a buffer only while it is enabled; the host enables it again when
 *            it has taken the completion, and with it the result: so neither can be overrun, and a
 *            host that is slow holds the source. A source that writes all the same laps an event:
 *            the device sees that, never calls it good, and answers nothing before the host has the
 *            answer before. (A plain buffer is marked while it is written, for that.)
 *            Tagged buffers are for events of up to 12 KiB: chunks of 12 bytes, each with the turn
 *            behind it, so that data and word cross the bus in one look; so are their results.
 *            One kernel is launched when the ring is opened, and polls until the end (kernel.c).
 * Threads:   one publishes, one takes and releases; open(), end() and close() alone.
 * Ownership: the caller's struct; the device stays the caller's.
 * Cost:      publish() copies the event; take() is a load, and a look at the clock while it waits
 *            for one. Neither allocates nor locks. */
#ifndef SL_GPU_RING_RING_H
#define SL_GPU_RING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/device.h"
#include "gpu/ring/words.h"

enum {
	SL_DEVICE_RING_ARGUMENTS = 12,
	SL_DEVICE_RING_OWN = 10 /* that every kernel of a ring has before */
};

struct sl_device_ring_terms {
	uint32_t buffers;      /* a power of two */
	uint32_t event_bytes;  /* most of an event */
	uint32_t result_bytes; /* of one that is kept, at most */
	bool tagged;
	/* Data and meta in the device's memory, where copies bring them; not tagged. */
	bool on_device;
	/* And another device writes them, by the memory's dma-buf; on_device is set, too. */
	bool remote;
	uint32_t groups, threads; /* of the kernel; a group has a processor */
	uint32_t backoff_ns;	  /* that it rests between two looks */
	uint64_t timeout_ns;	  /* for the device to answer */
};

/* What is done with an event. The kernel takes SL_DEVICE_RING_PARAMETERS (src/gpu/ring/ring.clh),
 * then these arguments. Values stay where they are until the ring is closed. */
struct sl_device_ring_work {
	const struct sl_kernels *kernels;
	const char *kernel;
	struct sl_device_argument argument[SL_DEVICE_RING_ARGUMENTS];
	unsigned arguments;
};

struct sl_device_ring_completion {
	uint64_t event;
	enum sl_device_ring_outcome outcome;
	bool keep;
	uint32_t bytes, score;
};

/* What became of events; each is in one of them. */
struct sl_device_ring_ledger {
	uint64_t published, good, lapped, wrong, unanswered;
	uint64_t kept; /* of the good ones */
};

struct sl_device_ring {
	struct sl_device_ring_terms terms;
	struct sl_device_ring_work work;
	struct sl_device *device;
	const struct sl_platform *platform;
	struct sl_device_memory data, meta, result, completion, enable,
		stop;			 /* as kernels take them */
	struct sl_device_memory staging; /* words on their way to the device */
	struct sl_device_queue *in, *run;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel;
	struct sl_device_mark *ended;
	uint32_t buffer_bytes, slot_bytes; /* of data, of results */
	bool running, taken;
	bool by_lines;	      /* how chunks are written, see tagged.h */
	bool may_compile;     /* the kernel is compiled late, and has not answered yet */
	_Atomic bool is_over; /* nothing may be published any more */
	_Atomic uint64_t published;
	uint64_t next; /* to take */
	uint64_t waits_since_ns;
	uint32_t looks; /* since then */
	struct sl_device_ring_ledger ledger;
};

/* 0 or -errno, said in the log. */
int sl_device_ring_open(struct sl_device_ring *ring, struct sl_device *device,
			const struct sl_device_ring_terms *terms,
			const struct sl_device_ring_work *work);

/* ---- the source ---- */

/* May event n be written? */
bool sl_device_ring_may_write(const struct sl_device_ring *ring, uint64_t n);

/* Write it, and say that it is there. `data` stays as it is until the event's completion is taken,
 * where buffers are on the device. Does not ask whether it may. -ESHUTDOWN: after end(). */
int sl_device_ring_publish(struct sl_device_ring *ring, uint64_t n, const void *data,
			   uint32_t bytes);

/* Of a remote ring: data and meta words for the device that writes them, to be closed by the
 * caller. */
int sl_device_ring_share(struct sl_device_ring *ring, int *data, int *meta);

/* Another device has written event n, and said so (an immediate, a completion). The kernel polls,
 * and need not be told; the ledger counts the event from now on, and take() its time-out. */
int sl_device_ring_arrived(struct sl_device_ring *ring, uint64_t n);

/* The same in two steps, of plain buffers in the host's memory: where it is to be written, and that
 * it is. */
void *sl_device_ring_begin(struct sl_device_ring *ring, uint64_t n);
int sl_device_ring_commit(struct sl_device_ring *ring, uint64_t n, uint32_t bytes);

/* ---- the host ---- */

/* The next completion, in order. 1: here it is; 0: not yet; -ETIMEDOUT: the event is there, but no
 * answer came in time: the clock is looked at every 16th time. */
int sl_device_ring_take(struct sl_device_ring *ring, struct sl_device_ring_completion *completion);

/* The result of the completion that was taken, completion->bytes of it, before it is released: all
 * of it. How many bytes, or -ENODATA (it was not kept) or -ETIMEDOUT (some never came). */
int sl_device_ring_result(const struct sl_device_ring *ring,
			  const struct sl_device_ring_completion *completion, void *to,
			  uint32_t room);

/* The same where it lies, of plain buffers, between take() and release(). */
const void *sl_device_ring_slot(const struct sl_device_ring *ring);

/* The buffer of the completion that was taken may be written again. */
int sl_device_ring_release(struct sl_device_ring *ring);

/* Nothing more is published, by nobody, and the device is told to end; it is not waited for. */
void sl_device_ring_stop(struct sl_device_ring *ring);

/* Nothing more is published, by nobody: the device ends, what it has answered can be taken, and
 * what it never will is counted. -ETIMEDOUT: it does not end; its memory is left alone. */
int sl_device_ring_end(struct sl_device_ring *ring);

/* As it is now, and, after end(), closed: published is the sum of the others. */
struct sl_device_ring_ledger sl_device_ring_ledger(const struct sl_device_ring *ring);

void sl_device_ring_close(struct sl_device_ring *ring);

/* ---- kernel.c ---- */

int sl_device_ring_kernel_open(struct sl_device_ring *ring);
/* Nothing comes any more; returns when the device is through. */
int sl_device_ring_kernel_end(struct sl_device_ring *ring);
void sl_device_ring_kernel_close(struct sl_device_ring *ring);

#endif
