/* rc_responder_guard_test.c - a reliable queue: what it keeps out, and what makes it fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rc_queue.h"

/* This packet fails the queue: the NAK, and nothing is received afterwards. */
static void expect_failure(struct sl_roce_packet packet, enum sl_roce_drop why, uint8_t syndrome)
{
	uint32_t expected = rc.queue.expected_psn, msn = rc.msn;

	assert_int_equal(give(packet), why);
	expect_reply(syndrome, packet.psn, msn);
	assert_true(rc.failed);
	assert_int_equal(rc.queue.expected_psn, expected);
	assert_int_equal(give_op(OP(WRITE_ONLY), expected, 8, 8), SL_ROCE_DROP_STATE);
	assert_false(reply.pending);
	assert_int_equal(give_op(OP(WRITE_ONLY), expected - 1, 8, 8), SL_ROCE_DROP_STATE);
	assert_int_equal(give_op(OP(WRITE_ONLY), expected + 1, 8, 8), SL_ROCE_DROP_STATE);
	assert_false(reply.pending);
}

static void wrong_order_of_opcodes_fails(void **state)
{
	static const uint8_t lonely[] = {OP(SEND_MIDDLE), OP(SEND_LAST), OP(WRITE_MIDDLE),
					 OP(WRITE_LAST)};
	static const uint8_t inside[] = {OP(WRITE_FIRST), OP(WRITE_ONLY),   OP(SEND_FIRST),
					 OP(SEND_ONLY),	  OP(READ_REQUEST), OP(SEND_MIDDLE)};

	for (size_t i = 0; i < sizeof(lonely); i++) {
		fresh(NULL);
		expect_failure(make(lonely[i], 100, PMTU, 0), SL_ROCE_DROP_BROKEN,
			       SL_ROCE_NAK_INVALID);
	}
	for (size_t i = 0; i < sizeof(inside); i++) {
		fresh(NULL);
		give_op(OP(WRITE_FIRST), 100, PMTU, 900);
		expect_failure(make(inside[i], 101, inside[i] == OP(READ_REQUEST) ? 0 : PMTU, 256),
			       SL_ROCE_DROP_BROKEN, SL_ROCE_NAK_INVALID);
	}
}

static void wrong_lengths_fail(void **state)
{
	expect_failure(make(OP(WRITE_ONLY), 100, 13, 14), SL_ROCE_DROP_LENGTH, SL_ROCE_NAK_INVALID);
	fresh(NULL);
	expect_failure(make(OP(WRITE_FIRST), 100, 255, 512), SL_ROCE_DROP_LENGTH,
		       SL_ROCE_NAK_INVALID);
	fresh(NULL);
	give_op(OP(WRITE_FIRST), 100, PMTU, 512);
	expect_failure(make(OP(WRITE_LAST), 101, 255, 0), SL_ROCE_DROP_LENGTH, SL_ROCE_NAK_INVALID);
	fresh(NULL);
	expect_failure(make(OP(WRITE_FIRST), 100, PMTU, 0x80000001), SL_ROCE_DROP_LENGTH,
		       SL_ROCE_NAK_INVALID);
	fresh(NULL);
	expect_failure(make(OP(READ_REQUEST), 100, 0, 0x80000001), SL_ROCE_DROP_LENGTH,
		       SL_ROCE_NAK_INVALID);
	fresh(NULL);
	rc.queue.receive_bytes = 100;
	expect_failure(make(OP(SEND_ONLY), 100, 101, 0), SL_ROCE_DROP_RECEIVE, SL_ROCE_NAK_INVALID);
}

static void expect_access_failure(uint8_t op, uint32_t rkey, uint64_t va, enum sl_roce_drop why)
{
	struct sl_roce_packet packet = make(op, 100, op == OP(READ_REQUEST) ? 0 : 64, 64);

	fresh(NULL);
	packet.reth.rkey = rkey;
	packet.reth.va = va;
	expect_failure(packet, why, SL_ROCE_NAK_ACCESS);
}

static void memory_out_of_reach_fails(void **state)
{
	static const uint8_t ops[] = {OP(WRITE_ONLY), OP(READ_REQUEST)};

	for (int i = 0; i < 2; i++) {
		expect_access_failure(ops[i], 0x9999, BASE, SL_ROCE_DROP_KEY);
		expect_access_failure(ops[i], FOREIGN_KEY, BASE, SL_ROCE_DROP_KEY);
		expect_access_failure(ops[i], RKEY, BASE - 1, SL_ROCE_DROP_RANGE);
		expect_access_failure(ops[i], RKEY, BASE + BYTES - 63, SL_ROCE_DROP_RANGE);
		expect_access_failure(ops[i], RKEY, UINT64_MAX - 10, SL_ROCE_DROP_RANGE);
		expect_access_failure(ops[i], i ? WRITE_KEY : READ_KEY, BASE, SL_ROCE_DROP_ACCESS);
	}
}

static void what_the_queue_forbids_is_an_invalid_request(void **state)
{
	rc.queue.access = SL_ROCE_REMOTE_READ;
	expect_failure(make(OP(WRITE_ONLY), 100, 8, 8), SL_ROCE_DROP_ACCESS, SL_ROCE_NAK_INVALID);
	fresh(NULL);
	rc.queue.access = SL_ROCE_REMOTE_WRITE;
	expect_failure(make(OP(READ_REQUEST), 100, 0, 8), SL_ROCE_DROP_ACCESS, SL_ROCE_NAK_INVALID);
}

