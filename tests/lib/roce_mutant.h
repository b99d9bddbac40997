/* roce_mutant.h - for tests: packets that were valid before something was done to them.
 *
 * Model:     fill in `packet` with one that its queue would accept, then mutant_make(): most
 *            changes touch one field, with values at the edges of what is allowed, so that a
 *            mutant gets past all checks but the one that it is for. The bytes lie directly before
 *            a guard page: who reads too far is noticed. */
#ifndef TESTS_LIB_ROCE_MUTANT_H
#define TESTS_LIB_ROCE_MUTANT_H

#include "lib/fence.h"
#include "lib/roce_channel.h"
#include "roce/icrc.h"
#include "roce/opcode.h"
#include "roce/psn.h"
#include "roce/responder.h"

enum { MUTANT_ROOM = SL_ROCE_HEADERS_MAX + SL_ROCE_PMTU_MAX + 64 };

struct mutant {
	struct random *random;
	struct sl_roce_packet packet;
	struct sl_roce_path path;
	uint32_t pmtu;
	uint8_t layout;			       /* the opcode before */
	const struct sl_roce_key *key;	       /* whose edges are of interest */
	const struct sl_roce_key *const *keys; /* that exist */
	uint32_t key_count;
	struct fence buffer;
	uint8_t *bytes; /* the result */
	size_t n;
};

static inline uint32_t mutant_below(struct mutant *m, uint32_t below)
{
	return random_below(m->random, below);
}

static inline uint32_t mutant_random32(struct mutant *m)
{
	return random_next(m->random) << 16 ^ random_next(m->random);
}

static inline void mutant_va(struct mutant *m)
{
	uint64_t base = m->key->base, end = base + m->key->bytes, bytes = m->packet.reth.length;
	const uint64_t values[] = {
		0,
		1,
		base - 1,
		base,
		base + 1,
		end - 1,
		end,
		end + 1,
		end - bytes,
		end - bytes + 1,
		end - bytes - 1,
		end - m->pmtu,
		base - bytes,
		base - bytes + 1,
		UINT64_MAX,
		-bytes,
		1 - bytes,
		-bytes - 1,
		UINT64_C(1) << 63,
		(UINT64_C(1) << 63) - 1,
		base ^ UINT64_C(1) << 63,
		base + (UINT64_C(1) << 32),
		(uint64_t)mutant_random32(m) << 32 | mutant_random32(m),
	};

	m->packet.reth.va = values[mutant_below(m, sizeof(values) / sizeof(*values))];
}

static inline void mutant_length(struct mutant *m)
{
	uint32_t bytes = (uint32_t)m->key->bytes, was = m->packet.reth.length;
	const uint32_t values[] = {
		0,	     1,		  was - 1,
		was + 1,     m->pmtu - 1, m->pmtu,
		m->pmtu + 1, 2 * m->pmtu, 2 * m->pmtu + 1,
		bytes - 1,   bytes,	  bytes + 1,
		0x7fffffff,  0x80000000,  0x80000001,
		0xffffffff,  0 - m->pmtu, mutant_random32(m),
	};

	m->packet.reth.length = values[mutant_below(m, sizeof(values) / sizeof(*values))];
}

/* A key that there is not; or another one, and then an address that suits it. */
static inline void mutant_rkey(struct mutant *m)
{
	const uint32_t values[] = {0,
				   1,
				   0xffffffff,
				   m->packet.reth.rkey ^ 1,
				   m->packet.reth.rkey ^ 0x80000000,
				   mutant_random32(m)};
	const struct sl_roce_key *other = m->keys[mutant_below(m, m->key_count)];

	if (mutant_below(m, 4) == 0) {
		m->packet.reth.rkey = values[mutant_below(m, 6)];
		return;
	}
	m->packet.reth.rkey = other->rkey;
	if (mutant_below(m, 2))
		m->packet.reth.va = other->base + mutant_below(m, 1024);
}

static inline void mutant_psn(struct mutant *m)
{
	static const int32_t steps[] = {
		1,	2, 3, 8, 100, -1, -2, -3, -8, -100, 1 << 23, (1 << 23) - 1, (1 << 23) + 1,
		1 << 22};
	uint32_t i = mutant_below(m, 16);

	if (i < sizeof(steps) / sizeof(*steps))
		m->packet.psn = (m->packet.psn + (uint32_t)steps[i]) & SL_ROCE_PSN_MASK;
	else
		m->packet.psn = mutant_random32(m) & SL_ROCE_PSN_MASK;
}

/* Another operation of the same transport, another transport, anything. */
static inline void mutant_opcode(struct mutant *m)
{
	switch (mutant_below(m, 4)) {
	case 0:
		m->packet.opcode = (uint8_t)((m->packet.opcode & 0xe0) | mutant_below(m, 32));
		break;
	case 1:
		m->packet.opcode ^= (uint8_t)(1 << mutant_below(m, 8));
		break;
	case 2:
		m->packet.opcode = (uint8_t)((m->packet.opcode & 0x1f) | mutant_below(m, 8) << 5);
		break;
	default:
		m->packet.opcode = (uint8_t)mutant_below(m, 256);
	}
}

