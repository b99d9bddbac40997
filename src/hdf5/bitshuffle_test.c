/* bitshuffle_test.c - what a plain packer, written here from the description, packs comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/bitshuffle.h"

enum { MOST = 1 << 20 };

static uint8_t data[MOST], packed[2 * MOST], out[MOST + 8], scratch[MOST];

static void fill(size_t bytes, unsigned seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (uint8_t)(i % 2 ? x >> 30 : x >> 24); /* some of it can be packed */
	}
}

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

/* Bit by bit, as the format is described. */
static void shuffle(const uint8_t *in, size_t elements, unsigned element, uint8_t *to)
{
	memset(to, 0, elements * element);
	for (size_t i = 0; i < elements; i++)
		for (unsigned bit = 0; bit < 8 * element; bit++)
			if (in[i * element + bit / 8] >> bit % 8 & 1)
				to[bit * (elements / 8) + i / 8] |= (uint8_t)(1 << i % 8);
}

static size_t pack(size_t bytes, unsigned element, uint32_t block_elements)
{
	size_t left = bytes / element, at = SL_PACKED_HEADER, from = 0;
	size_t block = block_elements ? block_elements : 8192 / element / 8 * 8;

	put(packed, bytes, 8);
	put(packed + 8, block_elements * element, 4);
	while (left >= 8) {
		size_t n = (left < block ? left : block) / 8 * 8;
		int size;

		shuffle(data + from, n, element, scratch);
		size = LZ4_compress_default((char *)scratch, (char *)packed + at + 4,
					    (int)(n * element), (int)(sizeof(packed) - at - 4));
		assert_true(size > 0);
		put(packed + at, (uint64_t)size, 4);
		at += 4 + (size_t)size;
		from += n * element;
		left -= n;
	}
	memcpy(packed + at, data + from, left * element);
	return at + left * element;
}

static void test_packed_chunks_come_back(void **state)
{
	static const unsigned elements[] = {1, 2, 4, 8, 3};
	static const size_t counts[] = {0, 1, 7, 8, 9, 64, 1000, 4096, 4099, 20005};
	static const uint32_t blocks[] = {0, 8, 128, 2048, 65536};

	for (size_t e = 0; e < sizeof(elements) / sizeof(elements[0]); e++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
			for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
				size_t bytes = counts[c] * elements[e], size;
				struct sl_packed look;

				fill(bytes, (unsigned)(c + e));
				size = pack(bytes, elements[e], blocks[b]);
				assert_int_equal(sl_packed_look(packed, size, elements[e], &look),
						 0);
				assert_int_equal(look.bytes, bytes);
				assert_true(look.block <= sizeof(scratch));
				memset(out, 0xa5, bytes + 8);
				assert_int_equal(
					sl_bitshuffle_lz4(packed, size, elements[e], out, scratch),
					0);
				assert_memory_equal(out, data, bytes);
				assert_int_equal(out[bytes], 0xa5);
			}
}

static void test_bits_alone_come_back(void **state)
{
	fill(4 * 1003, 3);
	shuffle(data, 1000, 4, packed);
	memcpy(packed + 4000, data + 4000, 12);
	assert_int_equal(sl_bitshuffle_plain(packed, 4012, 4, 2048, out), 0);
	assert_memory_equal(out, data, 4012);
	shuffle(data, 512, 4, packed);
	shuffle(data + 2048, 488, 4, packed + 2048);
	assert_int_equal(sl_bitshuffle_plain(packed, 4000, 4, 512, out), 0);
	assert_memory_equal(out, data, 4000);
	assert_int_equal(sl_bitshuffle_plain(packed, 4001, 4, 0, out), -EBADMSG);
	assert_int_equal(sl_bitshuffle_plain(packed, 4000, 4, 12, out), -EBADMSG);
	assert_int_equal(sl_bitshuffle_plain(packed, 4000, 0, 0, out), -EBADMSG);
}

