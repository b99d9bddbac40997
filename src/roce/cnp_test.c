/* cnp_test.c - congestion notifications: how often, what they look like, whose they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_frame.h"
#include "roce/cnp.h"
#include "roce/icrc.h"

static struct sl_roce_cnp state;

static int fresh(void **unused)
{
	memset(&state, 0, sizeof(state));
	return 0;
}

static void one_per_gap(void **unused)
{
	assert_true(sl_roce_cnp_due(&state, 1000));
	assert_false(sl_roce_cnp_due(&state, 1000));
	assert_false(sl_roce_cnp_due(&state, 1000 + 49999));
	assert_true(sl_roce_cnp_due(&state, 1000 + 50000));
	assert_false(sl_roce_cnp_due(&state, 1000 + 99999));
	assert_true(sl_roce_cnp_due(&state, 1000000000));
	assert_int_equal(state.marked, 6);
	assert_int_equal(state.asked, 3);
}

static void first_mark_counts_at_any_time(void **unused)
{
	assert_true(sl_roce_cnp_due(&state, 0));
	fresh(NULL);
	assert_true(sl_roce_cnp_due(&state, UINT64_C(1) << 62));
}

static void gap_can_be_chosen(void **unused)
{
	state.gap_ns = 4000;
	assert_true(sl_roce_cnp_due(&state, 10));
	assert_false(sl_roce_cnp_due(&state, 4009));
	assert_true(sl_roce_cnp_due(&state, 4010));
}

/* However many packets are marked, the number of CNPs depends on the time alone. */
static void storm_of_marks_is_one_cnp_per_gap(void **unused)
{
	unsigned due = 0;

	for (uint64_t now = 0; now < 1000000; now += 100)
		due += sl_roce_cnp_due(&state, now);
	assert_int_equal(due, 20);
}

/* A CNP that a ConnectX-4 Lx sent: the same bytes come out of our encoder, ICRC included. */
static void is_what_connectx_sends(void **unused)
{
	uint8_t captured[128], headers[SL_ROCE_HEADERS_MAX], trailer[SL_ROCE_TRAILER_MAX];
	size_t udp_bytes = 0, n;
	struct sl_roce_path path;
	struct sl_roce_packet packet;
	const uint8_t *udp;

	n = hex_bytes("45c2003c718c4000401191610a0011010a001201 000012b700280000 "
		      "8100ffff4000011800000000 00000000000000000000000000000000 82fd002a",
		      captured, sizeof(captured));
	udp = frame_split_l3(captured, n, &path, &udp_bytes);
	assert_non_null(udp);
	assert_int_equal(udp_bytes, SL_ROCE_CNP_BYTES + SL_ROCE_ICRC_BYTES);
	assert_int_equal(captured[1] >> 2, SL_ROCE_CNP_DSCP);
	assert_int_equal(captured[1] & SL_ROCE_ECN_MASK, SL_ROCE_ECN_ECT0);
	memset(headers, 0x5a, sizeof(headers));
	assert_int_equal(sl_roce_cnp_encode(0x118, headers), SL_ROCE_OK);
	assert_memory_equal(headers, udp, SL_ROCE_CNP_BYTES);
	assert_int_equal(sl_roce_seal(&path, headers, SL_ROCE_CNP_BYTES, NULL, 0, NULL, trailer),
			 SL_ROCE_ICRC_BYTES);
	assert_memory_equal(trailer, udp + SL_ROCE_CNP_BYTES, SL_ROCE_ICRC_BYTES);
	assert_int_equal(sl_roce_parse(udp, udp_bytes, &packet), SL_ROCE_OK);
	assert_int_equal(sl_roce_cnp_receive(0x118, path.source, path.dest, &path, &packet),
			 SL_ROCE_ACCEPTED);
}

static void no_number_wider_than_a_qpn(void **unused)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];

	assert_int_equal(sl_roce_cnp_encode(0xffffff, headers), SL_ROCE_OK);
	assert_int_equal(sl_roce_cnp_encode(0x1000000, headers), SL_ROCE_EINVAL);
}

static struct sl_roce_packet received(uint8_t opcode)
{
	uint8_t bytes[SL_ROCE_CNP_BYTES + SL_ROCE_ICRC_BYTES] = {0};
	struct sl_roce_packet packet;

	sl_roce_cnp_encode(0x11, bytes);
	bytes[0] = opcode;
	assert_int_equal(sl_roce_parse(bytes, sizeof(bytes), &packet), SL_ROCE_OK);
	return packet;
}

static const struct sl_roce_path path = {.source = {1}, .dest = {2}};

static enum sl_roce_drop judge(const struct sl_roce_packet *packet)
{
	return sl_roce_cnp_receive(0x11, path.source, path.dest, &path, packet);
}

/* The Linux and Wireshark tables name 0x80, the class; devices send 0x81. */
static void both_opcodes_are_understood(void **unused)
{
	struct sl_roce_packet packet = received(0x81);

	assert_int_equal(judge(&packet), SL_ROCE_ACCEPTED);
	packet = received(0x80);
	assert_int_equal(judge(&packet), SL_ROCE_ACCEPTED);
}

static void reserved_bits_do_not_matter(void **unused)
{
	struct sl_roce_packet packet = received(0x81);

	packet.byte4 = 0xff;
	packet.mig = packet.se = packet.ackreq = true;
	packet.psn = 0xabcdef;
	assert_int_equal(judge(&packet), SL_ROCE_ACCEPTED);
}

static void strangers_slow_nobody_down(void **unused)
{
	struct sl_roce_packet packet = received(0x81);
	struct sl_roce_path other = path;

	other.source[0] = 9;
	assert_int_equal(sl_roce_cnp_receive(0x11, path.source, path.dest, &other, &packet),
			 SL_ROCE_DROP_PEER);
	assert_int_equal(sl_roce_cnp_receive(0x11, path.source, path.dest, NULL, &packet),
			 SL_ROCE_ACCEPTED);
	packet.qpn++;
	assert_int_equal(judge(&packet), SL_ROCE_DROP_QUEUE);
	packet = received(0x81);
	packet.pkey = 0x1234;
	assert_int_equal(judge(&packet), SL_ROCE_DROP_PKEY);
	packet.opcode = 0x2a;
	assert_int_equal(judge(&packet), SL_ROCE_DROP_TRANSPORT);
	packet.opcode = 0x82;
	assert_int_equal(judge(&packet), SL_ROCE_DROP_TRANSPORT);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_per_gap),
		TEST(first_mark_counts_at_any_time),
		TEST(gap_can_be_chosen),
		TEST(storm_of_marks_is_one_cnp_per_gap),
		TEST(is_what_connectx_sends),
		TEST(no_number_wider_than_a_qpn),
		TEST(both_opcodes_are_understood),
		TEST(reserved_bits_do_not_matter),
		TEST(strangers_slow_nobody_down),
	};

	return cmocka_run_group_tests_name("cnp", tests, NULL, NULL);
}
