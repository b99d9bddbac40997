/* sums.c - sum, maximum and number of the pixels of a span.
 *
 * What is no measurement is left out: bad pixels, the largest number of an unsigned image, and
 * overloads, which are counted apart (INT16_MAX, infinity).
 *
 * Floats are added as whole numbers and a rest of 2^-32, so that a sum does not depend on the
 * order: it is within 2^-33 of the true one for each pixel; beyond 2^38 a pixel counts as 2^38. */
#include <math.h>

#include "stage/reduce/reduce.h"
#include "stage/vectors.h"

/* So many pixels of 16 bits are below 2^31 in sum, and stay in the first cache. */
enum { RUN = 4096 };

/* For each type, what is no measurement: the largest number, which is an overload where there are
 * others for bad pixels. One loop for one thing: compilers make vectors of these. For the maximum
 * one is added to all, which makes the largest number the least, and bad ones the next. A bad pixel
 * of int16 is in the sum, and taken out of it at the end. */
#define ADD(TYPE, NAME, WIDE, TOP, BAD)                                                         \
	SL_FORCE_INLINE void add_##NAME(const void *pixels, uint32_t count,                     \
					struct sl_reduce_sum *sum)                              \
	{                                                                                       \
		const TYPE *pixel = pixels;                                                     \
                                                                                                \
		for (uint32_t left = count, n; left; left -= n, pixel += n) {                   \
			uint16_t top = 0, bad = 0;                                              \
			TYPE most = (BAD);                                                      \
			WIDE whole = 0;                                                         \
                                                                                                \
			n = left < RUN ? left : RUN;                                            \
			for (uint32_t i = 0; i < n; i++)                                        \
				top = (uint16_t)(top + (pixel[i] == (TOP)));                    \
			for (uint32_t i = 0; i < n && (BAD); i++)                               \
				bad = (uint16_t)(bad + (pixel[i] == (BAD)));                    \
			for (uint32_t i = 0; i < n; i++) {                                      \
				TYPE next = (TYPE)((uint32_t)pixel[i] + 1u);                    \
                                                                                                \
				most = next > most ? next : most;                               \
			}                                                                       \
			for (uint32_t i = 0; i < n; i++)                                        \
				whole += pixel[i] == (TOP) ? 0 : pixel[i];                      \
			sum->whole += (int64_t)whole - (int64_t)bad * (BAD);                    \
			sum->overloads += (BAD) ? top : 0;                                      \
			sum->valid += n - top - bad;                                            \
			if (n > (uint32_t)top + bad && (double)most - 1 > sum->most)            \
				sum->most = (double)most - 1;                                   \
		}                                                                               \
	}                                                                                       \
	SL_VECTORS(add_##NAME, (const void *pixels, uint32_t count, struct sl_reduce_sum *sum), \
		   (pixels, count, sum))

ADD(uint8_t, u8, uint32_t, UINT8_MAX, 0)
ADD(uint16_t, u16, uint32_t, UINT16_MAX, 0)
ADD(uint32_t, u32, uint64_t, UINT32_MAX, 0)
ADD(int16_t, i16, int32_t, INT16_MAX, INT16_MIN)

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
