/* sums.c - sum and sum of squares of each ring, over all valid pixels.
 *
 * A count v of at most 1023 adds v (v + 2^36) to one integer of its ring: v^2 to the lower 36 bits,
 * which is enough for 65536 pixels, and v to the bits above. That is one addition per pixel, in
 * SL_PEAKS_WAYS sets in turn. Chunks with larger counts, or with pixels that are not valid, add to
 * doubles pixel by pixel: those are exact too, as long as the sum of squares of a ring is below
 * 2^53, which 65536 pixels of 16 bits are. Floats add a pair of doubles, v and v^2.
 *
 * Masked pixels add to one ring too many, which nobody reads.
 *
 * The least and the greatest pixel of each chunk are noted: most chunks then need no second look.
 *
 * Cost: 2 bytes of table per pixel and the image, once; about one addition to memory per pixel. */
#include <string.h>

#include "gpu/dialect/language.h"
#include "stage/peaks/peaks.h"
#include "stage/pixels.h"
#include "stage/vectors.h"

enum { CHUNK = SL_PEAKS_CHUNK, WAYS = SL_PEAKS_WAYS };
enum { SMALL = 1023, PACKED_PIXELS = 65536, SHIFT = 36 };

typedef double pair __attribute__((vector_size(16), aligned(8)));

static void add_careful(struct sl_peaks_work *work, uint64_t at, float value, bool valid)
{
	uint32_t ring = work->table->ring[at];

	if (ring == work->table->rings)
		return;
	if (valid && !sl_peaks_is_huge(work->dtype, value)) {
		work->wide_sum[ring] += value;
		work->wide_square[ring] += (double)value * value;
		return;
	}
	work->missing[ring]++;
	if (!valid)
		return;
	if (work->huges == SL_PEAKS_HUGE)
		work->crowded = true;
	else
		work->huge[work->huges++] = (struct sl_peaks_entry){(uint32_t)at, ring, value};
}

/* Bits of a float as an integer that is in the same order; NaN is beyond infinity. */
SL_FORCE_INLINE int32_t key_of_f32(float v)
{
	int32_t bits = sl_float_bits(v);

	return bits ^ (bits >> 31 & INT32_MAX);
}

SL_FORCE_INLINE float of_key_f32(int32_t key)
{
	return sl_bits_float(key ^ (key >> 31 & INT32_MAX));
}

/* For each type: the least and the greatest pixel of a chunk, of those that have a ring, of which
 * there is one. Compared as integers, and without a branch: vectors do that in any order. */
#define EXTREMES(TYPE, NAME, KEY, KEY_OF, OF_KEY)                                 \
	SL_FORCE_INLINE struct sl_peaks_extremes extremes_##NAME(                 \
		const TYPE *pixel, const uint16_t *ring, uint16_t none) {         \
		KEY least, most, any;                                             \
		int first = 0;                                                    \
                                                                                  \
		while (ring[first] == none)                                       \
			first++;                                                  \
		least = most = any = KEY_OF(pixel[first]);                        \
		for (int i = 0; i < CHUNK; i++) {                                 \
			KEY out = (KEY) - (ring[i] == none);                      \
			KEY key = (KEY)((KEY_OF(pixel[i]) & ~out) | (any & out)); \
                                                                                  \
			least = key < least ? key : least;                        \
			most = key > most ? key : most;                           \
		}                                                                 \
		return (struct sl_peaks_extremes){OF_KEY(least), OF_KEY(most)};   \
	}

EXTREMES(uint8_t, u8, uint8_t, , (float))
EXTREMES(uint16_t, u16, uint16_t, , (float))
EXTREMES(uint32_t, u32, uint32_t, , (float))
EXTREMES(int16_t, i16, int16_t, , (float))
EXTREMES(float, f32, int32_t, key_of_f32, of_key_f32)

