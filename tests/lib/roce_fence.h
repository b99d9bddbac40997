/* roce_fence.h - for tests: keys whose memory is fenced, doing what a responder says to it, and
 * packets that a queue accepts. Include cmocka.h before. */
#ifndef TESTS_LIB_ROCE_FENCE_H
#define TESTS_LIB_ROCE_FENCE_H

#include "lib/roce_mutant.h"
#include "roce/rc.h"

#include <stdio.h>

enum { PMTU = 256, QPN = 0x11, PEER_QPN = 0x22, DOMAIN = 7, RECEIVE_BYTES = 700 };
enum { BOTH, WRITE, READ, FOREIGN, TOP, AREAS };

/* What a peer may reach, and what it may not: READ cannot be written and FOREIGN not be touched at
 * all, which the hardware sees to. WRITE begins at address 0, TOP ends where addresses do. */
static struct area {
	struct sl_roce_key key;
	struct fence fence;
} areas[AREAS];

static const struct sl_roce_key *const keys[AREAS] = {&areas[BOTH].key, &areas[WRITE].key,
						      &areas[READ].key, &areas[FOREIGN].key,
						      &areas[TOP].key};
static struct fence receive; /* the posted one */
static struct random random_source;

static inline uint32_t below(uint32_t n)
{
	return random_below(&random_source, n);
}

/* Addresses for peers are fixed, so that a seed always makes the same packets. */
static inline void area_make(int index, uint32_t access, uint64_t base, size_t bytes, bool at_end,
			     int protection)
{
	struct area *area = &areas[index];

	fence_make(&area->fence, bytes, at_end, protection);
	area->key = (struct sl_roce_key){0x1000u + (uint32_t)index, access,
					 index == FOREIGN ? DOMAIN + 1 : DOMAIN, base, bytes};
}

static inline void areas_make(void)
{
	const uint32_t all = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ | SL_ROCE_REMOTE_ATOMIC;
	const uint64_t base = UINT64_C(0x7f1234567800);

	area_make(BOTH, all, base + 1, 5001, true, PROT_READ | PROT_WRITE);
	area_make(WRITE, SL_ROCE_REMOTE_WRITE, 0, 3000, false, PROT_READ | PROT_WRITE);
	area_make(READ, SL_ROCE_REMOTE_READ, base + 0x10000, 4096, true, PROT_READ);
	area_make(FOREIGN, all, base + 0x20000, 4096, true, PROT_NONE);
	area_make(TOP, all, -UINT64_C(4096), 4096, true, PROT_READ | PROT_WRITE);
	fence_make(&receive, RECEIVE_BYTES, true, PROT_READ | PROT_WRITE);
}

static inline const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	for (int i = 0; i < AREAS; i++) {
		if (areas[i].key.rkey == rkey)
			return &areas[i].key;
	}
	return NULL;
}

static inline void areas_check(void)
{
	assert_true(fence_intact(&areas[BOTH].fence));
	assert_true(fence_intact(&areas[WRITE].fence));
	assert_true(fence_untouched(&areas[READ].fence));
	assert_true(fence_intact(&areas[TOP].fence));
	assert_true(fence_intact(&receive));
}

static inline const struct area *area_of(const struct sl_roce_key *key)
{
	return (const struct area *)((const char *)key - offsetof(struct area, key));
}

/* What a queue accepted, it was ready for: the next packet of the message in progress, or a new one
 * (on RC only when there is none), of a kind that it permits. */
static inline void check_accepted(const struct sl_roce_responder *before,
				  const struct sl_roce_packet *packet)
{
	const struct sl_roce_opcode *opcode = sl_roce_opcode(packet->opcode);
	bool rc = before->transport == SL_ROCE_RC, first = opcode->position & SL_ROCE_FIRST;

	assert_true(packet->psn == before->expected_psn || (!rc && first));
	assert_true(first ? !(rc && before->open) : before->open && before->kind == opcode->kind);
	if (opcode->kind == SL_ROCE_KIND_WRITE)
		assert_true(before->access & SL_ROCE_REMOTE_WRITE);
	if (opcode->kind == SL_ROCE_KIND_READ)
		assert_true(before->access & SL_ROCE_REMOTE_READ);
}

