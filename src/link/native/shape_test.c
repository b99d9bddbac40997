/* shape_test.c - which bytes of a block a packet has, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/native/shape.h"

static struct sl_native_shape made(uint32_t across, uint32_t down, uint32_t payload, uint32_t lines,
				   uint32_t line_bytes, uint64_t pitch)
{
	struct sl_native_shape s = {.across = across, .down = down, .payload = payload};

	assert_null(sl_native_shape_fill(&s, lines, line_bytes, pitch));
	return s;
}

static void check(const struct sl_native_shape *s, uint32_t port, uint32_t packet, unsigned pieces,
		  uint64_t first, uint64_t last, uint32_t bytes)
{
	struct sl_native_piece piece[SL_NATIVE_PIECES];

	assert_int_equal(sl_native_pieces(s, port, packet, piece), pieces);
	assert_int_equal(piece[0].at, first);
	assert_int_equal(piece[pieces - 1].at, last);
	for (unsigned i = 0; i < pieces; i++)
		assert_int_equal(piece[i].bytes, bytes);
}

/* 512 lines of 1024 pixels of 2 bytes. */
static void a_jungfrau_with_one_interface(void **state)
{
	struct sl_native_shape s = made(1, 1, 8192, 512, 2048, 0);

	assert_int_equal(s.ports, 1);
	assert_int_equal(s.packets, 128);
	check(&s, 0, 0, 1, 0, 0, 8192);
	check(&s, 0, 127, 1, 127 * 8192, 127 * 8192, 8192);
}

static void a_jungfrau_with_two_interfaces(void **state)
{
	struct sl_native_shape s = made(1, 2, 8192, 512, 2048, 0);

	assert_int_equal(s.ports, 2);
	assert_int_equal(s.packets, 64);
	check(&s, 0, 63, 1, 63 * 8192, 63 * 8192, 8192);
	check(&s, 1, 0, 1, 256 * 2048, 256 * 2048, 8192);
	check(&s, 1, 63, 1, 127 * 8192, 127 * 8192, 8192);
}

/* Lines with a gap between them: four of them in a packet. */
static void lines_with_a_pitch_are_pieces(void **state)
{
	struct sl_native_shape s = made(1, 2, 8192, 512, 2048, 2112);

	check(&s, 0, 1, 4, 4 * 2112, 7 * 2112, 2048);
	check(&s, 1, 0, 4, 256 * 2112, 259 * 2112, 2048);
}

/* A half-module: 256 lines of 1024 pixels; a port has the left or the right 512 of each. Packets of
 * a frame: 4 * bits at 10 Gbit/s, 16 * bits at 1. */
static void an_eiger_half_module(void **state)
{
	static const struct {
		uint32_t bits, payload, packets, pieces;
	} kinds[] = {{8, 4096, 32, 8},	{16, 4096, 64, 4},  {32, 4096, 128, 2},
		     {8, 1024, 128, 2}, {16, 1024, 256, 1}, {32, 1024, 512, 1}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint32_t line = 1024 * kinds[i].bits / 8, half = line / 2, n = kinds[i].pieces;
		struct sl_native_shape s = made(2, 1, kinds[i].payload, 256, line, 0);
		uint32_t bytes = half < kinds[i].payload ? half : kinds[i].payload;
		uint32_t lines = n, last = s.packets - 1;

		assert_int_equal(s.ports, 2);
		assert_int_equal(s.packets, kinds[i].packets);
		check(&s, 0, 0, n, 0, (n - 1) * (uint64_t)line, bytes);
		check(&s, 1, 0, n, half, half + (n - 1) * (uint64_t)line, bytes);
		/* The last bytes of either half. */
		check(&s, 1, last, n, half + (256 - lines) * (uint64_t)line + half - bytes,
		      half + 255 * (uint64_t)line + half - bytes, bytes);
	}
}

static void an_eiger_module_has_four_ports(void **state)
{
	struct sl_native_shape s = made(2, 2, 4096, 512, 2048, 0);

	assert_int_equal(s.ports, 4);
	assert_int_equal(s.packets, 64);
	check(&s, 1, 0, 4, 1024, 1024 + 3 * 2048, 1024);
	check(&s, 2, 0, 4, 256 * 2048, 259 * 2048, 1024);
	check(&s, 3, 63, 4, 508 * 2048 + 1024, 511 * 2048 + 1024, 1024);
}

/* Each byte of a block belongs to one packet of one port, also where lines and packets do not end
 * together. */
