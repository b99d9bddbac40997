/* shuffle.h - the bits of a block of elements, transposed: bitshuffle.
 *
 * Model:     a block of n elements, n a multiple of 8, becomes 8 x element rows of n / 8 bytes. Row
 *            8 b + k has bit k of byte b of every element; element i is bit i % 8 of byte i / 8 of
 *            a row. Elements are taken as little-endian. Images of photons set few of the upper
 *            bits: such rows are zero, which shuffle() finds first and does not compute.
 * Threads:   no state.
 * Ownership: `in` and `out` are the caller's, have n x element bytes, and do not overlap.
 * Cost:      a block of 8 KiB takes 0.1 us (all zeros) to 0.7 us (16 rows of 16 in use) with
 *            AVX-512, 1.1 us with AVX2, 7 us in plain C; unshuffling 0.4, 1.5 and 5 us. */
#ifndef SL_CODEC_SHUFFLE_H
#define SL_CODEC_SHUFFLE_H

#include <stdint.h>

#include "base/vector/choose.h"

enum { SL_SHUFFLE_GROUP = 8 /* elements of a block are a multiple of this */ };

/* One instruction set. */
struct sl_shuffle {
	/* Elements of up to 8 bytes. Returns the rows in use: bit r is 0 if row r is all zeros. */
	uint64_t (*shuffle)(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out);
	/* Elements of any size. */
	void (*unshuffle)(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out);
};

/* The best of this CPU that `vectors` allows. */
const struct sl_shuffle *sl_shuffle_choose(enum sl_vectors vectors);

/* Elements from `first` on, a multiple of 8, in plain C: for what vectors leave over. `used`: as
 * shuffle() returns it; only rows of bytes in use are written. */
void sl_shuffle_rest(const uint8_t *in, uint64_t elements, uint32_t element, uint64_t first,
		     uint64_t used, uint8_t *out);
void sl_unshuffle_rest(const uint8_t *in, uint64_t elements, uint32_t element, uint64_t first,
		       uint8_t *out);

/* Bits that are set in any element, of 1, 2, 4 or 8 bytes. `bytes`: a multiple of 8; `any`: 8 bytes
 * of elements that count too. */
uint64_t sl_shuffle_used(const uint8_t *in, uint64_t bytes, uint32_t element, uint64_t any);

/* Zero the rows that are not in use. */
void sl_shuffle_clear(uint64_t elements, uint32_t element, uint64_t used, uint8_t *out);

/* shuffle_avx512.c, shuffle_avx2.c: elements of 1, 2 and 4 bytes by vectors, others in plain C. */
extern const struct sl_shuffle sl_shuffle_avx512, sl_shuffle_avx2;

#endif
