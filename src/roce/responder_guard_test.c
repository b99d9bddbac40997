/* responder_guard_test.c - a UC queue: who may write, how much, where; and what each drop is
 * called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_queue.h"

/* Packets of others must not disturb a message in progress. */
static void strangers_leave_the_message_alone(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY, 101, 32, 32);
	struct sl_roce_path other = path;
	struct sl_roce_responder before;

	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 300), SL_ROCE_ACCEPTED);
	before = queue;
	packet.qpn = QPN + 1;
	assert_int_equal(give(packet), SL_ROCE_DROP_QUEUE);
	packet.qpn = QPN;
	packet.opcode = 0x0a;
	assert_int_equal(give(packet), SL_ROCE_DROP_TRANSPORT);
	packet.opcode = 0x2c; /* within UC, but no such thing */
	assert_int_equal(give(packet), SL_ROCE_DROP_TRANSPORT);
	packet.opcode = WRITE_ONLY;
	packet.pkey = 0x1234;
	assert_int_equal(give(packet), SL_ROCE_DROP_PKEY);
	packet.pkey = SL_ROCE_PKEY_DEFAULT;
	other.source[15] = 9;
	assert_int_equal(sl_roce_responder_receive(&queue, &other, &packet, lookup, NULL, &action),
			 SL_ROCE_DROP_PEER);
	other = path;
	other.dest[15] = 9;
	assert_int_equal(sl_roce_responder_receive(&queue, &other, &packet, lookup, NULL, &action),
			 SL_ROCE_DROP_PEER);
	assert_memory_equal(&queue, &before, sizeof(queue));
	assert_int_equal(give_op(WRITE_LAST, 101, 44, 0), SL_ROCE_ACCEPTED);
}

static void source_port_does_not_matter_and_path_is_optional(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY, 100, 32, 32);
	struct sl_roce_path other = path;

	other.source_port++;
	assert_int_equal(sl_roce_responder_receive(&queue, &other, &packet, lookup, NULL, &action),
			 SL_ROCE_ACCEPTED);
	assert_int_equal(sl_roce_responder_receive(&queue, NULL, &packet, lookup, NULL, &action),
			 SL_ROCE_ACCEPTED);
}

static void pkey_membership(void **state)
{
	assert_true(sl_roce_pkey_match(0xffff, 0xffff));
	assert_true(sl_roce_pkey_match(0x7fff, 0xffff));
	assert_false(sl_roce_pkey_match(0x7fff, 0x7fff));
	assert_false(sl_roce_pkey_match(0x8000, 0x8000));
	assert_false(sl_roce_pkey_match(0xffff, 0x8001));
}

static void length_must_be_what_was_announced(void **state)
{
	assert_int_equal(give_op(WRITE_ONLY, 100, 32, 31), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_ONLY, 100, 32, 33), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_ONLY, 100, 0, 5), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_ONLY, 100, 257, 257), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_FIRST, 100, 128, 300), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, PMTU), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 0), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 0x80000001), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(SEND_FIRST, 100, 255, 0), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(SEND_ONLY, 100, 257, 0), SL_ROCE_DROP_LENGTH);
	assert_int_equal(queue.expected_psn, 100);
}

static void last_must_end_where_announced(void **state)
{
	static const uint32_t wrong[] = {99, 101, 0, 256};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 356), SL_ROCE_ACCEPTED);
		assert_int_equal(give_op(WRITE_LAST_IMM, 101, wrong[i], 0), SL_ROCE_DROP_LENGTH);
		assert_int_equal(give_op(WRITE_LAST_IMM, 101, 100, 0), SL_ROCE_DROP_BROKEN);
	}
}

static void middle_must_leave_something_for_last(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 512), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_LENGTH);
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 513), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_LAST, 102, 1, 0), SL_ROCE_ACCEPTED);
}

