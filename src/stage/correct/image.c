/* image.c - images of bright frames: lines as if in G0, then the few pixels that are not.
 *
 * A group of frames goes through a line's tables together: they are then read from the cache once
 * for the group, and memory is the limit. More frames would ask too much of a cache's sets where
 * frames lie a power of two apart. */
#include <math.h>
#include <string.h>

#include "base/copy.h"
#include "stage/correct/correct.h"
#include "stage/correct/line.h"

/* Pixels: how far ahead lines are prefetched. The prefetchers of a core follow fewer streams than a
 * group has, and lose each where the span ends. Less than this does not hide the latency of memory,
 * more pushes out of the first-level cache what was prefetched before. */
enum { AHEAD = 1024, CACHE_LINE = 64 };

/* Lines with a pixel that is not in G0, to be put right when its tables have come: such pixels are
 * rare, so that each waits for memory. */
enum { WAITING = 32 };

struct waiting {
	uint32_t n;
	struct {
		uint32_t frame, pixel, mask;
	} line[WAITING];
	union {
		int16_t photons[SL_LINE];
		float kev[SL_LINE];
	} as[WAITING]; /* if all were in G0 */
};

/* A pixel that is not in G0: NaN is bad, infinity an overload. */
static float other_gain(const struct sl_correct_other *o, uint16_t raw)
{
	int kind = sl_raw_kind(raw);

	if (kind == SL_RAW_IS_OVERLOAD)
		return sl_raw_overload(o->pedestal[0], o->pedestal[1], o->factor[0], o->factor[1]);
	if (kind == SL_RAW_IS_BAD)
		return NAN;
	return sl_raw_energy(raw, o->pedestal[kind - 1], o->factor[kind - 1]);
}

static int16_t photons_of(const struct sl_correct_other *o, uint16_t raw)
{
	float value = other_gain(o, raw);

	return raw == SL_RAW_OVERLOAD && value == value ? SL_PHOTONS_OVERLOAD
							: sl_to_photons(value);
}

static float kev_of(const struct sl_correct_other *o, uint16_t raw)
{
	return other_gain(o, raw);
}

static const struct sl_correct_other *others_of(const struct sl_correct *c,
						const struct sl_correct_place *p, uint32_t pixel)
{
	return &c->other[p->cell * c->other_pixels + p->at + pixel];
}

static void let_wait(const struct sl_correct *c, const struct sl_correct_place *p,
		     struct waiting *w, uint32_t frame, uint32_t pixel, uint32_t mask)
{
	for (uint32_t left = mask; left; left &= left - 1)
		__builtin_prefetch(others_of(c, p, pixel + (uint32_t)__builtin_ctz(left)));
	w->line[w->n].frame = frame;
	w->line[w->n].pixel = pixel;
	w->line[w->n++].mask = mask;
}

/* KIND_any(): what is left of a line, in any gain. KIND_flush(): lines that waited. */
#define ANY(KIND, TYPE, G0)                                                                    \
	static void KIND##_any(const struct sl_correct *c, const struct sl_correct_place *p,   \
			       uint32_t pixel, uint32_t count, const uint16_t *raw, TYPE *out) \
	{                                                                                      \
		const float *pedestal = c->pedestal_0 + p->in_cell + pixel;                    \
		const float *factor = c->factor + p->at + pixel;                               \
                                                                                               \
		for (uint32_t i = 0; i < count; i++)                                           \
			out[i] = raw[i] & SL_RAW_GAIN                                          \
					 ? KIND##_of(others_of(c, p, pixel + i), raw[i])       \
					 : G0(((float)raw[i] - pedestal[i]) * factor[i]);      \
	}                                                                                      \
                                                                                               \
	static void KIND##_flush(const struct sl_correct *c, const struct sl_correct_place *p, \
				 const struct sl_correct_group *group, struct waiting *w)      \
	{                                                                                      \
		for (uint32_t k = 0; k < w->n; k++) {                                          \
			uint32_t f = w->line[k].frame, first = w->line[k].pixel;               \
			TYPE *line = w->as[k].KIND, *out = (TYPE *)group->out[f] + first;      \
                                                                                               \
			for (uint32_t left = w->line[k].mask; left; left &= left - 1) {        \
				uint32_t i = (uint32_t)__builtin_ctz(left);                    \
                                                                                               \
				line[i] = KIND##_of(others_of(c, p, first + i),                \
						    group->raw[f][first + i]);                 \
			}                                                                      \
			if (group->stream)                                                     \
				sl_copy_stream(out, line, SL_LINE * sizeof(*out));             \
			else                                                                   \
				memcpy(out, line, SL_LINE * sizeof(*out));                     \
		}                                                                              \
		w->n = 0;                                                                      \
	}

ANY(photons, int16_t, sl_to_photons)
ANY(kev, float, )

/* A line's tables, when no group has read them yet. */
SL_FORCE_INLINE void prefetch_tables(const float *pedestal, const float *factor)
{
	enum { FLOATS = CACHE_LINE / sizeof(float) };

	for (int i = 0; i < SL_LINE; i += FLOATS) {
		__builtin_prefetch(pedestal + AHEAD + i);
		__builtin_prefetch(factor + AHEAD + i);
	}
}

