/* unpack_test.c - what a plain packer, written here from the description, packs comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codec/unpack.h"

enum { MOST = 1 << 20 };

static uint8_t data[MOST], packed[2 * MOST], out[MOST + 8], scratch[MOST];

static struct sl_unpacker unpacker;

static int setup(void **state)
{
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	return 0;
}

static int teardown(void **state)
{
	sl_unpacker_fini(&unpacker);
	return 0;
}

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

static size_t compress_block(enum sl_codec codec, size_t bytes, uint8_t *to, size_t most)
{
	size_t size = codec == SL_CODEC_BSZSTD
			      ? ZSTD_compress(to, most, scratch, bytes, 3)
			      : (size_t)LZ4_compress_default((char *)scratch, (char *)to,
							     (int)bytes, (int)most);

	assert_true(size > 0 && !ZSTD_isError(size));
	return size;
}

static size_t pack(enum sl_codec codec, size_t bytes, unsigned element, uint32_t block_elements)
{
	size_t left = bytes / element, at = SL_PACKED_HEADER, from = 0;
	size_t block = block_elements ? block_elements : 8192 / element / 8 * 8;

	put(packed, bytes, 8);
	put(packed + 8, block_elements * element, 4);
	while (left >= 8) {
		size_t n = (left < block ? left : block) / 8 * 8;
		size_t size;

		shuffle(data + from, n, element, scratch);
		size = compress_block(codec, n * element, packed + at + 4, sizeof(packed) - at - 4);
		put(packed + at, size, 4);
		at += 4 + size;
		from += n * element;
		left -= n;
	}
	memcpy(packed + at, data + from, left * element);
	return at + left * element;
}

static void comes_back(enum sl_codec codec, size_t count, unsigned element, uint32_t block)
{
	size_t bytes = count * element, size;
	struct sl_packed look;

	fill(bytes, (unsigned)count + element);
	size = pack(codec, bytes, element, block);
	assert_int_equal(sl_packed_look(codec, packed, size, element, &look), 0);
	assert_int_equal(look.bytes, bytes);
	assert_true(look.block <= sizeof(scratch));
	memset(out, 0xa5, bytes + 8);
	assert_int_equal(sl_unpack(&unpacker, codec, packed, size, element, out, bytes), 0);
	assert_memory_equal(out, data, bytes);
	assert_int_equal(out[bytes], 0xa5);
	assert_int_equal(sl_unpack(&unpacker, codec, packed, size, element, out, bytes + element),
			 -EBADMSG);
}

static void test_packed_chunks_come_back(void **state)
{
	static const unsigned elements[] = {1, 2, 4, 8, 3};
	static const size_t counts[] = {0, 1, 7, 8, 9, 64, 1000, 4096, 4099, 20005};
	static const uint32_t blocks[] = {0, 8, 128, 2048, 65536};

	for (size_t e = 0; e < sizeof(elements) / sizeof(elements[0]); e++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
			for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
				comes_back(SL_CODEC_BSLZ4, counts[c], elements[e], blocks[b]);
				comes_back(SL_CODEC_BSZSTD, counts[c], elements[e], blocks[b]);
			}
}

/* One that has unpacked nothing else before; only what it needs is made. */
static void test_a_new_unpacker_takes_any_codec_first(void **state)
{
	static const enum sl_codec codecs[] = {SL_CODEC_BSLZ4, SL_CODEC_BSZSTD};

	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
		struct sl_unpacker fresh;
		size_t size;

		sl_unpacker_init(&fresh, SL_VECTORS_AUTO);
		fill(4096, 5);
		size = pack(codecs[i], 4096, 2, 0);
		assert_int_equal(sl_unpack(&fresh, codecs[i], packed, size, 2, out, 4096), 0);
		assert_memory_equal(out, data, 4096);
		assert_int_equal(fresh.zstd != NULL, codecs[i] == SL_CODEC_BSZSTD);
		assert_true(fresh.block_bytes >= 4096);
		sl_unpacker_fini(&fresh);
		assert_null(fresh.zstd);
		assert_null(fresh.block);
	}
}

/* 64 MiB of zeros in 2 KB: as much as Zstandard can pack must not pass for a lie. */
static void test_the_most_that_zstd_packs_comes_back(void **state)
{
	enum { BYTES = 64 << 20 };
	uint8_t *zeros = calloc(BYTES, 1), *to = malloc(BYTES);
	size_t size;

	put(packed, BYTES, 8);
	put(packed + 8, BYTES, 4);
	size = ZSTD_compress(packed + 16, sizeof(packed) - 16, zeros, BYTES, 19);
	assert_false(ZSTD_isError(size));
	put(packed + 12, size, 4);
	assert_int_equal(sl_unpack(&unpacker, SL_CODEC_BSZSTD, packed, size + 16, 4, to, BYTES), 0);
	assert_memory_equal(to, zeros, BYTES);
	free(to);
	free(zeros);
}

