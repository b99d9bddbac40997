/* sse2.h - rows of a line in the map, four columns or stubs side by side, with the vectors that
 * every x86-64 CPU has. Part of map.c.
 *
 * Model:     integers, the same as rows_of() of map.c gives one by one; tests compare them. SSE2
 *            has no multiplication of 32 bits that keeps the low ones, no minimum of them, and no
 *            shift of each number by its own, so that compilers make slow code of rows_of(). Rows
 *            are few enough for minima of 16 bits, and a shift is made of a float's exponent.
 * Threads:   no state. */
#ifndef SL_STAGE_TRACKS_SSE2_H
#define SL_STAGE_TRACKS_SSE2_H

#include <emmintrin.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"
#include "stage/vectors.h"

enum { SSE2_LANES = 4 };

/* The low 32 bits of each product; `by` is the same four times. */
SL_FORCE_INLINE __m128i multiply_sse2(__m128i each, __m128i by)
{
	const __m128i low = _mm_set_epi32(0, -1, 0, -1);
	__m128i even = _mm_mul_epu32(each, by);
	__m128i odd = _mm_mul_epu32(_mm_srli_epi64(each, 32), by);

	return _mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64(odd, 32));
}

/* 1 << row for rows 0 to 31, anything for others. 2^31 is no int32_t: the conversion then gives
 * INT32_MIN, which is that bit. */
SL_FORCE_INLINE __m128i bit_sse2(__m128i row)
{
	__m128i exponent = _mm_add_epi32(row, _mm_set1_epi32(127));

	return _mm_cvttps_epi32(_mm_castsi128_ps(_mm_slli_epi32(exponent, 23)));
}

/* yes ? a : b */
SL_FORCE_INLINE __m128i choose_sse2(__m128i yes, __m128i a, __m128i b)
{
	return _mm_or_si128(_mm_and_si128(yes, a), _mm_andnot_si128(yes, b));
}

/* As sl_tracks_bits(): rows low to high of the 32 from `base` on; `last`: no row above it. */
SL_FORCE_INLINE __m128i bits_sse2(__m128i low, __m128i high, int32_t last, int32_t base)
{
	__m128i from = _mm_sub_epi32(low, _mm_set1_epi32(base));
	__m128i to = _mm_sub_epi32(high, _mm_set1_epi32(base)), above;

	from = _mm_max_epi16(from, _mm_setzero_si128());
	to = _mm_min_epi16(to, _mm_set1_epi32(last));
	above = bit_sse2(to);
	above = _mm_add_epi32(above, above); /* 0 behind row 31 */
	return _mm_andnot_si128(_mm_cmpgt_epi32(from, to), _mm_sub_epi32(above, bit_sse2(from)));
}

/* Where the place of a line within its row is below `part`. */
SL_FORCE_INLINE __m128i is_below_sse2(__m128i line, int32_t part)
{
	__m128i place = _mm_and_si128(line, _mm_set1_epi32(SL_TRACKS_ONE - 1));

	return _mm_cmplt_epi32(place, _mm_set1_epi32(part));
}

/* As sl_tracks_one_hexagon() and sl_tracks_bit(). */
SL_FORCE_INLINE __m128i one_hexagon_sse2(__m128i middle, __m128i lower, __m128i upper, int32_t last,
					 int32_t base)
{
	__m128i row = choose_sse2(is_below_sse2(upper, SL_TRACKS_THIRD),
				  _mm_srai_epi32(upper, SL_TRACKS_FRACTION),
				  _mm_set1_epi32(SL_TRACKS_NO_ROW));

	row = choose_sse2(is_below_sse2(lower, SL_TRACKS_THIRD),
			  _mm_srai_epi32(lower, SL_TRACKS_FRACTION), row);
	row = choose_sse2(is_below_sse2(middle, SL_TRACKS_TWO_THIRDS),
			  _mm_srai_epi32(middle, SL_TRACKS_FRACTION), row);
	row = _mm_sub_epi32(row, _mm_set1_epi32(base));
	return _mm_andnot_si128(_mm_or_si128(_mm_cmplt_epi32(row, _mm_setzero_si128()),
					     _mm_cmpgt_epi32(row, _mm_set1_epi32(last))),
				bit_sse2(row));
}

