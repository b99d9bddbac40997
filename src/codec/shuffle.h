/* shuffle.h - the bits of a block of elements, transposed: bitshuffle.
 *
 * Model:     a block of n elements, n a multiple of 8, becomes 8 x element rows of n / 8 bytes. Row
 *            8 b + k has bit k of byte b of every element; element i is bit i % 8 of byte i / 8 of
 *            a row. Elements are taken as little-endian.
 * Threads:   no state.
 * Ownership: `in` and `out` are the caller's, have n x element bytes, and do not overlap.
 * Cost:      plain C about 1 GB/s. */
#ifndef SL_CODEC_SHUFFLE_H
#define SL_CODEC_SHUFFLE_H

#include <stdint.h>

#include "base/vector/choose.h"

enum { SL_SHUFFLE_GROUP = 8 /* elements of a block are a multiple of this */ };

/* One instruction set. Any element size. */
struct sl_shuffle {
	void (*shuffle)(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out);
	void (*unshuffle)(const uint8_t *in, uint64_t elements, uint32_t element, uint8_t *out);
};

/* The best of this CPU that `vectors` allows. */
const struct sl_shuffle *sl_shuffle_choose(enum sl_vectors vectors);

#endif
