/* push.h - ZeroMQ PUSH sockets on consecutive ports, each for one puller.
 *
 * Model:     a socket is in one of three states during a series. WAITING: no puller is connected,
 *            and no image has been due yet; a puller that connects gets the start message. ACTIVE:
 *            the puller has the start message, and gets images. ABSENT: the puller has
 *            disconnected, or had not come before the first image; nothing is sent until the next
 *            series, since a client cannot use images without a start message.
 *            PUSH divides messages between all connected pullers: a second one on the same socket
 *            takes images away from the first. ZeroMQ cannot refuse it, so it is logged and
 *            counted.
 *            Images are not copied: a message buffer belongs to ZeroMQ from a successful send until
 *            the kernel has taken all of it. At most `queue` buffers of a socket do.
 * Threads:   all calls from one thread at a time, except sl_push_buffer_get() and _put(), which any
 *            thread may call. ZeroMQ gives buffers back on a thread of its own.
 * Ownership: sl_push_close() frees everything, buffers too.
 * Errors:    -errno; open and wait log the reason. */
#ifndef SL_SINK_STREAM2_PUSH_H
#define SL_SINK_STREAM2_PUSH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_PUSH_SOCKETS = 16, SL_PUSH_ENDPOINT_BYTES = 128 };

enum sl_push_state { SL_PUSH_WAITING, SL_PUSH_ACTIVE, SL_PUSH_ABSENT };

struct sl_push_options {
	const char *address;
	uint32_t port, sockets;
	uint32_t queue;	     /* images of a socket that ZeroMQ holds */
	size_t buffer_bytes; /* of a message */
	uint64_t timeout_ns; /* a puller that takes nothing for this time is given up */
	bool wait;	     /* a full queue: wait for room; else the image is dropped */
};

struct sl_push_buffer {
	struct sl_push *push;
	struct sl_push_buffer *next;   /* in the list of free ones */
	struct sl_push_socket *socket; /* that it was sent on */
	_Alignas(8) uint8_t memory[];
};

struct sl_push_socket {
	void *socket, *monitor;
	char endpoint[SL_PUSH_ENDPOINT_BYTES];
	enum sl_push_state state;
	int pullers;	 /* connected now */
	int accepted;	 /* connections that have not shaken hands yet */
	int failed;	 /* handshakes whose end of connection is still to be reported */
	int last, first; /* descriptors: of the last connection; of the first puller, -1: unknown */
	bool given_up;	 /* the puller stalled: do not wait for it again in this series */
	bool told_full;	 /* a drop was logged */
	_Atomic uint32_t queued;
	uint64_t sent, dropped;
};

struct sl_push {
	struct sl_push_options options;
	void *context;
	uint32_t sockets;
	struct sl_push_socket socket[SL_PUSH_SOCKETS];
	const void *start; /* the start message, the caller's */
	size_t start_bytes;
	uint64_t lost, extra; /* pullers that disconnected in a series; second pullers */
	pthread_mutex_t lock;
	pthread_cond_t room; /* a buffer came back */
	struct sl_push_buffer *free;
};

/* Bind all sockets. On failure nothing is left open. */
int sl_push_open(struct sl_push *push, const struct sl_push_options *options);

/* Wait until every socket has a puller, at most this time. Returns how many have none. */
uint32_t sl_push_wait(struct sl_push *push, uint64_t timeout_ns);

/* A series begins: pullers get this message now or when they connect. It must stay until the first
 * image. */
void sl_push_start(struct sl_push *push, const void *message, size_t bytes);

/* NULL: no memory. */
struct sl_push_buffer *sl_push_buffer_get(struct sl_push *push);
void sl_push_buffer_put(struct sl_push_buffer *buffer);

/* Send `bytes` of the buffer's memory from `offset`, and take the buffer in any case. 0: ZeroMQ has
 * it. -ENOTCONN: the socket has no puller in this series; -ENOBUFS: the queue is full. Both are
 * counted as dropped. */
int sl_push_image(struct sl_push *push, uint32_t socket, struct sl_push_buffer *buffer,
		  size_t offset, size_t bytes);

/* Wait until pullers have taken what is queued, while they take anything; then send the end message
 * to those that have. Returns the images that were not taken. */
uint64_t sl_push_end(struct sl_push *push, const void *message, size_t bytes);

/* Returns within the options' timeout. */
void sl_push_close(struct sl_push *push);

#endif
