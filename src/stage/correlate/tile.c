/* tile.c - the pixels of a tile, frame by frame, into groups of samples.
 *
 * Time goes on by the frame number, of dark frames, too. A frame that did not come, is dark, or
 * misses this module has no sample. When time goes back, or over a gap that no lag reaches over,
 * the past is forgotten. */
#include <string.h>

#include "stage/correlate/work.h"
#include "stage/radial_maths.h"

enum { CHUNK = SL_CORRELATE_CHUNK };

size_t sl_correlate_work_bytes(void)
{
	return sizeof(struct sl_correlate_work);
}

/* ---- samples of a frame ---- */

#define WHOLE(TYPE, NAME)                                                                       \
	static void take_##NAME(const void *pixels, uint32_t count, int32_t limit, int32_t *to) \
	{                                                                                       \
		const TYPE *pixel = pixels;                                                     \
                                                                                                \
		for (uint32_t i = 0; i < count; i++) {                                          \
			int32_t sample = sl_correlate_whole(pixel[i], limit);                   \
                                                                                                \
			to[i] = sl_is_valid_##NAME(pixel[i]) ? sample : SL_CORRELATE_MISSING;   \
		}                                                                               \
	}

WHOLE(uint8_t, u8)
WHOLE(uint16_t, u16)
WHOLE(uint32_t, u32)
WHOLE(int16_t, i16)

static void take_f32(const void *pixels, uint32_t count, int32_t limit, int32_t *to)
{
	const float *pixel = pixels;

	for (uint32_t i = 0; i < count; i++)
		to[i] = sl_correlate_float(pixel[i], limit);
}

typedef void take_samples(const void *pixels, uint32_t count, int32_t limit, int32_t *to);

static take_samples *const take[SL_DTYPES] = {[SL_U8] = take_u8,
					      [SL_U16] = take_u16,
					      [SL_U32] = take_u32,
					      [SL_I16] = take_i16,
					      [SL_F32] = take_f32};

/* Pixels that are in no region, and what is behind the chunk, always count 0. */
static void leave_out(const struct sl_correlate *s, const struct sl_correlate_work *w, int32_t *row)
{
	const uint32_t *region = s->region + w->first_pixel;

	for (uint32_t i = 0; w->used < w->pixels && i < w->pixels; i++)
		row[i] = region[i] == SL_CORRELATE_NONE ? 0 : row[i];
	memset(row + w->pixels, 0, (CHUNK - w->pixels) * sizeof(*row));
}

/* The next frame in time; NULL: it is missing. */
static void push(const struct sl_correlate *s, struct sl_correlate_work *w, const void *pixels)
{
	int32_t *row = w->fresh[w->next - w->first];

	if (pixels)
		take[s->dtype](pixels, w->pixels, s->limit, row);
	for (uint32_t i = 0; !pixels && i < w->pixels; i++)
		row[i] = SL_CORRELATE_MISSING;
	leave_out(s, w, row);
	if (++w->next - w->first == SL_CORRELATE_GROUP)
		sl_correlate_advance(s, w);
}

/* ---- time ---- */

static void forget(const struct sl_correlate *s, struct sl_correlate_work *w, uint64_t next)
{
	const uint32_t *region = s->region + w->first_pixel;

	sl_correlate_advance(s, w);
	for (uint32_t k = 0; k < s->levels * s->channels; k++) {
		int32_t *row = s->history + k * s->pixels + w->first_pixel;

		for (uint32_t i = 0; i < w->pixels; i++)
			row[i] = region[i] == SL_CORRELATE_NONE ? 0 : SL_CORRELATE_MISSING;
	}
	w->first = w->next = next;
}

static void go_on(const struct sl_correlate *s, struct sl_correlate_work *w, bool begun,
		  uint64_t number, const void *pixels)
{
	if (!begun || number < w->next || number - w->next >= sl_correlate_reach(s))
		forget(s, w, number);
	while (w->next < number)
		push(s, w, NULL);
	push(s, w, pixels);
}

/* ---- a chunk ---- */

static bool begin(const struct sl_correlate *s, struct sl_correlate_work *w)
{
	const uint32_t *region = s->region + w->first_pixel;

	w->spans = w->used = 0;
	for (uint32_t i = 0; i < w->pixels; i++) {
		struct sl_correlate_span *last = &w->span[w->spans - (w->spans > 0)];

		if (region[i] == SL_CORRELATE_NONE)
			continue;
		w->used++;
		if (w->spans && last->region == region[i] && last->first + last->count == i)
			last->count++;
		else
			w->span[w->spans++] = (struct sl_correlate_span){
				.first = i, .count = 1, .region = region[i]};
	}
	return w->used > 0;
}

/* at: the first pixel of the chunk in the tile. */
static void chunk(struct sl_correlate *s, struct sl_correlate_work *w, char *scratch,
		  const struct sl_batch *batch, const struct sl_tile *tile, uint32_t at)
{
	size_t bytes = at * sl_dtype_bytes(s->dtype);
	bool begun = s->next[w->first_pixel] > 0;
	uint32_t part = 0;

	w->first = w->next = s->next[w->first_pixel];
	for (uint32_t f = 0; f < batch->frames; f++) {
		const struct sl_frame *frame = batch->frame[f];

		if (scratch)
			w->sums = (void *)(scratch + part * s->scratch_bytes);
		go_on(s, w, begun, frame->number,
		      frame->flags & SL_FRAME_DARK || sl_frame_misses(frame, tile->module)
			      ? NULL
			      : (const char *)tile->in[f] + bytes);
		begun = true;
		if (sl_correlate_is_due(s, frame)) {
			sl_correlate_advance(s, w);
			part++;
		}
	}
	sl_correlate_advance(s, w);
	for (uint32_t i = 0; i < w->pixels; i++)
		s->next[w->first_pixel + i] = w->next;
}

void sl_correlate_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile)
{
	struct sl_correlate *s = state;
	size_t sums = sl_correlate_sums_bytes(s);
	struct sl_correlate_work *w = (void *)((char *)scratch + sums);

	w->sums = s->total;
	for (uint32_t at = 0; at < tile->count && batch->frames; at += CHUNK) {
		w->first_pixel = tile->module * s->module_pixels + tile->first + at;
		w->pixels = tile->count - at < CHUNK ? tile->count - at : CHUNK;
		if (begin(s, w))
			chunk(s, w, sums ? scratch : NULL, batch, tile, at);
	}
}
