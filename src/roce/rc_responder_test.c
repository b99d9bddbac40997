/* rc_responder_test.c - a reliable queue: order, answers, duplicates. What makes it fail is in
 * rc_responder_guard_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rc_queue.h"

static void write_is_placed_and_acknowledged(void **state)
{
	assert_int_equal(give_op(OP(WRITE_ONLY), 100, 13, 13), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_MEMORY);
	assert_int_equal(action.va, BASE + 0x1000);
	assert_false(action.complete);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 100, 1);
	assert_int_equal(rc.queue.expected_psn, 101);
}

static void no_acknowledgement_unless_asked_for(void **state)
{
	struct sl_roce_packet packet = make(OP(WRITE_ONLY), 100, 13, 13);

	packet.ackreq = false;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	assert_false(reply.pending);
	assert_int_equal(rc.msn, 1);
	assert_int_equal(give_op(OP(WRITE_ONLY), 101, 13, 13), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 101, 2);
}

/* The user of the queue refuses what the queue accepted: the message did not complete. */
static void what_is_refused_afterwards_is_not_counted(void **state)
{
	struct sl_roce_packet packet = make(OP(WRITE_ONLY), 101, 13, 13);

	assert_int_equal(give_op(OP(WRITE_ONLY), 100, 13, 13), SL_ROCE_ACCEPTED);
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	sl_roce_rc_responder_refuse(&rc, &packet, &reply);
	expect_reply(SL_ROCE_NAK_ACCESS, 101, 1);
	assert_true(rc.failed);
}

static void long_write_counts_once(void **state)
{
	struct sl_roce_packet middle = make(OP(WRITE_MIDDLE), 101, PMTU, 0);

	assert_int_equal(give_op(OP(WRITE_FIRST), 100, PMTU, 612), SL_ROCE_ACCEPTED);
	assert_false(reply.pending);
	middle.ackreq = true;
	assert_int_equal(give(middle), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 101, 0);
	assert_int_equal(give_op(OP(WRITE_LAST_IMM), 102, 100, 0), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 102, 1);
	assert_true(action.complete && action.immediate && action.receive);
	assert_int_equal(action.message_bytes, 612);
	assert_int_equal(action.va, BASE + 0x1000 + 512);
	assert_int_equal(rc.queue.receives, 3);
}

static void long_send_fills_one_receive(void **state)
{
	assert_int_equal(give_op(OP(SEND_FIRST), 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(SEND_MIDDLE), 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.offset, 256);
	assert_int_equal(give_op(OP(SEND_LAST_IMM), 102, 1, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.message_bytes, 513);
	assert_true(action.complete && action.immediate && action.receive);
	assert_int_equal(rc.queue.receives, 3);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 102, 1);
}

static void empty_messages_need_no_key(void **state)
{
	struct sl_roce_packet packet = make(OP(WRITE_ONLY), 100, 0, 0);

	packet.reth.rkey = 0;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_NOWHERE);
	packet = make(OP(READ_REQUEST), 101, 0, 0);
	packet.reth.rkey = 0;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	assert_true(reply.read && reply.pending);
	assert_null(reply.key);
	assert_int_equal(rc.queue.expected_psn, 102);
	assert_int_equal(give_op(OP(SEND_ONLY), 102, 0, 0), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 102, 3);
}

/* However many receives are posted: ACKs and READ responses speak of no credits. */
static void no_credits_are_given(void **state)
{
	for (uint32_t receives = 1; receives < 100; receives += 7) {
		fresh(NULL);
		rc.queue.receives = receives;
		give_op(OP(SEND_ONLY), 100, 8, 0);
		assert_int_equal(reply.syndrome, 0x1f);
		give_op(OP(SEND_ONLY), 100, 8, 0);
		assert_int_equal(reply.syndrome, 0x1f);
		give_op(OP(READ_REQUEST), 101, 0, 8);
		assert_true(reply.read);
		assert_int_equal(reply.syndrome, 0x1f);
	}
}