SL_FORCE_INLINE void add_packed(union sl_peaks_sum *sum, uint32_t ring, int way, int64_t v)
{
	sum[ring * WAYS + (uint32_t)way].packed += (uint64_t)(v * (v + (INT64_C(1) << SHIFT)));
}

SL_FORCE_INLINE void add_pair(union sl_peaks_sum *sum, uint32_t ring, int way, double v)
{
	pair *p = (pair *)(void *)&sum[(ring * WAYS + (uint32_t)way) * 2];

	*p += (pair){v, v * v};
}

#define SUMS(TYPE, NAME, ADD, LIMIT)                                                               \
	SL_FORCE_INLINE void add_all_##NAME(union sl_peaks_sum *sum, const uint16_t *ring,         \
					    const TYPE *pixel)                                     \
	{                                                                                          \
		for (int i = 0; i < CHUNK; i += WAYS) {                                            \
			ADD(sum, ring[i], 0, pixel[i]);                                            \
			ADD(sum, ring[i + 1], 1, pixel[i + 1]);                                    \
			ADD(sum, ring[i + 2], 2, pixel[i + 2]);                                    \
			ADD(sum, ring[i + 3], 3, pixel[i + 3]);                                    \
		}                                                                                  \
	}                                                                                          \
	SL_FORCE_INLINE void sums_##NAME(struct sl_peaks_work *work, const void *image,            \
					 uint64_t chunk, uint64_t end)                             \
	{                                                                                          \
		const struct sl_peaks_table *t = work->table;                                      \
		bool fits = t->largest <= PACKED_PIXELS;                                           \
                                                                                                   \
		for (; chunk < end; chunk++) {                                                     \
			struct sl_peaks_extremes *extremes = &work->extremes[chunk];               \
			const struct sl_peaks_span *span = &t->span[chunk];                        \
			uint64_t first = chunk * CHUNK, left = t->pixels - first;                  \
			const TYPE *pixel = (const TYPE *)image + first;                           \
			const uint16_t *ring = t->ring + first;                                    \
			TYPE last[CHUNK];                                                          \
                                                                                                   \
			if (span->low > span->high)                                                \
				continue;                                                          \
			if (left < CHUNK)                                                          \
				pixel = sl_peaks_last(last, sizeof(last), pixel,                   \
						      left * sizeof(*pixel));                      \
			*extremes = extremes_##NAME(pixel, ring, (uint16_t)t->rings);              \
			if (fits && extremes->most <= (LIMIT) && extremes->least >= -(LIMIT)) {    \
				add_all_##NAME(work->sum, ring, pixel);                            \
				continue;                                                          \
			}                                                                          \
			for (uint64_t i = 0; i < CHUNK; i++)                                       \
				add_careful(work, first + i, (float)pixel[i],                      \
					    sl_pixel_valid_##NAME(pixel[i]));                      \
		}                                                                                  \
	}                                                                                          \
	SL_VECTORS(sums_##NAME,                                                                    \
		   (struct sl_peaks_work * work, const void *image, uint64_t chunk, uint64_t end), \
		   (work, image, chunk, end))

SUMS(uint8_t, u8, add_packed, UINT8_MAX - 1)
SUMS(uint16_t, u16, add_packed, SMALL)
SUMS(uint32_t, u32, add_packed, SMALL)
SUMS(int16_t, i16, add_packed, SMALL)
SUMS(float, f32, add_pair, 0x1.fffffep16f)

sl_peaks_pass *sl_peaks_sums(enum sl_dtype dtype, uint32_t vectors)
{
	enum sl_vectors v = sl_vectors_choose(vectors);

	switch (dtype) {
	case SL_U8:
		return SL_VECTORS_PICK(sums_u8, v);
	case SL_U16:
		return SL_VECTORS_PICK(sums_u16, v);
	case SL_U32:
		return SL_VECTORS_PICK(sums_u32, v);
	case SL_I16:
		return SL_VECTORS_PICK(sums_i16, v);
	default:
		return SL_VECTORS_PICK(sums_f32, v);
	}
}
