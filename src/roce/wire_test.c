/* wire_test.c - parsing refuses what it must, keeps what it may, and encoding undoes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_frame.h"
#include "roce/opcode.h"
#include "roce/roce.h"

/* UC WRITE_ONLY_IMM, 7 bytes and 1 of padding. */
static const char write_imm[] =
	"2b10ffff000001230000abcd 00007f1234560000deadbeef00000007 11223344 "
	"0102030405060700 e79d1591";

static uint8_t bytes[8192];
static struct sl_roce_packet packet;

static size_t load(const char *hex)
{
	return hex_bytes(hex, bytes, sizeof(bytes));
}

static void all_fields_of_write_imm(void **state)
{
	size_t n = load(write_imm);

	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_OK);
	assert_int_equal(packet.opcode, 0x2b);
	assert_int_equal(packet.pad, 1);
	assert_false(packet.se || packet.mig || packet.ackreq);
	assert_int_equal(packet.pkey, 0xffff);
	assert_int_equal(packet.qpn, 0x123);
	assert_int_equal(packet.psn, 0xabcd);
	assert_int_equal(packet.has, SL_ROCE_HAS_RETH | SL_ROCE_HAS_IMM);
	assert_int_equal(packet.reth.va, 0x7f1234560000);
	assert_int_equal(packet.reth.rkey, 0xdeadbeef);
	assert_int_equal(packet.reth.length, 7);
	assert_int_equal(packet.imm, 0x11223344);
	assert_int_equal(packet.header_bytes, 32);
	assert_int_equal(packet.payload_bytes, 7);
	assert_ptr_equal(packet.payload, bytes + 32);
	assert_int_equal(packet.icrc, 0x91159de7);
}

static void all_flags_of_the_bth(void **state)
{
	size_t n = load("24d00001c5fedcba fa987654 01000000 00000000");

	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_OK);
	assert_true(packet.se && packet.mig && packet.ackreq);
	assert_int_equal(packet.pad, 1);
	assert_int_equal(packet.pkey, 1);
	assert_int_equal(packet.byte4, 0xc5);
	assert_int_equal(packet.qpn, 0xfedcba);
	assert_int_equal(packet.reserved7, 0x7a);
	assert_int_equal(packet.psn, 0x987654);
}

static void reserved_bits_are_tolerated(void **state)
{
	size_t n = load(write_imm);

	bytes[4] = 0xff;
	bytes[8] = 0x7f;
	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_OK);
	assert_int_equal(packet.byte4, 0xff);
	assert_false(packet.ackreq);
}

static void other_versions_are_refused(void **state)
{
	size_t n = load(write_imm);

	for (unsigned version = 1; version < 16; version++) {
		bytes[1] = (uint8_t)(0x10 | version);
		assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_EVERSION);
	}
}

static void unknown_opcodes_are_refused(void **state)
{
	size_t n = load(write_imm);

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bytes[0] = (uint8_t)opcode;
		if (!sl_roce_opcode((uint8_t)opcode))
			assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_EOPCODE);
	}
}

/* Every prefix, in a buffer of exactly that size so that the sanitizer sees any byte too far. */
static void every_truncation_is_refused_or_consistent(void **state)
{
	size_t n = load(write_imm);

	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = test_malloc(cut ? cut : 1);
		int rc;

		memcpy(exact, bytes, cut);
		rc = sl_roce_parse(exact, cut, &packet);
		if (cut < 12 + 16 + 4 + 4)
			assert_int_equal(rc, SL_ROCE_ESHORT);
		else if (cut == 40) /* 4 bytes with 1 of padding: well formed */
			assert_int_equal(rc, SL_ROCE_OK);
		else
			assert_int_equal(rc, SL_ROCE_EPAD);
		test_free(exact);
	}
}

static void output_is_untouched_on_failure(void **state)
{
	size_t n = load(write_imm);
	struct sl_roce_packet before;

	memset(&packet, 0x5a, sizeof(packet));
	before = packet;
	assert_int_equal(sl_roce_parse(bytes, n - 1, &packet), SL_ROCE_EPAD);
	assert_int_equal(sl_roce_parse(bytes, 11, &packet), SL_ROCE_ESHORT);
	assert_memory_equal(&packet, &before, sizeof(packet));
}

static void padding_longer_than_the_payload_is_refused(void **state)
{
	size_t n = load("2430ffff0000012300000001 00000000");

	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_EPAD);
}

