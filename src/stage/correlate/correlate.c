/* correlate.c - photon correlation: g2(region, lag) of pixels by a multi-tau scheme.
 *
 * Level 0 pairs frames that are 0 to C - 1 frames apart; level l sums of 2^l frames, C / 2 to C - 1
 * of these sums apart. The result of the run is a constant (g2, its numerator and its two means,
 * and the number of pairs); with `every`, frames whose number, plus 1, is a multiple of it carry g2
 * of all frames so far, too.
 *
 * Every frame counts that is complete and not dark, whatever verdict a stage gives. Time is the
 * frame number: what did not come leaves a gap, over which nothing is shifted. A pixel that is no
 * measurement in a frame (bad, overload, missing module) makes no pair with it.
 *
 * Cost: levels * channels * 4 bytes of history for each pixel; about 1.5 * channels products for
 * each pixel and frame (level.c).
 * Threads: a tile has the history of its pixels; each worker adds into its own scratch, and
 * finish() brings the sums together. */
#include "stage/correlate/correlate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "calibration/field.h"
#include "stage/rays.h"
#include "stage/vectors.h"

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_correlate, regions, image, "image|rings|labels|pixels",
		  "what has a g2 of its own: the image, rings about the beam, pixels of the same "
		  "label, each pixel"),
	SL_U32(struct sl_correlate, rings, 10, 1, 10000, "rings", "with regions: rings"),
	SL_CHOICE(
		struct sl_correlate, unit, q_nm, "q_nm|tth_deg|r_mm|r_pixels",
		"what rings are equally wide in: q in 1/nm, 2 theta in degrees, the distance from "
		"the beam in mm or pixels"),
	SL_F64(struct sl_correlate, low, 0, 0, 1e6, "", "where the first ring begins"),
	SL_F64(struct sl_correlate, high, 0, 0, 1e6, "",
	       "where the last one ends; 0: at the farthest pixel"),
	SL_STRING(struct sl_correlate, labels, "",
		  "with regions: labels, an image of whole numbers, 0 for pixels in no region: "
		  "HDF5, npy, TIFF or EDF"),
	SL_U32(struct sl_correlate, levels, 8, 1, SL_CORRELATE_LEVELS, "levels",
	       "of the multi-tau scheme; each reaches twice as far as the one before"),
	SL_U32(struct sl_correlate, channels, 16, 8, SL_CORRELATE_CHANNELS, "channels",
	       "of a level, a multiple of 8; all levels but the first have the upper half"),
	SL_U64(struct sl_correlate, every, 0, 0, 1e12, "frames",
	       "frames with a number that, plus 1, is a multiple of it carry g2 of all frames so "
	       "far; 0: none does"),
	SL_F64(struct sl_correlate, period_us, 0, 0, 1e12, "us",
	       "from one frame number to the next, for the axis; 0: by the detector's frame rate"),
	SL_VECTORS_OPTION(struct sl_correlate),
	SL_OPTION_END};

/* Of one worker, for all frames of a batch. */
#define SCRATCH_MOST (UINT64_C(1) << 29)
#define TOTAL_MOST   (UINT64_C(1) << 33)

/* ---- open ---- */

static int check(const struct sl_correlate *s)
{
	if (s->dtype == SL_I32) {
		sl_error("correlate reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not int32");
		return -EINVAL;
	}
	if (s->channels % 8) {
		sl_error("correlate: channels: %u is no multiple of 8", s->channels);
		return -EINVAL;
	}
	if (s->every && s->regions == SL_CORRELATE_PIXELS) {
		sl_error("correlate: with regions: pixels frames carry no g2: set every to 0, or "
			 "use labels");
		return -EINVAL;
	}
	return 0;
}

static int check_size(const struct sl_correlate *s, const struct sl_env *env)
{
	uint64_t sums = (uint64_t)s->count * s->lags * sizeof(struct sl_correlate_sum);

	if (sl_correlate_sums_bytes(s) * (uint64_t)env->batch_frames <= SCRATCH_MOST &&
	    sums <= TOTAL_MOST)
		return 0;
	sl_error(
		"correlate: %u regions and %u lags take %llu MB of sums for each worker, more than "
		"%llu: use fewer regions, levels or channels, or smaller batches (unit.batch)",
		s->count, s->lags,
		(unsigned long long)(sums * (sl_correlate_sums_bytes(s) ? env->batch_frames : 1) >>
				     20),
		(unsigned long long)((sl_correlate_sums_bytes(s) ? SCRATCH_MOST : TOTAL_MOST) >>
				     20));
	return -EINVAL;
}

