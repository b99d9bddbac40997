/* roce_queue.h - for tests: a UC queue with a key of 64 KiB, and packets for it. Include cmocka.h
 * before. */
#ifndef TESTS_LIB_ROCE_QUEUE_H
#define TESTS_LIB_ROCE_QUEUE_H

#include "roce/responder.h"

#include <string.h>

enum { PMTU = 256, QPN = 0x11, RKEY = 0xabcd0001, READ_ONLY_KEY = 0xabcd0002, BYTES = 65536 };
#define BASE UINT64_C(0x7f0000000000)

enum op {
	SEND_FIRST = 0x20,
	SEND_MIDDLE,
	SEND_LAST,
	SEND_LAST_IMM,
	SEND_ONLY,
	SEND_ONLY_IMM,
	WRITE_FIRST,
	WRITE_MIDDLE,
	WRITE_LAST,
	WRITE_LAST_IMM,
	WRITE_ONLY,
	WRITE_ONLY_IMM,
};

static const struct sl_roce_path path = {
	.source = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dest = {[10] = 0xff, 0xff, 10, 0, 0, 2},
	.source_port = 0xc000,
	.dest_port = SL_ROCE_UDP_PORT,
	.dont_fragment = true,
};

static struct sl_roce_key keys[2];
static struct sl_roce_responder queue;
static struct sl_roce_action action;

static inline const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	for (size_t i = 0; i < 2; i++) {
		if (keys[i].rkey == rkey)
			return &keys[i];
	}
	return NULL;
}

static inline int fresh_queue(void **state)
{
	keys[0] = (struct sl_roce_key){RKEY, SL_ROCE_REMOTE_WRITE, 7, BASE, BYTES};
	keys[1] = (struct sl_roce_key){READ_ONLY_KEY, SL_ROCE_REMOTE_READ, 7, BASE, BYTES};
	memset(&queue, 0, sizeof(queue));
	queue.transport = SL_ROCE_UC;
	queue.pkey = SL_ROCE_PKEY_DEFAULT;
	queue.qpn = QPN;
	queue.pmtu = PMTU;
	queue.access = SL_ROCE_REMOTE_WRITE;
	queue.domain = 7;
	memcpy(queue.peer, path.source, sizeof(queue.peer));
	memcpy(queue.local, path.dest, sizeof(queue.local));
	queue.expected_psn = 100;
	queue.receives = 16;
	queue.receive_bytes = 2048;
	memset(&action, 0x5a, sizeof(action));
	return sl_roce_responder_init(&queue);
}

static inline struct sl_roce_packet make(enum op op, uint32_t psn, uint32_t bytes, uint32_t length)
{
	return (struct sl_roce_packet){
		.opcode = (uint8_t)op,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.has = sl_roce_opcode((uint8_t)op)->headers,
		.qpn = QPN,
		.psn = psn,
		.reth = {BASE + 0x1000, RKEY, length},
		.imm = 0x01020304,
		.payload_bytes = bytes,
	};
}

static inline enum sl_roce_drop give(struct sl_roce_packet packet)
{
	return sl_roce_responder_receive(&queue, &path, &packet, lookup, NULL, &action);
}

static inline enum sl_roce_drop give_op(enum op op, uint32_t psn, uint32_t bytes, uint32_t length)
{
	return give(make(op, psn, bytes, length));
}

#define TEST(name) cmocka_unit_test_setup(name, fresh_queue)

#endif
