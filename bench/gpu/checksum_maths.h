/* checksum_maths.h - a checksum of words that can be added up in any order.
 *
 * Model:     the sum, modulo 2^32, of what sl_checksum_word() makes of each word and its place. For
 *            a given place that is one to one: a single word that is another one is always found;
 *            words that changed places are found but for one case in 2^32. */
#ifndef SL_BENCH_GPU_CHECKSUM_MATHS_H
#define SL_BENCH_GPU_CHECKSUM_MATHS_H

#include "gpu/dialect/language.h"

SL_FN sl_u32 sl_checksum_word(sl_u32 word, sl_u32 place)
{
	sl_u32 x = (word ^ place * 0x9e3779b1u) * 0x85ebca6bu;

	return x ^ x >> 15;
}

#endif
