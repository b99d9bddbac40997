/* wire.c - one table of fields per message drives both directions. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "control/tcp/wire.h"

#define MAGIC "SLC1"

enum field_kind { U16, U64, BYTES, TEXT, U32, MARK };

struct field {
	enum field_kind kind;
	uint16_t offset, bytes;
};

#define F(kind, S, f)                                     \
	{                                                 \
		kind, offsetof(S, f), sizeof(((S *)0)->f) \
	}
#define END               \
	{                 \
		U16, 0, 0 \
	}
/* What follows need not be there: a peer that does not know it yet leaves it out, and it is 0. */
#define LATER              \
	{                  \
		MARK, 0, 0 \
	}

static const struct field hello_fields[] = {
	F(U16, struct sl_wire_hello, modules),
	F(U64, struct sl_wire_hello, host),
	F(U64, struct sl_wire_hello, experiment),
	F(TEXT, struct sl_wire_hello, link),
	F(TEXT, struct sl_wire_hello, detector),
	F(BYTES, struct sl_wire_hello, reserved),
	LATER,
	F(BYTES, struct sl_wire_hello, nonce),
	END,
};

static const struct field offer_fields[] = {
	F(U16, struct sl_offer, module),
	F(U16, struct sl_offer, services),
	F(U16, struct sl_offer, messages),
	F(U16, struct sl_offer, max_pmtu),
	F(U16, struct sl_offer, ip_id),
	F(BYTES, struct sl_offer, source.ip),
	F(U16, struct sl_offer, source.port),
	F(U16, struct sl_offer, credit_port),
	F(U32, struct sl_offer, credit_qpn),
	F(U32, struct sl_offer, credit_rkey),
	F(U64, struct sl_offer, credit_va),
	F(U64, struct sl_offer, block_bytes),
	F(U64, struct sl_offer, first_frame),
	F(U64, struct sl_offer, frames),
	/* since version 2 */
	F(U16, struct sl_offer, operations),
	LATER,
	F(U32, struct sl_offer, lines),
	F(U32, struct sl_offer, line_bytes),
	F(U16, struct sl_offer, bare),
	END,
};

static const struct field plan_fields[] = {
	F(U16, struct sl_plan, version),
	F(U16, struct sl_plan, transfer),
	F(U16, struct sl_plan, module),
	F(U16, struct sl_plan, service),
	F(U16, struct sl_plan, message),
	F(U16, struct sl_plan, pmtu),
	F(U16, struct sl_plan, ip_id),
	F(U16, struct sl_plan, crc),
	F(U32, struct sl_plan, qpn),
	F(U32, struct sl_plan, rkey),
	F(U32, struct sl_plan, first_psn),
	F(U32, struct sl_plan, slots),
	F(U32, struct sl_plan, packets),
	F(U64, struct sl_plan, base),
	F(U64, struct sl_plan, stride),
	F(U64, struct sl_plan, block_at),
	F(U64, struct sl_plan, block_bytes),
	F(U64, struct sl_plan, first_sequence),
	F(U64, struct sl_plan, window_bytes),
	F(BYTES, struct sl_plan, source.ip),
	F(U16, struct sl_plan, source.port),
	F(BYTES, struct sl_plan, dest.ip),
	F(U16, struct sl_plan, dest.port),
	F(U32, struct sl_plan, credit_qpn),
	F(U32, struct sl_plan, credit_rkey),
	F(U64, struct sl_plan, credit_va),
	F(U16, struct sl_plan, credit_port),
	F(TEXT, struct sl_plan, location),
	/* since version 2 */
	F(U16, struct sl_plan, operation),
	F(U32, struct sl_plan, credit_psn),
	LATER,
	F(U32, struct sl_plan, lines),
	F(U32, struct sl_plan, line_bytes),
	F(U64, struct sl_plan, line_pitch),
	F(U64, struct sl_plan, record_at),
	F(U16, struct sl_plan, bare),
	END,
};

static const struct field count_fields[] = {
	F(U16, struct sl_wire_count, transfer),
	F(U64, struct sl_wire_count, next),
	F(U64, struct sl_wire_count, sent),
	F(U64, struct sl_wire_count, position),
	END,
};

static const struct field bye_fields[] = {LATER, F(U16, struct sl_wire_bye, more), END};
static const struct field error_fields[] = {F(TEXT, struct sl_wire_error, text), END};
static const struct field challenge_fields[] = {F(BYTES, struct sl_wire_challenge, nonce), END};
static const struct field proof_fields[] = {F(BYTES, struct sl_wire_proof, proof), END};
static const struct field no_fields[] = {END};

