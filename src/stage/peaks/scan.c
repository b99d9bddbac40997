/* scan.c - a list of the pixels that lie beyond two bounds of their rings.
 *
 * The rings of a chunk are neighbours. So the lowest of their upper bounds and the highest of their
 * lower ones, found once per frame for any CHUNK rings in a row, are enough to see that nothing of
 * most chunks is beyond, by their extremes. In the others they tell with two comparisons per pixel
 * which ones may be, and for those the table has the last word.
 *
 * Cost: a few bytes per chunk, and the chunks that have something. */
#include <math.h>
#include <string.h>

#include "stage/peaks/peaks.h"
#include "stage/pixels.h"
#include "stage/vectors.h"

enum { CHUNK = SL_PEAKS_CHUNK, LINE = 64 };

/* A minimum (maximum) over runs of 2^k rings is made of two over runs of half as many. */
void sl_peaks_windows(struct sl_peaks_work *work)
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

/* Appends without a branch that nobody could predict. */
SL_FORCE_INLINE void list(struct sl_peaks_work *work, uint32_t at, float value, bool valid)
{
	uint32_t ring = work->table->ring[at];
	const struct sl_peaks_ring *bounds = &work->ring[ring];
	bool beyond = (value >= bounds->high) | (value <= bounds->low);

	if (work->listed == work->capacity) {
		work->overflow = true;
		return;
	}
	work->list[work->listed] = (struct sl_peaks_entry){at, ring, value};
	work->listed += beyond & valid & (ring != work->table->rings) &
			!sl_peaks_is_huge(work->dtype, value);
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

/* Which chunks of a block have a pixel that may be beyond; what will be needed of them is fetched
 * meanwhile, since most of it is far away. */
SL_FORCE_INLINE uint32_t choose(const struct sl_peaks_work *work, const void *image, size_t bytes,
				uint64_t first, uint64_t end, uint32_t *chosen)
{
	const struct sl_peaks_table *t = work->table;
	uint32_t n = 0;

	for (uint64_t c = first; c < end; c++) {
		const struct sl_peaks_span *span = &t->span[c];
		float high, low;

		if (span->low > span->high)
			continue;
		bounds_of(work, span, &high, &low);
		if (work->extremes[c].most < high && work->extremes[c].least > low)
			continue;
		chosen[n++] = (uint32_t)c;
		for (size_t i = 0; i < CHUNK * bytes; i += LINE)
			__builtin_prefetch((const char *)image + c * CHUNK * bytes + i);
		for (size_t i = 0; i < CHUNK; i += LINE / sizeof(*t->ring))
			__builtin_prefetch(t->ring + c * CHUNK + i);
	}
	return n;
}

#define SCAN(TYPE, NAME)                                                                           \
	SL_FORCE_INLINE void look_##NAME(struct sl_peaks_work *work, const TYPE *image,            \
					 uint32_t chunk)                                           \
	{                                                                                          \
		const struct sl_peaks_table *t = work->table;                                      \
		uint64_t first = (uint64_t)chunk * CHUNK, left = t->pixels - first;                \
		const TYPE *pixel = image + first;                                                 \
		uint64_t hits[CHUNK / 8];                                                          \
		TYPE last[CHUNK];                                                                  \
		float high, low;                                                                   \
                                                                                                   \
		if (left < CHUNK)                                                                  \
			pixel = sl_peaks_last(last, sizeof(last), pixel, left * sizeof(*pixel));   \
		bounds_of(work, &t->span[chunk], &high, &low);                                     \
		maybe_##NAME(pixel, high, low, (uint8_t *)hits);                                   \
		for (uint32_t w = 0; w < CHUNK / 8; w++)                                           \
			for (; hits[w]; hits[w] &= hits[w] - 1) {                                  \
				uint32_t i = w * 8 + (uint32_t)__builtin_ctzll(hits[w]) / 8;       \
                                                                                                   \
				list(work, (uint32_t)first + i, (float)pixel[i],                   \
				     sl_pixel_valid_##NAME(pixel[i]));                             \
			}                                                                          \
	}                                                                                          \
	SL_FORCE_INLINE void scan_##NAME(struct sl_peaks_work *work, const void *image,            \
					 uint64_t chunk, uint64_t end)                             \
	{                                                                                          \
		uint32_t chosen[SL_PEAKS_BLOCK];                                                   \
                                                                                                   \
		for (uint64_t next; chunk < end; chunk = next) {                                   \
			uint32_t n;                                                                \
                                                                                                   \
			next = end - chunk < SL_PEAKS_BLOCK ? end : chunk + SL_PEAKS_BLOCK;        \
			n = choose(work, image, sizeof(TYPE), chunk, next, chosen);                \
			for (uint32_t i = 0; i < n; i++)                                           \
				look_##NAME(work, image, chosen[i]);                               \
		}                                                                                  \
	}                                                                                          \
	SL_VECTORS(scan_##NAME,                                                                    \
		   (struct sl_peaks_work * work, const void *image, uint64_t chunk, uint64_t end), \
		   (work, image, chunk, end))

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
