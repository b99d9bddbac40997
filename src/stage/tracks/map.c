/* map.c - stubs into the cells of a Hough map, and back.
 *
 * A map is a word of bits for each layer and column, a bit for each row: so a stub costs an "or"
 * for each column, sixteen columns at a time, and cells with enough layers are found by adding
 * bits, thirty-two rows at a time. Which rows a stub is in is asked again, for columns with such
 * cells only: sixteen stubs at a time.
 *
 * Integers, in one order: the same bits with all vectors. */
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"
#include "stage/vectors.h"

/* The rows of a line at a column, as bits from `base` on. */
SL_FORCE_INLINE uint32_t rows_of(uint32_t cells, int32_t line, int32_t reach, int32_t offset,
				 int32_t side, int32_t most, int32_t base)
{
	int32_t low, high;

	if (cells == SL_TRACKS_ONE_HEXAGON) {
		int32_t row = sl_tracks_one_hexagon(line + offset, line + side - reach,
						    line + side + reach);

		return row <= most ? sl_tracks_bit(row, base) : 0;
	}
	low = sl_tracks_row(line + offset - reach) + (cells == SL_TRACKS_HEXAGONS);
	high = sl_tracks_row(line + offset + reach);
	return sl_tracks_bits(low, high < most ? high : most, base);
}

/* Sixteen columns of a stub, the first of which is `lead` after the first that it may be in. */
SL_FORCE_INLINE void fill_lanes(const struct sl_tracks_stubs *stubs, uint32_t s, int32_t lead,
				uint32_t cells, int32_t most, int32_t base,
				const int32_t *restrict slope, const int32_t *restrict offset,
				const int32_t *restrict side, uint32_t *restrict to)
{
	int32_t turned = stubs->turned[s], r = stubs->r[s], reach = stubs->reach[s];
	uint32_t after = stubs->after[s];

	for (int32_t i = 0; i < SL_TRACKS_VECTOR; i++) {
		int32_t line = sl_tracks_line(turned, r, slope[i]);
		uint32_t rows = rows_of(cells, line, reach, offset[i], side[i], most, base);

		to[i] |= (uint32_t)(lead + i) <= after ? rows : 0;
	}
}

SL_FORCE_INLINE void fill_stub(const struct sl_tracks_plan *plan,
			       const struct sl_tracks_stubs *stubs, uint32_t s, uint32_t cells,
			       int32_t base, uint32_t *to)
{
	uint32_t first = stubs->first[s], last = first + stubs->after[s];

	for (uint32_t c = first / SL_TRACKS_VECTOR * SL_TRACKS_VECTOR; c <= last;
	     c += SL_TRACKS_VECTOR)
		fill_lanes(stubs, s, (int32_t)(c - first), cells, (int32_t)plan->set.rows - 1, base,
			   plan->slope + c, plan->offset + c, plan->side + c, to + c);
}

SL_FORCE_INLINE void count_layers(const struct sl_tracks_plan *plan,
				  const uint32_t (*restrict bits)[SL_TRACKS_CELLS],
				  uint32_t *restrict found)
{
	uint32_t least = plan->set.min_layers;

	for (int32_t i = 0; i < SL_TRACKS_CELLS; i++)
		found[i] = sl_tracks_at_least(sl_tracks_count(bits[1][i], bits[2][i], bits[3][i],
							      bits[4][i], bits[5][i], bits[6][i],
							      bits[7][i]),
					      least);
}

SL_FORCE_INLINE void fill(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs,
			  struct sl_tracks_map *map, uint32_t cells, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++) {
		memset(map->layer[w], 0, sizeof(map->layer[w]));
		for (uint32_t s = 0; s < stubs->n; s++)
			fill_stub(plan, stubs, s, cells, (int32_t)w * 32,
				  map->layer[w][stubs->layer[s]]);
		count_layers(plan, map->layer[w], map->found[w]);
	}
}

SL_FORCE_INLINE void column_word(const struct sl_tracks_plan *plan,
				 const struct sl_tracks_stubs *restrict stubs, uint32_t c,
				 uint32_t cells, int32_t base, uint32_t *restrict to)
{
	int32_t slope = plan->slope[c], offset = plan->offset[c], side = plan->side[c];
	int32_t most = (int32_t)plan->set.rows - 1, padded = (int32_t)stubs->padded;

	for (int32_t s = 0; s < padded; s++) {
		int32_t line = sl_tracks_line(stubs->turned[s], stubs->r[s], slope);
		uint32_t rows = rows_of(cells, line, stubs->reach[s], offset, side, most, base);

		to[s] = c - stubs->first[s] <= stubs->after[s] ? rows : 0;
	}
}

SL_FORCE_INLINE void column(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs,
			    uint32_t c, struct sl_tracks_map *map, uint32_t cells, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		column_word(plan, stubs, c, cells, (int32_t)w * 32, map->column[w]);
}

#ifdef __x86_64__
#include "stage/tracks/sse2.h"

SL_FORCE_INLINE void fill_sse2(const struct sl_tracks_plan *plan,
			       const struct sl_tracks_stubs *stubs, struct sl_tracks_map *map,
			       uint32_t cells, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++) {
		memset(map->layer[w], 0, sizeof(map->layer[w]));
		for (uint32_t s = 0; s < stubs->n; s++)
			fill_stub_sse2(plan, stubs, s, cells, (int32_t)w * 32,
				       map->layer[w][stubs->layer[s]]);
		count_layers(plan, map->layer[w], map->found[w]);
	}
}

