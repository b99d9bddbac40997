/* add.c - pixels of several frames into their sums, side by side.
 *
 * Frames of a stack differ in what a pixel counts, not in where it counts: so a few pixels of eight
 * frames are turned into vectors of one pixel of each, and every sum is a vector, too. Cell and
 * share are then looked up once for eight frames, and adding is an instruction or two for all of
 * them, whatever the instruction set.
 *
 * Exact: counts of up to 16 bits are added as whole numbers. Counts of 32 bits are too, unless
 * pixels are split; then, and of keV, sums are doubles. */
#include <string.h>

#include "stage/integrate/integrate.h"
#include "stage/radial_maths.h"
#include "stage/vectors.h"

/* Pixels that are turned at a time: in the first-level cache with what they add to. */
enum { CHUNK = 128 };

static void miss_one(const struct sl_integrate *s, void *group, uint64_t pixel, uint32_t member,
		     uint32_t members, struct sl_share to)
{
	const struct sl_shares *t = &s->shares;
	union sl_sum *sum = sl_integrate_sums(group, to.cell, members) + members + member;
	uint32_t square = sl_share_square(to.share, t->bits);
	double least = s->least > 0 ? s->least : 0;

	/* As 0 it had the least variance that there is. */
	if (s->real)
		sum->real -= (double)(float)least * square;
	else
		sum->whole -= (int64_t)least * square;
	sl_integrate_missing(s, group, to.cell, members)[member] +=
		sl_shares_norm(t, pixel, to.share);
	if (t->dark)
		sl_integrate_darks(s, group, to.cell, members)[member] +=
			sl_shares_dark(t, pixel, to.share);
}

void sl_integrate_miss(const struct sl_integrate *s, void *group, uint64_t pixel, uint32_t member,
		       uint32_t members)
{
	const struct sl_shares *t = &s->shares;

	if (t->cell && t->cell[pixel] < t->cells)
		miss_one(s, group, pixel, member, members, (struct sl_share){t->cell[pixel], 1});
	for (uint32_t e = t->cell ? 0 : t->first[pixel]; !t->cell && e < t->first[pixel + 1]; e++)
		if (t->share[e].cell < t->cells)
			miss_one(s, group, pixel, member, members,
				 (struct sl_share){t->share[e].cell, sl_share_part(t->share[e])});
}

/* For pixels of TYPE, of which sl_is_valid_VALID() tells, values and shares that are multiplied as
 * WIDE and PART, and sums of SUM: */
#define KIND(NAME, TYPE, VALID, WIDE, PART, SUM)                                                  \
	/* A frame's pixels, with 0 for those that are no measurement. */                         \
	static __attribute__((noinline)) void mend_##NAME(                                        \
		const struct sl_integrate *s, const struct sl_integrate_span *span,               \
		uint32_t first, uint32_t count, uint32_t member, TYPE *mended)                    \
	{                                                                                         \
		const TYPE *in = (const TYPE *)span->in[member] + first;                          \
                                                                                                  \
		for (uint32_t i = 0; i < count; i++) {                                            \
			bool valid = !span->is_missing[member] && sl_is_valid_##VALID(in[i]);     \
                                                                                                  \
			mended[i] = valid ? in[i] : 0;                                            \
			if (!valid)                                                               \
				sl_integrate_miss(s, span->group, span->at + first + i, member,   \
						  span->members);                                 \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	SL_FORCE_INLINE const TYPE *look_##NAME(                                                  \
		const struct sl_integrate *s, const struct sl_integrate_span *span,               \
		uint32_t first, uint32_t count, uint32_t member, TYPE *mended)                    \
	{                                                                                         \
		const TYPE *in = (const TYPE *)span->in[member] + first;                          \
		int valid = 1;                                                                    \
                                                                                                  \
		for (uint32_t i = 0; i < count; i++)                                              \
			valid &= sl_is_valid_##VALID(in[i]);                                      \
		if (valid && !span->is_missing[member])                                           \
			return in;                                                                \
		mend_##NAME(s, span, first, count, member, mended);                               \
		return mended;                                                                    \
	}                                                                                         \
                                                                                                  \
	/* Part of one pixel of all members. */                                                   \
	SL_FORCE_INLINE void put_##NAME(const WIDE *restrict value, SUM *restrict to, WIDE least, \
					PART share, PART square, const bool split,                \
					const uint32_t members)                                   \
	{                                                                                         \
		for (uint32_t l = 0; l < members; l++) {                                          \
			WIDE v = value[l] > least ? value[l] : least;                             \
                                                                                                  \
			to[l] += split ? (SUM)value[l] * (SUM)share : (SUM)value[l];              \
			to[members + l] += split ? (SUM)v * (SUM)square : (SUM)v;                 \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	SL_FORCE_INLINE void once_##NAME(const struct sl_integrate *s, uint64_t at,               \
					 uint32_t count, const WIDE *value, SUM *sum,             \
					 const uint32_t members)                                  \
	{                                                                                         \
		const uint32_t *cell = s->shares.cell + at;                                       \
		const WIDE least = (WIDE)s->least;                                                \
                                                                                                  \
		for (uint32_t i = 0; i < count; i++)                                              \
			put_##NAME(value + i * members, sum + (size_t)cell[i] * 2 * members,      \
				   least, 1, 1, false, members);                                  \
	}                                                                                         \
                                                                                                  \
	SL_FORCE_INLINE void split_##NAME(const struct sl_integrate *s, uint64_t at,              \
					  uint32_t count, const WIDE *value, SUM *sum,            \
					  const uint32_t members)                                 \
	{                                                                                         \
		const struct sl_share *share = s->shares.share + s->shares.first[at];             \
		const struct sl_share *end = s->shares.share + s->shares.first[at + count];       \
		const WIDE least = (WIDE)s->least;                                                \
		const int bits = s->shares.bits;                                                  \
                                                                                                  \
		for (; share < end; share++) {                                                    \
			uint32_t part = sl_share_part(*share);                                    \
                                                                                                  \
			put_##NAME(value, sum + (size_t)share->cell * 2 * members, least,         \
				   (PART)part, (PART)sl_share_square(part, bits), true, members); \
			value += (share->share >> 31) * members;                                  \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	SL_FORCE_INLINE void chunk_##NAME(                                                        \
		const struct sl_integrate *s, const struct sl_integrate_span *span,               \
		uint32_t first, const uint32_t count, const bool split, const uint32_t members)   \
	{                                                                                         \
		TYPE mended[SL_INTEGRATE_MEMBERS][CHUNK], turned[CHUNK * SL_INTEGRATE_MEMBERS];   \
		WIDE wide[CHUNK * SL_INTEGRATE_MEMBERS];                                          \
		const TYPE *from[SL_INTEGRATE_MEMBERS];                                           \
                                                                                                  \
		for (uint32_t l = 0; l < members; l++)                                            \
			from[l] = look_##NAME(s, span, first, count, l, mended[l]);               \
		for (uint32_t i = 0; members > 1 && i < count; i++)                               \
			for (uint32_t l = 0; l < members; l++)                                    \
				turned[i * members + l] = from[l][i];                             \
		for (uint32_t i = 0; i < count * members; i++)                                    \
			wide[i] = members > 1 ? turned[i] : from[0][i];                           \
		if (split)                                                                        \
			split_##NAME(s, span->at + first, count, wide, span->group, members);     \
		else                                                                              \
			once_##NAME(s, span->at + first, count, wide, span->group, members);      \
	}                                                                                         \
                                                                                                  \
	SL_FORCE_INLINE void all_##NAME(const struct sl_integrate *s,                             \
					const struct sl_integrate_span *span, const bool split,   \
					const uint32_t members)                                   \
	{                                                                                         \
		uint32_t whole = span->count / CHUNK * CHUNK;                                     \
                                                                                                  \
		for (uint32_t first = 0; first < whole; first += CHUNK)                           \
			chunk_##NAME(s, span, first, CHUNK, split, members);                      \
		if (whole < span->count)                                                          \
			chunk_##NAME(s, span, whole, span->count - whole, split, members);        \
	}

