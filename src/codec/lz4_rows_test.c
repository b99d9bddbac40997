/* lz4_rows_test.c - whatever a block holds, LZ4's own decoder gives it back, and the rules of the
 * format about the end of a block are obeyed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "codec/lz4_rows.h"

enum { MOST = SL_LZ4_ROWS_MOST, SLACK = SL_LZ4_ROWS_SLACK, BOUND = SL_LZ4_ROWS_BOUND };

static uint8_t around[MOST + 2 * SLACK], *block = around + SLACK;
static uint8_t packed[BOUND + SLACK], again[BOUND + SLACK], back[MOST];
static struct sl_lz4_table table;

static int setup(void **state)
{
	sl_lz4_table_init(&table);
	return 0;
}

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % n;
}

static uint64_t used_rows(uint32_t bytes, uint32_t row)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < bytes; i++)
		if (block[i])
			used |= UINT64_C(1) << i / row;
	return used;
}

/* A run of 255s and what ends it. */
static uint32_t length(const uint8_t **at, uint32_t nibble)
{
	uint32_t n = nibble;

	if (nibble == 15)
		do
			n += **at;
		while (*(*at)++ == 255);
	return n;
}

/* lz4_Block_format.md: the last sequence is literals alone, at least 5 where there is a match
 * before, and the last match starts at least 12 bytes before the end. */
static void ends_by_the_rules(size_t size, uint32_t bytes)
{
	const uint8_t *at = packed, *end = packed + size;
	uint32_t done = 0, last_match = 0, literals = 0;

	while (at < end) {
		uint8_t token = *at++;

		literals = length(&at, token >> 4);
		at += literals;
		done += literals;
		assert_true(at <= end);
		if (at == end)
			break;
		last_match = done;
		assert_in_range(at[0] | at[1] << 8, 1, done);
		at += 2;
		done += 4 + length(&at, token & 15);
	}
	assert_int_equal(done, bytes);
	assert_true(!last_match || literals >= 5);
	assert_true(!last_match || last_match + 12 <= bytes);
}

static size_t pack(uint32_t bytes, uint32_t row)
{
	size_t size = sl_lz4_rows(&table, block, bytes, used_rows(bytes, row), row, packed);

	assert_in_range(size, 1, bytes + bytes / 255 + 16);
	memset(back, 0xa5, sizeof(back));
	assert_int_equal(LZ4_decompress_safe((char *)packed, (char *)back, (int)size, (int)bytes),
			 bytes);
	assert_memory_equal(back, block, bytes);
	ends_by_the_rules(size, bytes);
	return size;
}

/* What lies around a block must not matter. */
static void fill_around(void)
{
	for (size_t i = 0; i < sizeof(around); i++)
		around[i] = (uint8_t)below(256);
}

/* Pieces of all kinds: zeros, a byte again and again, noise, sparse bits, copies of what was. */
static void draw(uint32_t bytes, uint32_t longest)
{
	fill_around();
	for (uint32_t at = 0; at < bytes;) {
		uint32_t n = 1 + below(longest), kind = below(6), byte = below(256);
		uint32_t from = at ? below(at) : 0;

		for (; n && at < bytes; n--, at++)
			block[at] = (uint8_t)(kind == 0	  ? below(256)
					      : kind == 1 ? byte
					      : kind == 2 ? (below(12) ? 0 : 1u << below(8))
					      : kind == 3 ? (below(150) ? 0 : byte)
					      : kind == 4 ? block[from++]
							  : 0);
	}
}

static void test_blocks_of_all_kinds_come_back(void **state)
{
	unsigned blocks = getenv("SLUICE_LONG") ? 3000000 : 30000;

	for (unsigned i = 0; i < blocks; i++) {
		static const uint32_t longest[] = {3, 40, 600, 4000};
		uint32_t rows, row;

		seed = i;
		rows = 8u << below(4);
		row = below(4) ? 1 + below(MOST / rows) : MOST / rows;
		draw(rows * row, longest[below(4)]);
		for (uint32_t r = 0; r < rows; r++) /* some rows without bits */
			if (below(3) == 0)
				memset(block + r * row, 0, row);
		pack(rows * row, row);
	}
}

/* Zeros that begin and end anywhere, next to the end of the block too. */
static void test_zero_rows_meet_any_neighbour(void **state)
{
	for (uint32_t row = 1; row <= 20; row++)
		for (uint32_t first = 0; first < 8; first++)
			for (uint32_t last = first; last <= 8; last++) {
				seed = row;
				draw(8 * row, 3);
				memset(block + first * row, 0, (last - first) * row);
				pack(8 * row, row);
			}
	for (uint32_t row = 1; row <= 1024; row += row < 64 ? 1 : 97) {
		memset(around, 0, sizeof(around));
		assert_true(pack(8 * row, row) < 60);
	}
}

/* No block depends on those before it: the table is cleared once in 7 blocks only. */
static void test_a_block_is_packed_alike_after_any_other(void **state)
{
	static struct sl_lz4_table fresh;

	for (unsigned i = 0; i < 3000; i++) {
		size_t size;

		seed = i;
		draw(MOST, 200);
		size = pack(MOST, 512);
		sl_lz4_table_init(&fresh);
		assert_int_equal(sl_lz4_rows(&fresh, block, MOST, used_rows(MOST, 512), 512, again),
				 size);
		assert_memory_equal(again, packed, size);
	}
}

/* Rows may be named in use that are zero. */
static void test_zero_rows_need_not_be_named(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		size_t size;

		seed = i;
		draw(MOST, 1000);
		size = sl_lz4_rows(&table, block, MOST, UINT64_MAX, 128, packed);
		assert_int_equal(LZ4_decompress_safe((char *)packed, (char *)back, (int)size, MOST),
				 MOST);
		assert_memory_equal(back, block, MOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_of_all_kinds_come_back),
		cmocka_unit_test(test_zero_rows_meet_any_neighbour),
		cmocka_unit_test(test_a_block_is_packed_alike_after_any_other),
		cmocka_unit_test(test_zero_rows_need_not_be_named),
	};

	return cmocka_run_group_tests_name("lz4_rows", tests, setup, NULL);
}
