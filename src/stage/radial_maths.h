/* radial_maths.h - what one pixel adds to a ring, or to a cell of a cake.
 *
 *   signal(cell) += share * value             variance(cell) += share^2 * max(value, least)
 *
 * Model: a pixel's share of a cell is a whole number of 1 / 2^bits, so that sums of whole counts
 * are whole numbers: exact, and the same in any order. The square of a share is rounded to the same
 * unit. A pixel that is no measurement adds nothing. */
#ifndef SL_STAGE_RADIAL_MATHS_H
#define SL_STAGE_RADIAL_MATHS_H

#include "gpu/dialect/language.h"

/* Shares of at most 30 bits: their product with a value is one multiplication of 32 bits. */
enum { SL_SHARE_BITS = 30 };

SL_FN sl_u32 sl_share_square(sl_u32 share, int bits)
{
	return (sl_u32)(((sl_u64)share * share + ((sl_u64)1 << bits >> 1)) >> bits);
}

/* Is the value a measurement? */
SL_FN int sl_is_valid_u8(sl_u8 value)
{
	return value != 0xff;
}

SL_FN int sl_is_valid_u16(sl_u16 value)
{
	return value != 0xffff;
}

SL_FN int sl_is_valid_u32(sl_u32 value)
{
	return value != 0xffffffffu;
}

SL_FN int sl_is_valid_i16(sl_i16 value)
{
	return value != -32768 && value != 32767;
}

SL_FN int sl_is_valid_f32(float value)
{
	return (sl_float_bits(value) & 0x7fffffff) < 0x7f800000; /* neither NaN nor infinity */
}

#endif
