/* peaks_scan.c - a list of the pixels that lie beyond two bounds of their rings.
 *
 * The rings of a chunk are neighbours. So the lowest of their upper bounds and the highest of their
 * lower ones, for any CHUNK rings in a row found once per frame, tell with two comparisons per
 * pixel and no look at the table that most pixels are not beyond. For what is left the table says.
 *
 * Cost: the image once, at the speed of memory; a few dozen cycles per pixel that is listed. */
#include <math.h>
#include <string.h>

#include "stage/peaks.h"
#include "stage/pixels.h"
#include "stage/vectors.h"

enum { CHUNK = SL_PEAKS_CHUNK };

/* A minimum (maximum) over runs of 2^k rings is made of two over runs of half as many. */
static void make_windows(struct sl_peaks_work *work)
{
	uint32_t rings = work->table->rings;
	float *high = work->window_high, *low = work->window_low;

	for (uint32_t r = 0; r < rings; r++) {
		high[r] = work->ring[r].high;
		low[r] = work->ring[r].low;
	}
	for (uint32_t run = 1; run < CHUNK; run *= 2)
		for (uint32_t r = 0; r + run < rings; r++) {
			high[r] = high[r + run] < high[r] ? high[r + run] : high[r];
			low[r] = low[r + run] > low[r] ? low[r + run] : low[r];
		}
}

/* A chunk where a line ends may have more rings than a window. */
SL_FORCE_INLINE void bounds_of(const struct sl_peaks_work *work, const struct sl_peaks_span *span,
			       float *high, float *low)
{
	*high = work->window_high[span->low];
	*low = work->window_low[span->low];
	for (uint32_t r = span->low + CHUNK; r <= span->high; r += CHUNK) {
		*high = work->window_high[r] < *high ? work->window_high[r] : *high;
		*low = work->window_low[r] > *low ? work->window_low[r] : *low;
	}
}

SL_FORCE_INLINE float clamp(float x, float low, float high)
{
	return x < low ? low : x > high ? high : x;
}

static void list(struct sl_peaks_work *work, uint64_t at, float value, bool valid)
{
	uint32_t ring = work->table->ring[at];

	if (ring == work->table->rings || !valid || sl_peaks_is_huge(work->dtype, value) ||
	    (value < work->ring[ring].high && value > work->ring[ring].low))
		return;
	if (work->listed == work->capacity)
		work->overflow = true;
	else
		work->list[work->listed++] = (struct sl_peaks_entry){(uint32_t)at, ring, value};
}

/* For each type: a byte for every pixel that may be beyond. Bounds of counts are whole numbers, and
 * from there on (v >= high) is the same as above the number below, which all types have. */
#define MAYBE_WHOLE(TYPE, NAME, LEAST, MOST)                                                      \
	SL_FORCE_INLINE void maybe_##NAME(const TYPE *pixel, float high, float low, uint8_t *hit) \
	{                                                                                         \
		TYPE above = (TYPE)((int64_t)clamp(high, (LEAST) + 1.f, MOST) - 1);               \
		TYPE below = (TYPE)((int64_t)clamp(low, LEAST - 1.f, (MOST)-1.f) + 1);            \
                                                                                                  \
		for (int i = 0; i < CHUNK; i++)                                                   \
			hit[i] = (pixel[i] > above) | (pixel[i] < below);                         \
	}

MAYBE_WHOLE(uint8_t, u8, 0, 255.f)
MAYBE_WHOLE(uint16_t, u16, 0, 65535.f)
MAYBE_WHOLE(uint32_t, u32, 0, 4294967040.f)
MAYBE_WHOLE(int16_t, i16, -32768.f, 32767.f)

SL_FORCE_INLINE void maybe_f32(const float *pixel, float high, float low, uint8_t *hit)
{
	for (int i = 0; i < CHUNK; i++)
		hit[i] = (pixel[i] >= high) | (pixel[i] <= low);
}

#define SCAN(TYPE, NAME)                                                                     \
	SL_FORCE_INLINE void scan_##NAME(struct sl_peaks_work *work, const void *image)      \
	{                                                                                    \
		const struct sl_peaks_table *t = work->table;                                \
                                                                                             \
		work->listed = 0;                                                            \
		make_windows(work);                                                          \
		for (uint64_t first = 0; first < t->pixels; first += CHUNK) {                \
			const struct sl_peaks_span *span = &t->span[first / CHUNK];          \
			const TYPE *pixel = (const TYPE *)image + first;                     \
			uint64_t hits[CHUNK / 8], left = t->pixels - first;                  \
			TYPE last[CHUNK] = {0};                                              \
			float high, low;                                                     \
                                                                                             \
			if (span->low > span->high)                                          \
				continue;                                                    \
			if (left < CHUNK)                                                    \
				pixel = memcpy(last, pixel, left * sizeof(*pixel));          \
			bounds_of(work, span, &high, &low);                                  \
			maybe_##NAME(pixel, high, low, (uint8_t *)hits);                     \
			for (uint64_t w = 0; w < CHUNK / 8; w++)                             \
				for (; hits[w]; hits[w] &= hits[w] - 1) {                    \
					uint64_t i = w * 8 +                                 \
						     (uint64_t)__builtin_ctzll(hits[w]) / 8; \
                                                                                             \
					list(work, first + i, (float)pixel[i],               \
					     sl_pixel_valid_##NAME(pixel[i]));               \
				}                                                            \
		}                                                                            \
	}                                                                                    \
	SL_VECTORS(scan_##NAME, (struct sl_peaks_work * work, const void *image), (work, image))

SCAN(uint8_t, u8)
SCAN(uint16_t, u16)
SCAN(uint32_t, u32)
SCAN(int16_t, i16)
SCAN(float, f32)

sl_peaks_pass *sl_peaks_scan(enum sl_dtype dtype, uint32_t vectors)
{
	enum sl_vectors v = sl_vectors_choose(vectors);

	switch (dtype) {
	case SL_U8:
		return SL_VECTORS_PICK(scan_u8, v);
	case SL_U16:
		return SL_VECTORS_PICK(scan_u16, v);
	case SL_U32:
		return SL_VECTORS_PICK(scan_u32, v);
	case SL_I16:
		return SL_VECTORS_PICK(scan_i16, v);
	default:
		return SL_VECTORS_PICK(scan_f32, v);
	}
}
