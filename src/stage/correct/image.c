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

/* Pixels: prefetchers lose the trail where a tile ends and the next one begins elsewhere. May be no
 * memory of ours: it is only said to the cache. */
enum { AHEAD = 512 };

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

/* Inlined once for each case, so that `stream` and `clamp` are known. */
#define LINES(KIND, TYPE, SET, TARGET)                                                             \
	TARGET SL_FORCE_INLINE void KIND##_lines_##SET(                                            \
		const struct sl_correct *c, const struct sl_correct_place *p, uint32_t count,      \
		const struct sl_correct_group *group, bool stream, bool clamp)                     \
	{                                                                                          \
		const float *pedestal = c->pedestal_0 + p->in_cell, *factor = c->factor + p->at;   \
		struct waiting waiting;                                                            \
		uint32_t i = 0;                                                                    \
                                                                                                   \
		waiting.n = 0;                                                                     \
		for (; i + SL_LINE <= count; i += SL_LINE) {                                       \
			struct sl_tables_##SET tables = sl_tables_##SET(pedestal + i, factor + i); \
                                                                                                   \
			for (uint32_t f = 0; f < group->frames; f++) {                             \
				uint32_t mask;                                                     \
                                                                                                   \
				__builtin_prefetch(group->raw[f] + i + AHEAD);                     \
				mask = KIND##_line_##SET(                                          \
					&tables, group->raw[f] + i, (TYPE *)group->out[f] + i,     \
					waiting.as[waiting.n].KIND, stream, clamp);                \
				if (!mask)                                                         \
					continue;                                                  \
				let_wait(c, p, &waiting, f, i, mask);                              \
				if (waiting.n == WAITING)                                          \
					KIND##_flush(c, p, group, &waiting);                       \
			}                                                                          \
		}                                                                                  \
		for (uint32_t f = 0; i < count && f < group->frames; f++)                          \
			KIND##_any(c, p, i, count - i, group->raw[f] + i,                          \
				   (TYPE *)group->out[f] + i);                                     \
		KIND##_flush(c, p, group, &waiting);                                               \
	}                                                                                          \
                                                                                                   \
	TARGET static void KIND##_##SET(const struct sl_correct *c,                                \
					const struct sl_correct_place *p, uint32_t count,          \
					const struct sl_correct_group *group)                      \
	{                                                                                          \
		if (group->stream && c->bounded)                                                   \
			KIND##_lines_##SET(c, p, count, group, true, false);                       \
		else if (group->stream)                                                            \
			KIND##_lines_##SET(c, p, count, group, true, true);                        \
		else if (c->bounded)                                                               \
			KIND##_lines_##SET(c, p, count, group, false, false);                      \
		else                                                                               \
			KIND##_lines_##SET(c, p, count, group, false, true);                       \
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
