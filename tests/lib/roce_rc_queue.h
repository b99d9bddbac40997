/* roce_rc_queue.h - for tests: an RC queue with keys of 64 KiB, and packets for it. Include
 * cmocka.h before. */
#ifndef TESTS_LIB_ROCE_RC_QUEUE_H
#define TESTS_LIB_ROCE_RC_QUEUE_H

#include "roce/rc_responder.h"

#include <string.h>

enum { PMTU = 256, QPN = 0x11, PEER_QPN = 0x22, BYTES = 65536, RNR_CODE = 12 };
enum { RKEY = 0x1001, WRITE_KEY = 0x1002, READ_KEY = 0x1003, FOREIGN_KEY = 0x1004 };
#define BASE	 UINT64_C(0x7f0000000000)
#define OP(name) SL_ROCE_OPCODE(SL_ROCE_RC, SL_ROCE_##name)

static const struct sl_roce_path path = {
	.source = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dest = {[10] = 0xff, 0xff, 10, 0, 0, 2},
};

static const struct sl_roce_key keys[] = {
	{RKEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 7, BASE, BYTES},
	{WRITE_KEY, SL_ROCE_REMOTE_WRITE, 7, BASE, BYTES},
	{READ_KEY, SL_ROCE_REMOTE_READ, 7, BASE, BYTES},
	{FOREIGN_KEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 8, BASE, BYTES},
};

static struct sl_roce_rc_responder rc;
static struct sl_roce_action action;
static struct sl_roce_reply reply;

static inline const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (keys[i].rkey == rkey)
			return &keys[i];
	}
	return NULL;
}

static inline int fresh(void **state)
{
	memset(&rc, 0, sizeof(rc));
	rc.queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = QPN,
		.pmtu = PMTU,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.domain = 7,
		.expected_psn = 100,
		.receives = 4,
		.receive_bytes = 1000,
	};
	memcpy(rc.queue.peer, path.source, sizeof(rc.queue.peer));
	memcpy(rc.queue.local, path.dest, sizeof(rc.queue.local));
	rc.peer_qpn = PEER_QPN;
	rc.rnr_timer = RNR_CODE;
	memset(&action, 0x5a, sizeof(action));
	return sl_roce_rc_responder_init(&rc);
}

static inline struct sl_roce_packet make(uint8_t op, uint32_t psn, uint32_t bytes, uint32_t length)
{
	return (struct sl_roce_packet){
		.opcode = op,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.has = sl_roce_opcode(op)->headers,
		.ackreq = sl_roce_opcode(op)->position & SL_ROCE_LAST,
		.qpn = QPN,
		.psn = psn,
		.reth = {BASE + 0x1000, RKEY, length},
		.imm = 0x01020304,
		.payload_bytes = bytes,
	};
}

static inline enum sl_roce_drop give(struct sl_roce_packet packet)
{
	return sl_roce_rc_responder_receive(&rc, &path, &packet, lookup, NULL, &action, &reply);
}

static inline enum sl_roce_drop give_op(uint8_t op, uint32_t psn, uint32_t bytes, uint32_t length)
{
	return give(make(op, psn, bytes, length));
}

static inline void expect_reply(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	assert_true(reply.pending);
	assert_false(reply.read);
	assert_int_equal(reply.syndrome, syndrome);
	assert_int_equal(reply.psn, psn);
	assert_int_equal(reply.msn, msn);
	assert_int_equal(reply.qpn, PEER_QPN);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
