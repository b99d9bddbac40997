/* veto.c - keep a frame when enough of its pixels are bright.
 *
 * A pixel counts when it has at least `threshold` photons: whole photons in an int16 image, keV of
 * as many photons in a float one (so 9.8 photons are ten in the first and not in the second),
 * counts where the detector counts. Overloads count; bad pixels (INT16_MIN, NaN, the largest number
 * of counts) do not. Dark frames stay as they were judged.
 *
 * Cost: one pass over the tile, which is in cache when `correct` just wrote it.
 * Threads: every worker counts into its own scratch; finish() adds up. */
#include "stage/veto/veto.h"

#include <errno.h>

#include "base/log.h"

struct count { /* of one frame, by one worker */
	uint32_t pixels;
};

static const struct sl_option options[] = {
	SL_U32(struct sl_veto, threshold, 10, 1, 32766, "photons",
	       "a pixel counts when it has at least as many"),
	SL_U32(struct sl_veto, min_pixels, 20, 0, 4294967295., "pixels",
	       "keep the frame when at least as many pixels count"),
	SL_OPTION_END};

static int open_veto(void *state, const struct sl_env *env, const struct sl_shape *in,
		     struct sl_stage_terms *terms)
{
	struct sl_veto *v = state;

	if (in->dtype == SL_I32) {
		sl_error("veto reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	if (!(sl_shape_photon(in, env->geometry->photon_energy_keV) > 0)) {
		sl_error("veto: a threshold in photons needs a photon energy; detector '%s' has "
			 "none",
			 env->geometry->detector);
		return -EINVAL;
	}
	if (in->dtype == SL_U8 && v->threshold >= UINT8_MAX) {
		sl_error("veto: no pixel of 8 bits has %u counts", v->threshold);
		return -EINVAL;
	}
	v->dtype = in->dtype;
	v->threshold_f32 =
		(float)(v->threshold * sl_shape_photon(in, env->geometry->photon_energy_keV));
	terms->scratch_bytes = sizeof(struct count);
	return 0;
}

static void close_veto(void *state)
{
}

/* Sums of 16 bits, as wide as the pixels, over runs too short to overflow them: twice the speed of
 * sums of 32 bits. */
static uint32_t count_i16(const int16_t *pixel, uint32_t count, int16_t threshold)
{
	enum { RUN = 32768 };
	uint32_t sum = 0;

	for (uint32_t first = 0; first < count; first += RUN) {
		uint32_t end = count - first < RUN ? count : first + RUN;
		uint16_t n = 0;

		for (uint32_t i = first; i < end; i++)
			n = (uint16_t)(n + (pixel[i] >= threshold));
		sum += n;
	}
	return sum;
}

static uint32_t count_f32(const float *pixel, uint32_t count, float threshold)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += pixel[i] >= threshold; /* false for NaN */
	return n;
}

/* Counts: the largest number is no measurement. */
#define COUNT(TYPE, NAME, NONE)                                                         \
	static uint32_t count_##NAME(const TYPE *pixel, uint32_t count, TYPE threshold) \
	{                                                                               \
		uint32_t n = 0;                                                         \
                                                                                        \
		for (uint32_t i = 0; i < count; i++)                                    \
			n += (pixel[i] >= threshold) & (pixel[i] != (NONE));            \
		return n;                                                               \
	}

COUNT(uint8_t, u8, UINT8_MAX)
COUNT(uint16_t, u16, UINT16_MAX)
COUNT(uint32_t, u32, UINT32_MAX)

static uint32_t count_bright(const struct sl_veto *v, const void *pixels, uint32_t count)
{
	switch (v->dtype) {
	case SL_U8:
		return count_u8(pixels, count, (uint8_t)v->threshold);
	case SL_U16:
		return count_u16(pixels, count, (uint16_t)v->threshold);
	case SL_U32:
		return count_u32(pixels, count, v->threshold);
	case SL_I16:
		return count_i16(pixels, count, (int16_t)v->threshold);
	default:
		return count_f32(pixels, count, v->threshold_f32);
	}
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	const struct sl_veto *v = state;
	struct count *count = scratch;

	for (uint32_t f = 0; f < batch->frames; f++) {
		if (batch->frame[f]->flags & SL_FRAME_DARK)
			continue; /* has no image */
		count[f].pixels += count_bright(v, tile->in[f], tile->count);
	}
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	const struct sl_veto *v = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];
		uint64_t pixels = 0;

		if (frame->flags & SL_FRAME_DARK)
			continue;
		for (unsigned w = 0; w < workers; w++)
			pixels += ((const struct count *)scratch[w])[f].pixels;
		sl_frame_decide(frame, pixels >= v->min_pixels, (float)pixels,
				SL_REASON_BRIGHT_PIXELS);
	}
}

const struct sl_stage sl_stage_veto = {
	.name = "veto",
	.doc = "keep frames with enough bright pixels",
	.state_bytes = sizeof(struct sl_veto),
	.options = options,
	.input = "image",
	.gpu = &sl_gpu_veto,
	.open = open_veto,
	.close = close_veto,
	.tile = tile,
	.finish = finish,
};
