/* responder_test.c - a UC queue: messages, and that no loss wedges it. What it must keep out is in
 * responder_guard_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_queue.h"
#include "roce/requester.h"

static void write_only_is_placed_and_silent(void **state)
{
	assert_int_equal(give_op(WRITE_ONLY, 100, 13, 13), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_MEMORY);
	assert_int_equal(action.va, BASE + 0x1000);
	assert_int_equal(action.bytes, 13);
	assert_ptr_equal(action.key, &keys[0]);
	assert_true(action.first && action.last);
	assert_false(action.complete || action.immediate || action.receive || action.gave_up);
	assert_int_equal(action.gap, 0);
	assert_int_equal(queue.expected_psn, 101);
	assert_int_equal(queue.receives, 16);
}

static void write_only_imm_completes_and_takes_a_receive(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY_IMM, 100, 16, 16);

	packet.se = true;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_MEMORY);
	assert_true(action.complete && action.immediate && action.receive && action.solicited);
	assert_int_equal(action.imm, 0x01020304);
	assert_int_equal(action.message_bytes, 16);
	assert_int_equal(queue.receives, 15);
}

static void long_write_is_placed_piece_by_piece(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 612), SL_ROCE_ACCEPTED);
	assert_true(action.first && !action.last);
	assert_int_equal(action.va, BASE + 0x1000);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_true(!action.first && !action.last);
	assert_int_equal(action.va, BASE + 0x1000 + 256);
	assert_int_equal(action.offset, 256);
	assert_int_equal(give_op(WRITE_LAST_IMM, 102, 100, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.va, BASE + 0x1000 + 512);
	assert_int_equal(action.bytes, 100);
	assert_int_equal(action.message_bytes, 612);
	assert_true(action.last && action.complete && action.immediate && action.receive);
	assert_false(queue.open);
}

static void empty_write_needs_no_key(void **state)
{
	struct sl_roce_packet packet = make(WRITE_ONLY_IMM, 100, 0, 0);

	packet.reth.rkey = 0;
	packet.reth.va = UINT64_MAX;
	assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_NOWHERE);
	assert_null(action.key);
	assert_true(action.complete);
	assert_int_equal(queue.expected_psn, 101);
}

static void send_goes_to_the_receive(void **state)
{
	assert_int_equal(give_op(SEND_ONLY, 100, 40, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_RECEIVE);
	assert_int_equal(action.offset, 0);
	assert_int_equal(action.message_bytes, 40);
	assert_true(action.complete && action.receive);
	assert_false(action.immediate);
	assert_int_equal(queue.receives, 15);
}

static void long_send_counts_its_bytes(void **state)
{
	assert_int_equal(give_op(SEND_FIRST, 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_false(action.receive);
	assert_int_equal(queue.receives, 16);
	assert_int_equal(give_op(SEND_MIDDLE, 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.offset, 256);
	assert_int_equal(give_op(SEND_LAST_IMM, 102, 3, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.offset, 512);
	assert_int_equal(action.message_bytes, 515);
	assert_true(action.complete && action.immediate && action.receive);
	assert_int_equal(queue.receives, 15);
}

static void empty_send_completes(void **state)
{
	assert_int_equal(give_op(SEND_ONLY, 100, 0, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.place, SL_ROCE_PLACE_NOWHERE);
	assert_true(action.complete);
	assert_int_equal(action.message_bytes, 0);
}

static void gap_before_only_resyncs(void **state)
{
	assert_int_equal(give_op(WRITE_ONLY, 116, 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(action.gap, 16);
	assert_int_equal(queue.expected_psn, 117);
}

static void older_only_is_accepted_and_resyncs(void **state)
{
	assert_int_equal(give_op(WRITE_ONLY, 90, 32, 32), SL_ROCE_ACCEPTED);
	assert_int_equal(action.gap, -10);
	assert_int_equal(queue.expected_psn, 91);
}

static void expected_psn_wraps(void **state)
{
	queue.expected_psn = 0xffffff;
	assert_int_equal(give_op(WRITE_FIRST, 0xffffff, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_int_equal(queue.expected_psn, 0);
	assert_int_equal(give_op(WRITE_LAST, 0, 44, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(queue.expected_psn, 1);
}

static void lost_first_loses_its_message_only(void **state)
{
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_LAST, 102, 100, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(queue.expected_psn, 100);
	assert_int_equal(give_op(WRITE_FIRST, 103, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_int_equal(action.gap, 3);
	assert_int_equal(give_op(WRITE_LAST_IMM, 104, 44, 0), SL_ROCE_ACCEPTED);
	assert_true(action.complete);
}

static void lost_middle_drops_until_the_next_first(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 1124), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_MIDDLE, 102, PMTU, 0), SL_ROCE_DROP_BROKEN);
	/* even the one that was expected comes too late now */
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_MIDDLE, 103, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_LAST_IMM, 104, 100, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(queue.receives, 16);
	assert_int_equal(give_op(WRITE_ONLY_IMM, 105, 32, 32), SL_ROCE_ACCEPTED);
	assert_true(action.complete);
}

