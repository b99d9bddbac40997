/* correct.h - one raw pixel of an adaptive-gain detector becomes energy or photons.
 *
 *   raw = gain code << 14 | ADU          code 0 is G0, 1 is G1, 3 is G2; 2 does not exist
 *
 * Model: (ADU - pedestal) * factor, in float, rounded twice. NaN is a bad pixel, infinity an
 * overload; both have a place in int16 photons, too. */
#ifndef SL_MATHS_CORRECT_H
#define SL_MATHS_CORRECT_H

#include "maths/language.h"

enum { SL_RAW_ADU = 0x3fff, SL_RAW_GAIN = 0xc000 };
enum { SL_RAW_OVERLOAD = 0xc000, SL_RAW_BAD_HIGH = 0xffff, SL_RAW_BAD_LOW = 0x4000 };
enum { SL_PHOTONS_BAD = -32768, SL_PHOTONS_OVERLOAD = 32767 };

/* What a raw pixel says before any table is looked at. */
enum sl_raw_kind { SL_RAW_IS_G0, SL_RAW_IS_G1, SL_RAW_IS_G2, SL_RAW_IS_BAD, SL_RAW_IS_OVERLOAD };

SL_FN int sl_raw_kind(sl_u16 raw)
{
	if (raw == SL_RAW_OVERLOAD)
		return SL_RAW_IS_OVERLOAD;
	if (raw == SL_RAW_BAD_HIGH || raw == SL_RAW_BAD_LOW || raw >> 14 == 2)
		return SL_RAW_IS_BAD;
	return raw >> 14 == 3 ? SL_RAW_IS_G2 : raw >> 14;
}

SL_FN float sl_raw_energy(sl_u16 raw, float pedestal, float factor)
{
	return ((float)(raw & SL_RAW_ADU) - pedestal) * factor;
}

/* Rounds half away from zero, clamps to -32767..32766; NaN and infinities are bad. Works on the
 * bits of the float, where magnitudes compare like integers: NaN is above infinity. The constant is
 * the float below 0.5: adding it rounds halves up and nothing else (0.5 itself would also round up
 * the float below a half). */
SL_FN sl_i16 sl_to_photons(float value)
{
	sl_i32 bits = sl_float_bits(value);
	sl_i32 sign = bits >> 31; /* 0 or -1 */
	sl_i32 magnitude = bits & 0x7fffffff;
	sl_i32 bad = (0x7f800000 - magnitude) >> 31;
	sl_i32 limit = 0x46fffc00 + (sign & 0x200); /* 32766 or, below zero, 32767 */
	sl_i32 whole;

	magnitude = magnitude < limit ? magnitude : limit;
	whole = (sl_i32)(sl_bits_float(magnitude) + 0x1.fffffep-2f);
	whole = (whole ^ sign) - sign;
	return (sl_i16)((whole & ~bad) | (SL_PHOTONS_BAD & bad));
}

#endif
