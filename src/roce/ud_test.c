/* ud_test.c - datagrams: what is sent arrives, what is not wanted does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_frame.h"
#include "roce/icrc.h"
#include "roce/ud.h"

#include <string.h>

enum { QPN = 0x11, SOURCE_QPN = 0x22, QKEY = 0x11111111 };

static const struct sl_roce_path path = {
	.source = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dest = {[10] = 0xff, 0xff, 10, 0, 0, 2},
	.source_port = 0xc000,
	.dest_port = SL_ROCE_UDP_PORT,
	.ip_id = 0x1234,
	.dont_fragment = true,
};

static struct sl_roce_ud_message message;
static struct sl_roce_ud_receiver receiver;
static struct sl_roce_ud_arrival arrival;
static uint8_t datagram[SL_ROCE_HEADERS_MAX + SL_ROCE_PMTU_MAX + SL_ROCE_TRAILER_MAX];

static int fresh(void **state)
{
	message = (struct sl_roce_ud_message){
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = 1024,
		.qpn = QPN,
		.qkey = QKEY,
		.source_qpn = SOURCE_QPN,
		.psn = 7,
		.bytes = 100,
	};
	receiver = (struct sl_roce_ud_receiver){
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = QPN,
		.qkey = QKEY,
		.pmtu = 1024,
		.receives = 2,
		.receive_bytes = 2048,
	};
	memcpy(receiver.local, path.dest, sizeof(receiver.local));
	memset(&arrival, 0x5a, sizeof(arrival));
	return 0;
}

/* Encode, seal, check, parse, judge. */
static enum sl_roce_drop deliver(void)
{
	static const uint8_t payload[SL_ROCE_PMTU_MAX] = {1, 2, 3};
	struct sl_roce_piece piece = {payload, message.bytes};
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;
	size_t n;

	assert_int_equal(sl_roce_ud_encode(&message, datagram, &fragment), SL_ROCE_OK);
	n = fragment.header_bytes;
	memcpy(datagram + n, payload, fragment.bytes);
	n += fragment.bytes;
	n += sl_roce_seal(&path, datagram, fragment.header_bytes, &piece, 1, NULL, datagram + n);
	assert_true(sl_roce_icrc_check(&path, datagram, n, NULL));
	assert_int_equal(sl_roce_parse(datagram, n, &packet), SL_ROCE_OK);
	assert_int_equal(packet.psn, message.psn);
	return sl_roce_ud_receive(&receiver, &path, &packet, &arrival);
}

static void datagram_arrives_behind_its_header(void **state)
{
	assert_int_equal(deliver(), SL_ROCE_ACCEPTED);
	assert_int_equal(datagram[0], 0x64);
	assert_int_equal(arrival.offset, 40);
	assert_int_equal(arrival.bytes, 100);
	assert_int_equal(arrival.receive_bytes, 140);
	assert_int_equal(arrival.source_qpn, SOURCE_QPN);
	assert_false(arrival.immediate || arrival.solicited);
	assert_int_equal(receiver.receives, 1);
}

static void immediate_and_solicited(void **state)
{
	message.immediate = message.solicited = true;
	message.imm = 0xcafe;
	assert_int_equal(deliver(), SL_ROCE_ACCEPTED);
	assert_int_equal(datagram[0], 0x65);
	assert_true(arrival.immediate && arrival.solicited);
	assert_int_equal(arrival.imm, 0xcafe);
}

static void all_lengths(void **state)
{
	receiver.receives = SL_ROCE_RECEIVES_UNLIMITED;
	for (message.bytes = 0; message.bytes <= 1024; message.bytes++) {
		assert_int_equal(deliver(), SL_ROCE_ACCEPTED);
		assert_int_equal(arrival.bytes, message.bytes);
	}
	assert_int_equal(receiver.receives, SL_ROCE_RECEIVES_UNLIMITED);
}

static void wrong_key_is_dropped(void **state)
{
	message.qkey++;
	assert_int_equal(deliver(), SL_ROCE_DROP_QKEY);
	assert_int_equal(receiver.receives, 2);
}

