/* rc_requester_test.c - a send queue: packets, acknowledgements, going back, time, failure. READ is
 * in rc_read_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rc_sender.h"

static void one_write_one_ack(void **state)
{
	WRITE(5, 100);
	expect_packet(OP(WRITE_ONLY), 0, true);
	assert_int_equal(packet.reth.va, 0x10000);
	assert_int_equal(packet.reth.length, 100);
	assert_int_equal(request.id, 5);
	assert_false(next());
	expect_none();
	assert_int_equal(ack(0), SL_ROCE_ACCEPTED);
	expect_completion(5, SL_ROCE_SUCCESS);
	assert_int_equal(done.bytes, 100);
	expect_none();
	assert_int_equal(sl_roce_rc_wake(&rc), UINT64_MAX);
}

static void asks_for_acks_often_enough(void **state)
{
	WRITE(1, PMTU * 20);
	expect_packet(OP(WRITE_FIRST), 0, false);
	expect_packet(OP(WRITE_MIDDLE), 1, false);
	expect_packet(OP(WRITE_MIDDLE), 2, false);
	expect_packet(OP(WRITE_MIDDLE), 3, true);
	expect_packet(OP(WRITE_MIDDLE), 4, false);
	expect_packet(OP(WRITE_MIDDLE), 5, false);
	expect_packet(OP(WRITE_MIDDLE), 6, false);
	expect_packet(OP(WRITE_MIDDLE), 7, true);
	assert_false(next());
	ack(2);
	expect_packet(OP(WRITE_MIDDLE), 8, false);
	expect_packet(OP(WRITE_MIDDLE), 9, false);
	expect_packet(OP(WRITE_MIDDLE), 10, true); /* the window ends */
	assert_false(next());
}

static void one_ack_completes_many(void **state)
{
	for (uint64_t id = 0; id < 4; id++)
		SEND(id, 8);
	assert_int_equal(drain(), 4);
	ack(2);
	for (uint64_t id = 0; id < 3; id++)
		expect_completion(id, SL_ROCE_SUCCESS);
	expect_none();
	ack(3);
	expect_completion(3, SL_ROCE_SUCCESS);
}

static void nak_goes_back_into_the_message(void **state)
{
	SEND(0, 10);
	WRITE(1, PMTU * 4);
	assert_int_equal(drain(), 5);
	assert_int_equal(nak(3, SL_ROCE_NAK_SEQUENCE), SL_ROCE_ACCEPTED);
	expect_completion(0, SL_ROCE_SUCCESS);
	expect_none();
	expect_packet(OP(WRITE_MIDDLE), 3, true);
	assert_true(request.again);
	assert_int_equal(request.fragment.offset, 2 * PMTU);
	expect_packet(OP(WRITE_LAST), 4, true);
	assert_false(next());
	ack(4);
	expect_completion(1, SL_ROCE_SUCCESS);
}

static void repeated_nak_is_one_loss(void **state)
{
	WRITE(1, PMTU * 4);
	assert_int_equal(drain(), 4);
	nak(1, SL_ROCE_NAK_SEQUENCE);
	assert_int_equal(drain(), 3);
	for (int i = 0; i < 10; i++)
		nak(1, SL_ROCE_NAK_SEQUENCE);
	assert_int_equal(drain(), 0);
	assert_false(rc.failed);
	ack(3);
	expect_completion(1, SL_ROCE_SUCCESS);
}

static void nak_after_progress_is_another_loss(void **state)
{
	WRITE(1, PMTU * 4);
	drain();
	nak(1, SL_ROCE_NAK_SEQUENCE);
	drain();
	ack(1);
	nak(2, SL_ROCE_NAK_SEQUENCE);
	expect_packet(OP(WRITE_MIDDLE), 2, false);
	drain();
	nak(3, SL_ROCE_NAK_SEQUENCE); /* acknowledges 2 by itself */
	expect_packet(OP(WRITE_LAST), 3, true);
}