/* Inlined once for each case, so that `frames`, `stream` and `clamp` are known. Pixels from..to,
 * whole lines; ahead: where those lie that are prefetched at the same time. */
#define LINES(KIND, TYPE, SET, TARGET)                                                             \
	TARGET SL_FORCE_INLINE void KIND##_span_##SET(                                             \
		const struct sl_correct *c, const struct sl_correct_place *p, uint32_t from,       \
		uint32_t to, const struct sl_correct_group *group, uint32_t frames,                \
		const uint16_t *const *ahead, struct waiting *waiting, bool stream, bool clamp)    \
	{                                                                                          \
		const float *pedestal = c->pedestal_0 + p->in_cell, *factor = c->factor + p->at;   \
                                                                                                   \
		for (uint32_t i = from; i < to; i += SL_LINE) {                                    \
			struct sl_tables_##SET tables = sl_tables_##SET(pedestal + i, factor + i); \
                                                                                                   \
			if (group->cold)                                                           \
				prefetch_tables(pedestal + i, factor + i);                         \
			for (uint32_t f = 0; f < frames; f++) {                                    \
				uint32_t mask;                                                     \
                                                                                                   \
				__builtin_prefetch(ahead[f] + i - from);                           \
				mask = KIND##_line_##SET(                                          \
					&tables, group->raw[f] + i, (TYPE *)group->out[f] + i,     \
					waiting->as[waiting->n].KIND, stream, clamp);              \
				if (!mask)                                                         \
					continue;                                                  \
				let_wait(c, p, waiting, f, i, mask);                               \
				if (waiting->n == WAITING)                                         \
					KIND##_flush(c, p, group, waiting);                        \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	TARGET SL_FORCE_INLINE void KIND##_lines_##SET(                                            \
		const struct sl_correct *c, const struct sl_correct_place *p, uint32_t count,      \
		const struct sl_correct_group *group, uint32_t frames, bool stream, bool clamp)    \
	{                                                                                          \
		uint32_t whole = count / SL_LINE * SL_LINE,                                        \
			 cut = whole > AHEAD ? whole - AHEAD : 0;                                  \
		const uint16_t *ahead[SL_CORRECT_GROUP];                                           \
		struct waiting waiting;                                                            \
                                                                                                   \
		waiting.n = 0;                                                                     \
		for (uint32_t f = 0; f < frames; f++)                                              \
			ahead[f] = group->raw[f] + AHEAD;                                          \
		KIND##_span_##SET(c, p, 0, cut, group, frames, ahead, &waiting, stream, clamp);    \
		KIND##_span_##SET(c, p, cut, whole, group, frames, group->next, &waiting, stream,  \
				  clamp);                                                          \
		for (uint32_t f = 0; whole < count && f < frames; f++)                             \
			KIND##_any(c, p, whole, count - whole, group->raw[f] + whole,              \
				   (TYPE *)group->out[f] + whole);                                 \
		KIND##_flush(c, p, group, &waiting);                                               \
	}                                                                                          \
                                                                                                   \
	TARGET SL_FORCE_INLINE void KIND##_frames_##SET(                                           \
		const struct sl_correct *c, const struct sl_correct_place *p, uint32_t count,      \
		const struct sl_correct_group *group, bool stream, bool clamp)                     \
	{                                                                                          \
		if (group->frames == SL_CORRECT_GROUP)                                             \
			KIND##_lines_##SET(c, p, count, group, SL_CORRECT_GROUP, stream, clamp);   \
		else                                                                               \
			KIND##_lines_##SET(c, p, count, group, group->frames, stream, clamp);      \
	}                                                                                          \
                                                                                                   \
	TARGET static void KIND##_##SET(const struct sl_correct *c,                                \
					const struct sl_correct_place *p, uint32_t count,          \
					const struct sl_correct_group *group)                      \
	{                                                                                          \
		if (group->stream && c->bounded)                                                   \
			KIND##_frames_##SET(c, p, count, group, true, false);                      \
		else if (group->stream)                                                            \
			KIND##_frames_##SET(c, p, count, group, true, true);                       \
		else if (c->bounded)                                                               \
			KIND##_frames_##SET(c, p, count, group, false, false);                     \
		else                                                                               \
			KIND##_frames_##SET(c, p, count, group, false, true);                      \
	}

LINES(photons, int16_t, baseline, )
LINES(kev, float, baseline, )
#ifdef __x86_64__
LINES(photons, int16_t, avx2, SL_TARGET_AVX2)
LINES(kev, float, avx2, SL_TARGET_AVX2)
LINES(photons, int16_t, avx512, SL_TARGET_AVX512)
LINES(kev, float, avx512, SL_TARGET_AVX512)
#endif

sl_correct_image *sl_correct_choose_image(uint32_t output, enum sl_vectors vectors)
{
	return output == SL_CORRECT_PHOTONS_I16 ? SL_VECTORS_PICK(photons, vectors)
						: SL_VECTORS_PICK(kev, vectors);
}
