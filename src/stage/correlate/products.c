/* products.c - the innermost loops.
 *
 * Four later samples of each pixel times the samples that are four neighbouring channels earlier: a
 * register holds a sample of several pixels, and sixteen products of each need eleven loads. */
#include "stage/correlate/correlate.h"
#include "stage/correlate/work.h"
#include "stage/vectors.h"

/* later[t], t of 0 to 3; earlier[3 + t - k]: k channels before it; sums[k][pixel]. */
#define PRODUCTS(NAME, WIDE)                                                                       \
	SL_FORCE_INLINE void NAME(const int32_t *const *later, const int32_t *const *earlier,      \
				  void *sums)                                                      \
	{                                                                                          \
		const int32_t *restrict l0 = later[0], *restrict l1 = later[1];                    \
		const int32_t *restrict l2 = later[2], *restrict l3 = later[3];                    \
		const int32_t *restrict e0 = earlier[0], *restrict e1 = earlier[1];                \
		const int32_t *restrict e2 = earlier[2], *restrict e3 = earlier[3];                \
		const int32_t *restrict e4 = earlier[4], *restrict e5 = earlier[5];                \
		const int32_t *restrict e6 = earlier[6];                                           \
		WIDE *restrict s0 = sums, *restrict s1 = s0 + SL_CORRELATE_CHUNK;                  \
		WIDE *restrict s2 = s1 + SL_CORRELATE_CHUNK;                                       \
		WIDE *restrict s3 = s2 + SL_CORRELATE_CHUNK;                                       \
                                                                                                   \
		for (uint32_t i = 0; i < SL_CORRELATE_CHUNK; i++) {                                \
			WIDE a = l0[i], b = l1[i], c = l2[i], d = l3[i];                           \
                                                                                                   \
			s0[i] += a * e3[i] + b * e4[i] + c * e5[i] + d * e6[i];                    \
			s1[i] += a * e2[i] + b * e3[i] + c * e4[i] + d * e5[i];                    \
			s2[i] += a * e1[i] + b * e2[i] + c * e3[i] + d * e4[i];                    \
			s3[i] += a * e0[i] + b * e1[i] + c * e2[i] + d * e3[i];                    \
		}                                                                                  \
	}                                                                                          \
	SL_VECTORS(NAME, (const int32_t *const *later, const int32_t *const *earlier, void *sums), \
		   (later, earlier, sums))

PRODUCTS(narrow, int32_t)
PRODUCTS(wide, int64_t)

/* Samples that are missing become 0, and are counted. */
SL_FORCE_INLINE void take(const int32_t *restrict from, uint32_t count, int32_t *restrict to,
			  struct sl_correlate_taken *taken)
{
	int32_t low = 0, high = 0;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < count; i++) {
		int32_t sample = from[i] == SL_CORRELATE_MISSING ? 0 : from[i];

		missing += from[i] == SL_CORRELATE_MISSING;
		low = sample < low ? sample : low;
		high = sample > high ? sample : high;
		to[i] = sample;
	}
	*taken = (struct sl_correlate_taken){missing, low, high};
}
SL_VECTORS(take,
	   (const int32_t *restrict from, uint32_t count, int32_t *restrict to,
	    struct sl_correlate_taken *taken),
	   (from, count, to, taken))

void sl_correlate_choose(struct sl_correlate *s)
{
	enum sl_vectors chosen = sl_vectors_choose(s->vectors);

	s->narrow = SL_VECTORS_PICK(narrow, chosen);
	s->wide = SL_VECTORS_PICK(wide, chosen);
	s->take = SL_VECTORS_PICK(take, chosen);
}