/* add_PIXELS_once() and add_PIXELS_split(), for every instruction set. */
#define ADDS(NAME, SPLIT, PIXELS, WAY)                                                   \
	SL_FORCE_INLINE void add_##PIXELS##_##WAY(const struct sl_integrate *s,          \
						  const struct sl_integrate_span *span)  \
	{                                                                                \
		if (span->members == SL_INTEGRATE_MEMBERS)                               \
			all_##NAME(s, span, SPLIT, SL_INTEGRATE_MEMBERS);                \
		else                                                                     \
			all_##NAME(s, span, SPLIT, 1);                                   \
	}                                                                                \
	SL_VECTORS(add_##PIXELS##_##WAY,                                                 \
		   (const struct sl_integrate *s, const struct sl_integrate_span *span), \
		   (s, span))

KIND(u8, uint8_t, u8, int32_t, int32_t, int64_t)
KIND(u16, uint16_t, u16, int32_t, int32_t, int64_t)
KIND(i16, int16_t, i16, int32_t, int32_t, int64_t)
KIND(u32, uint32_t, u32, uint32_t, int32_t, int64_t)
KIND(u32_real, uint32_t, u32, uint32_t, double, double)
KIND(f32, float, f32, float, double, double)

ADDS(u8, false, u8, once)
ADDS(u8, true, u8, split)
ADDS(u16, false, u16, once)
ADDS(u16, true, u16, split)
ADDS(i16, false, i16, once)
ADDS(i16, true, i16, split)
ADDS(u32, false, u32, once)
ADDS(u32_real, true, u32, split)
ADDS(f32, false, f32, once)
ADDS(f32, true, f32, split)

#define CHOOSE(NAME)                                                  \
	(s->shares.cell ? SL_VECTORS_PICK(add_##NAME##_once, vectors) \
			: SL_VECTORS_PICK(add_##NAME##_split, vectors))

sl_integrate_add *sl_integrate_choose(const struct sl_integrate *s)
{
	enum sl_vectors vectors = sl_vectors_choose(s->vectors);

	/* Products of whole numbers come in halves that longer vectors take longer to put together.
	 */
	if (vectors == SL_VECTORS_AVX512 && !s->shares.cell && !s->real)
		vectors = SL_VECTORS_AVX2;
	switch (s->dtype) {
	case SL_U8:
		return CHOOSE(u8);
	case SL_U16:
		return CHOOSE(u16);
	case SL_U32:
		return CHOOSE(u32);
	case SL_I16:
		return CHOOSE(i16);
	default:
		return CHOOSE(f32);
	}
}