SL_FORCE_INLINE void column_sse2(const struct sl_tracks_plan *plan,
				 const struct sl_tracks_stubs *stubs, uint32_t c,
				 struct sl_tracks_map *map, uint32_t cells, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		column_word_sse2(plan, stubs, c, cells, (int32_t)w * 32, map->column[w]);
}
#endif

/* Eight bytes of 0 or 1 become the bits of one. */
static inline uint64_t eight(const uint8_t *flag)
{
	uint64_t bytes;

	memcpy(&bytes, flag, sizeof(bytes));
	return bytes * 0x0102040810204080u >> 56;
}

/* A flag for each stub, which compilers make vectors of, then their bits. */
SL_FORCE_INLINE void within(const struct sl_tracks_map *map, uint64_t rows, uint32_t padded,
			    sl_tracks_set set, uint32_t words)
{
	uint32_t low = (uint32_t)rows, high = (uint32_t)(rows >> 32);
	uint8_t flag[SL_TRACKS_SET * 64] = {0};

	for (uint32_t s = 0; s < padded; s++) {
		uint32_t both = map->column[0][s] & low;

		if (words > 1)
			both |= map->column[1][s] & high;
		flag[s] = both != 0;
	}
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++) {
		set[k] = 0;
		for (uint32_t b = 0; b < 8; b++)
			set[k] |= eight(flag + k * 64 + b * 8) << (b * 8);
	}
}

#define FILL_PARAMETERS                                                          \
	(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs, \
	 struct sl_tracks_map *map)
#define COLUMN_PARAMETERS                                                                    \
	(const struct sl_tracks_plan *plan, const struct sl_tracks_stubs *stubs, uint32_t c, \
	 struct sl_tracks_map *map)

/* As SL_VECTORS, but for what CPUs without AVX2 do: sse2.h. */
#ifdef __x86_64__
#define KINDS_OF(name, parameters, arguments, by_hand)        \
	static void name##_baseline parameters                \
	{                                                     \
		by_hand;                                      \
	}                                                     \
	SL_TARGET_AVX2 static void name##_avx2 parameters     \
	{                                                     \
		name arguments;                               \
	}                                                     \
	SL_TARGET_AVX512 static void name##_avx512 parameters \
	{                                                     \
		name arguments;                               \
	}
#else
#define KINDS_OF(name, parameters, arguments, by_hand) SL_VECTORS(name, parameters, arguments)
#endif

#define KIND(name, cells, words)                                          \
	SL_FORCE_INLINE void fill_##name FILL_PARAMETERS                  \
	{                                                                 \
		fill(plan, stubs, map, cells, words);                     \
	}                                                                 \
	SL_FORCE_INLINE void column_##name COLUMN_PARAMETERS              \
	{                                                                 \
		column(plan, stubs, c, map, cells, words);                \
	}                                                                 \
	KINDS_OF(fill_##name, FILL_PARAMETERS, (plan, stubs, map),        \
		 fill_sse2(plan, stubs, map, cells, words))               \
	KINDS_OF(column_##name, COLUMN_PARAMETERS, (plan, stubs, c, map), \
		 column_sse2(plan, stubs, c, map, cells, words))

KIND(rectangles_1, SL_TRACKS_RECTANGLES, 1)
KIND(rectangles_2, SL_TRACKS_RECTANGLES, 2)
KIND(hexagons_1, SL_TRACKS_HEXAGONS, 1)
KIND(hexagons_2, SL_TRACKS_HEXAGONS, 2)
KIND(one_hexagon_1, SL_TRACKS_ONE_HEXAGON, 1)
KIND(one_hexagon_2, SL_TRACKS_ONE_HEXAGON, 2)

#define WITHIN_PARAMETERS \
	(const struct sl_tracks_map *map, uint64_t rows, uint32_t padded, sl_tracks_set set)

SL_FORCE_INLINE void within_1 WITHIN_PARAMETERS
{
	within(map, rows, padded, set, 1);
}

SL_FORCE_INLINE void within_2 WITHIN_PARAMETERS
{
	within(map, rows, padded, set, 2);
}

SL_VECTORS(within_1, WITHIN_PARAMETERS, (map, rows, padded, set))
SL_VECTORS(within_2, WITHIN_PARAMETERS, (map, rows, padded, set))

#define PICK(name, words)                                                  \
	(struct sl_tracks_calls)                                           \
	{                                                                  \
		SL_VECTORS_PICK(fill_##name##_##words, vectors),           \
			SL_VECTORS_PICK(column_##name##_##words, vectors), \
			SL_VECTORS_PICK(within_##words, vectors)           \
	}

struct sl_tracks_calls sl_tracks_calls(const struct sl_tracks_plan *plan, uint32_t vectors)
{
	bool two = plan->words > 1;

	vectors = sl_vectors_choose(vectors);
	switch (plan->set.cells) {
	case SL_TRACKS_RECTANGLES:
		return two ? PICK(rectangles, 2) : PICK(rectangles, 1);
	case SL_TRACKS_HEXAGONS:
		return two ? PICK(hexagons, 2) : PICK(hexagons, 1);
	default:
		return two ? PICK(one_hexagon, 2) : PICK(one_hexagon, 1);
	}
}
