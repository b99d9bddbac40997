/* peaks_sums.c - sum and sum of squares of each ring, over all valid pixels.
 *
 * A count v of at most 1023 adds v (v + 2^36) to one integer of its ring: v^2 to the lower 36 bits,
 * which is enough for 65536 pixels, and v to the bits above. That is one addition per pixel, in
 * SL_PEAKS_WAYS sets in turn. Chunks with larger counts, or with pixels that are not valid, add to
 * doubles pixel by pixel: those are exact too, as long as the sum of squares of a ring is below
 * 2^53, which 65536 pixels of 16 bits are. Floats add a pair of doubles, v and v^2.
 *
 * Masked pixels add to one ring too many, which nobody reads.
 *
 * Cost: 2 bytes of table per pixel and the image, once; about one addition to memory per pixel. */
#include <string.h>

#include "stage/peaks.h"
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
		work->overflow = true;
	else
		work->huge[work->huges++] = (struct sl_peaks_entry){(uint32_t)at, ring, value};
}

/* For each type: are all pixels of a chunk that have a ring small (or usual floats)? Vectors of
 * words as wide as the pixels. */
#define PLAIN(TYPE, NAME, WORD, IS_PLAIN)                                                       \
	SL_FORCE_INLINE bool plain_##NAME(const TYPE *pixel, const uint16_t *ring, WORD none)   \
	{                                                                                       \
		WORD bad = 0;                                                                   \
                                                                                                \
		for (int i = 0; i < CHUNK; i++)                                                 \
			bad |= (WORD)((WORD)(!(IS_PLAIN(pixel[i]))) & (WORD)(ring[i] != none)); \
		return !bad;                                                                    \
	}

#define IS_PLAIN_U8(v)	     ((v) != UINT8_MAX)
#define IS_PLAIN_UNSIGNED(v) ((v) <= SMALL)
#define IS_PLAIN_I16(v)	     ((uint16_t)((v) + SMALL) <= 2 * SMALL)
#define IS_PLAIN_F32(v)	     ((v) < SL_PEAKS_HUGE_F32 && (v) > -SL_PEAKS_HUGE_F32)

PLAIN(uint8_t, u8, uint16_t, IS_PLAIN_U8)
PLAIN(uint16_t, u16, uint16_t, IS_PLAIN_UNSIGNED)
PLAIN(uint32_t, u32, uint32_t, IS_PLAIN_UNSIGNED)
PLAIN(int16_t, i16, uint16_t, IS_PLAIN_I16)
PLAIN(float, f32, uint32_t, IS_PLAIN_F32)

SL_FORCE_INLINE void add_packed(union sl_peaks_sum *sum, uint32_t ring, int way, int64_t v)
{
	sum[ring * WAYS + (uint32_t)way].packed += (uint64_t)(v * (v + (INT64_C(1) << SHIFT)));
}

SL_FORCE_INLINE void add_pair(union sl_peaks_sum *sum, uint32_t ring, int way, double v)
{
	pair *p = (pair *)(void *)&sum[(ring * WAYS + (uint32_t)way) * 2];

	*p += (pair){v, v * v};
}

#define SUMS(TYPE, NAME, ADD)                                                               \
	SL_FORCE_INLINE void sums_##NAME(struct sl_peaks_work *work, const void *image)     \
	{                                                                                   \
		const struct sl_peaks_table *t = work->table;                               \
		union sl_peaks_sum *sum = work->sum;                                        \
		bool fits = t->largest <= PACKED_PIXELS;                                    \
                                                                                            \
		for (uint64_t first = 0; first < t->pixels; first += CHUNK) {               \
			const struct sl_peaks_span *span = &t->span[first / CHUNK];         \
			const TYPE *pixel = (const TYPE *)image + first;                    \
			const uint16_t *ring = t->ring + first;                             \
			uint64_t left = t->pixels - first;                                  \
                                                                                            \
			if (span->low > span->high)                                         \
				continue;                                                   \
			if (fits && left >= CHUNK && plain_##NAME(pixel, ring, t->rings)) { \
				for (int i = 0; i < CHUNK; i++)                             \
					ADD(sum, ring[i], i % WAYS, pixel[i]);              \
				continue;                                                   \
			}                                                                   \
			for (uint64_t i = 0; i < CHUNK && i < left; i++)                    \
				add_careful(work, first + i, (float)pixel[i],               \
					    sl_pixel_valid_##NAME(pixel[i]));               \
		}                                                                           \
	}                                                                                   \
	SL_VECTORS(sums_##NAME, (struct sl_peaks_work * work, const void *image), (work, image))

SUMS(uint8_t, u8, add_packed)
SUMS(uint16_t, u16, add_packed)
SUMS(uint32_t, u32, add_packed)
SUMS(int16_t, i16, add_packed)
SUMS(float, f32, add_pair)

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
