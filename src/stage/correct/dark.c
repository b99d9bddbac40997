/* dark.c - what dark frames teach: pedestal and noise of every pixel. */
#include <float.h>
#include <string.h>

#include "stage/correct/correct.h"
#include "stage/correct/maths.h"

SL_FORCE_INLINE void learn(struct sl_correct *c, uint64_t at, uint32_t count, const uint16_t *raw)
{
	float *restrict sum = c->sum + at, *restrict pedestal = c->pedestal_0 + at;
	float *restrict spread = c->spread + at;
	uint16_t *restrict samples = c->samples + at, *restrict wrong = c->wrong + at;
	const int32_t darks = (int32_t)c->darks, enough = (int32_t)c->noise_samples;
	const float limit = c->noise_squared;

	for (uint32_t i = 0; i < count; i++) {
		struct sl_pedestal p = {sum[i], spread[i], samples[i], wrong[i], 0};

		p = sl_pedestal_learn(p, raw[i], darks, limit, enough);
		sum[i] = p.sum;
		spread[i] = p.spread;
		samples[i] = (uint16_t)p.samples;
		wrong[i] = (uint16_t)p.wrong;
		pedestal[i] = p.pedestal;
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