/* As rows_of(). */
SL_FORCE_INLINE __m128i rows_sse2(uint32_t cells, __m128i line, __m128i reach, __m128i offset,
				  __m128i side, int32_t most, int32_t base)
{
	int32_t last = most - base < 31 ? most - base : 31;
	__m128i middle = _mm_add_epi32(line, offset), at_side = _mm_add_epi32(line, side);
	__m128i low, high;

	if (cells == SL_TRACKS_ONE_HEXAGON)
		return one_hexagon_sse2(middle, _mm_sub_epi32(at_side, reach),
					_mm_add_epi32(at_side, reach), last, base);
	low = _mm_srai_epi32(_mm_sub_epi32(middle, reach), SL_TRACKS_FRACTION);
	high = _mm_srai_epi32(_mm_add_epi32(middle, reach), SL_TRACKS_FRACTION);
	if (cells == SL_TRACKS_HEXAGONS)
		low = _mm_add_epi32(low, _mm_set1_epi32(1));
	return bits_sse2(low, high, last, base);
}

SL_FORCE_INLINE __m128i load_sse2(const void *four)
{
	return _mm_loadu_si128(four);
}

/* Of the four numbers from `at` on, those that are not first .. last. */
SL_FORCE_INLINE __m128i outside_sse2(__m128i at, __m128i first, __m128i last)
{
	return _mm_or_si128(_mm_cmplt_epi32(at, first), _mm_cmpgt_epi32(at, last));
}

/* A stub into the columns that it may be in. */
SL_FORCE_INLINE void fill_stub_sse2(const struct sl_tracks_plan *plan,
				    const struct sl_tracks_stubs *stubs, uint32_t s, uint32_t cells,
				    int32_t base, uint32_t *to)
{
	int32_t first = (int32_t)stubs->first[s], last = first + (int32_t)stubs->after[s];
	__m128i turned = _mm_set1_epi32(stubs->turned[s]), r = _mm_set1_epi32(stubs->r[s]);
	__m128i reach = _mm_set1_epi32(stubs->reach[s]);

	for (int32_t c = first / SSE2_LANES * SSE2_LANES; c <= last; c += SSE2_LANES) {
		__m128i column = _mm_add_epi32(_mm_set1_epi32(c), _mm_setr_epi32(0, 1, 2, 3));
		__m128i line = _mm_add_epi32(turned, multiply_sse2(load_sse2(plan->slope + c), r));
		__m128i rows = rows_sse2(cells, line, reach, load_sse2(plan->offset + c),
					 load_sse2(plan->side + c), (int32_t)plan->set.rows - 1,
					 base);
		__m128i out = outside_sse2(column, _mm_set1_epi32(first), _mm_set1_epi32(last));

		_mm_store_si128((void *)(to + c), _mm_or_si128(_mm_load_si128((void *)(to + c)),
							       _mm_andnot_si128(out, rows)));
	}
}

/* The rows of a column that each stub is in. */
SL_FORCE_INLINE void column_word_sse2(const struct sl_tracks_plan *plan,
				      const struct sl_tracks_stubs *stubs, uint32_t c,
				      uint32_t cells, int32_t base, uint32_t *to)
{
	__m128i slope = _mm_set1_epi32(plan->slope[c]), offset = _mm_set1_epi32(plan->offset[c]);
	__m128i side = _mm_set1_epi32(plan->side[c]), column = _mm_set1_epi32((int32_t)c);

	for (uint32_t s = 0; s < stubs->padded; s += SSE2_LANES) {
		__m128i first = load_sse2(stubs->first + s);
		__m128i last = _mm_add_epi32(first, load_sse2(stubs->after + s));
		__m128i line = _mm_add_epi32(load_sse2(stubs->turned + s),
					     multiply_sse2(load_sse2(stubs->r + s), slope));
		__m128i rows = rows_sse2(cells, line, load_sse2(stubs->reach + s), offset, side,
					 (int32_t)plan->set.rows - 1, base);

		_mm_store_si128((void *)(to + s),
				_mm_andnot_si128(outside_sse2(column, first, last), rows));
	}
}

#endif