static int open_memory(struct sl_correlate *s)
{
	uint64_t history = (uint64_t)s->levels * s->channels * s->pixels * sizeof(*s->history);
	uint64_t next = s->pixels * sizeof(*s->next), n = (uint64_t)s->count * s->lags;
	uint64_t bytes = (history + 63) / 64 * 64 + next + n * (sizeof(*s->total) + 5 * 8);
	char *at;
	int err = sl_region_open(SL_REGION_HOST, bytes, &s->memory);

	if (err) {
		sl_error("correlate: no memory for %llu MB: levels * channels * 4 bytes for each "
			 "pixel, and 80 for each region and lag",
			 (unsigned long long)(bytes >> 20));
		return err;
	}
	at = s->memory.base;
	s->history = (void *)at;
	s->next = (void *)(at += (history + 63) / 64 * 64);
	s->total = (void *)(at += next);
	s->g2 = (void *)(at += n * sizeof(*s->total));
	s->numerator = s->g2 + n;
	s->left = s->numerator + n;
	s->right = s->left + n;
	s->pairs = (void *)(s->right + n);
	return 0;
}

static double period_s(const struct sl_correlate *s, const struct sl_env *env)
{
	if (s->period_us > 0)
		return s->period_us * 1e-6;
	return env->frame_rate_Hz > 0 ? 1 / env->frame_rate_Hz : 0;
}

static int make_axes(struct sl_correlate *s, const struct sl_env *env)
{
	double period = period_s(s, env);
	uint32_t n = 0;

	s->tau = calloc(s->lags, sizeof(*s->tau));
	s->lag = calloc(s->lags, sizeof(*s->lag));
	if (!s->tau || !s->lag) {
		sl_error("correlate: no memory for axes");
		return -ENOMEM;
	}
	for (uint32_t l = 0; l < s->levels; l++)
		for (uint32_t c = sl_correlate_first_channel(s, l); c < s->channels; c++, n++) {
			s->lag[n] = c << l;
			s->tau[n] = (double)s->lag[n] * (period > 0 ? period : 1);
		}
	return 0;
}

/* ---- what it adds ---- */

static struct sl_constant constant_of(const char *name, const char *doc, enum sl_dtype dtype,
				      uint32_t rows, uint32_t columns, const void *data)
{
	struct sl_constant c = {.shape = {.dtype = dtype,
					  .rank = rows ? 2 : 1,
					  .dim = {rows ? rows : columns, rows ? columns : 0},
					  .doc = doc},
				.data = data};

	snprintf(c.shape.name, sizeof(c.shape.name), "correlation_%s", name);
	c.at_end = rows > 0;
	return c;
}

static void declare(struct sl_correlate *s, const struct sl_env *env, struct sl_stage_terms *terms)
{
	static const char *const ring_names[] = {"q", "two_theta", "radius", "radius"};
	static const char *const ring_docs[] = {"q (1/nm)", "2 theta (degrees)", "radius (mm)",
						"radius (pixels)"};
	bool rings = s->regions == SL_CORRELATE_RINGS;
	struct sl_constant *c = terms->constant;
	uint32_t n = s->count, lags = s->lags;

	*c++ = constant_of("tau", period_s(s, env) > 0 ? "lag (s)" : "lag (frames)", SL_F64, 0,
			   lags, s->tau);
	*c++ = constant_of(rings ? ring_names[s->unit] : "region",
			   rings			       ? ring_docs[s->unit]
			   : s->regions == SL_CORRELATE_LABELS ? "label"
			   : s->regions == SL_CORRELATE_PIXELS ? "pixel, of all modules"
							       : "the image",
			   SL_F64, 0, n, s->axis);
	*c++ = constant_of("lag", "lag (frames)", SL_U32, 0, lags, s->lag);
	*c++ = constant_of("pixels", "pixels of each region", SL_U32, 0, n, s->number);
	*c++ = constant_of("g2", "g2: region, lag", SL_F64, n, lags, s->g2);
	*c++ = constant_of("numerator", "mean of the products of all pairs", SL_F64, n, lags,
			   s->numerator);
	*c++ = constant_of("left", "mean of the earlier samples of all pairs", SL_F64, n, lags,
			   s->left);
	*c++ = constant_of("right", "mean of the later samples of all pairs", SL_F64, n, lags,
			   s->right);
	*c++ = constant_of("pairs", "pairs, of pixels and samples", SL_I64, n, lags, s->pairs);
	terms->constants = (uint32_t)(c - terms->constant);
	if (s->every) {
		terms->output[0] = (struct sl_shape){.name = "correlation",
						     .doc = "g2 of all frames so far: region, lag",
						     .dtype = SL_F64,
						     .rank = 3,
						     .dim = {1, n, lags},
						     .ragged = 1};
		terms->outputs = 1;
	}
}

static int open_correlate(void *state, const struct sl_env *env, const struct sl_shape *in,
			  struct sl_stage_terms *terms)
{
	struct sl_correlate *s = state;
	int err;