static void reads_are_outstanding_until_answered(void **state)
{
	struct sl_roce_reply first;

	rc.reads = 2;
	assert_int_equal(give_op(OP(READ_REQUEST), 100, 0, 8), SL_ROCE_ACCEPTED);
	first = reply;
	assert_int_equal(give_op(OP(READ_REQUEST), 101, 0, 8), SL_ROCE_ACCEPTED);
	/* other requests, and READs asked for again, do not count */
	assert_int_equal(give_op(OP(WRITE_ONLY), 102, 8, 8), SL_ROCE_ACCEPTED);
	sl_roce_rc_responder_answered(&rc, &reply);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(give_op(OP(READ_REQUEST), 100, 0, 8), SL_ROCE_DROP_DUPLICATE);
		assert_true(reply.pending && reply.read);
		sl_roce_rc_responder_answered(&rc, &reply);
	}
	assert_int_equal(rc.reads_out, 2);
	sl_roce_rc_responder_answered(&rc, &first);
	sl_roce_rc_responder_answered(&rc, &first); /* once is enough */
	assert_int_equal(give_op(OP(READ_REQUEST), 103, 0, 8), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(READ_REQUEST), 104, 0, 8), SL_ROCE_DROP_READS);
	expect_reply(SL_ROCE_NAK_INVALID, 104, 4);
	assert_true(rc.failed);
}

static void reads_without_a_limit(void **state)
{
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(give_op(OP(READ_REQUEST), 100 + i, 0, 8), SL_ROCE_ACCEPTED);
}

static void one_nak_for_a_gap_then_silence(void **state)
{
	assert_int_equal(give_op(OP(WRITE_ONLY), 103, 8, 8), SL_ROCE_DROP_AHEAD);
	expect_reply(SL_ROCE_NAK_SEQUENCE, 100, 0);
	for (uint32_t psn = 101; psn < 120; psn++) {
		assert_int_equal(give_op(OP(WRITE_ONLY), psn, 8, 8), SL_ROCE_DROP_AHEAD);
		assert_false(reply.pending);
	}
	assert_int_equal(give_op(OP(WRITE_ONLY), 100, 8, 8), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 100, 1);
	assert_int_equal(give_op(OP(WRITE_ONLY), 105, 8, 8), SL_ROCE_DROP_AHEAD);
	expect_reply(SL_ROCE_NAK_SEQUENCE, 101, 1);
}

static void gap_inside_a_message_continues_it(void **state)
{
	assert_int_equal(give_op(OP(WRITE_FIRST), 100, PMTU, 600), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(WRITE_LAST), 102, 88, 0), SL_ROCE_DROP_AHEAD);
	expect_reply(SL_ROCE_NAK_SEQUENCE, 101, 0);
	assert_int_equal(give_op(OP(WRITE_MIDDLE), 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(WRITE_LAST), 102, 88, 0), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 102, 1);
}

static void duplicates_are_acknowledged_but_not_executed(void **state)
{
	assert_int_equal(give_op(OP(SEND_ONLY), 100, 8, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(WRITE_ONLY_IMM), 101, 8, 8), SL_ROCE_ACCEPTED);
	assert_int_equal(rc.queue.receives, 2);
	assert_int_equal(give_op(OP(SEND_ONLY), 100, 8, 0), SL_ROCE_DROP_DUPLICATE);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 101, 2);
	assert_int_equal(give_op(OP(WRITE_ONLY_IMM), 101, 8, 8), SL_ROCE_DROP_DUPLICATE);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 101, 2);
	assert_int_equal(rc.queue.receives, 2);
	assert_int_equal(rc.queue.expected_psn, 102);
}

static void duplicate_inside_a_message_leaves_it_open(void **state)
{
	assert_int_equal(give_op(OP(SEND_FIRST), 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(SEND_FIRST), 100, PMTU, 0), SL_ROCE_DROP_DUPLICATE);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 100, 0);
	assert_int_equal(give_op(OP(SEND_LAST), 101, 9, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.message_bytes, PMTU + 9);
}

static void duplicate_does_not_end_the_silence(void **state)
{
	assert_int_equal(give_op(OP(WRITE_ONLY), 105, 8, 8), SL_ROCE_DROP_AHEAD);
	assert_int_equal(give_op(OP(WRITE_ONLY), 99, 8, 8), SL_ROCE_DROP_DUPLICATE);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 99, 0);
	assert_int_equal(give_op(OP(WRITE_ONLY), 105, 8, 8), SL_ROCE_DROP_AHEAD);
	assert_false(reply.pending);
}

static void read_takes_its_responses_numbers(void **state)
{
	assert_int_equal(give_op(OP(READ_REQUEST), 100, 0, 600), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_NOWHERE);
	assert_true(reply.pending && reply.read);
	assert_ptr_equal(reply.key, &keys[0]);
	assert_int_equal(reply.va, BASE + 0x1000);
	assert_int_equal(reply.bytes, 600);
	assert_int_equal(reply.msn, 1);
	assert_int_equal(rc.queue.expected_psn, 103);
}

