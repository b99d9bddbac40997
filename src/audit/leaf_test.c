/* leaf_test.c - every value of a row is in its leaf. */
#include "audit/leaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MODULES = 2, SERIES = 3 };

struct row {
	struct sl_leaf leaf;
	uint64_t module_sequence[MODULES];
	uint8_t outcome[MODULES], cause[MODULES];
	uint32_t source_crc[MODULES], series_rows[SERIES], series_crc[SERIES];
};

static struct row example(void)
{
	return (struct row){.leaf = {.sequence = 118,
				     .number = 236,
				     .timestamp = UINT64_C(0x0102030405060708),
				     .missing = 2,
				     .score = 1.5f,
				     .flags = 4,
				     .reason = 2,
				     .keep = true,
				     .has_image = true,
				     .image_crc = 0xe3069283,
				     .modules = MODULES,
				     .series = SERIES,
				     .series_names = 0x12345678,
				     .source_known = 1},
			    .module_sequence = {118, UINT64_MAX},
			    .outcome = {1, 4},
			    .cause = {0, 3},
			    .source_crc = {0xdeadbeef, 0},
			    .series_rows = {1, 0, 17},
			    .series_crc = {5, 0, 7}};
}

static struct sl_hash hash_of(struct row *row)
{
	row->leaf.module_sequence = row->module_sequence;
	row->leaf.outcome = row->outcome;
	row->leaf.cause = row->cause;
	row->leaf.source_crc = row->source_crc;
	row->leaf.series_rows = row->series_rows;
	row->leaf.series_crc = row->series_crc;
	return sl_leaf_hash(&row->leaf);
}

/* Made by Python's struct and hashlib from the table in docs/reference/audit.md. */
static void the_hash_is_that_of_the_reference(void **state)
{
	struct row row = example();
	struct sl_hash hash = hash_of(&row);
	char text[SL_HASH_TEXT];

	(void)state;
	assert_string_equal(sl_hash_text(&hash, text),
			    "5f7e6c552d4a63768b39998aa9ecbe1ee3da2325c94254043418844323c45a13");
}

#define CHANGES(member)                                    \
	do {                                               \
		struct row row = example();                \
		struct sl_hash now;                        \
		((uint8_t *)&row.member)[0] ^= 1;          \
		now = hash_of(&row);                       \
		assert_false(sl_hash_same(&now, &before)); \
	} while (0)

static void every_value_counts(void **state)
{
	struct row same = example();
	struct sl_hash before = hash_of(&same);

	(void)state;
	CHANGES(leaf.sequence);
	CHANGES(leaf.number);
	CHANGES(leaf.timestamp);
	CHANGES(leaf.missing);
	CHANGES(leaf.score);
	CHANGES(leaf.flags);
	CHANGES(leaf.reason);
	CHANGES(leaf.keep);
	CHANGES(leaf.has_image);
	CHANGES(leaf.image_crc);
	CHANGES(leaf.series_names);
	CHANGES(leaf.source_known);
	CHANGES(leaf.modules);
	for (int i = 0; i < MODULES; i++) {
		CHANGES(module_sequence[i]);
		CHANGES(outcome[i]);
		CHANGES(cause[i]);
		CHANGES(source_crc[i]);
	}
	for (int i = 0; i < SERIES; i++) {
		CHANGES(series_rows[i]);
		CHANGES(series_crc[i]);
	}
}

static void the_largest_leaf_has_room(void **state)
{
	static uint64_t sequence[SL_LEAF_MODULES];
	static uint8_t bytes[SL_LEAF_MODULES];
	static uint32_t words[SL_LEAF_SERIES];
	const struct sl_leaf leaf = {.modules = SL_LEAF_MODULES,
				     .series = SL_LEAF_SERIES,
				     .module_sequence = sequence,
				     .outcome = bytes,
				     .cause = bytes,
				     .source_crc = words,
				     .series_rows = words,
				     .series_crc = words};
	struct sl_hash hash = sl_leaf_hash(&leaf), nothing = sl_hash_of_nothing();

	(void)state;
	assert_false(sl_hash_same(&hash, &nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_that_of_the_reference),
		cmocka_unit_test(every_value_counts),
		cmocka_unit_test(the_largest_leaf_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