static void lost_last_is_noticed_at_the_next_first(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_FIRST, 102, PMTU, 300), SL_ROCE_ACCEPTED);
	assert_true(action.gave_up);
	assert_int_equal(action.gap, 1);
	assert_int_equal(give_op(WRITE_LAST, 103, 44, 0), SL_ROCE_ACCEPTED);
	assert_false(action.gave_up);
}

static void new_message_in_place_of_the_rest_is_accepted(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 612), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_ONLY, 101, 32, 32), SL_ROCE_ACCEPTED);
	assert_true(action.gave_up);
	assert_int_equal(give_op(WRITE_MIDDLE, 102, PMTU, 0), SL_ROCE_DROP_BROKEN);
}

static void abandoned_send_keeps_its_receive(void **state)
{
	queue.receives = 1;
	assert_int_equal(give_op(SEND_FIRST, 100, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(SEND_LAST, 102, 10, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(SEND_ONLY, 103, 10, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(action.offset, 0);
	assert_int_equal(queue.receives, 0);
}

static void write_and_send_do_not_mix(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 612), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(SEND_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(SEND_FIRST, 102, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_LAST, 103, 100, 0), SL_ROCE_DROP_BROKEN);
}

static void duplicate_middle_breaks_the_message(void **state)
{
	assert_int_equal(give_op(WRITE_FIRST, 100, PMTU, 1000), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_ACCEPTED);
	assert_int_equal(give_op(WRITE_MIDDLE, 101, PMTU, 0), SL_ROCE_DROP_BROKEN);
	assert_int_equal(give_op(WRITE_MIDDLE, 102, PMTU, 0), SL_ROCE_DROP_BROKEN);
}

/* Every pattern of loss over three messages of four packets each, and then one more message: what
 * completes is exactly the messages that arrived whole, and the queue always lives. */
static void no_pattern_of_loss_wedges_the_queue(void **state)
{
	for (unsigned lost = 0; lost < 1u << 12; lost++) {
		unsigned whole = 0, completed = 0;

		fresh_queue(NULL);
		for (unsigned m = 0; m < 3; m++)
			whole += (lost >> 4 * m & 0xf) == 0;
		for (unsigned i = 0; i < 12; i++) {
			enum op op = i % 4 == 0	  ? WRITE_FIRST
				     : i % 4 == 3 ? WRITE_LAST_IMM
						  : WRITE_MIDDLE;

			if (lost >> i & 1)
				continue;
			if (give_op(op, 100 + i, op == WRITE_LAST_IMM ? 10 : PMTU, 778) == 0)
				completed += action.complete;
		}
		assert_int_equal(completed, whole);
		assert_int_equal(give_op(WRITE_ONLY_IMM, 112, 32, 32), SL_ROCE_ACCEPTED);
		assert_int_equal(give_op(WRITE_ONLY_IMM, 113, 32, 32), SL_ROCE_ACCEPTED);
		assert_int_equal(action.gap, 0);
	}
}

/* The requester's packets are what the responder wants, at all lengths up to a few packets. */
static void requester_and_responder_agree(void **state)
{
	struct sl_roce_message message = {.transport = SL_ROCE_UC,
					  .immediate = true,
					  .pkey = SL_ROCE_PKEY_DEFAULT,
					  .pmtu = PMTU,
					  .qpn = QPN,
					  .psn = 0xfffff0,
					  .rkey = RKEY,
					  .va = BASE + 5};
	struct sl_roce_requester requester;
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;
	uint8_t headers[SL_ROCE_HEADERS_MAX];

	queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
	for (uint32_t bytes = 0; bytes < 5 * PMTU; bytes++) {
		message.bytes = bytes;
		message.imm = bytes;
		message.kind = bytes % 2 ? SL_ROCE_KIND_SEND : SL_ROCE_KIND_WRITE;
		sl_roce_requester_begin(&requester, &message);
		while (sl_roce_requester_next(&requester, headers, &fragment)) {
			sl_roce_parse_headers(headers, fragment.header_bytes,
					      fragment.header_bytes + fragment.bytes +
						      fragment.pad + 4u,
					      &packet);
			assert_int_equal(give(packet), SL_ROCE_ACCEPTED);
			assert_int_equal(action.offset, fragment.offset);
			assert_int_equal(action.last, fragment.last);
		}
		assert_true(action.complete);
		assert_int_equal(action.imm, bytes);
		assert_int_equal(action.message_bytes, bytes);
		message.psn = requester.psn;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_only_is_placed_and_silent),
		TEST(write_only_imm_completes_and_takes_a_receive),
		TEST(long_write_is_placed_piece_by_piece),
		TEST(empty_write_needs_no_key),
		TEST(send_goes_to_the_receive),
		TEST(long_send_counts_its_bytes),
		TEST(empty_send_completes),
		TEST(gap_before_only_resyncs),
		TEST(older_only_is_accepted_and_resyncs),
		TEST(expected_psn_wraps),
		TEST(lost_first_loses_its_message_only),
		TEST(lost_middle_drops_until_the_next_first),
		TEST(lost_last_is_noticed_at_the_next_first),
		TEST(new_message_in_place_of_the_rest_is_accepted),
		TEST(abandoned_send_keeps_its_receive),
		TEST(write_and_send_do_not_mix),
		TEST(duplicate_middle_breaks_the_message),
		TEST(no_pattern_of_loss_wedges_the_queue),
		TEST(requester_and_responder_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
