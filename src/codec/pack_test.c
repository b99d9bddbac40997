/* pack_test.c - what was packed comes back, and has the bytes that the format asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/crc.h"
#include "codec/pack.h"
#include "codec/unpack.h"

enum { MOST = 8 * 20000 };

static const enum sl_codec codecs[] = {SL_CODEC_NONE, SL_CODEC_LZ4, SL_CODEC_BSLZ4,
				       SL_CODEC_BSZSTD};
static const uint32_t element_sizes[] = {1, 2, 4, 8};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]), SIZES = 4 };

static uint8_t data[MOST], out[MOST], shuffled[SL_PACK_SHUFFLED_BYTES];
static struct sl_packer packer;
static struct sl_unpacker unpacker;

static int setup(void **state)
{
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	return sl_packer_init(&packer, SL_VECTORS_AUTO);
}

static int teardown(void **state)
{
	sl_packer_fini(&packer);
	sl_unpacker_fini(&unpacker);
	return 0;
}

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* Elements below 2^bits, each with a chance of `ones` in 256 to be other than 0. */
static void fill(uint32_t element, unsigned bits, unsigned ones, uint64_t seed)
{
	memset(data, 0, sizeof(data));
	for (size_t i = 0; i < MOST / element; i++) {
		uint64_t high = random_next(&seed), low = random_next(&seed);
		uint64_t value = (high << 31 ^ low) &
				 (bits < 64 ? (UINT64_C(1) << bits) - 1 : ~0ull);

		if (random_next(&seed) % 256 < ones)
			memcpy(data + i * element, &value, element);
	}
}

/* Into memory of exactly that size, so that a sanitizer sees every byte too many. */
static int64_t pack(enum sl_codec codec, uint64_t bytes, uint32_t element, size_t most,
		    uint8_t **packed)
{
	*packed = malloc(most ? most : 1);
	assert_non_null(*packed);
	return sl_pack(&packer, codec, data, bytes, element, *packed, most);
}

static void comes_back(enum sl_codec codec, size_t count, uint32_t element)
{
	uint64_t bytes = count * element;
	size_t bound = sl_pack_bound(codec, bytes, element);
	uint8_t *packed;
	int64_t size;

	packer.sum = !packer.sum; /* every other one */
	size = pack(codec, bytes, element, bound, &packed);
	assert_true(size >= 0 && (size_t)size <= bound);
	assert_int_equal(packer.crc, packer.sum ? sl_crc32c(0, data, bytes) : 0);
	memset(out, 0xa5, bytes);
	assert_int_equal(sl_unpack(&unpacker, codec, packed, (size_t)size, element, out, bytes), 0);
	assert_memory_equal(out, data, bytes);
	free(packed);
}

static void every_count_comes_back(uint32_t element, size_t step)
{
	for (size_t c = 0; c < CODECS; c++)
		for (size_t count = 0; count <= 20000; count += count < 300 ? 1 : step)
			comes_back(codecs[c], count, element);
}

static void test_images_come_back(void **state)
{
	size_t step = getenv("SLUICE_LONG") ? 1 : 487;

	for (size_t e = 0; e < SIZES; e++) {
		unsigned bits = 8 * element_sizes[e];

		fill(element_sizes[e], bits, 256, e);
		every_count_comes_back(element_sizes[e], step);
		fill(element_sizes[e], 2, 20, e);
		every_count_comes_back(element_sizes[e], step);
		fill(element_sizes[e], bits - 2, 3, e);
		every_count_comes_back(element_sizes[e], step);
	}
}