static void operations_not_served_fail(void **state)
{
	static const uint8_t ops[] = {OP(COMPARE_SWAP), OP(FETCH_ADD), OP(FLUSH),
				      OP(SEND_ONLY_INVALIDATE), OP(ATOMIC_WRITE)};

	for (size_t i = 0; i < sizeof(ops); i++) {
		fresh(NULL);
		expect_failure(make(ops[i], 100, 8, 8), SL_ROCE_DROP_TRANSPORT,
			       SL_ROCE_NAK_INVALID);
	}
}

/* In its turn a reserved opcode is an invalid request; out of turn it is answered as any other, and
 * does no harm. */
static void reserved_opcodes_are_invalid_requests(void **state)
{
	static const uint8_t ops[] = {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f};
	struct sl_roce_packet packet;

	for (size_t i = 0; i < sizeof(ops); i++) {
		uint8_t data[64] = {ops[i], 0, 0xff, 0xff, 0, 0, 1, 2, 0x80, 0, 0, 100};

		/* From the wire on: it must reach the queue. */
		assert_int_equal(sl_roce_parse(data, sizeof(data), &packet), SL_ROCE_OK);
		assert_int_equal(packet.payload_bytes, sizeof(data) - SL_ROCE_BTH_BYTES - 4);
		fresh(NULL);
		assert_int_equal(give(make(ops[i], 99, 8, 8)), SL_ROCE_DROP_DUPLICATE);
		assert_false(reply.pending);
		assert_int_equal(give(make(ops[i], 101, 8, 8)), SL_ROCE_DROP_AHEAD);
		assert_int_equal(reply.syndrome, SL_ROCE_NAK_SEQUENCE);
		assert_false(rc.failed);
		expect_failure(make(ops[i], 100, 8, 8), SL_ROCE_DROP_TRANSPORT,
			       SL_ROCE_NAK_INVALID);
	}
	/* UC answers nothing, whatever comes. */
	for (unsigned op = 0x2c; op < 0x40; op++) {
		uint8_t data[64] = {(uint8_t)op, 0, 0xff, 0xff, 0, 0, 1, 2, 0x80, 0, 0, 100};

		assert_int_equal(sl_roce_parse(data, sizeof(data), &packet), SL_ROCE_EOPCODE);
	}
}

static void strangers_change_nothing(void **state)
{
	struct sl_roce_rc_responder before = rc;
	struct sl_roce_packet packet = make(OP(WRITE_MIDDLE), 100, PMTU, 0);

	packet.qpn++;
	assert_int_equal(give(packet), SL_ROCE_DROP_QUEUE);
	packet = make(OP(WRITE_MIDDLE), 100, PMTU, 0);
	packet.pkey = 0x1234;
	assert_int_equal(give(packet), SL_ROCE_DROP_PKEY);
	packet = make(SL_ROCE_OPCODE(SL_ROCE_UC, SL_ROCE_WRITE_ONLY), 100, 8, 8);
	assert_int_equal(give(packet), SL_ROCE_DROP_TRANSPORT);
	assert_int_equal(give_op(OP(ACKNOWLEDGE), 100, 0, 0), SL_ROCE_DROP_TRANSPORT);
	assert_int_equal(give_op(OP(READ_RESPONSE_ONLY), 100, 0, 0), SL_ROCE_DROP_TRANSPORT);
	packet = make(OP(WRITE_MIDDLE), 100, PMTU, 0);
	assert_int_equal(sl_roce_rc_responder_receive(&rc, &(struct sl_roce_path){.source = {1}},
						      &packet, lookup, NULL, &action, &reply),
			 SL_ROCE_DROP_PEER);
	assert_false(reply.pending);
	assert_memory_equal(&rc, &before, sizeof(rc));
}

static void init_refuses_nonsense(void **state)
{
	rc.queue.transport = SL_ROCE_UC;
	assert_int_equal(sl_roce_rc_responder_init(&rc), SL_ROCE_EINVAL);
	fresh(NULL);
	rc.queue.pmtu = 300;
	assert_int_equal(sl_roce_rc_responder_init(&rc), SL_ROCE_EINVAL);
	fresh(NULL);
	rc.peer_qpn = 0x1000000;
	assert_int_equal(sl_roce_rc_responder_init(&rc), SL_ROCE_EINVAL);
	fresh(NULL);
	rc.rnr_timer = 32;
	assert_int_equal(sl_roce_rc_responder_init(&rc), SL_ROCE_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_order_of_opcodes_fails),
		TEST(wrong_lengths_fail),
		TEST(memory_out_of_reach_fails),
		TEST(what_the_queue_forbids_is_an_invalid_request),
		TEST(operations_not_served_fail),
		TEST(reserved_opcodes_are_invalid_requests),
		TEST(strangers_change_nothing),
		TEST(init_refuses_nonsense),
	};

	return cmocka_run_group_tests_name("rc responder guard", tests, NULL, NULL);
}