static void padding_in_first_and_middle_is_refused(void **state)
{
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 0x27;
	bytes[1] = 0x10;
	assert_int_equal(sl_roce_parse(bytes, 12 + 256 + 4, &packet), SL_ROCE_EPAD);
	bytes[1] = 0;
	assert_int_equal(sl_roce_parse(bytes, 12 + 256 + 4, &packet), SL_ROCE_OK);
}

static void empty_last_is_refused_empty_only_is_not(void **state)
{
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 0x28;
	assert_int_equal(sl_roce_parse(bytes, 12 + 4, &packet), SL_ROCE_ELENGTH);
	bytes[0] = 0x24;
	assert_int_equal(sl_roce_parse(bytes, 12 + 4, &packet), SL_ROCE_OK);
	assert_int_equal(packet.payload_bytes, 0);
}

static void more_than_the_largest_pmtu_is_refused(void **state)
{
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 0x2a;
	assert_int_equal(sl_roce_parse(bytes, 28 + 4096 + 4, &packet), SL_ROCE_OK);
	assert_int_equal(packet.payload_bytes, 4096);
	assert_int_equal(sl_roce_parse(bytes, 28 + 4100 + 4, &packet), SL_ROCE_ELENGTH);
}

static void lengths_beyond_32_bits_do_not_wrap(void **state)
{
	uint64_t n = load(write_imm) + (UINT64_C(1) << 32);

	if (n > SIZE_MAX)
		skip();
	assert_int_equal(sl_roce_parse_headers(bytes, 32, (size_t)n, &packet), SL_ROCE_ELENGTH);
}

static void acknowledge_with_payload_is_refused(void **state)
{
	size_t n = load("1100ffff000001230000abcd 1f000007 01020304 00000000");

	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_ELENGTH);
	assert_int_equal(sl_roce_parse(bytes, n - 4, &packet), SL_ROCE_OK);
	assert_int_equal(packet.aeth.syndrome, 0x1f);
	assert_int_equal(packet.aeth.msn, 7);
}

/* Where the headers of a scattered datagram are elsewhere than its payload. */
static void headers_alone_parse_alike(void **state)
{
	size_t n = load(write_imm);
	struct sl_roce_packet whole;

	assert_int_equal(sl_roce_parse(bytes, n, &whole), SL_ROCE_OK);
	assert_int_equal(sl_roce_parse_headers(bytes, 32, n, &packet), SL_ROCE_OK);
	assert_null(packet.payload);
	assert_int_equal(packet.payload_bytes, 7);
	assert_int_equal(packet.imm, whole.imm);
	assert_int_equal(packet.reth.va, whole.reth.va);
	assert_int_equal(sl_roce_parse_headers(bytes, 31, n, &packet), SL_ROCE_ESHORT);
	assert_int_equal(sl_roce_parse_headers(bytes, 32, 31, &packet), SL_ROCE_ESHORT);
	assert_int_equal(sl_roce_parse_headers(bytes, 32, n - 2, &packet), SL_ROCE_EPAD);
}

/* A packet with every field at a telling value, for each opcode: encode, parse, encode. */
static void every_opcode_survives_a_round_trip(void **state)
{
	uint8_t again[SL_ROCE_HEADERS_MAX];

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		struct sl_roce_packet in = {
			.opcode = (uint8_t)opcode,
			.byte4 = 0x80,
			.reserved7 = 0x15,
			.se = true,
			.ackreq = true,
			.pkey = 0x8001,
			.qpn = 0xfedcba,
			.psn = 0x987654,
			.reth = {0x0102030405060708, 0x11121314, 0x21222324},
			.atomic = {0x3132333435363738, 0x41424344, 0x5152535455565758,
				   0x6162636465666768},
			.aeth = {0x60, 0x717273},
			.deth = {0x81828384, 0x919293},
			.atomic_ack = 0xa1a2a3a4a5a6a7a8,
			.imm = 0xb1b2b3b4,
			.ieth = 0xc1c2c3c4,
			.feth = 0x00000031,
		};
		const struct sl_roce_opcode *row = sl_roce_opcode((uint8_t)opcode);
		int n = sl_roce_encode_headers(&in, memset(bytes, 0xee, sizeof(bytes)));
		size_t payload;

		if (!row) {
			assert_int_equal(n, SL_ROCE_EOPCODE);
			continue;
		}
		assert_int_equal(n, row->header_bytes);
		assert_int_equal(bytes[n], 0xee);
		payload = row->payload == SL_ROCE_PAYLOAD_NONE ? 0 : 8;
		assert_int_equal(sl_roce_parse(bytes, (size_t)n + payload + 4, &packet),
				 SL_ROCE_OK);
		assert_int_equal(packet.qpn, in.qpn);
		assert_int_equal(packet.psn, in.psn);
		assert_int_equal(packet.has, row->headers);
		assert_int_equal(sl_roce_encode_headers(&packet, again), n);
		assert_memory_equal(again, bytes, (size_t)n);
	}
}

