/* correct.c - raw pixels of an adaptive-gain detector become photons or keV.
 *
 *   raw = gain code << 14 | ADU          code 0 is G0, 1 is G1, 3 is G2; 2 does not exist
 *   result = (ADU - pedestal[gain]) * factor[gain]       in float, two roundings
 *   factor = 1 / (gain * photon energy) for photons, 1 / gain for keV: rounded once, in open()
 *
 * photons_i16 rounds half away from zero and clamps to -32767..32766. What is no measurement:
 *   overload (raw 0xc000)                              32767       +infinity in kev_f32
 *   bad: raw 0xffff or 0x4000, code 2, a gain of 0,   -32768       NaN
 *        a pedestal above 16383, no pedestal, masked by the calibration
 *
 * Pedestals of G1 and G2 are the calibration's. That of G0 is the calibration's until the first
 * dark frame; from then on it is the mean S / n of the pixel's own dark samples, kept in float:
 *   the first N = `darks` samples:   S += ADU, n += 1          exact: N * 16383 < 2^24
 *   later ones:                      S += ADU - S / N          a running mean over about N
 * Samples in another gain than G0 are counted and left out; a pixel that has only such is bad. A
 * bright frame sees exactly the dark frames before it in sequence, whatever the batches.
 *
 * Where the detector has storage cells each has pedestals of its own, and a module's record says
 * which it was in. A record that names a cell that there is not makes bad pixels, or no samples.
 *
 * Dark frames get no image; their verdict is "no", with the reason. Bright frames that came before
 * any dark one (of their cell) keep their verdict and get the reason no_pedestal.
 *
 * Cost: a pixel in G0 is vector code that reads 8 bytes of tables per batch; the few in other gains
 * are put right one by one. 24 bytes of memory per pixel, and 12 for every storage cell but the
 * first. */
#include "stage/correct.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "maths/correct.h"
#include "stage/vectors.h"

enum { ADU_MASK = SL_RAW_ADU, GAIN_BITS = SL_RAW_GAIN };
enum { PHOTONS_I16 = SL_CORRECT_PHOTONS_I16, KEV_F32 = SL_CORRECT_KEV_F32 };

/* Pixels at a time: looked through for other gains once, so small; still many vectors. */
enum { BLOCK = 64 };

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_correct, output, photons_i16, "photons_i16|kev_f32",
		  "what a pixel becomes: whole photons or keV"),
	SL_U32(struct sl_correct, darks, 128, 1, 1024, "frames",
	       "dark frames that a pedestal is the mean of; a running mean after as many"),
	SL_VECTORS_OPTION(struct sl_correct), SL_OPTION_END};

/* What follows down to work() is written without branches where compilers would make vectors of it,
 * and inlined into one function per instruction set. No result depends on which. */
/* A run of pixels: where it begins in the tables, [modules][pixels] and with the cell. */
struct place {
	uint64_t at, in_cell;
	uint32_t cell;
};

