/* icrc_test.c - CRC-32 and ICRC against captured and published packets, and the check without the
 * IPv4 identification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_frame.h"
#include "roce/icrc.h"

static uint8_t bytes[8192];

/* xorshift64*, so that every run sees the same packets. */
static uint64_t seed = 88172645463325252u;

static uint32_t random32(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)(seed * 2685821657736338717u >> 32);
}

/* The definition: bit by bit. */
static uint32_t crc32_slow(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static void crc32_of_the_check_string(void **state)
{
	assert_int_equal(sl_roce_crc32_portable(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(sl_roce_crc32_portable(0, "", 0), 0);
}

static void crc32_equals_its_definition_at_all_lengths(void **state)
{
	for (size_t i = 0; i < 600; i++)
		bytes[i] = (uint8_t)random32();
	for (size_t n = 0; n < 300; n++)
		assert_int_equal(sl_roce_crc32_portable(0, bytes + n % 17, n),
				 crc32_slow(0, bytes + n % 17, n));
}

static void crc32_chains(void **state)
{
	uint32_t whole = sl_roce_crc32_portable(0, bytes, 500);

	for (size_t cut = 0; cut <= 500; cut += 7)
		assert_int_equal(sl_roce_crc32_portable(sl_roce_crc32_portable(0, bytes, cut),
							bytes + cut, 500 - cut),
				 whole);
}

static void crc32_after_the_mark(void **state)
{
	static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};

	assert_int_equal(sl_roce_crc32_portable(0, ones, 8), 0x2144df1c);
}

/* A whole IP packet, ICRC included: the check passes, and fails after any single change that the
 * ICRC must see. */
static void check_vector(const char *hex, uint32_t on_the_wire)
{
	size_t n = hex_bytes(hex, bytes, sizeof(bytes)), udp_bytes = 0;
	struct sl_roce_path path;
	const uint8_t *udp = frame_split_l3(bytes, n, &path, &udp_bytes);
	uint8_t stored[4];

	assert_non_null(udp);
	assert_int_equal(udp_bytes, bytes + n - udp);
	assert_true(sl_roce_icrc_check(&path, udp, udp_bytes, NULL));
	assert_true(sl_roce_icrc_check(&path, udp, udp_bytes, crc32_slow));
	sl_roce_icrc_put(sl_roce_icrc_get(udp + udp_bytes - 4), stored);
	assert_int_equal((uint32_t)stored[0] << 24 | stored[1] << 16 | stored[2] << 8 | stored[3],
			 on_the_wire);
	for (size_t i = 0; i < udp_bytes; i++) {
		size_t at = (size_t)(udp - bytes) + i;

		bytes[at] ^= 0x10;
		/* byte 4 of the BTH belongs to the switches */
		assert_int_equal(sl_roce_icrc_check(&path, udp, udp_bytes, NULL), i == 4);
		bytes[at] ^= 0x10;
	}
}

static void vector_1_cnp_of_a_connectx_4(void **state)
{
	check_vector("45c2003c718c4000401191610a0011010a001201 000012b700280000 "
		     "8100ffff4000011800000000 00000000000000000000000000000000 82fd002a",
		     0x82fd002a);
}

/* RoCEv1 has a GRH, like an IPv6 header, where v2 has IP and UDP; we do not speak it, but these two
 * were captured from hardware: CRC, masks and transport headers are the same. */
static void check_v1_vector(const char *grh_hex, const char *transport_hex)
{
	uint8_t masked[256];
	size_t grh = 8 + hex_bytes(grh_hex, masked + 8, sizeof(masked) - 8);
	size_t n = hex_bytes(transport_hex, bytes, sizeof(bytes));
	struct sl_roce_packet packet;

	memset(masked, 0xff, 8);
	masked[8] = 0x6f;
	memset(masked + 9, 0xff, 3);
	masked[8 + 7] = 0xff;
	memcpy(masked + grh, bytes, n);
	masked[grh + 4] = 0xff;
	assert_int_equal(sl_roce_parse(bytes, n, &packet), SL_ROCE_OK);
	assert_int_equal(sl_roce_crc32_portable(0, masked, grh + n - 4), packet.icrc);
}

static void vector_2_v1_write_only_of_hardware(void **state)
{
	check_v1_vector("6020000000281b40 00000000000000000000ffff0f000002 "
			"00000000000000000000ffff0f000002",
			"0a70ffff0000010a80a788bc 000055d4c0726000000047b300000005 "
			"0000000001000000 e3d856bb");
}

static void vector_3_v1_acknowledge_of_hardware(void **state)
{
	check_v1_vector("6020000000141b40 00000000000000000000ffff0f000002 "
			"00000000000000000000ffff0f000002",
			"1140ffff0000010900a788c0 00000005 25f0c038");
}

static void vector_4_uc_send_only_ipv4(void **state)
{
	check_vector("450100400478400040 11b4d5c0a80007c0a80007 c00012b7002caca2 "
		     "2460ffff000000d300cf1710 4630818be28935d90e9a95505401be885e500000 78f353f3",
		     0x78f353f3);
}

static void vector_5_uc_send_only_ipv6(void **state)
{
	check_vector("6e21face002c11ff 20220000000000000000000000001023 "
		     "20230000000000000000000000001024 c00012b7002ce7c5 "
		     "2460ffff000000d300cf1710 4630818be28935d90e9a95505401be885e500000 3e5b743b",
		     0x3e5b743b);
}

static void vector_6_uc_write_only_imm(void **state)
{
	check_vector("45000048000040004011b736c0a8010ac0a80114c12312b700340000"
		     "2b10ffff000001230000abcd00007f1234560000deadbeef0000000711223344"
		     "0102030405060700 e79d1591",
		     0xe79d1591);
}

static void vector_7_rc_acknowledge(void **state)
{
	check_vector("45000030000040004011b74ec0a8010ac0a80114c12312b7001c0000"
		     "1100ffff000001230000abcd1f000007 0dc2c231",
		     0x0dc2c231);
}

static void vector_8_rc_send_only(void **state)
{
	check_vector("45000030000040004011b74ec0a8010ac0a80114c12312b7001c0000"
		     "0400ffff000001238000abcd01020304 e452e1ff",
		     0xe452e1ff);
}

static const struct sl_roce_path path4 = {
	.source = {[10] = 0xff, 0xff, 192, 168, 1, 10},
	.dest = {[10] = 0xff, 0xff, 192, 168, 1, 20},
	.source_port = 0xc123,
	.dest_port = SL_ROCE_UDP_PORT,
	.dont_fragment = true,
};

/* A WRITE_ONLY of n random bytes, sealed; its length. */
static size_t make_packet(const struct sl_roce_path *path, size_t n)
{
	struct sl_roce_packet packet = {.opcode = 0x2a,
					.pad = (uint8_t)(-n & 3),
					.pkey = 0xffff,
					.qpn = 0x123,
					.psn = random32() & 0xffffff,
					.reth = {random32(), random32(), (uint32_t)n}};
	size_t header = (size_t)sl_roce_encode_headers(&packet, bytes);
	struct sl_roce_piece piece = {bytes + header, n};

	for (size_t i = 0; i < n; i++)
		bytes[header + i] = (uint8_t)random32();
	return header + n + sl_roce_seal(path, bytes, header, &piece, 1, NULL, bytes + header + n);
}

static void sealed_packets_check(void **state)
{
	for (size_t n = 0; n < 40; n++) {
		size_t all = make_packet(&path4, n);

		assert_int_equal(all, (28 + n + 3) / 4 * 4 + 4);
		assert_true(sl_roce_icrc_check(&path4, bytes, all, NULL));
	}
}

static void pieces_equal_the_whole(void **state)
{
	size_t all = make_packet(&path4, 1001);
	struct sl_roce_piece pieces[5] = {
		{bytes + 28, 0}, {bytes + 28, 1}, {bytes + 29, 600}, {NULL, 0}, {bytes + 629, 400}};
	uint8_t trailer[SL_ROCE_TRAILER_MAX];

	assert_int_equal(sl_roce_seal(&path4, bytes, 28, pieces, 5, NULL, trailer), 7);
	assert_memory_equal(trailer, bytes + all - 7, 7);
	assert_int_equal(sl_roce_icrc(&path4, bytes, 28, pieces, 5, 3, crc32_slow),
			 sl_roce_icrc_get(bytes + all - 4));
	/* and with the padding as received instead of implied, or all of it called headers */
	pieces[4].bytes += 3;
	assert_int_equal(sl_roce_icrc(&path4, bytes, 28, pieces, 5, 0, NULL),
			 sl_roce_icrc_get(bytes + all - 4));
	assert_int_equal(sl_roce_icrc(&path4, bytes, all - 4, NULL, 0, 0, NULL),
			 sl_roce_icrc_get(bytes + all - 4));
}

static void every_part_of_the_path_counts(void **state)
{
	size_t all = make_packet(&path4, 64);
	struct sl_roce_path other = path4;

	other.source_port++;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
	other = path4;
	other.dest_port++;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
	other = path4;
	other.source[15]++;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
	other = path4;
	other.dest[12]++;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
	other = path4;
	other.ip_id = 1;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
	other = path4;
	other.dont_fragment = false;
	assert_false(sl_roce_icrc_check(&other, bytes, all, NULL));
}

static void too_short_for_an_icrc_is_bad(void **state)
{
	uint16_t id = 77;

	memset(bytes, 0, 64);
	for (size_t n = 0; n < 16; n++) {
		assert_false(sl_roce_icrc_check(&path4, bytes, n, NULL));
		assert_false(sl_roce_icrc_check_any_id(&path4, bytes, n, NULL, &id));
	}
	assert_int_equal(id, 77);
}

static void any_id_recovers_ids(void **state)
{
	for (int i = 0; i < 500; i++) {
		struct sl_roce_path path = path4;
		uint16_t sent = (uint16_t)random32(), id = (uint16_t)~sent;
		size_t all;

		path.ip_id = sent;
		all = make_packet(&path, i < 450 ? random32() % 1000 : 4096);
		path.ip_id = (uint16_t)random32(); /* not read */
		assert_true(sl_roce_icrc_check_any_id(&path, bytes, all, NULL, &id));
		assert_int_equal(id, sent);
	}
}

static void any_id_recovers_all_65536_of_them(void **state)
{
	size_t all = make_packet(&path4, 100);
	uint32_t with_zero = sl_roce_icrc_get(bytes + all - 4);
	struct sl_roce_piece piece = {bytes + 28, 100};
	struct sl_roce_path path = path4;
	uint16_t id;

	for (unsigned sent = 0; sent < 65536; sent++) {
		uint32_t icrc;

		path.ip_id = (uint16_t)sent;
		icrc = sl_roce_icrc(&path, bytes, 28, &piece, 1, 0, NULL);
		assert_true(sl_roce_icrc_recover_id(icrc ^ with_zero, all, &id));
		assert_int_equal(id, sent);
	}
}

/* The definition again, at lengths that use every entry of the table: the CRC of the id and as many
 * zeros as follow it, without what the zeros alone would give. */
static void any_id_at_all_lengths(void **state)
{
	static uint8_t tail[65536 + 64];
	uint16_t id;

	for (size_t length = 36; length < 65536; length += length < 80 ? 1 : length / 3) {
		uint32_t zeros = sl_roce_crc32_portable(0, tail, length);
		uint32_t sent;

		tail[0] = (uint8_t)random32();
		tail[1] = (uint8_t)random32();
		sent = (uint32_t)tail[0] << 8 | tail[1];
		zeros ^= sl_roce_crc32_portable(0, tail, length);
		assert_true(sl_roce_icrc_recover_id(zeros, length - 20, &id));
		assert_int_equal(id, sent);
		tail[0] = tail[1] = 0;
	}
	assert_false(sl_roce_icrc_recover_id(0, 65536, &id));
}

/* A corrupted packet passes when the difference happens to look like an id: one in 65536. Of 2^19
 * random differences 8 are expected; none, or 30, would be something else. */
static void any_id_lets_one_in_65536_pass(void **state)
{
	unsigned passed = 0;
	uint16_t id;

	for (unsigned i = 0; i < 1u << 19; i++)
		passed += sl_roce_icrc_recover_id(random32(), 4128, &id);
	assert_in_range(passed, 1, 29);
}

/* 2^-16 is about noise; a single flipped bit of this packet never looks like an id. */
static void any_id_catches_every_single_bit(void **state)
{
	size_t all = make_packet(&path4, 200);
	uint16_t id;

	for (size_t bit = 0; bit < all * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (bit / 8 != 4)
			assert_false(sl_roce_icrc_check_any_id(&path4, bytes, all, NULL, &id));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void any_id_is_the_full_check_over_ipv6(void **state)
{
	struct sl_roce_path path6 = {.source = {0x20, 0x22, [15] = 1},
				     .dest = {0x20, 0x23, [15] = 2},
				     .source_port = 50000,
				     .dest_port = SL_ROCE_UDP_PORT};
	size_t all = make_packet(&path6, 300);
	uint16_t id = 5;

	assert_true(sl_roce_icrc_check_any_id(&path6, bytes, all, NULL, &id));
	assert_int_equal(id, 0);
	/* a difference that IPv4 would take for an id */
	sl_roce_icrc_put(sl_roce_icrc_get(bytes + all - 4) ^ 1, bytes + all - 4);
	assert_false(sl_roce_icrc_check_any_id(&path6, bytes, all, NULL, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32_of_the_check_string),
		cmocka_unit_test(crc32_equals_its_definition_at_all_lengths),
		cmocka_unit_test(crc32_chains),
		cmocka_unit_test(crc32_after_the_mark),
		cmocka_unit_test(vector_1_cnp_of_a_connectx_4),
		cmocka_unit_test(vector_2_v1_write_only_of_hardware),
		cmocka_unit_test(vector_3_v1_acknowledge_of_hardware),
		cmocka_unit_test(vector_4_uc_send_only_ipv4),
		cmocka_unit_test(vector_5_uc_send_only_ipv6),
		cmocka_unit_test(vector_6_uc_write_only_imm),
		cmocka_unit_test(vector_7_rc_acknowledge),
		cmocka_unit_test(vector_8_rc_send_only),
		cmocka_unit_test(sealed_packets_check),
		cmocka_unit_test(pieces_equal_the_whole),
		cmocka_unit_test(every_part_of_the_path_counts),
		cmocka_unit_test(too_short_for_an_icrc_is_bad),
		cmocka_unit_test(any_id_recovers_ids),
		cmocka_unit_test(any_id_recovers_all_65536_of_them),
		cmocka_unit_test(any_id_at_all_lengths),
		cmocka_unit_test(any_id_lets_one_in_65536_pass),
		cmocka_unit_test(any_id_catches_every_single_bit),
		cmocka_unit_test(any_id_is_the_full_check_over_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
