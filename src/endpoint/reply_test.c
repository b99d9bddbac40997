/* reply_test.c - what waits to be answered: in order, nothing twice, nothing left out. */
#include "endpoint/testing.h"
#include "roce/psn.h"

enum { FIRST = 0xfffffa, PACKETS = 20, PMTU = 1024 };

/* The answer to a READ of PACKETS from its packet number `from` on. */
static struct sl_roce_reply data(uint32_t from)
{
	return (struct sl_roce_reply){
		.pending = true,
		.read = true,
		.syndrome = SL_ROCE_ACK_UNLIMITED,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = rig.attributes[RIGHT].peer_qpn,
		.psn = sl_roce_psn_add(FIRST, from),
		.pmtu = PMTU,
		.rkey = rig.side[RIGHT].rkey,
		.va = (uint64_t)(uintptr_t)rig.side[RIGHT].memory + from * PMTU,
		.bytes = (PACKETS - from) * PMTU,
	};
}

static struct sl_roce_reply word(uint32_t psn, uint8_t syndrome)
{
	return (struct sl_roce_reply){.pending = true,
				      .syndrome = syndrome,
				      .pkey = SL_ROCE_PKEY_DEFAULT,
				      .qpn = rig.attributes[RIGHT].peer_qpn,
				      .psn = psn,
				      .pmtu = PMTU};
}

static void put(struct sl_roce_reply reply)
{
	assert_true(sl_reply_room(rig.side[RIGHT].qp));
	sl_reply_put(rig.side[RIGHT].qp, &reply);
}

static uint64_t waiting(void)
{
	return rig.side[RIGHT].qp->replies.put - rig.side[RIGHT].qp->replies.taken;
}

/* Send so many packets; the PSN of the last one. */
static uint32_t answer(unsigned count)
{
	uint32_t psn = 0;

	while (count--) {
		struct sl_qp *qp = rig.side[RIGHT].qp;

		assert_true(sl_out_room(qp->endpoint));
		psn = qp->replies.slot[qp->replies.taken % qp->replies.depth].psn;
		assert_true(sl_reply_send(qp, rig.now));
	}
	return psn;
}

/* Asked again for a READ whose answer is under way: it goes on, or back to what is asked for, but
 * is not given twice. */
static void test_read_again(void **state)
{
	rig_connect(SL_ROCE_RC);
	put(data(0));
	put(data(0));
	assert_int_equal(waiting(), 1);
	assert_int_equal(answer(8), sl_roce_psn_add(FIRST, 7));
	put(data(12));
	assert_int_equal(waiting(), 1);
	assert_int_equal(answer(1), sl_roce_psn_add(FIRST, 8));
	put(data(3));
	assert_int_equal(waiting(), 1);
	assert_int_equal(answer(1), sl_roce_psn_add(FIRST, 3));
	assert_int_equal(answer(16), sl_roce_psn_add(FIRST, 19));
	assert_int_equal(waiting(), 0);
	put(data(18));
	assert_int_equal(answer(2), sl_roce_psn_add(FIRST, 19));
	assert_int_equal(waiting(), 0);
}

/* ACKs become one, but none overtakes data or a refusal. */
static void test_words(void **state)
{
	uint32_t after = sl_roce_psn_add(FIRST, PACKETS);

	rig_connect(SL_ROCE_RC);
	put(word(FIRST - 2, SL_ROCE_ACK_UNLIMITED));
	put(word(FIRST - 1, SL_ROCE_ACK_UNLIMITED));
	assert_int_equal(waiting(), 1);
	put(data(0));
	put(word(after, SL_ROCE_ACK_UNLIMITED));
	put(word(after + 1, SL_ROCE_ACK_UNLIMITED));
	put(word(after + 2, SL_ROCE_NAK_SEQUENCE));
	assert_int_equal(waiting(), 3);
	put(word(after + 3, SL_ROCE_ACK_UNLIMITED));
	assert_int_equal(waiting(), 4);
	assert_int_equal(answer(1), FIRST - 1);
	assert_int_equal(answer(PACKETS), after - 1);
	assert_int_equal(answer(1), after + 2);
	assert_int_equal(answer(1), after + 3);
	assert_false(sl_reply_send(rig.side[RIGHT].qp, rig.now));
	assert_int_equal(rig.side[RIGHT].qp->counters.acks_sent, 2);
	assert_int_equal(rig.side[RIGHT].qp->counters.naks_sent, 1);
}

/* A key that was revoked: the refusal is the last word, whatever waited behind it. */
static void test_refusal(void **state)
{
	rig_connect(SL_ROCE_RC);
	put(data(0));
	put(word(100, SL_ROCE_ACK_UNLIMITED));
	answer(2);
	assert_int_equal(sl_endpoint_deregister(rig.side[RIGHT].endpoint, rig.side[RIGHT].rkey), 0);
	assert_int_equal(answer(1), sl_roce_psn_add(FIRST, 2));
	assert_int_equal(rig.side[RIGHT].qp->counters.naks_sent, 1);
	assert_int_equal(waiting(), 0);
	assert_int_equal(sl_qp_state(rig.side[RIGHT].qp), SL_ROCE_ERROR);
}

static void test_room(void **state)
{
	rig.options.peer_reads = 1;
	rig_connect(SL_ROCE_RC);
	for (uint32_t i = 0; i < 4; i++)
		put(word(i, SL_ROCE_NAK_SEQUENCE));
	assert_false(sl_reply_room(rig.side[RIGHT].qp));
	answer(1);
	assert_true(sl_reply_room(rig.side[RIGHT].qp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read_again),
		TEST(test_words),
		TEST(test_refusal),
		TEST(test_room),
	};

	return cmocka_run_group_tests_name("endpoint_reply", tests, NULL, NULL);
}