/* Place it, right or wrong; the fences, and only then we, complain. */
static inline void place(const struct sl_roce_responder *before,
			 const struct sl_roce_packet *packet, const struct sl_roce_action *action)
{
	const struct fence *fence = &receive;
	uint8_t *to;

	check_accepted(before, packet);
	assert_int_equal(action->bytes, packet->payload_bytes);
	if (action->place == SL_ROCE_PLACE_NOWHERE) {
		assert_int_equal(action->bytes, 0);
		return;
	}
	to = receive.inside + action->offset;
	if (action->place == SL_ROCE_PLACE_MEMORY) {
		fence = &area_of(action->key)->fence;
		to = fence->inside + (action->va - action->key->base);
	}
	memcpy(to, packet->payload, action->bytes);
	assert_true(fence_holds(fence, to, action->bytes));
}

/* Send it: all that it reads is read. */
static inline void answer(struct sl_roce_reply *reply)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX], payload[PMTU];
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;

	while (sl_roce_reply_next(reply, headers, &fragment)) {
		assert_true(fragment.bytes <= PMTU);
		if (fragment.bytes) {
			const struct fence *fence = &area_of(reply->key)->fence;
			const uint8_t *from = fence->inside + (reply->va - reply->key->base) +
					      fragment.offset;

			memcpy(payload, from, fragment.bytes);
			assert_true(fence_holds(fence, from, fragment.bytes));
		}
		assert_int_equal(sl_roce_parse_headers(headers, fragment.header_bytes,
						       fragment.header_bytes + fragment.bytes +
							       fragment.pad + 4u,
						       &packet),
				 SL_ROCE_OK);
	}
}

/* ---- packets that a queue accepts as it is now ---- */

static inline void valid_bytes(struct sl_roce_packet *packet, uint8_t transport, uint8_t operation,
			       uint32_t bytes)
{
	packet->opcode = SL_ROCE_OPCODE(transport, operation);
	packet->payload_bytes = bytes;
	packet->pad = (uint8_t)(-bytes & 3);
}

static inline void valid_target(struct sl_roce_packet *packet, const int *choice, uint32_t length)
{
	const struct sl_roce_key *key = &areas[choice[below(3)]].key;

	packet->reth.rkey = key->rkey;
	packet->reth.length = length;
	packet->reth.va = key->base + below((uint32_t)key->bytes - length + 1);
}

static inline void valid_rest(const struct sl_roce_responder *queue, struct sl_roce_packet *packet)
{
	uint32_t left = queue->length - queue->offset, room = queue->receive_bytes - queue->offset;
	bool write = queue->kind == SL_ROCE_KIND_WRITE;
	bool last = write ? left <= PMTU : room <= PMTU || below(2);
	uint32_t bytes = write ? left : 1 + below(room < PMTU ? room : PMTU);
	uint8_t operation = write ? SL_ROCE_WRITE_MIDDLE : SL_ROCE_SEND_MIDDLE;

	valid_bytes(packet, queue->transport, (uint8_t)(operation + (last ? 1 + below(2) : 0)),
		    last ? bytes : PMTU);
}

static inline void valid_start(uint8_t transport, struct sl_roce_packet *packet)
{
	static const int writable[] = {BOTH, WRITE, TOP}, readable[] = {BOTH, READ, TOP};
	uint32_t some = below(PMTU + 1), more = PMTU + 1 + below(2 * PMTU);
	uint32_t kinds = transport == SL_ROCE_RC ? 8 : 6;

	switch (below(kinds)) {
	case 0:
	case 1:
		valid_bytes(packet, transport, (uint8_t)(SL_ROCE_SEND_ONLY + below(2)), some);
		break;
	case 2:
		valid_bytes(packet, transport, SL_ROCE_SEND_FIRST, PMTU);
		break;
	case 3:
	case 4:
		valid_bytes(packet, transport, (uint8_t)(SL_ROCE_WRITE_ONLY + below(2)), some);
		valid_target(packet, writable, some);
		break;
	case 5:
		valid_bytes(packet, transport, SL_ROCE_WRITE_FIRST, PMTU);
		valid_target(packet, writable, more);
		break;
	default:
		valid_bytes(packet, transport, SL_ROCE_READ_REQUEST, 0);
		valid_target(packet, readable, below(2) ? some : more);
	}
}

