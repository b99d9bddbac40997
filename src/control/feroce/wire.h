/* wire.h - the messages of the FEROCE connection manager, as bytes (table:
 * docs/reference/feroce.md).
 *
 * Model:     64 bytes in one UDP datagram, big-endian, the same for requests and answers. Each
 *            side describes its own queue pair under `local` and repeats the other's under
 *            `remote`, so an answer is the request with the two exchanged. `port` is where the
 *            sender of the message hears answers.
 * Ownership: plain data in the caller's memory.
 * Errors:    decode takes exactly 64 bytes and nothing that encode would not write: what it
 *            accepts encodes to the same bytes again. */
#ifndef SL_CONTROL_FEROCE_WIRE_H
#define SL_CONTROL_FEROCE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_FEROCE_BYTES = 64,
	/* A core hears requests and answers on the first; one that opens by itself sends its
	 * requests to the second. */
	SL_FEROCE_PORT = 0x4321,
	SL_FEROCE_PORT_OF_HOSTS = 0x4322,
};

enum sl_feroce_request {
	SL_FEROCE_NONE = 0,
	SL_FEROCE_OPEN = 1,
	SL_FEROCE_INFO = 2,
	SL_FEROCE_RTS = 3,
	SL_FEROCE_CLOSE = 4,
	/* 5 is used inside the core, 6 is not used. */
	SL_FEROCE_ERROR = 7,
};

enum sl_feroce_answer {
	SL_FEROCE_ACK_NONE = 0,
	SL_FEROCE_ACK = 1,
	SL_FEROCE_NO_QP = 2,
	SL_FEROCE_NAK = 3,
	SL_FEROCE_ACK_ERROR = 7,
};

struct sl_feroce_queue {
	uint32_t qpn, psn; /* 24 bits each */
	uint32_t rkey;
	uint64_t va;
	uint32_t ip; /* IPv4, host order */
};

struct sl_feroce_generator { /* starts the data generator of test firmware; hosts ignore it */
	bool valid, start, immediate;
	bool write; /* otherwise SEND */
	uint32_t bytes, transfers;
	uint32_t clocks; /* between messages; 0: as fast as it can */
};

struct sl_feroce_message {
	bool info; /* `request` is meant */
	uint8_t request;
	bool answer; /* `ack` is meant */
	uint8_t ack;
	struct sl_feroce_queue local, remote;
	uint16_t port;
	struct sl_feroce_generator generator;
};

void sl_feroce_encode(const struct sl_feroce_message *message, uint8_t out[SL_FEROCE_BYTES]);

/* 0, or -EPROTO: not 64 bytes, a code that does not exist, padding that is not 0. */
int sl_feroce_decode(const void *in, size_t bytes, struct sl_feroce_message *message);

#endif
