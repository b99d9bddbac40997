/* opcode.h - what each opcode means: its headers, its place in a message, its payload.
 *
 * Model:     one table over the whole opcode byte, for RC, UC, UD and CNP; parser, requester and
 *            responder read it and know no opcode by number. Reserved opcodes have a row where
 *            they must be answered: on RC, with NAK invalid request. Their headers are unknown, so
 *            that all behind the BTH is payload. On UC and UD they are no packets at all. */
#ifndef SL_ROCE_OPCODE_H
#define SL_ROCE_OPCODE_H

#include "roce/roce.h"

/* The lower five bits of an opcode, alike for all transports. */
enum sl_roce_operation {
	SL_ROCE_SEND_FIRST = 0x00,
	SL_ROCE_SEND_MIDDLE = 0x01,
	SL_ROCE_SEND_LAST = 0x02,
	SL_ROCE_SEND_LAST_IMM = 0x03,
	SL_ROCE_SEND_ONLY = 0x04,
	SL_ROCE_SEND_ONLY_IMM = 0x05,
	SL_ROCE_WRITE_FIRST = 0x06,
	SL_ROCE_WRITE_MIDDLE = 0x07,
	SL_ROCE_WRITE_LAST = 0x08,
	SL_ROCE_WRITE_LAST_IMM = 0x09,
	SL_ROCE_WRITE_ONLY = 0x0a,
	SL_ROCE_WRITE_ONLY_IMM = 0x0b,
	SL_ROCE_READ_REQUEST = 0x0c,
	SL_ROCE_READ_RESPONSE_FIRST = 0x0d,
	SL_ROCE_READ_RESPONSE_MIDDLE = 0x0e,
	SL_ROCE_READ_RESPONSE_LAST = 0x0f,
	SL_ROCE_READ_RESPONSE_ONLY = 0x10,
	SL_ROCE_ACKNOWLEDGE = 0x11,
	SL_ROCE_ATOMIC_ACKNOWLEDGE = 0x12,
	SL_ROCE_COMPARE_SWAP = 0x13,
	SL_ROCE_FETCH_ADD = 0x14,
	SL_ROCE_RESERVED_15 = 0x15,
	SL_ROCE_SEND_LAST_INVALIDATE = 0x16,
	SL_ROCE_SEND_ONLY_INVALIDATE = 0x17,
	SL_ROCE_RESERVED_18 = 0x18,
	SL_ROCE_RESERVED_19 = 0x19,
	SL_ROCE_RESERVED_1A = 0x1a,
	SL_ROCE_RESERVED_1B = 0x1b,
	SL_ROCE_FLUSH = 0x1c,
	SL_ROCE_ATOMIC_WRITE = 0x1d,
	SL_ROCE_RESERVED_1E = 0x1e,
	SL_ROCE_RESERVED_1F = 0x1f,
};

enum {
	SL_ROCE_OPCODE_CNP = 0x81,	 /* what devices send, and we */
	SL_ROCE_OPCODE_CNP_CLASS = 0x80, /* what some tables call CNP: understood, never sent */
};

#define SL_ROCE_OPCODE(transport, operation) ((uint8_t)((transport) << 5 | (operation)))

enum sl_roce_kind {
	SL_ROCE_KIND_SEND,
	SL_ROCE_KIND_WRITE,
	SL_ROCE_KIND_READ,
	SL_ROCE_KIND_ATOMIC,
	SL_ROCE_KIND_FLUSH,
	SL_ROCE_KIND_RESPONSE, /* READ response, ACK, atomic ACK: goes to the requester */
	SL_ROCE_KIND_CNP,
	SL_ROCE_KIND_RESERVED, /* a request that no specification has: refused in its turn */
};

/* Where in its message a packet stands; ONLY is both ends at once. */
enum sl_roce_position {
	SL_ROCE_MIDDLE = 0,
	SL_ROCE_FIRST = 1 << 0,
	SL_ROCE_LAST = 1 << 1,
	SL_ROCE_ONLY = SL_ROCE_FIRST | SL_ROCE_LAST,
};

/* Which payload lengths are legal. */
enum sl_roce_payload {
	SL_ROCE_PAYLOAD_NONE,
	SL_ROCE_PAYLOAD_PMTU,  /* exactly the path MTU */
	SL_ROCE_PAYLOAD_SOME,  /* 1..PMTU */
	SL_ROCE_PAYLOAD_ANY,   /* 0..PMTU */
	SL_ROCE_PAYLOAD_EIGHT, /* one word */
};

struct sl_roce_opcode {
	const char *name; /* "UC_WRITE_ONLY" */
	uint16_t headers; /* set of enum sl_roce_header */
	uint8_t header_bytes;
	uint8_t kind, position, payload;
	bool receive;  /* its message takes a posted receive */
	bool complete; /* the receiver sees a completion after this packet */
};

/* NULL when there is no such opcode. */
const struct sl_roce_opcode *sl_roce_opcode(uint8_t opcode);

/* "UC_WRITE_ONLY", or "unknown". */
const char *sl_roce_opcode_name(uint8_t opcode);

/* The one rule about payload lengths; pmtu is 0 where it is not known. */
bool sl_roce_payload_fits(const struct sl_roce_opcode *opcode, uint32_t bytes, uint32_t pmtu);

static inline enum sl_roce_transport sl_roce_opcode_transport(uint8_t opcode)
{
	return (enum sl_roce_transport)(opcode >> 5);
}

#endif