static inline void mutant_payload(struct mutant *m)
{
	const uint32_t was = m->packet.payload_bytes;
	const uint32_t values[] = {0,		1,
				   was + 1,	was - 1,
				   was + 4,	m->pmtu - 1,
				   m->pmtu,	m->pmtu + 1,
				   2 * m->pmtu, 4,
				   8,		SL_ROCE_PMTU_MAX,
				   4095,	mutant_below(m, 4097)};
	uint32_t bytes = values[mutant_below(m, sizeof(values) / sizeof(*values))];

	m->packet.payload_bytes = bytes <= SL_ROCE_PMTU_MAX ? bytes : 0;
	m->packet.pad = (uint8_t)(-m->packet.payload_bytes & 3);
}

static inline void mutant_owner(struct mutant *m)
{
	static const uint16_t pkeys[] = {0, 0x7fff, 0x8000, 0x8001, 0x1234, 0xfffe};
	const uint32_t qpns[] = {0, 1, 0xffffff, m->packet.qpn + 1, m->packet.qpn ^ 0x800000};

	switch (mutant_below(m, 4)) {
	case 0:
		m->packet.pkey = pkeys[mutant_below(m, 6)];
		break;
	case 1:
		m->packet.qpn = qpns[mutant_below(m, 5)];
		break;
	case 2:
		m->path.source[mutant_below(m, 16)] ^= (uint8_t)(1 << mutant_below(m, 8));
		break;
	default:
		m->path.dest[mutant_below(m, 16)] ^= (uint8_t)(1 << mutant_below(m, 8));
	}
}

static inline void mutant_extras(struct mutant *m)
{
	static const uint8_t syndromes[] = {0x00, 0x1f, 0x20, 0x3f, 0x40, 0x5f, 0x60,
					    0x61, 0x62, 0x63, 0x64, 0x7f, 0x80, 0xff};

	switch (mutant_below(m, 6)) {
	case 0:
		m->packet.aeth.syndrome = syndromes[mutant_below(m, sizeof(syndromes))];
		break;
	case 1:
		m->packet.aeth.msn = mutant_random32(m);
		break;
	case 2:
		m->packet.deth.qkey ^= UINT32_C(1) << mutant_below(m, 32);
		break;
	case 3:
		m->packet.byte4 = (uint8_t)mutant_below(m, 256);
		m->packet.reserved7 = (uint8_t)mutant_below(m, 128);
		break;
	case 4:
		m->packet.ackreq = !m->packet.ackreq;
		m->packet.mig = !m->packet.mig;
		break;
	default:
		m->packet.pad = (uint8_t)mutant_below(m, 4);
	}
}

static inline void mutant_field(struct mutant *m)
{
	static void (*const changes[])(struct mutant *) = {
		mutant_va,  mutant_va,	    mutant_length, mutant_length, mutant_rkey,
		mutant_psn, mutant_payload, mutant_owner,  mutant_extras,
	};

	changes[mutant_below(m, sizeof(changes) / sizeof(*changes))](m);
}

/* The bytes of the packet, with the headers that its opcode has, or had before it became one that
 * does not exist. The payload is whatever is there. */
static inline void mutant_encode(struct mutant *m)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX], opcode = m->packet.opcode;
	size_t header_bytes;

	if (!sl_roce_opcode(opcode))
		m->packet.opcode = m->layout;
	header_bytes = (size_t)sl_roce_encode_headers(&m->packet, headers);
	headers[0] = opcode;
	m->n = header_bytes + m->packet.payload_bytes + (-m->packet.payload_bytes & 3) + 4;
	m->bytes = m->buffer.inside + m->buffer.bytes - m->n;
	memcpy(m->bytes, headers, header_bytes);
}

/* What can only be done to bytes: an opcode with the headers of another, bits, a cut, a tail. */
static inline void mutant_bytes(struct mutant *m)
{
	size_t cut;

	switch (mutant_below(m, 8)) {
	case 0:
		m->bytes[0] = (uint8_t)mutant_below(m, 256);
		break;
	case 1:
		m->bytes[1] ^= (uint8_t)(1 << mutant_below(m, 4)); /* the version */
		break;
	case 2: /* the beginning moves up against the guard page */
		cut = 1 + mutant_below(m, mutant_below(m, 2) ? 8 : (uint32_t)m->n);
		cut = cut < m->n ? cut : m->n;
		memmove(m->bytes + cut, m->bytes, m->n - cut);
		m->bytes += cut;
		m->n -= cut;
		break;
	case 3:
		cut = 1 + mutant_below(m, 8);
		memmove(m->bytes - cut, m->bytes, m->n);
		m->bytes -= cut;
		m->n += cut;
		break;
	default:
		cut = m->n < SL_ROCE_HEADERS_MAX ? m->n : SL_ROCE_HEADERS_MAX;
		m->bytes[mutant_below(m, (uint32_t)cut)] ^= (uint8_t)(1 << mutant_below(m, 8));
	}
}

/* Change something, rarely more than one thing. */
static inline void mutant_make(struct mutant *m)
{
	uint32_t how = mutant_below(m, 16);

	m->layout = m->packet.opcode;
	if (how == 0)
		mutant_opcode(m);
	else if (how < 12)
		mutant_field(m);
	if (how == 10)
		mutant_field(m);
	mutant_encode(m);
	if (how > 10)
		mutant_bytes(m);
}

static inline void mutant_init(struct mutant *m, struct random *random)
{
	memset(m, 0, sizeof(*m));
	m->random = random;
	fence_make(&m->buffer, MUTANT_ROOM, true, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < m->buffer.bytes; i++)
		m->buffer.inside[i] = (uint8_t)mutant_below(m, 256);
}

#endif