static void test_lz4_alone_comes_back(void **state)
{
	size_t at = SL_PACKED_HEADER;
	int size;

	fill(3000, 9);
	put(packed, 3000, 8);
	put(packed + 8, 2000, 4);
	size = LZ4_compress_default((char *)data, (char *)packed + at + 4, 2000, 4000);
	put(packed + at, (uint64_t)size, 4);
	at += 4 + (size_t)size;
	put(packed + at, 1000, 4); /* stored as it is */
	memcpy(packed + at + 4, data + 2000, 1000);
	at += 1004;
	assert_int_equal(sl_lz4_blocks(packed, at, out), 0);
	assert_memory_equal(out, data, 3000);
	assert_int_equal(sl_lz4_blocks(packed, at - 1, out), -EBADMSG);
}

static void test_lzf_comes_back(void **state)
{
	/* abc, then 6 bytes from 3 back, then 20 from 1 back, and d. */
	static const uint8_t lzf[] = {2, 'a', 'b', 'c', 4 << 5, 2, 7 << 5, 11, 0, 0, 'd'};
	static const char text[] = "abcabcabc"
				   "cccccccccc"
				   "cccccccccc"
				   "d";
	uint8_t small[sizeof(text)] = {0};

	assert_int_equal(sl_lzf(lzf, sizeof(lzf), small, sizeof(text) - 1), 0);
	assert_string_equal(small, text);
	assert_int_equal(sl_lzf(lzf, sizeof(lzf), small, sizeof(text) - 2), -EBADMSG);
	assert_int_equal(sl_lzf(lzf, sizeof(lzf), small, sizeof(text)), -EBADMSG);
	for (size_t n = 0; n < sizeof(lzf); n++)
		assert_int_equal(sl_lzf(lzf, n, small, sizeof(text) - 1), -EBADMSG);
	assert_int_equal(sl_lzf((const uint8_t *)"\x00z\x20\x01", 4, small, 4), -EBADMSG);
}

static void test_every_way_to_cut_it_short_is_refused(void **state)
{
	size_t size;

	fill(2 * 1001, 5);
	size = pack(2 * 1001, 2, 256);
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n ? n : 1); /* so that a sanitizer sees what is beyond */

		memcpy(copy, packed, n);
		assert_int_equal(sl_bitshuffle_lz4(copy, n, 2, out, scratch), -EBADMSG);
		free(copy);
	}
}

static void test_headers_that_lie_are_refused(void **state)
{
	struct sl_packed look;
	size_t size;

	fill(2000, 5);
	size = pack(2000, 2, 256);
	put(packed, UINT64_C(1) << 40, 8);
	assert_int_equal(sl_packed_look(packed, size, 2, &look), -EBADMSG);
	put(packed, 2001, 8);
	assert_int_equal(sl_packed_look(packed, size, 2, &look), -EBADMSG);
	put(packed, 2000, 8);
	put(packed + 8, 7, 4);
	assert_int_equal(sl_packed_look(packed, size, 2, &look), -EBADMSG);
	put(packed + 8, 2 * 12, 4); /* no multiple of 8 */
	assert_int_equal(sl_bitshuffle_lz4(packed, size, 2, out, scratch), -EBADMSG);
	put(packed + 8, 512, 4);
	assert_int_equal(sl_packed_look(packed, size, 0, &look), -EBADMSG);
	assert_int_equal(sl_packed_look(packed, size, 65, &look), -EBADMSG);
	assert_int_equal(sl_packed_look(packed, 11, 2, &look), -EBADMSG);
	put(packed + 12, 0xffffffff, 4);
	assert_int_equal(sl_bitshuffle_lz4(packed, size, 2, out, scratch), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed_chunks_come_back),
		cmocka_unit_test(test_bits_alone_come_back),
		cmocka_unit_test(test_lz4_alone_comes_back),
		cmocka_unit_test(test_lzf_comes_back),
		cmocka_unit_test(test_every_way_to_cut_it_short_is_refused),
		cmocka_unit_test(test_headers_that_lie_are_refused),
	};

	return cmocka_run_group_tests_name("bitshuffle", tests, NULL, NULL);
}
