/* correct.c - raw pixels of an adaptive-gain detector become photons or keV.
 *
 *   raw = gain code << 14 | ADU          code 0 is G0, 1 is G1, 3 is G2; 2 does not exist
 *   result = (ADU - pedestal[gain]) * factor[gain]       in float, two roundings
 *   factor = 1 / (gain * photon energy) for photons, 1 / gain for keV: rounded once, in open()
 *
 * photons_i16 rounds half away from zero and clamps to -32767..32766. What is no measurement:
 *   overload (raw 0xc000)                              32767       +infinity in kev_f32
 *   bad: raw 0xffff or 0x4000, code 2, a gain of 0,   -32768       NaN
 *        a pedestal above 16383, no pedestal; masked by the calibration, whatever it says
 *
 * Pedestals of G1 and G2 are the calibration's. That of G0 is the calibration's until the first
 * dark frame; from then on it is the mean S / n of the pixel's own dark samples, kept in float:
 *   the first N = `darks` samples:   S += ADU, n += 1          exact: N * 16383 < 2^24
 *   later ones:                      S += ADU - S / N          a running mean over about N
 * Samples in another gain than G0 are counted and left out; a pixel that has only such is bad. The
 * same way, around the mean, the squares are summed, which gives the noise (RMS): a pixel with more
 * than `noise_max` in at least 32 samples (or `darks`) is bad while that is so. A bright frame sees
 * exactly the dark frames before it in sequence, whatever the batches.
 *
 * Where the detector has storage cells each has pedestals of its own, and a module's record says
 * which it was in. A record that names a cell that there is not makes bad pixels, or no samples.
 *
 * Dark frames get no image; their verdict is "no", with the reason. Bright frames that came before
 * any dark one (of their cell) keep their verdict and get the reason no_pedestal.
 *
 * Cost: a pixel in G0 is a few vector instructions, and 8 bytes of tables for four frames; the few
 * in other gains are put right one by one. 20 bytes of memory per pixel, and 16 for every storage
 * cell; 16 more where the calibration has cells, too. */
#include "stage/correct/correct.h"

#include <math.h>
#include <string.h>

#include "base/log.h"

enum { PHOTONS_I16 = SL_CORRECT_PHOTONS_I16, KEV_F32 = SL_CORRECT_KEV_F32 };

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_correct, output, photons_i16, "photons_i16|kev_f32|photons_f32",
		  "what a pixel becomes: whole photons, keV, or photons with fractions"),
	SL_U32(struct sl_correct, darks, 128, 1, 1024, "frames",
	       "dark frames that a pedestal is the mean of; a running mean after as many"),
	SL_F64(struct sl_correct, noise_max, 0, 0, 16383, "ADU",
	       "a pixel is bad while the RMS of its dark samples is larger; 0: however noisy"),
	SL_VECTORS_OPTION(struct sl_correct), SL_OPTION_END};

static void no_image(const struct sl_correct *c, uint32_t count, void *out)
{
	for (uint32_t i = 0; i < count; i++)
		if (c->output == PHOTONS_I16)
			((int16_t *)out)[i] = INT16_MIN;
		else
			((float *)out)[i] = NAN;
}

/* What the source says; it may be more than there are. */
static uint32_t cell_of(const struct sl_correct *c, const struct sl_frame *frame, uint32_t module)
{
	return c->cells == 1 ? 0 : frame->view[module].record.cell;
}

enum { CACHE_LINE = 64 };

/* The same pixels of a later frame; behind the last frame, those that follow in memory. They may
 * lie outside the frame: they are only prefetched. */
static const uint16_t *comes_next(const struct sl_batch *batch, const struct sl_tile *tile,
				  uint32_t f)
{
	return f < batch->frames ? tile->in[f]
				 : (const uint16_t *)tile->in[f - batch->frames] + tile->count;
}

/* Frames from f on that go through the tables together: bright ones, in the same cell. */
static void gather(const struct sl_correct *c, const struct sl_batch *batch,
		   const struct sl_tile *tile, uint32_t f, uint32_t cell,
		   struct sl_correct_group *group)
{
	group->frames = 0;
	group->stream = tile->stream;
	while (group->frames < SL_CORRECT_GROUP && f < batch->frames &&
	       !(batch->frame[f]->flags & SL_FRAME_DARK) &&
	       cell_of(c, batch->frame[f], tile->module) == cell) {
		group->raw[group->frames] = tile->in[f];
		group->out[group->frames] = tile->out[f];
		group->stream &= (uintptr_t)tile->out[f] % CACHE_LINE == 0;
		group->frames++;
		f++;
	}
	for (uint32_t i = 0; i < group->frames; i++)
		group->next[i] = comes_next(batch, tile, f + i);
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	struct sl_correct *c = state;
	struct sl_correct_place p = {.at = tile->module * c->module_pixels + tile->first};
	struct sl_correct_group group;
	uint32_t cached = c->cells; /* the cell whose tables have been read; at first none */