static void extension_headers_lie_where_they_should(void **state)
{
	struct sl_roce_packet in = {
		.opcode = 0x65, .deth = {0x80010000, 0xabcdef}, .imm = 0x01020304};
	static const uint8_t ud[] = {0x80, 0x01, 0, 0, 0, 0xab, 0xcd, 0xef, 1, 2, 3, 4};

	assert_int_equal(sl_roce_encode_headers(&in, bytes), 24);
	assert_memory_equal(bytes + 12, ud, sizeof(ud));

	in = (struct sl_roce_packet){.opcode = 0x13, .atomic = {1, 2, 3, 4}};
	assert_int_equal(sl_roce_encode_headers(&in, bytes), 40);
	assert_int_equal(bytes[12 + 7], 1);
	assert_int_equal(bytes[12 + 11], 2);
	assert_int_equal(bytes[12 + 19], 3);
	assert_int_equal(bytes[12 + 27], 4);

	in = (struct sl_roce_packet){.opcode = 0x1c, .feth = 0x11, .reth = {1, 2, 3}};
	assert_int_equal(sl_roce_encode_headers(&in, bytes), 32);
	assert_int_equal(bytes[12 + 3], 0x11);
	assert_int_equal(bytes[12 + 4 + 7], 1);
	assert_int_equal(bytes[12 + 4 + 15], 3);
}

static void pmtu_is_a_power_of_two_in_range(void **state)
{
	static const uint32_t good[] = {256, 512, 1024, 2048, 4096};
	static const uint32_t bad[] = {0, 1, 128, 255, 257, 768, 1500, 4095, 8192, 0x80000000};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(sl_roce_pmtu_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(sl_roce_pmtu_valid(bad[i]));
}

static void ipv4_is_told_from_ipv6(void **state)
{
	struct sl_roce_path path = {.source = {[10] = 0xff, 0xff, 10}, .dest = {[10] = 0xff, 0xff}};

	assert_true(sl_roce_path_is_ipv4(&path));
	path.source[0] = 0x20;
	assert_false(sl_roce_path_is_ipv4(&path));
	path.source[0] = 0;
	path.dest[11] = 0xfe;
	assert_false(sl_roce_path_is_ipv4(&path));
}

/* InfiniBand Architecture Specification, volume 1: 9.2 (BTH), 7.8 (ICRC), 10.9 (P_Key), and
 * Annex A17 (RoCEv2, port 4791). Both ends of a test have these from one header: no exchange of
 * packets between them would show that one is wrong. */
static void numbers_are_those_of_the_standard(void **state)
{
	assert_int_equal(SL_ROCE_UDP_PORT, 4791);
	assert_int_equal(SL_ROCE_PKEY_DEFAULT, 0xffff);
	assert_int_equal(SL_ROCE_PMTU_MAX, 4096);
	assert_int_equal(SL_ROCE_BTH_BYTES, 12);
	assert_int_equal(SL_ROCE_HEADERS_MAX, 12 + 28);
	assert_int_equal(SL_ROCE_ICRC_BYTES, 4);
	assert_int_equal(SL_ROCE_TRAILER_MAX, 3 + 4);
	assert_int_equal(SL_ROCE_GID_BYTES, 16);
	assert_int_equal(SL_ROCE_MESSAGE_MAX, UINT32_C(0x80000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields_of_write_imm),
		cmocka_unit_test(all_flags_of_the_bth),
		cmocka_unit_test(reserved_bits_are_tolerated),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(unknown_opcodes_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_consistent),
		cmocka_unit_test(output_is_untouched_on_failure),
		cmocka_unit_test(padding_longer_than_the_payload_is_refused),
		cmocka_unit_test(padding_in_first_and_middle_is_refused),
		cmocka_unit_test(empty_last_is_refused_empty_only_is_not),
		cmocka_unit_test(more_than_the_largest_pmtu_is_refused),
		cmocka_unit_test(lengths_beyond_32_bits_do_not_wrap),
		cmocka_unit_test(acknowledge_with_payload_is_refused),
		cmocka_unit_test(headers_alone_parse_alike),
		cmocka_unit_test(every_opcode_survives_a_round_trip),
		cmocka_unit_test(extension_headers_lie_where_they_should),
		cmocka_unit_test(pmtu_is_a_power_of_two_in_range),
		cmocka_unit_test(ipv4_is_told_from_ipv6),
		cmocka_unit_test(numbers_are_those_of_the_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
