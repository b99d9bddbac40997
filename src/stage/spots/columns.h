/* columns.h - sums over the rows of a box that go along from row to row, for counts.
 *
 * Model:     a column's pixels of as many rows as a box has: one row comes, one goes, and all
 *            columns are done at once, in 32-bit integers. Pixels of at most 1023 fit (31 x 31 of
 *            them have a sum of squares below 2^30). Larger ones only count: a box that has one,
 *            but for its middle, must be added up in another way. Sums of counts are exact, so
 *            adding and taking away leaves nothing behind.
 * Cost:      two rows of pixels and three of sums per row. */
#ifndef SL_STAGE_SPOTS_COLUMNS_H
#define SL_STAGE_SPOTS_COLUMNS_H

#include <string.h>

#include "stage/pixels.h"
#include "stage/spots/spots.h"
#include "stage/vectors.h"

enum { SL_SPOTS_SMALL = 1023, SL_SPOTS_LARGE = 1 << 16 };

#define SL_SPOTS_COLUMNS(TYPE, NAME)                                                             \
	/* Below 0 they may be as small; without a sign, the largest are not small. */           \
	enum { below_##NAME = (TYPE)-1 < (TYPE)1 ? SL_SPOTS_SMALL : 0 };                         \
	/* sign: 1 to add a row, -1 to take it away; modulo 2^32. No branches: vectors. */       \
	SL_FORCE_INLINE void run_##NAME(struct sl_spots_work *w, const TYPE *restrict pixel,     \
					const uint8_t *restrict mask, uint32_t sign)             \
	{                                                                                        \
		uint32_t columns = w->settings->columns, box = w->settings->box;                 \
		uint32_t *restrict counts = w->running.counts + box;                             \
		uint32_t *restrict sums = w->running.sums + box;                                 \
		uint32_t *restrict squares = w->running.squares + box;                           \
                                                                                                 \
		for (uint32_t c = 0; c < columns; c++) {                                         \
			uint32_t out = mask ? -(uint32_t)(mask[c] != 0) : 0;                     \
			uint32_t there = -(uint32_t)sl_pixel_valid_##NAME(pixel[c]) & ~out;      \
			uint32_t small = -(uint32_t)((uint32_t)pixel[c] + below_##NAME <=        \
						     SL_SPOTS_SMALL + below_##NAME);             \
			uint32_t value = (uint32_t)pixel[c] & there & small;                     \
                                                                                                 \
			counts[c] += sign * (there & ((small & 1) | (~small & SL_SPOTS_LARGE))); \
			sums[c] += sign * value;                                                 \
			squares[c] += sign * (value * value);                                    \
		}                                                                                \
	}                                                                                        \
	/* To the next row of the module; row 0 comes first. */                                  \
	SL_FORCE_INLINE void advance_##NAME(struct sl_spots_work *w, const TYPE *module,         \
					    const uint8_t *mask, uint32_t row)                   \
	{                                                                                        \
		const struct sl_spots_settings *s = w->settings;                                 \
		size_t wide = s->columns + 2 * (size_t)s->box;                                   \
                                                                                                 \
		if (!row)                                                                        \
			memset(w->running.counts, 0, 3 * wide * sizeof(uint32_t));               \
		for (uint32_t r = row ? row + s->box : 0; r <= row + s->box && r < s->rows; r++) \
			run_##NAME(w, module + (size_t)r * s->columns,                           \
				   mask ? mask + (size_t)r * s->columns : NULL, 1);              \
		if (row > s->box) {                                                              \
			size_t gone = (size_t)(row - s->box - 1) * s->columns;                   \
                                                                                                 \
			run_##NAME(w, module + gone, mask ? mask + gone : NULL, (uint32_t)-1);   \
		}                                                                                \
	}                                                                                        \
	/* The box around a valid pixel; false: it has larger ones. */                           \
	SL_FORCE_INLINE bool quick_box_##NAME(const struct sl_spots_work *w, TYPE pixel,         \
					      uint32_t column, struct sl_spots_box *box)         \
	{                                                                                        \
		bool small = (uint32_t)pixel + below_##NAME <= SL_SPOTS_SMALL + below_##NAME;    \
		uint32_t value = small ? (uint32_t)pixel : 0;                                    \
		uint32_t n = (uint32_t) - (small ? 1 : SL_SPOTS_LARGE), sum = -value;            \
		uint32_t square = -(value * value);                                              \
                                                                                                 \
		for (uint32_t c = column; c <= column + 2 * w->settings->box; c++) {             \
			n += w->running.counts[c];                                               \
			sum += w->running.sums[c];                                               \
			square += w->running.squares[c];                                         \
		}                                                                                \
		*box = (struct sl_spots_box){n, (int32_t)sum, square};                           \
		return n < SL_SPOTS_LARGE;                                                       \
	}

SL_SPOTS_COLUMNS(uint8_t, u8)
SL_SPOTS_COLUMNS(uint16_t, u16)
SL_SPOTS_COLUMNS(uint32_t, u32)
SL_SPOTS_COLUMNS(int16_t, i16)

/* Floats leave something behind. */
SL_FORCE_INLINE void advance_f32(struct sl_spots_work *w, const float *module, const uint8_t *mask,
				 uint32_t row)
{
}

SL_FORCE_INLINE bool quick_box_f32(const struct sl_spots_work *w, float pixel, uint32_t column,
				   struct sl_spots_box *box)
{
	return false;
}

#endif
