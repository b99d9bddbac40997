/* frame.h - what a share and its followers say on their socket: a Unix socket on one host, TCP
 * between hosts.
 *
 * Model:     frames: a head of 32 bytes in the byte order of this host, then `bytes` of payload.
 *
 *              HELLO     follower: value is SL_SHARE_VERSION; it wants memory
 *              ATTACHED  share: value is the generation; with one or two descriptors
 *              PING      follower: value comes back in a PONG
 *              MESSAGE   either: value is the application's kind, payload the message
 *              SLEEPS    follower: it waits for a futex, and wants to be woken (value 1), or does
 *                        not any longer (0)
 *              FAREWELL  share: its last frame, if it did not crash
 *
 *            Between hosts PING, PONG and MESSAGE are the same, and the others are those of
 *            remote_wire.h.
 * Trust:     on one host both ends run as the same user, or one is root; numbers are checked all
 *            the same. */
#ifndef SL_SHARE_FRAME_H
#define SL_SHARE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_SHARE_FRAME_MAGIC UINT32_C(0x53535646)

enum sl_share_frame_type {
	SL_SHARE_FRAME_HELLO = 1,
	SL_SHARE_FRAME_ATTACHED,
	SL_SHARE_FRAME_PING,
	SL_SHARE_FRAME_PONG,
	SL_SHARE_FRAME_MESSAGE,
	SL_SHARE_FRAME_SLEEPS,
	SL_SHARE_FRAME_FAREWELL,
	/* Between hosts. */
	SL_SHARE_FRAME_GREETING = 16,
	SL_SHARE_FRAME_CHALLENGE,
	SL_SHARE_FRAME_PROOF,
	SL_SHARE_FRAME_WELCOME,
	SL_SHARE_FRAME_REFUSED,
	SL_SHARE_FRAME_CONNECT,
	SL_SHARE_FRAME_CONNECTED,
	SL_SHARE_FRAME_ARRIVALS,
	SL_SHARE_FRAME_ENDED,
	SL_SHARE_FRAME_FINISHED,
};

struct sl_share_frame {
	uint32_t magic, type;
	uint64_t value, bytes, unused;
};

_Static_assert(sizeof(struct sl_share_frame) == 32, "no padding");

/* ---- frames that wait to be sent ---- */

struct sl_share_out_frame {
	struct sl_share_out_frame *next;
	uint64_t bytes, sent; /* head and payload */
	int fd[2], fds;	      /* that go with its first byte, and are closed with this frame */
	struct sl_share_frame head; /* payload follows */
};

struct sl_share_out {
	struct sl_share_out_frame *first, **end;
	uint64_t bytes;	 /* of payload that waits */
	uint32_t frames; /* that wait */
	uint32_t offers; /* of memory that wait: ATTACHED and CONNECTED */
};

void sl_share_out_init(struct sl_share_out *out);
void sl_share_out_fini(struct sl_share_out *out);
/* A copy of the payload. fd: up to two descriptors, which are this queue's from here on. -ENOMEM:
 * nothing was taken. */
int sl_share_out_put(struct sl_share_out *out, enum sl_share_frame_type type, uint64_t value,
		     const void *payload, uint64_t bytes, const int *fd, int fds);
/* As much as the socket takes. 0: nothing waits any longer; -EAGAIN: it is full; another -errno:
 * the connection is over. */
int sl_share_out_send(struct sl_share_out *out, int socket);

/* ---- frames that arrive ---- */

struct sl_share_in {
	struct sl_share_frame head;
	uint64_t head_bytes, got; /* of the head, of the payload */
	uint8_t *payload;
	int fd[2], fds; /* that came with this frame */
	bool skips;	/* the payload is too long: it is read and forgotten */
};

void sl_share_in_fini(struct sl_share_in *in);
/* Read on. 1: a frame is whole: use it, then sl_share_in_next(); 0: no more bytes now;
 * -ECONNRESET: the connection is over; -EPROTO: no frame of ours; -EMSGSIZE: its head is here,
 * and its payload is longer than `most`: give up, or call sl_share_in_skip() and read on. */
int sl_share_in_read(struct sl_share_in *in, int socket, uint64_t most);
/* Read the payload of a frame that is too long without keeping it. */
void sl_share_in_skip(struct sl_share_in *in);
/* The payload of a frame that is whole, which the caller then frees. */
uint8_t *sl_share_in_take(struct sl_share_in *in);
/* Forget the frame: its payload is freed, descriptors that were not taken are closed. */
void sl_share_in_next(struct sl_share_in *in);

#endif