/* The value where the mask is -1, 0 where it is 0. */
SL_FORCE_INLINE float only(float value, int32_t mask)
{
	int32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits &= mask;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* One dark frame's samples of `count` pixels, the first of which is `at`. good, more and room are
 * masks: -1 when a difference is negative, else 0. */
SL_FORCE_INLINE void learn(struct sl_correct *c, uint64_t at, uint32_t count,
			   const uint16_t *restrict raw)
{
	float *restrict sum = c->sum + at, *restrict pedestal = c->pedestal_0 + at;
	uint16_t *restrict samples = c->samples + at, *restrict wrong = c->wrong + at;
	const float window = (float)c->darks;
	const int32_t full = (int32_t)c->darks;

	for (uint32_t i = 0; i < count; i++) {
		int32_t good = ((raw[i] & GAIN_BITS) - 1) >> 31, more = (samples[i] - full) >> 31;
		int32_t room = (wrong[i] - UINT16_MAX) >> 31;
		float adu = (float)(raw[i] & ADU_MASK);

		sum[i] += only(adu - only(sum[i] / window, ~more), good);
		samples[i] = (uint16_t)(samples[i] - (good & more));
		wrong[i] = (uint16_t)(wrong[i] - (~good & room));
		pedestal[i] = sum[i] / (float)samples[i]; /* 0 / 0 is NaN: bad */
	}
}

/* A pixel in any gain: NaN is bad, infinity an overload. */
SL_FORCE_INLINE float any_gain(const struct sl_correct *c, const struct place *p, uint32_t i,
			       uint16_t raw)
{
	int kind = sl_raw_kind(raw);

	if (kind == SL_RAW_IS_OVERLOAD)
		return INFINITY;
	if (kind == SL_RAW_IS_BAD)
		return NAN;
	return sl_raw_energy(raw, c->pedestal[kind][p->cell * c->cell_pixels[kind] + p->at + i],
			     c->factor[kind][p->at + i]);
}

/* All pixels as if in G0, then those that are not once more. */
SL_FORCE_INLINE void photons_block(const struct sl_correct *c, const struct place *p,
				   uint32_t first, uint32_t count, const uint16_t *restrict raw,
				   int16_t *restrict out)
{
	const float *restrict pedestal = c->pedestal_0 + p->in_cell + first;
	const float *restrict factor = c->factor[0] + p->at + first;
	uint16_t bits = 0;

	for (uint32_t i = 0; i < count; i++) {
		bits |= raw[i];
		out[i] = sl_to_photons(((float)raw[i] - pedestal[i]) * factor[i]);
	}
	for (uint32_t i = 0; (bits & GAIN_BITS) && i < count; i++)
		if (raw[i] & GAIN_BITS)
			out[i] = raw[i] == SL_RAW_OVERLOAD
					 ? SL_PHOTONS_OVERLOAD
					 : sl_to_photons(any_gain(c, p, first + i, raw[i]));
}

SL_FORCE_INLINE void kev_block(const struct sl_correct *c, const struct place *p, uint32_t first,
			       uint32_t count, const uint16_t *restrict raw, float *restrict out)
{
	const float *restrict pedestal = c->pedestal_0 + p->in_cell + first;
	const float *restrict factor = c->factor[0] + p->at + first;
	uint16_t bits = 0;

	for (uint32_t i = 0; i < count; i++) {
		bits |= raw[i];
		out[i] = ((float)raw[i] - pedestal[i]) * factor[i];
	}
	for (uint32_t i = 0; (bits & GAIN_BITS) && i < count; i++)
		if (raw[i] & GAIN_BITS)
			out[i] = any_gain(c, p, first + i, raw[i]);
}

/* Whole blocks have a length that the compiler knows; the rest of the tile does not. */
SL_FORCE_INLINE void image(const struct sl_correct *c, const struct place *p, uint32_t count,
			   const uint16_t *raw, void *out)
{
	uint32_t whole = c->output == PHOTONS_I16 ? count / BLOCK * BLOCK : 0;

	for (uint32_t i = 0; i < whole; i += BLOCK)
		photons_block(c, p, i, BLOCK, raw + i, (int16_t *)out + i);
	if (c->output == PHOTONS_I16)
		photons_block(c, p, whole, count - whole, raw + whole, (int16_t *)out + whole);
	for (uint32_t i = 0; c->output == KEV_F32 && i < count; i += BLOCK)
		kev_block(c, p, i, count - i < BLOCK ? count - i : BLOCK, raw + i,
			  (float *)out + i);
}

static void no_image(const struct sl_correct *c, uint32_t count, void *out)
{
	for (uint32_t i = 0; i < count; i++)
		if (c->output == PHOTONS_I16)
			((int16_t *)out)[i] = INT16_MIN;
		else
			((float *)out)[i] = NAN;
}

/* What the source says; it may be more than there are. */
SL_FORCE_INLINE uint32_t cell_of(const struct sl_correct *c, const struct sl_frame *frame,
				 uint32_t module)
{
	return c->cells == 1 ? 0 : frame->view[module].record.cell;
}

SL_FORCE_INLINE void work(struct sl_correct *c, const struct sl_batch *batch,
			  const struct sl_tile *tile)
{
	struct place p = {.at = tile->module * c->module_pixels + tile->first};

	for (uint32_t f = 0; f < batch->frames; f++) {
		const struct sl_frame *frame = batch->frame[f];
		bool dark = frame->flags & SL_FRAME_DARK;

		p.cell = cell_of(c, frame, tile->module);
		p.in_cell = p.at + p.cell * c->pixels;
		if (dark) {
			/* The fill of a missing module is no sample; as an image it is bad pixels.
			 */
			if (p.cell < c->cells && !sl_frame_misses(frame, tile->module))
				learn(c, p.in_cell, tile->count, tile->in[f]);
		} else if (p.cell < c->cells) {
			image(c, &p, tile->count, tile->in[f], tile->out[f]);
		} else {
			no_image(c, tile->count, tile->out[f]);
		}
	}
}

SL_VECTORS(work, (struct sl_correct * c, const struct sl_batch *batch, const struct sl_tile *tile),
	   (c, batch, tile))

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	struct sl_correct *c = state;

	c->work(c, batch, tile);
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	struct sl_correct *c = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];
		bool dark = frame->flags & SL_FRAME_DARK;
		uint32_t cell = 1u << (cell_of(c, frame, 0) & 31);

		c->dark_seen |= dark ? cell : 0;
		for (uint32_t i = 0; i < frame->items; i++) {
			struct sl_verdict *verdict = &frame->verdict[i];

			if (dark) {
				verdict->keep = 0;
				verdict->score = 0;
				verdict->reason = SL_REASON_DARK;
			} else if (!(c->dark_seen & cell)) {
				verdict->reason = SL_REASON_NO_PEDESTAL;
			}
		}
	}
}

static int open_correct(void *state, const struct sl_env *env, const struct sl_shape *in,
			struct sl_stage_terms *terms)
{
	struct sl_correct *c = state;
	int err = sl_correct_open(c, env, in);

	if (err)
		return err;
	c->work = SL_VECTORS_PICK(work, sl_vectors_choose(c->vectors));
	terms->outputs = 1;
	terms->output[0] = *in;
	strcpy(terms->output[0].name, "image");
	terms->output[0].dtype = c->output == PHOTONS_I16 ? SL_I16 : SL_F32;
	return 0;
}

static void close_correct(void *state)
{
	struct sl_correct *c = state;
	uint64_t pixels = 0, samples = 0;

	if (!c->memory.base)
		return;
	for (uint64_t i = 0; i < c->pixels * c->cells; i++) {
		pixels += c->wrong[i] > 0;
		samples += c->wrong[i];
	}
	if (pixels)
		sl_debug("correct: left out %llu dark samples of %llu pixels that were not in G0",
			 (unsigned long long)samples, (unsigned long long)pixels);
	sl_region_close(&c->memory);
}

const struct sl_stage sl_stage_correct = {
	.name = "correct",
	.doc = "pedestal and gain correction; measures the pedestal from dark frames",
	.state_bytes = sizeof(struct sl_correct),
	.options = options,
	.input = "raw",
	.open = open_correct,
	.close = close_correct,
	.tile = tile,
	.finish = finish,
};