	for (uint32_t f = 0; f < batch->frames; f += group.frames) {
		const struct sl_frame *frame = batch->frame[f];

		p.cell = cell_of(c, frame, tile->module);
		p.in_cell = p.at + p.cell * c->pixels;
		group.frames = 1;
		if (frame->flags & SL_FRAME_DARK) {
			/* The fill of a missing module is no sample; as an image it is bad pixels.
			 */
			if (p.cell < c->cells && !sl_frame_misses(frame, tile->module))
				c->learn(c, p.in_cell, tile->count, tile->in[f]);
		} else if (p.cell < c->cells) {
			gather(c, batch, tile, f, p.cell, &group);
			group.cold = p.cell != cached;
			cached = p.cell;
			c->image(c, &p, tile->count, &group);
		} else {
			no_image(c, tile->count, tile->out[f]);
		}
	}
}

void sl_correct_judge(const struct sl_correct *c, struct sl_batch *batch, uint32_t *dark_seen)
{
	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];
		bool dark = frame->flags & SL_FRAME_DARK;
		uint32_t there = frame->missing ? (uint32_t)__builtin_ctzll(~frame->missing) : 0;
		uint32_t cell = 1u << (cell_of(c, frame, there % frame->views) & 31);

		*dark_seen |= dark ? cell : 0;
		for (uint32_t i = 0; i < frame->items; i++) {
			struct sl_verdict *verdict = &frame->verdict[i];

			if (dark) {
				verdict->keep = 0;
				verdict->score = 0;
				verdict->reason = SL_REASON_DARK;
			} else if (!(*dark_seen & cell)) {
				verdict->reason = SL_REASON_NO_PEDESTAL;
			}
		}
	}
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	struct sl_correct *c = state;

	sl_correct_judge(c, batch, &c->dark_seen);
}

static int open_correct(void *state, const struct sl_env *env, const struct sl_shape *in,
			struct sl_stage_terms *terms)
{
	struct sl_correct *c = state;
	int err = sl_correct_open(c, env, in);

	if (err)
		return err;
	c->learn = sl_correct_choose_learn(sl_vectors_choose(c->vectors));
	c->image = sl_correct_choose_image(c->output, sl_vectors_choose(c->vectors));
	terms->outputs = 1;
	terms->output[0] = *in;
	strcpy(terms->output[0].name, "image");
	terms->output[0].image = 1;
	terms->output[0].dtype = c->output == PHOTONS_I16 ? SL_I16 : SL_F32;
	terms->output[0].photons = c->output != KEV_F32;
	return 0;
}

/* What the dark frames of a run showed. */
static void log_darks(const struct sl_correct *c)
{
	uint64_t pixels = 0, samples = 0, noisy = 0;

	for (uint64_t i = 0; i < c->pixels * c->cells; i++) {
		pixels += c->wrong[i] > 0;
		samples += c->wrong[i];
		noisy += sl_correct_is_noisy(c, i);
	}
	if (pixels)
		sl_debug("correct: left out %llu dark samples of %llu pixels that were not in G0",
			 (unsigned long long)samples, (unsigned long long)pixels);
	if (noisy)
		sl_info("correct: %llu pixels were bad at the end, with more noise than %g ADU",
			(unsigned long long)noisy, c->noise_max);
}

static void close_correct(void *state)
{
	struct sl_correct *c = state;

	if (!c->memory.base)
		return;
	log_darks(c);
	sl_region_close(&c->memory);
}

static int again(void *state)
{
	struct sl_correct *c = state;

	log_darks(c);
	sl_correct_forget(c);
	return 0;
}

const struct sl_stage sl_stage_correct = {
	.name = "correct",
	.doc = "pedestal and gain correction; measures the pedestal from dark frames",
	.state_bytes = sizeof(struct sl_correct),
	.options = options,
	.input = "raw",
	.ordered = SL_ORDER_PARTS,
	.gpu = &sl_gpu_correct,
	.open = open_correct,
	.close = close_correct,
	.tile = tile,
	.finish = finish,
	.again = again,
};