static void test_bits_alone_come_back(void **state)
{
	fill(4 * 1003, 3);
	shuffle(data, 1000, 4, packed);
	memcpy(packed + 4000, data + 4000, 12);
	assert_int_equal(sl_unpack_shuffled(&unpacker, packed, 4012, 4, 2048, out), 0);
	assert_memory_equal(out, data, 4012);
	shuffle(data, 512, 4, packed);
	shuffle(data + 2048, 488, 4, packed + 2048);
	assert_int_equal(sl_unpack_shuffled(&unpacker, packed, 4000, 4, 512, out), 0);
	assert_memory_equal(out, data, 4000);
	assert_int_equal(sl_unpack_shuffled(&unpacker, packed, 4001, 4, 0, out), -EBADMSG);
	assert_int_equal(sl_unpack_shuffled(&unpacker, packed, 4000, 4, 12, out), -EBADMSG);
	assert_int_equal(sl_unpack_shuffled(&unpacker, packed, 4000, 0, 0, out), -EBADMSG);
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
	assert_int_equal(sl_unpack(&unpacker, SL_CODEC_LZ4, packed, at, 1, out, 3000), 0);
	assert_memory_equal(out, data, 3000);
	assert_int_equal(sl_unpack(&unpacker, SL_CODEC_LZ4, packed, at - 1, 1, out, 3000),
			 -EBADMSG);
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

	assert_int_equal(sl_unpack_lzf(lzf, sizeof(lzf), small, sizeof(text) - 1), 0);
	assert_string_equal(small, text);
	assert_int_equal(sl_unpack_lzf(lzf, sizeof(lzf), small, sizeof(text) - 2), -EBADMSG);
	assert_int_equal(sl_unpack_lzf(lzf, sizeof(lzf), small, sizeof(text)), -EBADMSG);
	for (size_t n = 0; n < sizeof(lzf); n++)
		assert_int_equal(sl_unpack_lzf(lzf, n, small, sizeof(text) - 1), -EBADMSG);
	assert_int_equal(sl_unpack_lzf((const uint8_t *)"\x00z\x20\x01", 4, small, 4), -EBADMSG);
}

static void cut_short_is_refused(enum sl_codec codec)
{
	size_t size;

	fill(2 * 1001, 5);
	size = pack(codec, 2 * 1001, 2, 256);
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n ? n : 1); /* so that a sanitizer sees what is beyond */

		memcpy(copy, packed, n);
		assert_int_equal(sl_unpack(&unpacker, codec, copy, n, 2, out, 2 * 1001), -EBADMSG);
		free(copy);
	}
}

static void test_every_way_to_cut_it_short_is_refused(void **state)
{
	cut_short_is_refused(SL_CODEC_BSLZ4);
	cut_short_is_refused(SL_CODEC_BSZSTD);
}

static void headers_that_lie_are_refused(enum sl_codec codec)
{
	struct sl_packed look;
	size_t size;

	fill(2000, 5);
	size = pack(codec, 2000, 2, 256);
	put(packed, UINT64_C(1) << 40, 8);
	assert_int_equal(sl_packed_look(codec, packed, size, 2, &look), -EBADMSG);
	put(packed, 2001, 8);
	assert_int_equal(sl_packed_look(codec, packed, size, 2, &look), -EBADMSG);
	put(packed, 2000, 8);
	put(packed + 8, 7, 4);
	assert_int_equal(sl_packed_look(codec, packed, size, 2, &look), -EBADMSG);
	put(packed + 8, 2 * 12, 4); /* no multiple of 8 */
	assert_int_equal(sl_packed_look(codec, packed, size, 2, &look), -EBADMSG);
	put(packed, 1 << 17, 8); /* so many blocks do not fit */
	put(packed + 8, 16, 4);
	assert_int_equal(sl_packed_look(codec, packed, size, 2, &look), -EBADMSG);
	put(packed, 2000, 8);
	put(packed + 8, 512, 4);
	assert_int_equal(sl_packed_look(codec, packed, size, 0, &look), -EBADMSG);
	assert_int_equal(sl_packed_look(codec, packed, size, 65, &look), -EBADMSG);
	assert_int_equal(sl_packed_look(codec, packed, 11, 2, &look), -EBADMSG);
	put(packed + 12, 0xffffffff, 4);
	assert_int_equal(sl_unpack(&unpacker, codec, packed, size, 2, out, 2000), -EBADMSG);
}

static void test_headers_that_lie_are_refused(void **state)
{
	headers_that_lie_are_refused(SL_CODEC_BSLZ4);
	headers_that_lie_are_refused(SL_CODEC_BSZSTD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed_chunks_come_back),
		cmocka_unit_test(test_a_new_unpacker_takes_any_codec_first),
		cmocka_unit_test(test_the_most_that_zstd_packs_comes_back),
		cmocka_unit_test(test_bits_alone_come_back),
		cmocka_unit_test(test_lz4_alone_comes_back),
		cmocka_unit_test(test_lzf_comes_back),
		cmocka_unit_test(test_every_way_to_cut_it_short_is_refused),
		cmocka_unit_test(test_headers_that_lie_are_refused),
	};

	return cmocka_run_group_tests_name("unpack", tests, setup, teardown);
}
