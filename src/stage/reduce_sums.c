/* reduce_sums.c - sum, maximum and number of the pixels of a run.
 *
 * What is no measurement is left out: bad pixels, the largest number of an unsigned image, and
 * overloads, which are counted apart (INT16_MAX, infinity).
 *
 * Floats are added as whole numbers and a rest of 2^-32, so that a sum does not depend on the
 * order: it is within 2^-33 of the true one for each pixel; beyond 2^38 a pixel counts as 2^38. */
#include <math.h>

#include "stage/reduce.h"
#include "stage/vectors.h"

/* So many pixels of 16 bits are below 2^31 in sum. */
enum { RUN = 16384 };

/* Sums of a run in numbers that vectors hold many of; then into those of the region. */
#define ADD(TYPE, NAME, WIDE, LEAST, BAD, OVERLOAD)                                             \
	SL_FORCE_INLINE void add_##NAME(const void *pixels, uint32_t count,                     \
					struct sl_reduce_sum *sum)                              \
	{                                                                                       \
		const TYPE *pixel = pixels;                                                     \
                                                                                                \
		for (uint32_t first = 0; first < count; first += RUN) {                         \
			uint32_t end = count - first < RUN ? count : first + RUN;               \
			uint16_t bad = 0, over = 0;                                             \
			TYPE most = (LEAST);                                                    \
			WIDE whole = 0;                                                         \
                                                                                                \
			for (uint32_t i = first; i < end; i++) {                                \
				TYPE v = pixel[i], used = (BAD) || (OVERLOAD) ? 0 : v;          \
				TYPE high = (BAD) || (OVERLOAD) ? (LEAST) : v;                  \
                                                                                                \
				bad = (uint16_t)(bad + (BAD));                                  \
				over = (uint16_t)(over + (OVERLOAD));                           \
				most = high > most ? high : most;                               \
				whole += used;                                                  \
			}                                                                       \
			sum->whole += whole;                                                    \
			sum->overloads += over;                                                 \
			sum->valid += end - first - bad - over;                                 \
			if (end - first > (uint32_t)bad + over && most > sum->most)             \
				sum->most = most;                                               \
		}                                                                               \
	}                                                                                       \
	SL_VECTORS(add_##NAME, (const void *pixels, uint32_t count, struct sl_reduce_sum *sum), \
		   (pixels, count, sum))

ADD(uint8_t, u8, uint32_t, 0, v == UINT8_MAX, 0)
ADD(uint16_t, u16, uint32_t, 0, v == UINT16_MAX, 0)
ADD(uint32_t, u32, uint64_t, 0, v == UINT32_MAX, 0)
ADD(int16_t, i16, int32_t, INT16_MIN, v == INT16_MIN, v == INT16_MAX)

static void add_f32(const void *pixels, uint32_t count, struct sl_reduce_sum *sum)
{
	const float *pixel = pixels;
	const double limit = 0x1p38;

	for (uint32_t i = 0; i < count; i++) {
		double v = pixel[i], whole;

		if (!(v < INFINITY && v > -INFINITY)) {
			sum->overloads += v == INFINITY;
			continue;
		}
		v = v > limit ? limit : v < -limit ? -limit : v;
		whole = floor(v);
		sum->whole += (int64_t)whole;
		sum->rest += (int64_t)((v - whole) * 0x1p32 + 0.5);
		sum->valid++;
		sum->most = pixel[i] > sum->most ? pixel[i] : sum->most;
	}
}

sl_reduce_add *sl_reduce_choose(enum sl_dtype dtype, uint32_t vectors)
{
	enum sl_vectors chosen = sl_vectors_choose(vectors);

	switch (dtype) {
	case SL_U8:
		return SL_VECTORS_PICK(add_u8, chosen);
	case SL_U16:
		return SL_VECTORS_PICK(add_u16, chosen);
	case SL_U32:
		return SL_VECTORS_PICK(add_u32, chosen);
	case SL_I16:
		return SL_VECTORS_PICK(add_i16, chosen);
	case SL_F32:
		return add_f32;
	default:
		return NULL;
	}
}
