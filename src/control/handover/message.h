/* message.h - messages between a receiver and its keeper: bytes and descriptors over a Unix socket.
 *
 * Model:     SOCK_SEQPACKET, one message per packet: a header of 16 bytes (magic, version, type,
 *            length of the body, number of descriptors; little-endian), the body, and the
 *            descriptors beside it.
 *
 *              receiver                            keeper
 *              CLAIM                        ->     ESTATE, NOTHING, or REFUSED
 *              STORE (estate)               ->     DONE, or REFUSED
 *              FORGET                       ->     DONE
 *
 * Threads:   one per socket.
 * Ownership: descriptors of a parcel that was received are the parcel's (sl_parcel_close).
 * Errors:    -EPROTO what is not such a message, -EPROTONOSUPPORT one of another version,
 *            -EPIPE the other side is gone, -ETIMEDOUT it does not answer. */
#ifndef SL_CONTROL_HANDOVER_MESSAGE_H
#define SL_CONTROL_HANDOVER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SL_PARCEL_VERSION = 1,
	SL_PARCEL_HEADER = 16,
	SL_PARCEL_BODY = 1 << 16,
	SL_PARCEL_FDS = 3 + 64,
};

enum sl_parcel_type {
	SL_PARCEL_CLAIM = 1, /* I am the receiver now: what is there? */
	SL_PARCEL_ESTATE,
	SL_PARCEL_NOTHING,
	SL_PARCEL_STORE,
	SL_PARCEL_FORGET,
	SL_PARCEL_DONE,
	SL_PARCEL_REFUSED, /* the body says why */
	SL_PARCEL_TYPES,
};

struct sl_parcel {
	enum sl_parcel_type type;
	size_t bytes;
	uint8_t body[SL_PARCEL_BODY];
	unsigned fds;
	int fd[SL_PARCEL_FDS];
};

/* The header of a parcel, and back: type, bytes and fds from what arrived, `n` bytes and `fds`
 * descriptors in all. */
void sl_parcel_header(const struct sl_parcel *parcel, uint8_t header[SL_PARCEL_HEADER]);
int sl_parcel_parse(const uint8_t *data, size_t n, unsigned fds, struct sl_parcel *parcel);

/* 0 or -errno. Descriptors stay the caller's. */
int sl_parcel_send(int socket, const struct sl_parcel *parcel);

/* 1: received; 0: nothing within timeout_ms. */
int sl_parcel_receive(int socket, int timeout_ms, struct sl_parcel *parcel);
void sl_parcel_close(struct sl_parcel *parcel);

#endif