static uint64_t big(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* Bit by bit, as the format is described. */
static void shuffle(const uint8_t *in, size_t elements, uint32_t element)
{
	memset(shuffled, 0, elements * element);
	for (size_t i = 0; i < elements; i++)
		for (unsigned bit = 0; bit < 8 * element; bit++)
			if (in[i * element + bit / 8] >> bit % 8 & 1)
				shuffled[bit * (elements / 8) + i / 8] |= (uint8_t)(1 << i % 8);
}

/* Walks through the packed bytes with the decoders of LZ4 and Zstandard alone. */
static void framed(enum sl_codec codec, size_t count, uint32_t element)
{
	uint8_t *packed, *at;
	uint64_t bytes = count * element, left = bytes;
	int64_t size = pack(codec, bytes, element, sl_pack_bound(codec, bytes, element), &packed);

	assert_int_equal(big(packed, 8), bytes);
	assert_int_equal(big(packed + 8, 4), 8192);
	at = packed + 12;
	while (left >= 8 * element) {
		size_t now = left < 8192 ? left / (8 * element) * (8 * element) : 8192;
		uint32_t length = (uint32_t)big(at, 4);

		shuffle(data + (bytes - left), now / element, element);
		assert_int_equal(codec == SL_CODEC_BSZSTD
					 ? (int)ZSTD_decompress(out, now, at + 4, length)
					 : LZ4_decompress_safe((char *)at + 4, (char *)out,
							       (int)length, (int)now),
				 now);
		assert_memory_equal(out, shuffled, now);
		at += 4 + length;
		left -= now;
	}
	assert_memory_equal(at, data + (bytes - left), left);
	assert_int_equal(at + left - packed, size);
	free(packed);
}

static void test_the_format_is_that_of_the_filter(void **state)
{
	static const size_t counts[] = {0, 1, 7, 8, 15, 1023, 1024, 1029, 4096, 4101, 12345};

	for (size_t e = 0; e < SIZES; e++) {
		fill(element_sizes[e], 7, 30, e + 10);
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			framed(SL_CODEC_BSLZ4, counts[i], element_sizes[e]);
			framed(SL_CODEC_BSZSTD, counts[i], element_sizes[e]);
		}
	}
}

/* Every size of `out` below what is needed is refused, and nothing is written behind it. */
static void test_too_small_a_buffer_is_refused(void **state)
{
	enum { COUNT = 4099 };

	for (unsigned bits = 1; bits <= 16; bits += 5)
		for (size_t c = 0; c < CODECS; c++) {
			uint8_t *packed;
			int64_t size;

			fill(2, bits, 256, 3);
			size = pack(codecs[c], COUNT * 2, 2, 3 * COUNT, &packed);
			free(packed);
			assert_true(size > 0);
			for (size_t most = 0; most < (size_t)size; most += most < 64 ? 1 : 37) {
				assert_int_equal(pack(codecs[c], COUNT * 2, 2, most, &packed),
						 -ENOSPC);
				free(packed);
			}
			if (codecs[c] == SL_CODEC_BSZSTD)
				continue; /* wants some room more than it needs */
			assert_int_equal(pack(codecs[c], COUNT * 2, 2, (size_t)size, &packed),
					 size);
			free(packed);
		}
}

/* Neither the instruction set nor earlier images change the packed bytes. */
static void test_all_instruction_sets_pack_alike(void **state)
{
	static const enum sl_vectors sets[] = {SL_VECTORS_BASELINE, SL_VECTORS_AVX2,
					       SL_VECTORS_AVX512};
	uint8_t *mine, *other = malloc(2 * MOST);

	for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++)
		for (size_t e = 0; e < SIZES; e++)
			for (size_t c = 0; c < CODECS; c++) {
				struct sl_packer fresh;
				int64_t size;

				fill(element_sizes[e], 5, 60, e + c);
				size = pack(codecs[c], MOST - 72, element_sizes[e], 2 * MOST,
					    &mine);
				assert_int_equal(sl_packer_init(&fresh, sets[s]), 0);
				assert_int_equal(sl_pack(&fresh, codecs[c], data, MOST - 72,
							 element_sizes[e], other, 2 * MOST),
						 size);
				assert_memory_equal(mine, other, size);
				sl_packer_fini(&fresh);
				free(mine);
			}
	free(other);
}

static void test_what_cannot_be_packed_is_refused(void **state)
{
	uint8_t to[64];

	for (uint32_t element = 0; element < 12; element++) {
		bool good = element == 1 || element == 2 || element == 4 || element == 8;

		assert_int_equal(sl_pack(&packer, SL_CODEC_BSLZ4, data, 0, element, to, 64),
				 good ? 12 : -EINVAL);
		assert_int_equal(sl_pack_bound(SL_CODEC_BSLZ4, 0, element) > 0, good);
	}
	assert_int_equal(sl_pack(&packer, SL_CODEC_BSLZ4, data, 3, 2, to, 64), -EINVAL);
	assert_int_equal(sl_pack(&packer, (enum sl_codec)4, data, 4, 2, to, 64), -EINVAL);
	assert_int_equal(sl_pack_bound(SL_CODEC_BSLZ4, 3, 2), 0);
	assert_int_equal(sl_pack_bound(SL_CODEC_BSLZ4, UINT64_MAX - 7, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images_come_back),
		cmocka_unit_test(test_the_format_is_that_of_the_filter),
		cmocka_unit_test(test_too_small_a_buffer_is_refused),
		cmocka_unit_test(test_all_instruction_sets_pack_alike),
		cmocka_unit_test(test_what_cannot_be_packed_is_refused),
	};

	return cmocka_run_group_tests_name("pack", tests, setup, teardown);
}