	s->dtype = in->dtype;
	s->modules = env->geometry->modules;
	s->module_pixels = sl_geometry_pixels(env->geometry);
	s->pixels = s->modules * s->module_pixels;
	s->input = terms->input;
	s->result = terms->result;
	s->lags = s->channels + (s->levels - 1) * (s->channels / 2);
	s->limit = SL_CORRELATE_MOST >> (s->levels - 1);
	err = check(s);
	if (!err)
		err = sl_correlate_regions_open(s, env);
	if (!err)
		err = check_size(s, env);
	if (!err)
		err = open_memory(s);
	if (!err)
		err = make_axes(s, env);
	if (err)
		return err;
	sl_correlate_choose(s);
	declare(s, env, terms);
	terms->stale_bytes = sl_correlate_work_bytes();
	terms->scratch_bytes = s->scratch_bytes =
		(sl_correlate_sums_bytes(s) + terms->stale_bytes + 63) / 64 * 64;
	terms->stale_bytes = terms->scratch_bytes - sl_correlate_sums_bytes(s);
	return 0;
}

static void close_correlate(void *state)
{
	struct sl_correlate *s = state;

	free(s->region);
	free(s->number);
	free(s->axis);
	free(s->tau);
	free(s->lag);
	s->region = s->number = s->lag = NULL;
	s->axis = s->tau = NULL;
	if (s->memory.base)
		sl_region_close(&s->memory);
	s->memory.base = NULL;
}

static int again(void *state)
{
	struct sl_correlate *s = state;

	memset(s->next, 0, s->pixels * sizeof(*s->next));
	memset(s->total, 0, (size_t)s->count * s->lags * sizeof(*s->total));
	s->frames = s->skipped = s->restarts = s->rows = s->expected = 0;
	return 0;
}

/* ---- batches ---- */

void sl_correlate_note(struct sl_correlate *s, const struct sl_frame *frame)
{
	if (s->expected && frame->number < s->expected)
		s->restarts++;
	else if (s->expected)
		s->skipped += frame->number - s->expected;
	s->expected = frame->number + 1;
	s->frames += !(frame->flags & SL_FRAME_DARK);
	s->rows += sl_correlate_is_due(s, frame);
}

static void take_sums(struct sl_correlate *s, void *const *scratch, unsigned workers, uint32_t part)
{
	uint64_t n = sl_correlate_sums_bytes(s) / sizeof(*s->total);

	for (unsigned w = 0; w < workers && n; w++) {
		const struct sl_correlate_sum *sum =
			(const void *)((const char *)scratch[w] + part * s->scratch_bytes);

		for (uint64_t i = 0; i < n; i++)
			sl_correlate_add(&s->total[i], &sum[i]);
	}
}

static void publish(const struct sl_correlate *s, struct sl_array *result)
{
	double *g2 = result->host;

	for (uint64_t i = 0; i < (uint64_t)s->count * s->lags; i++)
		g2[i] = sl_correlate_g2(&s->total[i]);
	result->rows = 1;
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	struct sl_correlate *s = state;
	uint32_t part = 0;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];

		sl_correlate_note(s, frame);
		if (s->every)
			frame->result[s->result].rows = 0;
		if (!sl_correlate_is_due(s, frame))
			continue;
		take_sums(s, scratch, workers, part++);
		publish(s, &frame->result[s->result]);
	}
	if (part < batch->frames)
		take_sums(s, scratch, workers, part);
}

static void conclude(void *state)
{
	sl_correlate_conclude(state);
}

static void figures(const void *state, sl_stage_figure *figure, void *arg)
{
	const struct sl_correlate *s = state;

	figure(arg, "correlated_frames", s->frames, 0);
	figure(arg, "correlate_frames_absent", s->skipped, 0);
	figure(arg, "correlate_time_restarts", s->restarts, 0);
	figure(arg, "correlate_rows", s->rows, 0);
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct sl_correlate *s = state;
	char path[SL_CORRELATE_TEXT];

	sl_field_path(s->labels, path, sizeof(path));
	each(arg, SL_FILE_READ, path);
}

const struct sl_stage sl_stage_correlate = {
	.name = "correlate",
	.doc = "photon correlation (XPCS): g2 of the image, of rings, labels or pixels over lags "
	       "from one frame to minutes",
	.state_bytes = sizeof(struct sl_correlate),
	.options = options,
	.input = "image",
	.ordered = SL_ORDER_PARTS,
	.gpu = &sl_gpu_correlate,
	.open = open_correlate,
	.close = close_correlate,
	.tile = sl_correlate_tile,
	.finish = finish,
	.files = files,
	.again = again,
	.conclude = conclude,
	.figures = figures,
};
