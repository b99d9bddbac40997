/* shuffle_test.c - every instruction set of this CPU shuffles as the description says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "codec/shuffle.h"

enum { MOST = 8192 };

static const enum sl_vectors sets[] = {SL_VECTORS_BASELINE, SL_VECTORS_AVX2, SL_VECTORS_AVX512};
static const uint32_t sizes[] = {1, 2, 4, 8};
static uint8_t data[MOST], expected[MOST];

/* Bit by bit. Returns the rows that are not zero. */
static uint64_t shuffle(uint64_t elements, uint32_t element)
{
	uint64_t used = 0;

	memset(expected, 0, sizeof(expected));
	for (uint64_t i = 0; i < elements; i++)
		for (unsigned bit = 0; bit < 8 * element; bit++)
			if (data[i * element + bit / 8] >> bit % 8 & 1) {
				expected[bit * (elements / 8) + i / 8] |= (uint8_t)(1 << i % 8);
				used |= UINT64_C(1) << bit;
			}
	return used;
}

/* Buffers of exactly that size, so that a sanitizer sees every byte too many. */
static void all_agree(uint64_t elements, uint32_t element)
{
	uint64_t bytes = elements * element, used = shuffle(elements, element);
	uint8_t *in = malloc(bytes + 1), *out = malloc(bytes + 1), *back = malloc(bytes + 1);

	memcpy(in, data, bytes);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const struct sl_shuffle *s = sl_shuffle_choose(sets[i]);

		memset(out, 0xa5, bytes + 1);
		memset(back, 0xa5, bytes + 1);
		assert_int_equal(s->shuffle(in, elements, element, out), used);
		assert_memory_equal(out, expected, bytes);
		assert_int_equal(out[bytes], 0xa5);
		s->unshuffle(out, elements, element, back);
		assert_memory_equal(back, data, bytes);
		assert_int_equal(back[bytes], 0xa5);
	}
	free(back);
	free(out);
	free(in);
}

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* Random bits below `mask`, which repeats every 8 bytes. */
static void fill(uint64_t mask, uint64_t seed)
{
	for (size_t i = 0; i < MOST; i++)
		data[i] = (uint8_t)(random_next(&seed) & mask >> (8 * (i % 8)));
}

static void test_every_size_is_shuffled_as_described(void **state)
{
	fill(~UINT64_C(0), 1);
	for (size_t e = 0; e < 4; e++)
		for (uint64_t n = 0; n <= MOST / sizes[e]; n += n < 600 ? 8 : 328)
			all_agree(n, sizes[e]);
}

static void test_rows_without_bits_are_named(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		fill(UINT64_C(1) << bit, bit);
		for (size_t e = 0; e < 4; e++) {
			all_agree(MOST / sizes[e], sizes[e]);
			all_agree(MOST / sizes[e] - 8, sizes[e]);
			all_agree(200, sizes[e]);
		}
	}
	fill(0, 0);
	for (size_t e = 0; e < 4; e++)
		all_agree(MOST / sizes[e], sizes[e]);
}

/* One bit in all: wherever it is, its row is in use and no other. */
static void test_no_bit_is_overlooked(void **state)
{
	uint64_t seed = 4;

	memset(data, 0, sizeof(data));
	for (unsigned i = 0; i < 2000; i++) {
		uint32_t element = sizes[i % 4];
		uint64_t n = 8 + random_next(&seed) % (MOST / element / 8) * 8;
		size_t at = random_next(&seed) %
			    ((n < MOST / element ? n : MOST / element) * element);

		data[at] = (uint8_t)(1 << random_next(&seed) % 8);
		all_agree(n < MOST / element ? n : MOST / element, element);
		data[at] = 0;
	}
}

static void test_other_sizes_come_back(void **state)
{
	uint8_t back[3 * 64];

	fill(~UINT64_C(0), 9);
	shuffle(64, 3);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		memset(back, 0, sizeof(back));
		sl_shuffle_choose(sets[i])->unshuffle(expected, 64, 3, back);
		assert_memory_equal(back, data, sizeof(back));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size_is_shuffled_as_described),
		cmocka_unit_test(test_rows_without_bits_are_named),
		cmocka_unit_test(test_no_bit_is_overlooked),
		cmocka_unit_test(test_other_sizes_come_back),
	};

	return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