static void no_room_is_dropped(void **state)
{
	receiver.receive_bytes = 139;
	assert_int_equal(deliver(), SL_ROCE_DROP_RECEIVE);
	receiver.receive_bytes = 140;
	assert_int_equal(deliver(), SL_ROCE_ACCEPTED);
	assert_int_equal(deliver(), SL_ROCE_ACCEPTED);
	assert_int_equal(deliver(), SL_ROCE_DROP_RECEIVE);
	receiver.receives = 1;
	receiver.pmtu = 64;
	assert_int_equal(deliver(), SL_ROCE_DROP_LENGTH);
	assert_int_equal(receiver.receives, 1);
}

static void strangers_are_dropped(void **state)
{
	message.qpn++;
	assert_int_equal(deliver(), SL_ROCE_DROP_QUEUE);
	fresh(NULL);
	message.pkey = 0x1234;
	assert_int_equal(deliver(), SL_ROCE_DROP_PKEY);
	fresh(NULL);
	receiver.local[15]++;
	assert_int_equal(deliver(), SL_ROCE_DROP_PEER);
}

static void other_transports_are_dropped(void **state)
{
	struct sl_roce_packet packet = {.opcode = 0x24, .pkey = 0xffff, .qpn = QPN};

	assert_int_equal(sl_roce_ud_receive(&receiver, NULL, &packet, &arrival),
			 SL_ROCE_DROP_TRANSPORT);
}

static void nonsense_is_refused(void **state)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;

	message.bytes = 1025;
	assert_int_equal(sl_roce_ud_encode(&message, headers, &fragment), SL_ROCE_EINVAL);
	fresh(NULL);
	message.source_qpn = 0x1000000;
	assert_int_equal(sl_roce_ud_encode(&message, headers, &fragment), SL_ROCE_EINVAL);
	fresh(NULL);
	message.pmtu = 1000;
	assert_int_equal(sl_roce_ud_encode(&message, headers, &fragment), SL_ROCE_EINVAL);
}

/* The header of a CNP that a ConnectX-4 Lx sent, checksum and all. */
static void header_of_ipv4(void **state)
{
	struct sl_roce_path captured;
	uint8_t l3[64], out[SL_ROCE_UD_HEADER_BYTES];
	static const uint8_t zeros[20];
	size_t udp_bytes;

	hex_bytes("45c2003c718c4000401191610a0011010a001201 000012b700280000", l3, sizeof(l3));
	assert_non_null(frame_split_l3(l3, sizeof(l3), &captured, &udp_bytes));
	captured.tos = 0xc2;
	captured.ttl = 64;
	memset(out, 0x5a, sizeof(out));
	sl_roce_ud_header(&captured, 32, out);
	assert_memory_equal(out, zeros, 20);
	assert_memory_equal(out + 20, l3, 20);
}

/* What the socket was not asked for is zero, and the checksum is of the header as it stands. */
static void header_without_tos_and_ttl(void **state)
{
	static const uint8_t expected[20] = {0x45, 0,	 0,  128, 0x12, 0x34, 0x40, 0, 0, 17,
					     0x54, 0x37, 10, 0,	  0,	1,    10,   0, 0, 2};
	uint8_t out[SL_ROCE_UD_HEADER_BYTES];

	sl_roce_ud_header(&path, 100, out);
	assert_memory_equal(out + 20, expected, sizeof(expected));
}

static void header_of_ipv6(void **state)
{
	static const struct sl_roce_path six = {
		.source = {0x20, 1}, .dest = {0x20, 2}, .tos = 0xc3, .ttl = 61};
	static const uint8_t expected[40] = {0x6c, 0x30, 0,    0, 1,	       8,
					     17,   61,	 0x20, 1, [24] = 0x20, 2};
	uint8_t out[SL_ROCE_UD_HEADER_BYTES];

	sl_roce_ud_header(&six, 256, out);
	assert_memory_equal(out, expected, sizeof(out));
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(datagram_arrives_behind_its_header),
		TEST(immediate_and_solicited),
		TEST(all_lengths),
		TEST(wrong_key_is_dropped),
		TEST(no_room_is_dropped),
		TEST(strangers_are_dropped),
		TEST(other_transports_are_dropped),
		TEST(nonsense_is_refused),
		TEST(header_of_ipv4),
		TEST(header_without_tos_and_ttl),
		TEST(header_of_ipv6),
	};

	return cmocka_run_group_tests_name("ud", tests, NULL, NULL);
}
