/* leaf.c - the bytes of a leaf. docs/reference/audit.md has the same table. */
#include "audit/leaf.h"

#include <assert.h>
#include <string.h>

enum {
	HEAD_BYTES = 4 * 8 + 7 * 4 + 8 + 2 + 2,
	MODULE_BYTES = 8 + 4 + 1 + 1,
	SERIES_BYTES = 4 + 4,
};

static uint8_t *put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

static uint8_t *put_head(uint8_t *at, const struct sl_leaf *leaf)
{
	uint32_t score;

	memcpy(&score, &leaf->score, sizeof(score));
	at = put(at, SL_LEAF_VERSION, 4);
	at = put(at, leaf->sequence, 8);
	at = put(at, leaf->number, 8);
	at = put(at, leaf->timestamp, 8);
	at = put(at, leaf->missing, 8);
	at = put(at, leaf->flags, 4);
	at = put(at, score, 4);
	at = put(at, leaf->reason, 2);
	at = put(at, leaf->keep, 1);
	at = put(at, leaf->has_image, 1);
	at = put(at, leaf->image_crc, 4);
	at = put(at, leaf->source_known, 8);
	at = put(at, leaf->modules, 4);
	at = put(at, leaf->series, 4);
	return put(at, leaf->series_names, 4);
}

struct sl_hash sl_leaf_hash(const struct sl_leaf *leaf)
{
	uint8_t bytes[HEAD_BYTES + SL_LEAF_MODULES * MODULE_BYTES + SL_LEAF_SERIES * SERIES_BYTES];
	uint8_t *at = put_head(bytes, leaf);

	assert(leaf->modules <= SL_LEAF_MODULES && leaf->series <= SL_LEAF_SERIES);
	for (uint32_t m = 0; m < leaf->modules; m++) {
		at = put(at, leaf->module_sequence[m], 8);
		at = put(at, leaf->source_crc[m], 4);
		at = put(at, leaf->outcome[m], 1);
		at = put(at, leaf->cause[m], 1);
	}
	for (uint32_t s = 0; s < leaf->series; s++) {
		at = put(at, leaf->series_rows[s], 4);
		at = put(at, leaf->series_crc[s], 4);
	}
	return sl_tree_leaf(bytes, (size_t)(at - bytes));
}
