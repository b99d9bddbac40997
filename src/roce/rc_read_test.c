/* rc_read_test.c - a send queue with READs: their data, its loss, and how many at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_rc_sender.h"

static void read_collects_its_data(void **state)
{
	READ(1, 600);
	WRITE(2, 8);
	expect_packet(OP(READ_REQUEST), 0, true);
	assert_int_equal(packet.reth.length, 600);
	assert_int_equal(request.fragment.bytes, 0);
	expect_packet(OP(WRITE_ONLY), 3, true);
	assert_int_equal(respond(OP(READ_RESPONSE_FIRST), 0, 0x1f, PMTU), SL_ROCE_ACCEPTED);
	assert_int_equal(got.id, 1);
	assert_int_equal(got.bytes, PMTU);
	assert_int_equal(respond(OP(READ_RESPONSE_MIDDLE), 1, 0x1f, PMTU), SL_ROCE_ACCEPTED);
	assert_int_equal(got.offset, PMTU);
	assert_int_equal(respond(OP(READ_RESPONSE_LAST), 2, 0x1f, 88), SL_ROCE_ACCEPTED);
	assert_int_equal(got.offset, 2 * PMTU);
	assert_int_equal(got.bytes, 88);
	expect_completion(1, SL_ROCE_SUCCESS);
	assert_int_equal(respond(OP(READ_RESPONSE_LAST), 2, 0x1f, 88), SL_ROCE_DROP_DUPLICATE);
	assert_int_equal(got.bytes, 0);
	expect_none();
}

static void read_data_acknowledges_what_came_before(void **state)
{
	SEND(1, 8);
	READ(2, 8);
	drain();
	assert_int_equal(respond(OP(READ_RESPONSE_ONLY), 1, 0x1f, 8), SL_ROCE_ACCEPTED);
	expect_completion(1, SL_ROCE_SUCCESS);
	expect_completion(2, SL_ROCE_SUCCESS);
}

static void lost_read_data_is_asked_for_again_from_there(void **state)
{
	READ(1, 600);
	WRITE(2, 8);
	drain();
	respond(OP(READ_RESPONSE_FIRST), 0, 0x1f, PMTU);
	assert_int_equal(respond(OP(READ_RESPONSE_LAST), 2, 0x1f, 88), SL_ROCE_DROP_AHEAD);
	assert_int_equal(got.bytes, 0);
	expect_packet(OP(READ_REQUEST), 1, true);
	assert_int_equal(packet.reth.va, 0x10000 + PMTU);
	assert_int_equal(packet.reth.length, 600 - PMTU);
	expect_packet(OP(WRITE_ONLY), 3, true);
	assert_int_equal(respond(OP(READ_RESPONSE_FIRST), 1, 0x1f, PMTU), SL_ROCE_ACCEPTED);
	assert_int_equal(got.offset, PMTU);
	assert_int_equal(respond(OP(READ_RESPONSE_LAST), 2, 0x1f, 88), SL_ROCE_ACCEPTED);
	expect_completion(1, SL_ROCE_SUCCESS);
}

static void ack_beyond_a_read_tells_of_lost_data(void **state)
{
	WRITE(1, 8);
	READ(2, 8);
	WRITE(3, 8);
	drain();
	ack(2);
	expect_completion(1, SL_ROCE_SUCCESS);
	expect_none();
	expect_packet(OP(READ_REQUEST), 1, true);
}

static void read_data_of_wrong_length_fails(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t bytes;
	} rows[] = {{OP(READ_RESPONSE_FIRST), PMTU - 4},
		    {OP(READ_RESPONSE_ONLY), PMTU},
		    {OP(READ_RESPONSE_LAST), 88},
		    {OP(READ_RESPONSE_MIDDLE), 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fresh(NULL);
		READ(1, 600);
		drain();
		assert_int_equal(respond(rows[i].op, 0, 0x1f, rows[i].bytes), SL_ROCE_DROP_LENGTH);
		assert_int_equal(got.bytes, 0);
		expect_completion(1, SL_ROCE_BAD_RESPONSE);
	}
}

static void reads_in_flight_are_limited(void **state)
{
	for (uint64_t id = 0; id < 3; id++)
		READ(id, 8);
	assert_int_equal(drain(), 2);
	respond(OP(READ_RESPONSE_ONLY), 0, 0x1f, 8);
	assert_int_equal(drain(), 1);
}

static void read_beyond_the_window_goes_alone(void **state)
{
	WRITE(1, 8);
	READ(2, PMTU * 20);
	WRITE(3, 8);
	expect_packet(OP(WRITE_ONLY), 0, true);
	assert_false(next());
	ack(0);
	expect_packet(OP(READ_REQUEST), 1, true);
	assert_false(next());
	for (uint32_t i = 0; i < 12; i++)
		respond(OP(READ_RESPONSE_MIDDLE), 1 + i, 0x1f, PMTU);
	assert_false(next());
	respond(OP(READ_RESPONSE_MIDDLE), 13, 0x1f, PMTU);
	expect_packet(OP(WRITE_ONLY), 21, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read_collects_its_data),
		TEST(read_data_acknowledges_what_came_before),
		TEST(lost_read_data_is_asked_for_again_from_there),
		TEST(ack_beyond_a_read_tells_of_lost_data),
		TEST(read_data_of_wrong_length_fails),
		TEST(reads_in_flight_are_limited),
		TEST(read_beyond_the_window_goes_alone),
	};

	return cmocka_run_group_tests_name("rc read", tests, NULL, NULL);
}