static void nak_after_silence_is_another_loss(void **state)
{
	WRITE(1, PMTU * 4);
	drain();
	now += TIMEOUT;
	assert_int_equal(drain(), 4);
	nak(0, SL_ROCE_NAK_SEQUENCE);
	assert_int_equal(drain(), 4);
}

static void counts_beyond_24_bits(void **state)
{
	rc.oldest = rc.next = rc.sent = rc.end = (UINT64_C(1) << 40) + 1;
	WRITE(1, PMTU * 3);
	expect_packet(OP(WRITE_FIRST), 1, false);
	expect_packet(OP(WRITE_MIDDLE), 2, false);
	assert_int_equal(packet.psn, 0);
	expect_packet(OP(WRITE_LAST), 3, true);
	assert_int_equal(ack(0), SL_ROCE_DROP_DUPLICATE);
	nak(2, SL_ROCE_NAK_SEQUENCE);
	expect_packet(OP(WRITE_MIDDLE), 2, false);
	ack(3);
	expect_completion(1, SL_ROCE_SUCCESS);
}

static void late_ack_after_going_back_skips_what_arrived(void **state)
{
	WRITE(1, PMTU * 4);
	drain();
	nak(1, SL_ROCE_NAK_SEQUENCE);
	expect_packet(OP(WRITE_MIDDLE), 1, false);
	ack(2);
	expect_packet(OP(WRITE_LAST), 3, true);
	assert_false(next());
}

static void silence_repeats_then_fails(void **state)
{
	WRITE(1, 8);
	SEND(2, 8);
	assert_int_equal(drain(), 2);
	for (int retry = 0; retry < 3; retry++) {
		assert_int_equal(sl_roce_rc_wake(&rc), now + TIMEOUT);
		now += TIMEOUT - 1;
		assert_false(next());
		now += 1;
		assert_int_equal(drain(), 2);
		assert_true(request.again);
		expect_none();
	}
	now += TIMEOUT;
	sl_roce_rc_tick(&rc, now);
	assert_true(rc.failed);
	expect_completion(1, SL_ROCE_RETRY_EXCEEDED);
	expect_completion(2, SL_ROCE_FLUSHED);
	expect_none();
	assert_int_equal(sl_roce_rc_wake(&rc), UINT64_MAX);
}

static void progress_renews_the_retries(void **state)
{
	WRITE(1, PMTU * 8);
	drain();
	for (uint32_t i = 0; i < 7; i++) {
		for (int retry = 0; retry < 3; retry++) {
			now += TIMEOUT;
			assert_true(drain() > 0);
		}
		ack(i);
	}
	assert_false(rc.failed);
}

static void no_timeout_means_patience(void **state)
{
	rc.timeout_ns = 0;
	WRITE(1, 8);
	drain();
	now += UINT64_C(1) << 60;
	assert_false(next());
	assert_int_equal(sl_roce_rc_wake(&rc), UINT64_MAX);
}

static void rnr_waits_and_repeats(void **state)
{
	SEND(1, 8);
	SEND(2, 8);
	drain();
	assert_int_equal(nak(1, SL_ROCE_RNR_NAK | 1), SL_ROCE_ACCEPTED);
	expect_completion(1, SL_ROCE_SUCCESS);
	assert_int_equal(sl_roce_rc_wake(&rc), now + 10000);
	now += 5000;
	assert_false(next());
	nak(1, SL_ROCE_RNR_NAK | 1); /* repeated by the network */
	nak(1, SL_ROCE_NAK_SEQUENCE);
	assert_false(next());
	now += 5000;
	expect_packet(OP(SEND_ONLY), 1, true);
	assert_true(request.again);
	ack(1);
	expect_completion(2, SL_ROCE_SUCCESS);
}

static void rnr_too_often_fails(void **state)
{
	SEND(1, 8);
	SEND(2, 8);
	drain();
	for (int i = 0; i < 2; i++) {
		nak(0, SL_ROCE_RNR_NAK | 1);
		now += 10000;
		assert_int_equal(drain(), 2);
	}
	nak(0, SL_ROCE_RNR_NAK | 1);
	expect_completion(1, SL_ROCE_RNR_EXCEEDED);
	expect_completion(2, SL_ROCE_FLUSHED);
}

