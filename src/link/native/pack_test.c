/* pack_test.c - pixels of 4 and 12 bits, in packets and in blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/native/pack.h"

enum { LINES = 12, PIXELS = 64 }; /* of a block: 12 lines of 64 pixels */

static struct sl_native_shape made(uint32_t packed, uint32_t payload, uint64_t pitch)
{
	struct sl_native_shape s = {.across = 2, .down = 2, .payload = payload, .packed = packed};

	assert_null(sl_native_shape_fill(&s, LINES, PIXELS * (packed == 4 ? 1 : 2), pitch));
	return s;
}

/* As the client of slsDetectorPackage reads them: three bytes are two pixels. */
static void twelve_bits_by_hand(void **state)
{
	struct sl_native_shape s = {.across = 1, .down = 1, .payload = 12, .packed = 12};
	static const uint8_t packet[12] = {0x23, 0xc1, 0xab, 0xff, 0x0f, 0x00,
					   0x00, 0xf0, 0xff, 0x01, 0x20, 0x00};
	static const uint16_t pixels[8] = {0x123, 0xabc, 0xfff, 0x000, 0x000, 0xfff, 0x001, 0x002};
	uint16_t block[8];
	uint8_t back[12];

	assert_null(sl_native_shape_fill(&s, 1, sizeof(block), 0));
	assert_int_equal(s.packets, 1);
	memset(block, 0xee, sizeof(block));
	sl_native_unpack(&s, 0, 0, packet, (uint8_t *)block);
	assert_memory_equal(block, pixels, sizeof(pixels));
	sl_native_pack(&s, (const uint8_t *)pixels, 0, sizeof(back), back);
	assert_memory_equal(back, packet, sizeof(packet));
}

static void four_bits_by_hand(void **state)
{
	static const uint8_t packet[5] = {0x21, 0x43, 0x65, 0x87, 0xf0};
	static const uint8_t pixels[2][10] = {{1, 2, 3, 4, 5, 6, 7, 8, 0, 15},
					      {2, 1, 4, 3, 6, 5, 8, 7, 15, 0}};

	for (unsigned high = 0; high < 2; high++) {
		struct sl_native_shape s = {
			.across = 1, .down = 1, .payload = 5, .packed = 4, .high_first = high};
		uint8_t block[10], back[5];

		assert_null(sl_native_shape_fill(&s, 1, sizeof(block), 0));
		sl_native_unpack(&s, 0, 0, packet, block);
		assert_memory_equal(block, pixels[high], sizeof(block));
		sl_native_pack(&s, block, 0, sizeof(back), back);
		assert_memory_equal(back, packet, sizeof(packet));
	}
}

/* Packed byte by byte, line by line: all that a port sends of a block. */
static void port_bytes(const struct sl_native_shape *s, uint32_t port, const uint8_t *block,
		       uint8_t *to)
{
	for (uint32_t line = 0; line < s->lines; line++) {
		const uint8_t *from = block + sl_native_line_at(s, port, line);

		for (uint32_t i = 0; i < s->wire_line; i++) {
			uint32_t pair = i / 3, which = i % 3;
			uint32_t a = from[4 * pair] | from[4 * pair + 1] << 8;
			uint32_t b = from[4 * pair + 2] | from[4 * pair + 3] << 8;

			if (s->packed == 4)
				*to++ = (uint8_t)(from[2 * i] | from[2 * i + 1] << 4);
			else
				*to++ = (uint8_t)((a | b << 12) >> 8 * which);
		}
	}
}

static void fill(uint8_t *block, size_t bytes, uint32_t packed)
{
	for (size_t i = 0; i < bytes; i++) {
		block[i] = (uint8_t)(i * 167 + i / 7 * 29 + 3);
		if (packed == 4 || i % 2)
			block[i] &= 15;
	}
}