static void wrong_key_is_dropped_and_the_queue_lives(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY, 100, 32, 32);

	packet.reth.rkey = RKEY ^ 0x100;
	assert_int_equal(give(packet), SL_ROCE_DROP_KEY);
	assert_int_equal(queue.expected_psn, 100);
	assert_int_equal(give_op(WRITE_ONLY, 101, 32, 32), SL_ROCE_ACCEPTED);
}

static void key_of_another_domain_is_no_key(void **state)
{
	keys[0].domain = 8;
	assert_int_equal(give_op(WRITE_ONLY, 100, 32, 32), SL_ROCE_DROP_KEY);
}

static void access_is_needed_from_queue_and_key(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY, 100, 32, 32);

	packet.reth.rkey = READ_ONLY_KEY;
	assert_int_equal(give(packet), SL_ROCE_DROP_ACCESS);
	queue.access = SL_ROCE_REMOTE_READ;
	assert_int_equal(give_op(WRITE_ONLY, 100, 32, 32), SL_ROCE_DROP_ACCESS);
	assert_int_equal(give_op(WRITE_ONLY, 100, 0, 0), SL_ROCE_DROP_ACCESS);
	assert_int_equal(give_op(SEND_ONLY, 100, 32, 0), SL_ROCE_ACCEPTED);
}

static enum sl_roce_drop write_at(uint64_t va, uint32_t bytes)
{
	struct sl_roce_packet packet = make(WRITE_ONLY, queue.expected_psn, bytes, bytes);

	packet.reth.va = va;
	return give(packet);
}

static void range_is_kept_at_both_ends(void **state)
{
	assert_int_equal(write_at(BASE, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(write_at(BASE + BYTES - 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(write_at(BASE - 1, 32), SL_ROCE_DROP_RANGE);
	assert_int_equal(write_at(BASE + BYTES - 31, 32), SL_ROCE_DROP_RANGE);
	assert_int_equal(write_at(BASE + BYTES, 1), SL_ROCE_DROP_RANGE);
	assert_int_equal(write_at(0, 32), SL_ROCE_DROP_RANGE);
}

static void range_does_not_overflow(void **state)
{
	assert_int_equal(write_at(UINT64_MAX, 32), SL_ROCE_DROP_RANGE);
	assert_int_equal(write_at(UINT64_MAX - 31, 32), SL_ROCE_DROP_RANGE);
	keys[0].base = UINT64_MAX - 63; /* the last 64 bytes there are */
	keys[0].bytes = 64;
	assert_int_equal(write_at(UINT64_MAX - 31, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(write_at(UINT64_MAX - 30, 32), SL_ROCE_DROP_RANGE);
	keys[0].base = 0;
	assert_int_equal(write_at(UINT64_MAX - 15, 32), SL_ROCE_DROP_RANGE);
	assert_false(sl_roce_key_covers(&keys[0], 0, UINT64_MAX));
	assert_true(sl_roce_key_covers(&keys[0], 64, 0));
}

static void first_is_checked_for_the_whole_message(void **state)
{
	struct sl_roce_packet packet = make(WRITE_FIRST, 100, PMTU, 612);

	packet.reth.va = BASE + BYTES - 611;
	assert_int_equal(give(packet), SL_ROCE_DROP_RANGE);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	packet.reth.va--;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
}

static void revoked_key_stops_the_rest_of_a_message(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 612), SL_ROCE_ACCEPTED);
	keys[0].rkey++;
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_KEY);
	keys[0].rkey--;
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 612), SL_ROCE_ACCEPTED);
	keys[0].bytes = 0x1000 + 611;
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_RANGE);
}