static void rnr_seven_is_for_ever(void **state)
{
	rc.rnr_retries = SL_ROCE_RNR_FOREVER;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_OK);
	SEND(1, 8);
	drain();
	for (int i = 0; i < 1000; i++) {
		nak(0, SL_ROCE_RNR_NAK | 1);
		now += 10000;
		assert_int_equal(drain(), 1);
	}
}

/* A slow peer that tells both of the first packet, for which it is not ready, and of those behind
 * it, which it takes for a gap: when the second word comes, the wait is already over. */
static void rnr_shows_that_packets_arrive(void **state)
{
	rc.rnr_retries = SL_ROCE_RNR_FOREVER;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_OK);
	SEND(1, 8);
	SEND(2, 8);
	drain();
	for (int i = 0; i < 100; i++) {
		nak(0, SL_ROCE_RNR_NAK | 1);
		now += 10000;
		assert_int_equal(drain(), 2);
		nak(0, SL_ROCE_NAK_SEQUENCE);
		assert_int_equal(drain(), 2);
	}
	assert_false(rc.failed);
	ack(1);
	expect_completion(1, SL_ROCE_SUCCESS);
	expect_completion(2, SL_ROCE_SUCCESS);
}

static void fatal_nak_blames_its_work(void **state)
{
	static const uint8_t rows[][2] = {{SL_ROCE_NAK_INVALID, SL_ROCE_REMOTE_INVALID},
					  {SL_ROCE_NAK_ACCESS, SL_ROCE_REMOTE_ACCESS},
					  {SL_ROCE_NAK_OPERATION, SL_ROCE_REMOTE_OPERATION}};

	for (int i = 0; i < 3; i++) {
		fresh(NULL);
		WRITE(1, 8);
		WRITE(2, PMTU * 3);
		WRITE(3, 8);
		drain();
		assert_int_equal(nak(2, rows[i][0]), SL_ROCE_ACCEPTED);
		expect_completion(1, SL_ROCE_SUCCESS);
		expect_completion(2, rows[i][1]);
		expect_completion(3, SL_ROCE_FLUSHED);
		WRITE(4, 8);
		assert_false(next());
		expect_completion(4, SL_ROCE_FLUSHED);
		assert_int_equal(ack(4), SL_ROCE_DROP_STATE);
	}
}

static void acks_that_cannot_be_are_ignored(void **state)
{
	WRITE(1, PMTU * 3);
	expect_packet(OP(WRITE_FIRST), 0, false);
	assert_int_equal(ack(1), SL_ROCE_DROP_AHEAD); /* not sent yet */
	assert_int_equal(ack(0x7fffff), SL_ROCE_DROP_AHEAD);
	assert_int_equal(ack(0xffffff), SL_ROCE_DROP_DUPLICATE);
	assert_int_equal(nak(1, SL_ROCE_NAK_ACCESS), SL_ROCE_DROP_AHEAD);
	assert_int_equal(nak(0, 0x7f), SL_ROCE_DROP_BROKEN);
	assert_int_equal(nak(0, 0x40), SL_ROCE_DROP_BROKEN);
	assert_int_equal(respond(OP(READ_RESPONSE_ONLY), 0, 0x1f, 8), SL_ROCE_DROP_BROKEN);
	assert_int_equal(respond(OP(WRITE_ONLY), 0, 0, 8), SL_ROCE_DROP_TRANSPORT);
	assert_int_equal(respond(OP(ATOMIC_ACKNOWLEDGE), 0, 0, 0), SL_ROCE_DROP_TRANSPORT);
	assert_int_equal(rc.oldest, 0);
	assert_false(rc.failed);
}

