/* message.h - messages between a receiver and its keeper: bytes and descriptors over a Unix socket.
 *
 * Model:     SOCK_SEQPACKET, one message per packet: a header of 16 bytes (magic, version, type,
 *            length of the body, number of descriptors; little-endian), the body, and the
 *            descriptors beside it.
 *
 *              receiver                            keeper
 *              CLAIM                        ->     STATE, NOTHING, or REFUSED
 *              STORE (handover state)       ->     DONE, or REFUSED
 *              FORGET                       ->     DONE
 *
 * Threads:   one per socket.
 * Ownership: descriptors of a message that was received are the message's
 *            (sl_handover_message_close).
 * Errors:    -EPROTO what is not such a message, -EPROTONOSUPPORT one of another version,
 *            -EPIPE the other side is gone, -ETIMEDOUT it does not answer. */
#ifndef SL_CONTROL_HANDOVER_MESSAGE_H
#define SL_CONTROL_HANDOVER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SL_HANDOVER_MESSAGE_VERSION = 1,
	SL_HANDOVER_MESSAGE_HEADER = 16,
	SL_HANDOVER_MESSAGE_BODY = 1 << 16,
	SL_HANDOVER_MESSAGE_FDS = 3 + 64,
};

enum sl_handover_message_type {
	SL_HANDOVER_MESSAGE_CLAIM = 1, /* I am the receiver now: what is there? */
	SL_HANDOVER_MESSAGE_STATE,
	SL_HANDOVER_MESSAGE_NOTHING,
	SL_HANDOVER_MESSAGE_STORE,
	SL_HANDOVER_MESSAGE_FORGET,
	SL_HANDOVER_MESSAGE_DONE,
	SL_HANDOVER_MESSAGE_REFUSED, /* the body says why */
	SL_HANDOVER_MESSAGE_TYPES,
};

struct sl_handover_message {
	enum sl_handover_message_type type;
	size_t bytes;
	uint8_t body[SL_HANDOVER_MESSAGE_BODY];
	unsigned fds;
	int fd[SL_HANDOVER_MESSAGE_FDS];
};

/* The header of a message, and back: type, bytes and fds from what arrived, `n` bytes and `fds`
 * descriptors in all. */
void sl_handover_message_header(const struct sl_handover_message *message,
				uint8_t header[SL_HANDOVER_MESSAGE_HEADER]);
int sl_handover_message_parse(const uint8_t *data, size_t n, unsigned fds,
			      struct sl_handover_message *message);

/* 0 or -errno. Descriptors stay the caller's. */
int sl_handover_message_send(int socket, const struct sl_handover_message *message);

/* 1: received; 0: nothing within timeout_ms. */
int sl_handover_message_receive(int socket, int timeout_ms, struct sl_handover_message *message);
void sl_handover_message_close(struct sl_handover_message *message);

#endif
