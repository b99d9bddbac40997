/* opcode.c - the table of opcodes. A row per operation; RC and UC share the rows they share. */
#include "roce/opcode.h"

enum {
	DETH = SL_ROCE_HAS_DETH,
	FETH = SL_ROCE_HAS_FETH,
	RETH = SL_ROCE_HAS_RETH,
	ATOMIC = SL_ROCE_HAS_ATOMIC,
	AETH = SL_ROCE_HAS_AETH,
	ATOMIC_ACK = SL_ROCE_HAS_ATOMIC_ACK,
	IMM = SL_ROCE_HAS_IMM,
	IETH = SL_ROCE_HAS_IETH,
	CNP = SL_ROCE_HAS_CNP
};

/* Bytes of a set of headers, as a constant. */
#define BYTES(set)                                                                                 \
	(SL_ROCE_BTH_BYTES + ((set)&DETH ? 8 : 0) + ((set)&FETH ? 4 : 0) + ((set)&RETH ? 16 : 0) + \
	 ((set)&ATOMIC ? 28 : 0) + ((set)&AETH ? 4 : 0) + ((set)&ATOMIC_ACK ? 8 : 0) +             \
	 ((set)&IMM ? 4 : 0) + ((set)&IETH ? 4 : 0) + ((set)&CNP ? 16 : 0))

#define ROW(transport_, operation_, headers_, kind_, position_, payload_, receive_, complete_) \
	[SL_ROCE_##transport_ << 5 | SL_ROCE_##operation_] = {                                 \
		.name = #transport_ "_" #operation_,                                           \
		.headers = (headers_),                                                         \
		.header_bytes = BYTES(headers_),                                               \
		.kind = SL_ROCE_KIND_##kind_,                                                  \
		.position = SL_ROCE_##position_,                                               \
		.payload = SL_ROCE_PAYLOAD_##payload_,                                         \
		.receive = (receive_),                                                         \
		.complete = (complete_),                                                       \
	}

/* SEND and WRITE are the same on RC and UC. A WRITE takes a receive only for its immediate. */
#define SEND_AND_WRITE(transport)                                                    \
	ROW(transport, SEND_FIRST, 0, SEND, FIRST, PMTU, true, false),               \
		ROW(transport, SEND_MIDDLE, 0, SEND, MIDDLE, PMTU, true, false),     \
		ROW(transport, SEND_LAST, 0, SEND, LAST, SOME, true, true),          \
		ROW(transport, SEND_LAST_IMM, IMM, SEND, LAST, SOME, true, true),    \
		ROW(transport, SEND_ONLY, 0, SEND, ONLY, ANY, true, true),           \
		ROW(transport, SEND_ONLY_IMM, IMM, SEND, ONLY, ANY, true, true),     \
		ROW(transport, WRITE_FIRST, RETH, WRITE, FIRST, PMTU, false, false), \
		ROW(transport, WRITE_MIDDLE, 0, WRITE, MIDDLE, PMTU, false, false),  \
		ROW(transport, WRITE_LAST, 0, WRITE, LAST, SOME, false, false),      \
		ROW(transport, WRITE_LAST_IMM, IMM, WRITE, LAST, SOME, true, true),  \
		ROW(transport, WRITE_ONLY, RETH, WRITE, ONLY, ANY, false, false),    \
		ROW(transport, WRITE_ONLY_IMM, RETH | IMM, WRITE, ONLY, ANY, true, true)

#define CNP_ROW(name_)                           \
	[SL_ROCE_OPCODE_##name_] = {             \
		.name = #name_,                  \
		.headers = CNP,                  \
		.header_bytes = BYTES(CNP),      \
		.kind = SL_ROCE_KIND_CNP,        \
		.position = SL_ROCE_ONLY,        \
		.payload = SL_ROCE_PAYLOAD_NONE, \
	}

static const struct sl_roce_opcode table[256] = {
	SEND_AND_WRITE(RC),
	ROW(RC, READ_REQUEST, RETH, READ, ONLY, NONE, false, false),
	ROW(RC, READ_RESPONSE_FIRST, AETH, RESPONSE, FIRST, PMTU, false, false),
	ROW(RC, READ_RESPONSE_MIDDLE, 0, RESPONSE, MIDDLE, PMTU, false, false),
	ROW(RC, READ_RESPONSE_LAST, AETH, RESPONSE, LAST, SOME, false, false),
	ROW(RC, READ_RESPONSE_ONLY, AETH, RESPONSE, ONLY, ANY, false, false),
	ROW(RC, ACKNOWLEDGE, AETH, RESPONSE, ONLY, NONE, false, false),
	ROW(RC, ATOMIC_ACKNOWLEDGE, AETH | ATOMIC_ACK, RESPONSE, ONLY, NONE, false, false),
	ROW(RC, COMPARE_SWAP, ATOMIC, ATOMIC, ONLY, NONE, false, false),
	ROW(RC, FETCH_ADD, ATOMIC, ATOMIC, ONLY, NONE, false, false),
	ROW(RC, SEND_LAST_INVALIDATE, IETH, SEND, LAST, SOME, true, true),
	ROW(RC, SEND_ONLY_INVALIDATE, IETH, SEND, ONLY, ANY, true, true),
	ROW(RC, FLUSH, FETH | RETH, FLUSH, ONLY, NONE, false, false),
	ROW(RC, ATOMIC_WRITE, RETH, ATOMIC, ONLY, EIGHT, false, false),
	ROW(RC, RESERVED_15, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_18, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_19, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_1A, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_1B, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_1E, 0, RESERVED, ONLY, ANY, false, false),
	ROW(RC, RESERVED_1F, 0, RESERVED, ONLY, ANY, false, false),
	SEND_AND_WRITE(UC),
	ROW(UD, SEND_ONLY, DETH, SEND, ONLY, ANY, true, true),
	ROW(UD, SEND_ONLY_IMM, DETH | IMM, SEND, ONLY, ANY, true, true),
	CNP_ROW(CNP),
	CNP_ROW(CNP_CLASS),
};

const struct sl_roce_opcode *sl_roce_opcode(uint8_t opcode)
{
	return table[opcode].name ? &table[opcode] : NULL;
}

const char *sl_roce_opcode_name(uint8_t opcode)
{
	return table[opcode].name ? table[opcode].name : "unknown";
}

bool sl_roce_payload_fits(const struct sl_roce_opcode *opcode, uint32_t bytes, uint32_t pmtu)
{
	uint32_t most = pmtu ? pmtu : SL_ROCE_PMTU_MAX;

	switch (opcode->payload) {
	case SL_ROCE_PAYLOAD_NONE:
		return bytes == 0;
	case SL_ROCE_PAYLOAD_PMTU:
		return pmtu ? bytes == pmtu : bytes > 0 && bytes <= most;
	case SL_ROCE_PAYLOAD_SOME:
		return bytes > 0 && bytes <= most;
	case SL_ROCE_PAYLOAD_ANY:
		return bytes <= most;
	case SL_ROCE_PAYLOAD_EIGHT:
		return bytes == 8;
	default:
		return false;
	}
}
