/* parse_test.c - headers as they come from the wire; whatever they say, nothing beyond the
 * packet is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/packet/packet.h"

enum { PAYLOAD = 16, V4 = 20 + 8 + PAYLOAD, V6 = 40 + 8 + PAYLOAD };

/* In a piece of memory that ends where the packet does, so that a sanitizer sees a step too far. */
static uint8_t *packet_v4(void)
{
	uint8_t *p = calloc(1, V4);

	assert_non_null(p);
	memcpy(p, (const uint8_t[]){0x45, 3, 0, V4, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0}, 12);
	memcpy(p + 12, (const uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
	memcpy(p + 20, (const uint8_t[]){0xc0, 0x01, 0x12, 0xb7, 0, 8 + PAYLOAD, 0, 0}, 8);
	return p;
}

static uint8_t *packet_v6(void)
{
	uint8_t *p = calloc(1, V6);

	assert_non_null(p);
	memcpy(p, (const uint8_t[]){0x60, 0x30, 0, 0, 0, 8 + PAYLOAD, 17, 64}, 8);
	p[8] = p[24] = 0xfd;
	p[23] = 1;
	p[39] = 2;
	memcpy(p + 40, (const uint8_t[]){0xc0, 0x01, 0x12, 0xb7, 0, 8 + PAYLOAD, 0, 0}, 8);
	return p;
}

static bool parses(const uint8_t *p, size_t bytes)
{
	struct sl_roce_path path;
	const uint8_t *data;
	size_t n;

	return sl_packet_parse(p, bytes, bytes, &path, &data, &n);
}

static void everything_that_the_checksum_covers_is_read(void **state)
{
	uint8_t *p = packet_v4();
	struct sl_roce_path path;
	const uint8_t *data;
	size_t n;

	assert_true(sl_packet_parse(p, V4, V4, &path, &data, &n));
	assert_true(sl_roce_path_is_ipv4(&path) && path.dont_fragment);
	assert_int_equal(path.ip_id, 0x1234);
	assert_int_equal(path.source_port, 0xc001);
	assert_int_equal(path.dest_port, 4791);
	assert_int_equal(path.tos, 3);
	assert_int_equal(path.source[15], 1);
	assert_int_equal(path.dest[15], 2);
	assert_ptr_equal(data, p + 28);
	assert_int_equal(n, PAYLOAD);
	p[6] = 0;
	assert_true(sl_packet_parse(p, V4, V4, &path, &data, &n) && !path.dont_fragment);
	free(p);
	p = packet_v6();
	assert_true(sl_packet_parse(p, V6, V6, &path, &data, &n));
	assert_false(sl_roce_path_is_ipv4(&path));
	assert_int_equal(path.tos, 3);
	assert_int_equal(path.source[15], 1);
	assert_int_equal(path.dest[15], 2);
	assert_int_equal(path.dest_port, 4791);
	assert_ptr_equal(data, p + 48);
	assert_int_equal(n, PAYLOAD);
	free(p);
}

static void options_fragments_and_other_protocols_are_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} bad4[] = {{0, 0x46}, {0, 0x55}, {0, 0x44}, {6, 0x60}, {6, 0x41}, {7, 1}, {9, 6}},
	  bad6[] = {{6, 44}, {6, 0}, {6, 6}, {0, 0x50}};

	for (size_t i = 0; i < sizeof(bad4) / sizeof(*bad4); i++) {
		uint8_t *p = packet_v4();

		assert_true(parses(p, V4));
		p[bad4[i].at] = bad4[i].value;
		assert_false(parses(p, V4));
		free(p);
	}
	for (size_t i = 0; i < sizeof(bad6) / sizeof(*bad6); i++) {
		uint8_t *p = packet_v6();

		assert_true(parses(p, V6));
		p[bad6[i].at] = bad6[i].value;
		assert_false(parses(p, V6));
		free(p);
	}
}

/* Ethernet pads short frames: what follows the length in the headers is not ours. */
static void padding_of_the_link_layer_is_ignored(void **state)
{
	uint8_t padded[V4 + 6] = {0}, *p = packet_v4();
	struct sl_roce_path path;
	const uint8_t *data;
	size_t n;

	memcpy(padded, p, V4);
	assert_true(sl_packet_parse(padded, sizeof(padded), sizeof(padded), &path, &data, &n));
	assert_int_equal(n, PAYLOAD);
	free(p);
}

static void lengths_that_contradict_each_other_are_refused(void **state)
{
	uint8_t *p = packet_v4();

	p[3] = V4 + 1; /* more than came */
	assert_false(parses(p, V4));
	p[3] = 19;
	assert_false(parses(p, V4));
	p[3] = V4;
	for (unsigned udp = 0; udp < 256; udp++) {
		p[25] = (uint8_t)udp;
		assert_int_equal(parses(p, V4), udp == 8 + PAYLOAD);
	}
	free(p);
	p = packet_v6();
	for (unsigned length = 0; length < 256; length++) {
		p[5] = (uint8_t)length;
		assert_int_equal(parses(p, V6), length == 8 + PAYLOAD);
	}
	free(p);
}

static void what_ends_early_is_refused_and_not_read_beyond(void **state)
{
	for (int v6 = 0; v6 < 2; v6++) {
		size_t whole = v6 ? V6 : V4;
		uint8_t *p = v6 ? packet_v6() : packet_v4();

		for (size_t n = 0; n < whole; n++) {
			uint8_t *part = malloc(n ? n : 1);

			assert_non_null(part);
			memcpy(part, p, n);
			assert_false(parses(part, n));
			free(part);
		}
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_that_the_checksum_covers_is_read),
		cmocka_unit_test(options_fragments_and_other_protocols_are_refused),
		cmocka_unit_test(padding_of_the_link_layer_is_ignored),
		cmocka_unit_test(lengths_that_contradict_each_other_are_refused),
		cmocka_unit_test(what_ends_early_is_refused_and_not_read_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