/* A block sent and received packet by packet, in this order. */
static void round_trip(const struct sl_native_shape *s, uint32_t stride)
{
	uint8_t block[LINES * 200], got[sizeof(block)], untouched[sizeof(block)], wire[4096];
	uint8_t packet[2 * SL_NATIVE_PAYLOAD], pixels[2 * SL_NATIVE_PAYLOAD + 8];

	fill(block, sizeof(block), s->packed);
	memset(got, 0xa5, sizeof(got));
	memset(untouched, 0xa5, sizeof(untouched));
	for (uint32_t port = 0; port < s->ports; port++) {
		port_bytes(s, port, block, wire);
		for (uint32_t i = 0; i < s->packets; i++) {
			uint32_t p = i * stride % s->packets;
			struct sl_native_span span = {0};
			uint8_t *to = packet;

			while (sl_native_next_span(s, port, p, &span)) {
				assert_true(span.bytes <= sizeof(pixels));
				assert_true(span.at + span.bytes <= sizeof(block));
				memcpy(pixels, block + span.at, span.bytes);
				sl_native_pack(s, pixels, span.skip, span.wire_bytes, to);
				to += span.wire_bytes;
			}
			assert_int_equal(to - packet, s->payload);
			assert_memory_equal(packet, wire + (size_t)p * s->payload, s->payload);
			sl_native_unpack(s, port, p, packet, got);
		}
	}
	for (uint32_t line = 0; line < LINES; line++) {
		size_t at = line * s->pitch, bytes = (size_t)s->line_bytes * s->across;

		assert_memory_equal(got + at, block + at, bytes);
		assert_memory_equal(got + at + bytes, untouched, s->pitch - bytes);
	}
}

/* Packets that end within a line, and within the three bytes of two pixels, in any order, turned
 * over or not, with a gap between lines or not. */
static void blocks_survive(void **state)
{
	/* A port has 6 lines of 32 pixels: 96 bytes of 4 bits, 288 of 12. */
	static const uint32_t payload[2][6] = {{1, 2, 12, 16, 32, 96}, {1, 2, 16, 32, 96, 144}};

	for (unsigned kind = 0; kind < 2; kind++)
		for (unsigned i = 0; i < 6; i++)
			for (unsigned way = 0; way < 8; way++) {
				uint32_t packed = kind ? 12 : 4;
				uint64_t line = PIXELS * (kind ? 2 : 1);
				struct sl_native_shape s =
					made(packed, payload[kind][i], way & 1 ? line + 8 : 0);

				s.flipped = way & 2 ? 3 : 0;
				s.bottom_up = way & 1;
				round_trip(&s, way & 4 ? s.packets - 1 : 1);
			}
}

/* An Eiger's: the packets of a frame that slsReceiver expects (4 * bits at 10 Gbit/s). */
static void packets_of_an_eiger(void **state)
{
	static const struct {
		uint32_t packed, payload, packets;
	} kinds[] = {{4, 4096, 16}, {12, 4096, 48}, {4, 1024, 64}, {12, 1024, 192}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct sl_native_shape s = {.across = 2,
					    .down = 2,
					    .payload = kinds[i].payload,
					    .packed = kinds[i].packed};
		uint32_t bytes = kinds[i].packed == 4 ? 1 : 2;

		assert_null(sl_native_shape_fill(&s, 512, 1024 * bytes, 0));
		assert_int_equal(s.ports, 4);
		assert_int_equal(s.packets, kinds[i].packets);
	}
}

static void odd_numbers_are_refused(void **state)
{
	struct sl_native_shape four = {.across = 2, .down = 1, .payload = 8, .packed = 4};
	struct sl_native_shape twelve = {.across = 2, .down = 1, .payload = 9, .packed = 12};

	assert_non_null(sl_native_shape_fill(&four, 8, 2 * 33, 0));
	assert_non_null(sl_native_shape_fill(&twelve, 8, 2 * 2 * 33, 0));
	assert_null(sl_native_shape_fill(&four, 8, 2 * 32, 0));
	assert_null(sl_native_shape_fill(&twelve, 6, 2 * 2 * 32, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twelve_bits_by_hand),	   cmocka_unit_test(four_bits_by_hand),
		cmocka_unit_test(blocks_survive),	   cmocka_unit_test(packets_of_an_eiger),
		cmocka_unit_test(odd_numbers_are_refused),
	};

	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
