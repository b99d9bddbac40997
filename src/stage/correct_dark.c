/* correct_dark.c - what dark frames teach: pedestal and noise of every pixel. */
#include <float.h>
#include <string.h>

#include "maths/correct.h"
#include "stage/correct.h"

/* The value where the mask is -1, 0 where it is 0. */
SL_FORCE_INLINE float only(float value, int32_t mask)
{
	return sl_bits_float(sl_float_bits(value) & mask);
}

/* -1 when the value is below zero, else 0. */
SL_FORCE_INLINE int32_t below_zero(float value)
{
	return sl_float_bits(value) >> 31;
}

/* Without branches, so that compilers make vectors of it; no result depends on which. good, more,
 * room and so on are masks: -1 when a difference is negative, else 0. */
SL_FORCE_INLINE void learn(struct sl_correct *c, uint64_t at, uint32_t count, const uint16_t *raw)
{
	float *restrict sum = c->sum + at, *restrict pedestal = c->pedestal_0 + at;
	float *restrict spread = c->spread + at;
	uint16_t *restrict samples = c->samples + at, *restrict wrong = c->wrong + at;
	const float window = (float)c->darks, limit = c->noise_squared;
	const int32_t full = (int32_t)c->darks, enough = (int32_t)c->noise_samples;

	for (uint32_t i = 0; i < count; i++) {
		int32_t good = ((raw[i] & SL_RAW_GAIN) - 1) >> 31, before = samples[i];
		int32_t more = (before - full) >> 31, room = (wrong[i] - UINT16_MAX) >> 31;
		int32_t n = before - (good & more), none = (before - 1) >> 31;
		float adu = (float)(raw[i] & SL_RAW_ADU);
		/* 0 of 1 sample when there is none yet. */
		float mean = sum[i] / (float)(before - none), off = adu - mean;

		sum[i] += only(adu - only(sum[i] / window, ~more), good);
		mean = sum[i] / (float)n; /* 0 / 0 is NaN: bad */
		spread[i] += only(off * (adu - mean) - only(spread[i] / window, ~more), good);
		samples[i] = (uint16_t)n;
		wrong[i] = (uint16_t)(wrong[i] - (~good & room));
		/* All bits set is a NaN, too. */
		pedestal[i] = sl_bits_float(
			sl_float_bits(mean) |
			(below_zero(limit * (float)n - spread[i]) & (enough - 1 - n) >> 31));
	}
}

SL_VECTORS(learn, (struct sl_correct * c, uint64_t at, uint32_t count, const uint16_t *raw),
	   (c, at, count, raw))

sl_correct_learn *sl_correct_choose_learn(enum sl_vectors vectors)
{
	return SL_VECTORS_PICK(learn, vectors);
}

bool sl_correct_is_noisy(const struct sl_correct *c, uint64_t i)
{
	return c->samples[i] >= c->noise_samples &&
	       c->spread[i] > c->noise_squared * (float)c->samples[i];
}