static void duplicate_read_is_answered_again(void **state)
{
	struct sl_roce_packet part = make(OP(READ_REQUEST), 101, 0, 344);

	assert_int_equal(give_op(OP(READ_REQUEST), 100, 0, 600), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(WRITE_ONLY), 103, 8, 8), SL_ROCE_ACCEPTED);
	part.reth.va += PMTU;
	assert_int_equal(give(part), SL_ROCE_DROP_DUPLICATE);
	assert_true(reply.pending && reply.read);
	assert_int_equal(reply.psn, 101);
	assert_int_equal(reply.va, BASE + 0x1000 + PMTU);
	assert_int_equal(reply.bytes, 344);
	assert_int_equal(rc.queue.expected_psn, 104);
	assert_int_equal(rc.msn, 2);
}

static void duplicate_read_gets_no_more_than_before(void **state)
{
	struct sl_roce_packet packet = make(OP(READ_REQUEST), 100, 0, 601);

	assert_int_equal(give_op(OP(READ_REQUEST), 100, 0, 512), SL_ROCE_ACCEPTED);
	assert_int_equal(give(packet), SL_ROCE_DROP_DUPLICATE); /* into numbers not used yet */
	assert_false(reply.pending);
	packet.reth.length = 512;
	packet.reth.rkey = FOREIGN_KEY;
	assert_int_equal(give(packet), SL_ROCE_DROP_DUPLICATE);
	assert_false(reply.pending);
	packet.reth.rkey = RKEY;
	packet.reth.va = BASE + BYTES - 511;
	assert_int_equal(give(packet), SL_ROCE_DROP_DUPLICATE);
	assert_false(reply.pending || rc.failed);
}

static void read_responses_by_length(void **state)
{
	static const struct {
		uint32_t bytes, packets;
		uint8_t opcode[3];
	} rows[] = {
		{0, 1, {0x10}},		{1, 1, {0x10}},		{256, 1, {0x10}},
		{257, 2, {0x0d, 0x0f}}, {512, 2, {0x0d, 0x0f}}, {513, 3, {0x0d, 0x0e, 0x0f}},
	};
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fresh(NULL);
		give_op(OP(READ_REQUEST), 100, 0, rows[i].bytes);
		for (uint32_t n = 0; n < rows[i].packets; n++) {
			assert_true(sl_roce_reply_next(&reply, headers, &fragment));
			assert_int_equal(fragment.opcode, rows[i].opcode[n]);
			assert_int_equal(fragment.psn, 100 + n);
			assert_int_equal(fragment.offset, n * PMTU);
			assert_int_equal(fragment.last, n == rows[i].packets - 1);
			assert_int_equal(sl_roce_parse_headers(headers, fragment.header_bytes,
							       fragment.header_bytes +
								       fragment.bytes +
								       fragment.pad + 4u,
							       &packet),
					 SL_ROCE_OK);
			assert_int_equal(packet.qpn, PEER_QPN);
			assert_int_equal(packet.payload_bytes, fragment.bytes);
			if (fragment.opcode != 0x0e)
				assert_int_equal(packet.aeth.msn, 1);
		}
		assert_false(sl_roce_reply_next(&reply, headers, &fragment));
	}
}

static void send_without_receive_must_come_again(void **state)
{
	rc.queue.receives = 0;
	assert_int_equal(give_op(OP(SEND_ONLY), 100, 8, 0), SL_ROCE_DROP_RECEIVE);
	expect_reply(SL_ROCE_RNR_NAK | RNR_CODE, 100, 0);
	assert_int_equal(give_op(OP(SEND_ONLY), 101, 8, 0), SL_ROCE_DROP_AHEAD);
	assert_false(reply.pending);
	assert_int_equal(give_op(OP(SEND_ONLY), 100, 8, 0), SL_ROCE_DROP_RECEIVE);
	expect_reply(SL_ROCE_RNR_NAK | RNR_CODE, 100, 0);
	rc.queue.receives = 1;
	assert_int_equal(give_op(OP(SEND_ONLY), 100, 8, 0), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 100, 1);
	assert_int_equal(rc.queue.receives, 0);
}

