/* rc_quiet_test.c - works whose end asks for no ACK: few ACKs, and none missing in the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rc_sender.h"

static void expect_write(uint32_t number, bool ackreq)
{
	expect_packet(OP(WRITE_ONLY), number, ackreq);
}

static void a_run_asks_now_and_then_and_at_its_end(void **state)
{
	for (uint64_t id = 0; id < 6; id++)
		post_quiet(id, 8);
	expect_write(0, false);
	expect_write(1, false);
	expect_write(2, false);
	expect_write(3, true); /* ack_every */
	expect_write(4, false);
	expect_write(5, true); /* nothing behind it */
	assert_false(next());
	ack(5);
	for (uint64_t id = 0; id < 6; id++)
		expect_completion(id, SL_ROCE_SUCCESS);
	assert_int_equal(sl_roce_rc_wake(&rc), UINT64_MAX);
}

static void one_by_one_each_asks(void **state)
{
	for (uint64_t id = 0; id < 3; id++) {
		post_quiet(id, 8);
		expect_write((uint32_t)id, true);
		assert_false(next());
	}
}

static void other_works_ask_as_ever(void **state)
{
	post_quiet(0, 8);
	WRITE(1, 8);
	post_quiet(2, 8);
	expect_write(0, false);
	expect_write(1, true);
	expect_write(2, true);
}

static void the_end_of_the_window_asks(void **state)
{
	rc.ack_every = 8;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_OK);
	for (uint64_t id = 0; id < 3; id++)
		post_quiet(id, 3 * PMTU);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(next());
		assert_int_equal(packet.ackreq, i == 7);
	}
	assert_false(next());
	ack(7);
	assert_true(next());
	assert_true(packet.ackreq);
}

/* The READ is too long for the rest of the window: only an ACK of what is out lets it go. */
static void before_a_read_that_must_go_alone(void **state)
{
	post_quiet(1, 8);
	READ(2, PMTU * 20);
	expect_write(0, true);
	assert_false(next());
	ack(0);
	expect_packet(OP(READ_REQUEST), 1, true);
}

static void before_a_read_that_must_wait_for_others(void **state)
{
	READ(0, 8);
	READ(1, 8);
	post_quiet(2, 8);
	READ(3, 8);
	expect_packet(OP(READ_REQUEST), 0, true);
	expect_packet(OP(READ_REQUEST), 1, true);
	expect_write(2, true);
	assert_false(next());
}

static void after_a_loss_the_end_asks_again(void **state)
{
	for (uint64_t id = 0; id < 3; id++)
		post_quiet(id, 8);
	assert_int_equal(drain(), 3);
	nak(1, SL_ROCE_NAK_SEQUENCE);
	expect_write(1, false);
	expect_write(2, true);
	assert_true(request.again);
	now += TIMEOUT;
	expect_write(1, false);
	expect_write(2, true);
	ack(2);
	for (uint64_t id = 0; id < 3; id++)
		expect_completion(id, SL_ROCE_SUCCESS);
}

/* A sender that is slowed down hears nothing, because it asked for nothing; also when it sends for
 * the second time. */
static void slow_pacing_is_not_silence(void **state)
{
	rc.ack_every = 8;
	assert_int_equal(sl_roce_rc_requester_init(&rc), SL_ROCE_OK);
	for (uint64_t id = 0; id < 6; id++)
		post_quiet(id, 8);
	for (int again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < 6; i++) {
			expect_write(i, i == 5);
			assert_int_equal(request.again, again);
			assert_int_equal(sl_roce_rc_wake(&rc), now + TIMEOUT);
			now += TIMEOUT - 1;
		}
		assert_false(next());
		now += 1; /* now it did ask, and heard nothing */
	}
}

static void what_was_asked_keeps_its_time(void **state)
{
	WRITE(0, 8);
	post_quiet(1, 8);
	post_quiet(2, 8);
	expect_write(0, true);
	now += TIMEOUT - 1;
	expect_write(1, false);
	assert_int_equal(sl_roce_rc_wake(&rc), now + 1);
	ack(0);
	assert_int_equal(sl_roce_rc_wake(&rc), now + TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_asks_now_and_then_and_at_its_end),
		TEST(one_by_one_each_asks),
		TEST(other_works_ask_as_ever),
		TEST(the_end_of_the_window_asks),
		TEST(before_a_read_that_must_go_alone),
		TEST(before_a_read_that_must_wait_for_others),
		TEST(after_a_loss_the_end_asks_again),
		TEST(slow_pacing_is_not_silence),
		TEST(what_was_asked_keeps_its_time),
	};

	return cmocka_run_group_tests_name("rc quiet", tests, NULL, NULL);
}