static const struct {
	const char *name;
	const struct field *fields;
} types[SL_WIRE_TYPES] = {
	[SL_WIRE_HELLO] = {"HELLO", hello_fields},
	[SL_WIRE_OFFER] = {"OFFER", offer_fields},
	[SL_WIRE_PLAN] = {"PLAN", plan_fields},
	[SL_WIRE_READY] = {"READY", no_fields},
	[SL_WIRE_START] = {"START", no_fields},
	[SL_WIRE_COUNT] = {"COUNT", count_fields},
	[SL_WIRE_DONE] = {"DONE", count_fields},
	[SL_WIRE_STOP] = {"STOP", no_fields},
	[SL_WIRE_BYE] = {"BYE", bye_fields},
	[SL_WIRE_ERROR] = {"ERROR", error_fields},
	[SL_WIRE_AGAIN] = {"AGAIN", no_fields},
	[SL_WIRE_CHALLENGE] = {"CHALLENGE", challenge_fields},
	[SL_WIRE_PROOF] = {"PROOF", proof_fields},
};

static bool at_end(const struct field *field)
{
	return !field->bytes && field->kind != MARK;
}

/* All of a body, or what must be there at least. */
static size_t body_bytes(const struct field *field, bool least)
{
	size_t total = 0;

	for (; !at_end(field) && !(least && field->kind == MARK); field++)
		total += field->bytes;
	return total;
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)v);
	put16(p + 2, (uint16_t)(v >> 16));
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static void put_field(const struct field *field, const uint8_t *from, uint8_t *to)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (field->kind) {
	case U16:
		memcpy(&u16, from, sizeof(u16));
		put16(to, u16);
		break;
	case U32:
		memcpy(&u32, from, sizeof(u32));
		put32(to, u32);
		break;
	case U64:
		memcpy(&u64, from, sizeof(u64));
		put32(to, (uint32_t)u64);
		put32(to + 4, (uint32_t)(u64 >> 32));
		break;
	case BYTES:
		memcpy(to, from, field->bytes);
		break;
	case MARK:
		break;
	case TEXT: /* what lies behind its end is not the peer's business, and would be refused */
		memset(to, 0, field->bytes);
		memcpy(to, from, strnlen((const char *)from, field->bytes - 1u));
		break;
	}
}

/* False when a text has no end, or anything after it: nothing of the stack or heap travels
 * unseen. */
static int get_field(const struct field *field, const uint8_t *from, uint8_t *to)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;
	size_t length;

	switch (field->kind) {
	case U16:
		u16 = get16(from);
		memcpy(to, &u16, sizeof(u16));
		break;
	case U32:
		u32 = get32(from);
		memcpy(to, &u32, sizeof(u32));
		break;
	case U64:
		u64 = get32(from) | (uint64_t)get32(from + 4) << 32;
		memcpy(to, &u64, sizeof(u64));
		break;
	case TEXT:
		length = strnlen((const char *)from, field->bytes);
		if (length == field->bytes)
			return 0;
		for (size_t i = 0; i < field->bytes; i++)
			if (i < length ? from[i] < 0x20 || from[i] == 0x7f : from[i])
				return 0;
		/* fall through */
	case BYTES:
		memcpy(to, from, field->bytes);
		break;
	case MARK:
		break;
	}
	return 1;
}

int sl_wire_encode(const struct sl_wire_message *message, void *out, size_t bytes)
{
	const struct field *field = types[message->type].fields;
	size_t body = body_bytes(field, false);
	uint8_t *p = out;

	if (bytes < SL_WIRE_HEADER + body)
		return -ENOSPC;
	memcpy(p, MAGIC, 4);
	put16(p + 4, SL_WIRE_VERSION);
	put16(p + 6, (uint16_t)message->type);
	put32(p + 8, (uint32_t)body);
	p += SL_WIRE_HEADER;
	for (; !at_end(field); field++) {
		put_field(field, (const uint8_t *)&message->hello + field->offset, p);
		p += field->bytes;
	}
	return (int)(SL_WIRE_HEADER + body);
}

int sl_wire_decode(const void *in, size_t bytes, struct sl_wire_message *message)
{
	struct sl_wire_message m = {0};
	const struct field *field;
	const uint8_t *p = in;
	uint32_t body, rest;

	/* Say no as early as possible: what is not our magic will not become it by waiting. */
	if (memcmp(p, MAGIC, bytes < 4 ? bytes : 4) != 0)
		return -EPROTO;
	if (bytes < SL_WIRE_HEADER)
		return 0;
	if (get16(p + 4) != SL_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	m.type = get16(p + 6);
	body = get32(p + 8);
	if (m.type == 0 || m.type >= SL_WIRE_TYPES || body > SL_WIRE_MAX - SL_WIRE_HEADER)
		return -EPROTO;
	field = types[m.type].fields;
	if (body < body_bytes(field, true))
		return -EPROTO;
	if (bytes < SL_WIRE_HEADER + body)
		return 0;
	p += SL_WIRE_HEADER;
	for (rest = body; !at_end(field) && field->bytes <= rest; field++) {
		if (!get_field(field, p, (uint8_t *)&m.hello + field->offset))
			return -EPROTO;
		p += field->bytes;
		rest -= field->bytes;
	}
	*message = m;
	return (int)(SL_WIRE_HEADER + body);
}

const char *sl_wire_name(enum sl_wire_type type)
{
	return type > 0 && type < SL_WIRE_TYPES ? types[type].name : "?";
}
