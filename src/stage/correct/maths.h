/* maths.h - one raw pixel of an adaptive-gain detector becomes energy or photons.
 *
 *   raw = gain code << 14 | ADU          code 0 is G0, 1 is G1, 3 is G2; 2 does not exist
 *
 * Model: (ADU - pedestal) * factor, in float, rounded twice. NaN is a bad pixel, infinity an
 * overload; both have a place in int16 photons, too. */
#ifndef SL_STAGE_CORRECT_MATHS_H
#define SL_STAGE_CORRECT_MATHS_H

#include "gpu/dialect/language.h"

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

/* An overload says enough without a gain or a pedestal, unless the pixel has none of them, which is
 * how tables have pixels that are masked: then it is bad. Of G1 and G2. */
SL_FN float sl_raw_overload(float pedestal_1, float pedestal_2, float factor_1, float factor_2)
{
	int has_none = pedestal_1 != pedestal_1 && pedestal_2 != pedestal_2 &&
		       factor_1 != factor_1 && factor_2 != factor_2;

	return sl_bits_float(has_none ? 0x7fc00000 : 0x7f800000);
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

/* The same where the value is NaN, or known to be within 16 bits. */
SL_FN sl_i16 sl_to_photons_bounded(float value)
{
	float nearest = sl_bits_float((sl_float_bits(value) & (sl_i32)0x80000000) | 0x3effffff);
	sl_i32 whole = (sl_i32)(value == value ? value + nearest : 0.f);

	return (sl_i16)(value == value ? whole : SL_PHOTONS_BAD);
}

/* A number below 2^23 as a float, where conversions are slow: exact. */
SL_FN float sl_small_float(sl_u32 number)
{
	return sl_bits_float((sl_i32)(0x4b000000u | number)) - 8388608.f;
}

/* What dark samples of a pixel have taught: S and n of src/stage/correct/correct.c, the squares
 * around the mean, and how many were in another gain. */
struct sl_pedestal {
	float sum, spread;
	sl_i32 samples, wrong;
	float pedestal; /* NaN: bad */
};

/* The value where the mask is -1, 0 where it is 0. */
SL_FN float sl_only(float value, sl_i32 mask)
{
	return sl_bits_float(sl_float_bits(value) & mask);
}

/* One more sample. Without branches, so that compilers make vectors of it. good, more, room and so
 * on are masks: -1 when a difference is negative, else 0. */
SL_FN struct sl_pedestal sl_pedestal_learn(struct sl_pedestal p, sl_u16 raw, sl_i32 darks,
					   float noise_squared, sl_i32 noise_samples)
{
	sl_i32 good = ((raw & SL_RAW_GAIN) - 1) >> 31, before = p.samples;
	sl_i32 more = (before - darks) >> 31, room = (p.wrong - 0xffff) >> 31;
	sl_i32 n = before - (good & more), none = (before - 1) >> 31;
	float adu = (float)(raw & SL_RAW_ADU), window = (float)darks;
	/* 0 of 1 sample when there is none yet. */
	float mean = p.sum / (float)(before - none), off = adu - mean;
	sl_i32 noisy;

	p.sum += sl_only(adu - sl_only(p.sum / window, ~more), good);
	mean = p.sum / (float)n; /* 0 / 0 is NaN: bad */
	p.spread += sl_only(off * (adu - mean) - sl_only(p.spread / window, ~more), good);
	p.samples = n;
	p.wrong -= ~good & room;
	noisy = (sl_float_bits(noise_squared * (float)n - p.spread) >> 31) &
		(noise_samples - 1 - n) >> 31;
	p.pedestal = sl_bits_float(sl_float_bits(mean) | noisy); /* all bits set is a NaN, too */
	return p;
}

#endif