static void nothing_posted_drops_what_needs_it(void **state)
{
	queue.receives = 0;
	assert_int_equal(give_op(SEND_ONLY, 100, 32, 0), SL_ROCE_DROP_RECEIVE);
	assert_int_equal(give_op(SEND_FIRST, 100, PMTU, 0), SL_ROCE_DROP_RECEIVE);
	assert_int_equal(give_op(SEND_LAST, 101, 32, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_ONLY_IMM, 100, 32, 32), SL_ROCE_DROP_RECEIVE);
	assert_int_equal(give_op(WRITE_ONLY, 100, 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_FIRST, 101, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_LAST_IMM, 102, 44, 0), SL_ROCE_DROP_RECEIVE);
	queue.receives = 1;
	assert_int_equal(give_op(WRITE_ONLY_IMM, 103, 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_ONLY_IMM, 104, 32, 32), SL_ROCE_DROP_RECEIVE);
}

static void send_longer_than_the_receive_is_dropped(void **state)
{
	queue.receive_bytes = 300;
	assert_int_equal(give_op(SEND_FIRST, 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(SEND_LAST, 101, 45, 0), SL_ROCE_DROP_RECEIVE);
	assert_int_equal(give_op(SEND_FIRST, 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(SEND_LAST, 101, 44, 0), SL_ROCE_ACCEPTED);
	/* an immediate alone needs a receive, but no room in it */
	queue.receive_bytes = 0;
	assert_int_equal(give_op(WRITE_ONLY_IMM, 102, 32, 32), SL_ROCE_ACCEPTED);
}

static void unlimited_receives_never_run_out(void **state)
{
	queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(give_op(WRITE_ONLY_IMM, 100 + i, 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(queue.receives, SL_ROCE_RECEIVES_UNLIMITED);
}

static void action_is_untouched_on_a_drop(void **state)
{
	struct sl_roce_action before = action;

	assert_int_equal(give_op(WRITE_LAST, 100, 5, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_ONLY, 100, 5, 6), SL_ROCE_DROP_LENGTH);
	assert_memory_equal(&action, &before, sizeof(action));
}

static void impossible_queues_are_refused(void **state)
{
	queue.transport = SL_ROCE_RC;
	assert_int_equal(sl_roce_responder_init(&queue), SL_ROCE_EINVAL);
	queue.transport = SL_ROCE_UC;
	queue.pmtu = 1500;
	assert_int_equal(sl_roce_responder_init(&queue), SL_ROCE_EINVAL);
	queue.pmtu = 1024;
	queue.qpn = 0x1000000;
	assert_int_equal(sl_roce_responder_init(&queue), SL_ROCE_EINVAL);
	queue.qpn = 1;
	queue.expected_psn = 0x1000000;
	assert_int_equal(sl_roce_responder_init(&queue), SL_ROCE_EINVAL);
}

static void drops_have_names(void **state)
{
	for (int drop = 0; drop < SL_ROCE_DROPS; drop++) {
		assert_non_null(sl_roce_drop_name((enum sl_roce_drop)drop));
		for (int other = 0; other < drop; other++)
			assert_string_not_equal(sl_roce_drop_name((enum sl_roce_drop)drop),
						sl_roce_drop_name((enum sl_roce_drop)other));
	}
	assert_string_equal(sl_roce_drop_name(SL_ROCE_DROP_BROKEN), "broken");
	assert_string_equal(sl_roce_drop_name(SL_ROCE_DROPS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(strangers_leave_the_message_alone),
		TEST(source_port_does_not_matter_and_path_is_optional),
		TEST(pkey_membership),
		TEST(length_must_be_what_was_announced),
		TEST(last_must_end_where_announced),
		TEST(middle_must_leave_something_for_last),
		TEST(wrong_key_is_dropped_and_the_queue_lives),
		TEST(key_of_another_domain_is_no_key),
		TEST(access_is_needed_from_queue_and_key),
		TEST(range_is_kept_at_both_ends),
		TEST(range_does_not_overflow),
		TEST(first_is_checked_for_the_whole_message),
		TEST(revoked_key_stops_the_rest_of_a_message),
		TEST(nothing_posted_drops_what_needs_it),
		TEST(send_longer_than_the_receive_is_dropped),
		TEST(unlimited_receives_never_run_out),
		TEST(action_is_untouched_on_a_drop),
		TEST(impossible_queues_are_refused),
		TEST(drops_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