static void every_byte_is_in_one_packet(void **state)
{
	static const uint32_t shapes[][5] = {/* across, down, payload, lines, line_bytes */
					     {1, 1, 10, 6, 25},
					     {2, 1, 20, 6, 40},
					     {2, 2, 9, 6, 12},
					     {1, 3, 24, 9, 16},
					     {2, 1, 7, 7, 30}};
	uint8_t seen[4096];

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const uint32_t *a = shapes[i];
		uint64_t pitch = a[4] + 3;
		struct sl_native_shape s = made(a[0], a[1], a[2], a[3], a[4], pitch);

		memset(seen, 0, sizeof(seen));
		for (uint32_t port = 0; port < s.ports; port++)
			for (uint32_t packet = 0; packet < s.packets; packet++) {
				struct sl_native_piece piece[SL_NATIVE_PIECES];
				unsigned n = sl_native_pieces(&s, port, packet, piece);

				assert_true(n <= s.pieces);
				for (unsigned p = 0; p < n; p++)
					for (uint32_t b = 0; b < piece[p].bytes; b++)
						seen[piece[p].at + b]++;
			}
		for (uint64_t at = 0; at < pitch * a[3]; at++)
			assert_int_equal(seen[at], at % pitch < a[4]);
	}
}

static void what_does_not_divide_is_refused(void **state)
{
	static const uint32_t wrong[][5] = {
		{0, 1, 8, 8, 8}, {1, 5, 8, 10, 8},	{2, 4, 8, 8, 8},   {1, 2, 8, 7, 8},
		{2, 1, 8, 8, 9}, {1, 1, 7, 8, 8},	{1, 1, 0, 8, 8},   {1, 1, 8, 0, 8},
		{1, 1, 8, 8, 0}, {1, 1, 8961, 1, 8961}, {2, 1, 66, 66, 4},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct sl_native_shape s = {
			.across = wrong[i][0], .down = wrong[i][1], .payload = wrong[i][2]};

		assert_non_null(sl_native_shape_fill(&s, wrong[i][3], wrong[i][4], 0));
	}
}

/* The upper half of an Eiger's module: line 255 of the block comes last. */
static void an_upper_half_is_turned_over(void **state)
{
	struct sl_native_shape s = {.across = 2, .down = 2, .payload = 4096, .flipped = 3};

	assert_null(sl_native_shape_fill(&s, 512, 2048, 0));
	check(&s, 0, 0, 4, 255 * 2048, 252 * 2048, 1024);
	check(&s, 0, 63, 4, 3 * 2048, 0, 1024);
	check(&s, 1, 1, 4, 251 * 2048 + 1024, 248 * 2048 + 1024, 1024);
	check(&s, 2, 0, 4, 256 * 2048, 259 * 2048, 1024);
	check(&s, 3, 63, 4, 508 * 2048 + 1024, 511 * 2048 + 1024, 1024);
	/* The same with the lower half on the first ports. */
	s.flipped = 12;
	s.bottom_up = true;
	check(&s, 0, 0, 4, 256 * 2048, 259 * 2048, 1024);
	check(&s, 2, 0, 4, 255 * 2048, 252 * 2048, 1024);
	check(&s, 3, 63, 4, 3 * 2048 + 1024, 1024, 1024);
}

/* Lines that follow each other are no longer one piece when the last comes first. */
static void lines_of_one_port_turned_over(void **state)
{
	struct sl_native_shape s = {.across = 1, .down = 1, .payload = 200, .flipped = 1};

	assert_null(sl_native_shape_fill(&s, 4, 100, 0));
	check(&s, 0, 0, 2, 300, 200, 100);
	check(&s, 0, 1, 2, 100, 0, 100);
}

/* The middle rows of a Jungfrau, as its virtual server numbers their packets. */
static void a_partial_readout(void **state)
{
	static const struct {
		uint32_t rows, ports, packets, first[2];
	} cases[] = {{512, 1, 128, {0, 0}}, {128, 1, 32, {48, 0}}, {8, 1, 2, {63, 0}},
		     {512, 2, 64, {0, 0}},  {128, 2, 16, {48, 0}}, {8, 2, 1, {63, 0}}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sl_native_shape s = {.across = 1,
					    .down = cases[i].ports,
					    .payload = 8192,
					    .unread = (512 - cases[i].rows) / 2};

		assert_null(sl_native_shape_fill(&s, cases[i].rows, 2048, 0));
		assert_int_equal(s.packets, cases[i].packets);
		assert_int_equal(s.first_packet[0], cases[i].first[0]);
		assert_int_equal(s.first_packet[1], cases[i].first[1]);
	}
}

static void half_a_packet_unread_is_refused(void **state)
{
	struct sl_native_shape s = {.across = 1, .down = 1, .payload = 8192, .unread = 2};

	assert_non_null(sl_native_shape_fill(&s, 508, 2048, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jungfrau_with_one_interface),
		cmocka_unit_test(a_jungfrau_with_two_interfaces),
		cmocka_unit_test(lines_with_a_pitch_are_pieces),
		cmocka_unit_test(an_eiger_half_module),
		cmocka_unit_test(an_eiger_module_has_four_ports),
		cmocka_unit_test(every_byte_is_in_one_packet),
		cmocka_unit_test(what_does_not_divide_is_refused),
		cmocka_unit_test(an_upper_half_is_turned_over),
		cmocka_unit_test(lines_of_one_port_turned_over),
		cmocka_unit_test(a_partial_readout),
		cmocka_unit_test(half_a_packet_unread_is_refused),
	};

	return cmocka_run_group_tests_name("native shape", tests, NULL, NULL);
}