/* Hardware may send any of them, no credits at all included: only the window limits us. */
static void credits_are_ignored(void **state)
{
	for (uint32_t code = 0; code < 32; code++) {
		SEND(code, 8);
		SEND(code, 8);
		assert_int_equal(drain(), 2);
		assert_int_equal(nak(2 * code + 1, (uint8_t)code), SL_ROCE_ACCEPTED);
		expect_completion(code, SL_ROCE_SUCCESS);
		expect_completion(code, SL_ROCE_SUCCESS);
	}
}

static void immediates_and_empty_messages(void **state)
{
	struct sl_roce_work work = {.id = 1,
				    .kind = SL_ROCE_KIND_SEND,
				    .immediate = true,
				    .solicited = true,
				    .imm = 0xabcd,
				    .bytes = PMTU + 1};

	assert_int_equal(sl_roce_rc_post(&rc, &work), SL_ROCE_OK);
	work.kind = SL_ROCE_KIND_WRITE;
	work.bytes = 0;
	assert_int_equal(sl_roce_rc_post(&rc, &work), SL_ROCE_OK);
	READ(3, 0);
	expect_packet(OP(SEND_FIRST), 0, false);
	assert_false(packet.se);
	expect_packet(OP(SEND_LAST_IMM), 1, true);
	assert_int_equal(packet.imm, 0xabcd);
	assert_true(packet.se);
	assert_int_equal(packet.pad, 3);
	expect_packet(OP(WRITE_ONLY_IMM), 2, true);
	expect_packet(OP(READ_REQUEST), 3, true);
	assert_int_equal(respond(OP(READ_RESPONSE_ONLY), 3, 0x1f, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(rc.completed, 3);
}

static void full_queue_refuses(void **state)
{
	for (uint64_t id = 0; id < WORKS; id++)
		WRITE(id, 8);
	assert_int_equal(post(SL_ROCE_KIND_WRITE, 9, 8), SL_ROCE_EFULL);
	drain();
	ack(0);
	assert_int_equal(post(SL_ROCE_KIND_WRITE, 9, 8), SL_ROCE_EFULL);
	expect_completion(0, SL_ROCE_SUCCESS);
	WRITE(9, 8);
}

static void nonsense_is_refused(void **state)
{
	assert_int_equal(post(SL_ROCE_KIND_ATOMIC, 1, 8), SL_ROCE_EINVAL);
	assert_int_equal(post(SL_ROCE_KIND_WRITE, 1, 0x80000001), SL_ROCE_EINVAL);
	assert_int_equal(post(SL_ROCE_KIND_READ, 1, 0x80000000), SL_ROCE_EINVAL);
	rc.reads = 0;
	assert_int_equal(post(SL_ROCE_KIND_READ, 1, 8), SL_ROCE_EINVAL);
	rc.ack_every = 9;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_EINVAL);
	rc.ack_every = 0;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_EINVAL);
	fresh(NULL);
	rc.rnr_retries = 8;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_EINVAL);
	fresh(NULL);
	rc.psn = 0x1000000;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_write_one_ack),
		TEST(asks_for_acks_often_enough),
		TEST(one_ack_completes_many),
		TEST(nak_goes_back_into_the_message),
		TEST(repeated_nak_is_one_loss),
		TEST(nak_after_progress_is_another_loss),
		TEST(nak_after_silence_is_another_loss),
		TEST(counts_beyond_24_bits),
		TEST(late_ack_after_going_back_skips_what_arrived),
		TEST(silence_repeats_then_fails),
		TEST(progress_renews_the_retries),
		TEST(no_timeout_means_patience),
		TEST(rnr_waits_and_repeats),
		TEST(rnr_too_often_fails),
		TEST(rnr_seven_is_for_ever),
		TEST(rnr_shows_that_packets_arrive),
		TEST(fatal_nak_blames_its_work),
		TEST(acks_that_cannot_be_are_ignored),
		TEST(credits_are_ignored),
		TEST(immediates_and_empty_messages),
		TEST(full_queue_refuses),
		TEST(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("rc requester", tests, NULL, NULL);
}