static void immediate_without_receive_repeats_its_packet_only(void **state)
{
	rc.queue.receives = 0;
	assert_int_equal(give_op(OP(WRITE_FIRST), 100, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(OP(WRITE_LAST_IMM), 101, 44, 0), SL_ROCE_DROP_RECEIVE);
	expect_reply(SL_ROCE_RNR_NAK | RNR_CODE, 101, 0);
	rc.queue.receives = 1;
	assert_int_equal(give_op(OP(WRITE_LAST_IMM), 101, 44, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.message_bytes, 300);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 101, 1);
}

static void numbers_wrap(void **state)
{
	rc.queue.expected_psn = 0xffffff;
	rc.msn = 0xffffff;
	assert_int_equal(give_op(OP(WRITE_ONLY), 0xffffff, 8, 8), SL_ROCE_ACCEPTED);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 0xffffff, 0);
	assert_int_equal(rc.queue.expected_psn, 0);
	assert_int_equal(give_op(OP(WRITE_ONLY), 0xffffff, 8, 8), SL_ROCE_DROP_DUPLICATE);
	expect_reply(SL_ROCE_ACK_UNLIMITED, 0xffffff, 0);
	assert_int_equal(give_op(OP(WRITE_ONLY), 1, 8, 8), SL_ROCE_DROP_AHEAD);
	expect_reply(SL_ROCE_NAK_SEQUENCE, 0, 0);
}

static void acknowledgements_merge_forward_only(void **state)
{
	struct sl_roce_reply first, second, nak, read;

	give_op(OP(WRITE_ONLY), 100, 8, 8);
	first = reply;
	give_op(OP(WRITE_ONLY), 101, 8, 8);
	second = reply;
	give_op(OP(WRITE_ONLY), 110, 8, 8);
	nak = reply;
	give_op(OP(READ_REQUEST), 102, 0, 8);
	read = reply;
	assert_false(sl_roce_reply_merge(&nak, &second));
	assert_false(sl_roce_reply_merge(&second, &read));
	assert_false(sl_roce_reply_merge(&read, &second));
	assert_false(sl_roce_reply_merge(&second, &first));
	first.pending = false; /* already sent: it is not the place of another one */
	assert_false(sl_roce_reply_merge(&first, &second));
	first.pending = true;
	second.pending = false;
	assert_false(sl_roce_reply_merge(&first, &second));
	second.pending = true;
	second.qpn++;
	assert_false(sl_roce_reply_merge(&first, &second));
	second.qpn--;
	assert_int_equal(first.psn, 100);
	assert_true(sl_roce_reply_merge(&first, &second));
	assert_int_equal(first.psn, 101);
	assert_true(sl_roce_reply_merge(&first, &nak));
	assert_int_equal(first.syndrome, SL_ROCE_NAK_SEQUENCE);
}

static void timer_codes(void **state)
{
	assert_int_equal(sl_roce_rnr_ns(0), 655360000);
	assert_int_equal(sl_roce_rnr_ns(1), 10000);
	assert_int_equal(sl_roce_rnr_ns(12), 640000);
	assert_int_equal(sl_roce_rnr_ns(25), 61440000);
	assert_int_equal(sl_roce_rnr_ns(31), 491520000);
	assert_int_equal(sl_roce_timeout_ns(0), 0);
	assert_int_equal(sl_roce_timeout_ns(14), 67108864);
	assert_int_equal(sl_roce_timeout_ns(31), UINT64_C(8796093022208));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_is_placed_and_acknowledged),
		TEST(no_acknowledgement_unless_asked_for),
		TEST(what_is_refused_afterwards_is_not_counted),
		TEST(long_write_counts_once),
		TEST(long_send_fills_one_receive),
		TEST(empty_messages_need_no_key),
		TEST(no_credits_are_given),
		TEST(reads_are_outstanding_until_answered),
		TEST(reads_without_a_limit),
		TEST(one_nak_for_a_gap_then_silence),
		TEST(gap_inside_a_message_continues_it),
		TEST(duplicates_are_acknowledged_but_not_executed),
		TEST(duplicate_inside_a_message_leaves_it_open),
		TEST(duplicate_does_not_end_the_silence),
		TEST(read_takes_its_responses_numbers),
		TEST(duplicate_read_is_answered_again),
		TEST(duplicate_read_gets_no_more_than_before),
		TEST(read_responses_by_length),
		TEST(send_without_receive_must_come_again),
		TEST(immediate_without_receive_repeats_its_packet_only),
		TEST(numbers_wrap),
		TEST(acknowledgements_merge_forward_only),
		TEST(timer_codes),
	};

	return cmocka_run_group_tests_name("rc responder", tests, NULL, NULL);
}
