/* lz4_rows.h - LZ4 of a shuffled block, which knows the rows that are zero.
 *
 * Model:     the output is one LZ4 block (lz4_Block_format.md of github.com/lz4/lz4), which every
 *            decoder of LZ4 reads. Runs of zero rows become one match without a search. Other rows
 *            are searched as LZ4's fast mode does: a table of the last position of each hash of 4
 *            bytes, and steps that grow while nothing is found. A position of an earlier block is
 *            recognised by its number, so that the table is cleared once in 7 blocks, not for each.
 *            The output depends on the block alone, never on earlier blocks.
 * Threads:   a table belongs to one thread at a time.
 * Ownership: all memory is the caller's.
 * Cost:      8 KiB in 0.4 us (0.001 photons a pixel, u16) to 4 us (raw ADU); no allocation. */
#ifndef SL_CODEC_LZ4_ROWS_H
#define SL_CODEC_LZ4_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum {
	SL_LZ4_ROWS_MOST = 8192,  /* bytes of a block */
	SL_LZ4_ROWS_SLACK = 64,	  /* bytes around `in` that are read, and behind `out` written */
	SL_LZ4_ROWS_BOUND = 8240, /* most bytes of a packed block: n + n / 255 + 16 */
	SL_LZ4_ROWS_HASH_BITS = 12,
};

struct sl_lz4_table {
	uint32_t base; /* what position 0 of the block is called in `last` */
	uint16_t last[1 << SL_LZ4_ROWS_HASH_BITS];
};

void sl_lz4_table_init(struct sl_lz4_table *table);

/* Pack a block of `bytes`, in rows of `row` bytes; bit r of `used` is 0 if row r is all zeros.
 * SL_LZ4_ROWS_SLACK bytes before and behind `in` can be read, whatever they hold; `out` has
 * SL_LZ4_ROWS_BOUND + SL_LZ4_ROWS_SLACK. Returns the packed bytes. */
size_t sl_lz4_rows(struct sl_lz4_table *table, const uint8_t *in, uint32_t bytes, uint64_t used,
		   uint32_t row, uint8_t *out);

#endif