static inline void valid_request(const struct sl_roce_responder *queue,
				 struct sl_roce_packet *packet)
{
	memset(packet, 0, sizeof(*packet));
	packet->pkey = SL_ROCE_PKEY_DEFAULT;
	packet->qpn = QPN;
	packet->psn = queue->expected_psn;
	packet->ackreq = below(2);
	packet->imm = below(1000);
	if (queue->open)
		valid_rest(queue, packet);
	else
		valid_start(queue->transport, packet);
}

/* Operations that exist and that we do not serve, as their devices send them. */
static inline void foreign_request(struct sl_roce_packet *packet)
{
	static const uint8_t operations[] = {SL_ROCE_COMPARE_SWAP, SL_ROCE_FETCH_ADD,
					     SL_ROCE_SEND_ONLY_INVALIDATE, SL_ROCE_FLUSH,
					     SL_ROCE_ATOMIC_WRITE};
	static const int writable[] = {BOTH, TOP, TOP};
	uint8_t operation = operations[below(5)];

	valid_bytes(packet, SL_ROCE_RC, operation, operation == SL_ROCE_ATOMIC_WRITE ? 8 : 0);
	valid_target(packet, writable, 8);
	packet->atomic.va = packet->reth.va;
	packet->atomic.rkey = packet->reth.rkey;
}

/* ---- queues ---- */

/* One kind of queue. */
struct target {
	const char *name;
	unsigned share;			   /* of the packets, in tenths */
	uint8_t first_opcode, last_opcode; /* that it serves */
	unsigned causes;		   /* for which it must have dropped some */
	void (*fresh)(void);		   /* set it up */
	void (*valid)(struct sl_roce_packet *packet);
	enum sl_roce_drop (*receive)(const struct sl_roce_packet *packet,
				     const struct sl_roce_path *from);
	void (*prove)(void); /* it is not wedged: valid packets are accepted */
};

static const struct target *target;

static struct mutant mutant;

static const struct sl_roce_path path = {
	.source = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dest = {[10] = 0xff, 0xff, 10, 0, 0, 2},
	.dest_port = SL_ROCE_UDP_PORT,
};

/* Mostly enough, now and then none. */
static inline uint32_t some_receives(uint32_t receives)
{
	uint32_t i = below(32);

	return i < 2 ? i : i < 16 ? SL_ROCE_RECEIVES_UNLIMITED : receives;
}

static inline void some_rights(struct sl_roce_responder *queue)
{
	queue->receives = some_receives(queue->receives);
	queue->access = below(64) ? SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ : 0;
}

static inline struct sl_roce_responder fresh_responder(uint8_t transport)
{
	struct sl_roce_responder queue = {
		.transport = transport,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = QPN,
		.pmtu = PMTU,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.domain = DOMAIN,
		.expected_psn = below(4) ? below(1 << 24) : 0xffffff - below(16),
		.receives = SL_ROCE_RECEIVES_UNLIMITED,
		.receive_bytes = RECEIVE_BYTES,
	};

	memcpy(queue.peer, path.source, sizeof(queue.peer));
	memcpy(queue.local, path.dest, sizeof(queue.local));
	return queue;
}

/* Give a packet as it comes from the wire. */
static inline enum sl_roce_drop give(const struct sl_roce_packet *packet)
{
	struct sl_roce_packet parsed;

	mutant.packet = *packet;
	mutant_encode(&mutant);
	assert_int_equal(sl_roce_parse(mutant.bytes, mutant.n, &parsed), SL_ROCE_OK);
	return target->receive(&parsed, &path);
}

/* A message that shows up in memory. */
static inline void prove_write(uint8_t transport, uint32_t psn)
{
	struct sl_roce_packet packet = {
		.opcode = SL_ROCE_OPCODE(transport, SL_ROCE_WRITE_ONLY),
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.ackreq = true,
		.qpn = QPN,
		.psn = psn,
		.reth = {areas[WRITE].key.base, areas[WRITE].key.rkey, 64},
		.payload_bytes = 64,
	};

	memset(areas[WRITE].fence.inside, 0, 64);
	assert_int_equal(give(&packet), SL_ROCE_ACCEPTED);
	assert_memory_equal(areas[WRITE].fence.inside, mutant.bytes + mutant.n - 4 - 64, 64);
}

#endif
