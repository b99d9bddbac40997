/* spots.c - spots of pixels that stand out from those around them; a frame with enough is kept.
 *
 *   pixel    strong: it has at least `threshold` photons, and is more than `sigmas` standard
 *            deviations above the mean of the box of 2 `box` + 1 pixels a side around it, without
 *            itself (stage/spots/maths.h)
 *   spot     strong pixels that touch, also at corners: min_pixels to max_pixels of them
 *
 * Needs no beam and no geometry: it is the one to take where these are not known, or where the
 * background is not round. Modules are looked at one by one: boxes and spots end where they do.
 * Masked and bad pixels and overloads are not there.
 *
 * Adds "spots", float32 [rows][8]: module, row, column, intensity, strength, pixels, maximum,
 * background. The position is the centroid, (0.5, 0.5) the middle of a module's first pixel;
 * intensity the sum of its pixels; strength and background those of the box around the brightest
 * one: deviations above the mean, and the mean. "spots_found", uint32 [1], says how many there
 * were, also when max_spots are fewer. Spots come in the order of modules and of their first rows.
 * The score is their number.
 *
 * Results are the same with all vectors, bit for bit.
 *
 * Cost: a pass over the image, then what pixels over the threshold cost (find.c). */
#include <errno.h>
#include <math.h>

#include <sluice/stage.h>

#include "base/log.h"
#include "stage/pixels.h"
#include "stage/spots/maths.h"
#include "stage/spots/spots.h"
#include "stage/unfit.h"
#include "stage/vectors.h"
#include "stage/whole.h"
#include "stage/workspace.h"

enum { COLUMNS = 8 };

static const struct sl_option options[] = {
	SL_F64(struct sl_spots, threshold, 5, 0.001, 1000000, "photons",
	       "pixels with less belong to no spot; counts, where the detector counts"),
	SL_F64(struct sl_spots, sigmas, 4, 0, 1000, "",
	       "standard deviations that a pixel is above the mean of its box, at least"),
	SL_U32(struct sl_spots, box, 9, 1, 15, "pixels",
	       "the box reaches as far from the pixel, to all sides"),
	SL_U32(struct sl_spots, min_pixels, 2, 1, 65536, "pixels", "of a spot, at least"),
	SL_U32(struct sl_spots, max_pixels, 200, 1, 65536, "pixels", "of a spot, at most"),
	SL_BOOL(struct sl_spots, wide, false,
		"look at the wide pixels at the edges of ASICs, too, which seem brighter"),
	SL_U32(struct sl_spots, min_spots, 10, 0, 1000000, "spots",
	       "keep the frame when there are at least as many; 0: spots decide nothing"),
	SL_U32(struct sl_spots, max_spots, 1024, 1, 65536, "spots",
	       "room for as many in the result; all are counted"),
	SL_CHOICE(struct sl_spots, look, kept, "kept|all",
		  "at frames that no stage before it rejected, or at all"),
	SL_VECTORS_OPTION(struct sl_spots),
	SL_OPTION_END};

static int check(const struct sl_spots *s, const struct sl_env *env, const struct sl_shape *in)
{
	if (in->dtype == SL_I32) {
		sl_error("spots reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	if (!(sl_shape_photon(in, env->geometry->photon_energy_keV) > 0)) {
		sl_error("spots: a threshold in photons needs a photon energy; detector '%s' has "
			 "none",
			 env->geometry->detector);
		return -EINVAL;
	}
	if (s->min_pixels > s->max_pixels) {
		sl_error("spots: min_pixels %u is more than max_pixels %u", s->min_pixels,
			 s->max_pixels);
		return -EINVAL;
	}
	if (env->geometry->modules * sl_geometry_pixels(env->geometry) > UINT32_MAX) {
		sl_error("spots: the image is too large");
		return -EINVAL;
	}
	return 0;
}

static int make_mask(struct sl_spots *s, const struct sl_env *env)
{
	struct sl_geometry g = *env->geometry;
	uint64_t pixels = g.modules * sl_geometry_pixels(&g);
	int err = sl_region_open(SL_REGION_HOST, pixels, &s->memory);
	uint8_t *mask = s->memory.base;
	uint64_t unfit = 0;

	if (err) {
		sl_error("spots: no memory for a mask of %llu pixels", (unsigned long long)pixels);
		return err;
	}
	sl_layout_resolve(env->geometry, &g.layout);
	for (uint64_t i = 0; i < pixels; i++) {
		mask[i] = sl_is_unfit(env, &g, s->wide, i);
		unfit += mask[i];
	}
	if (!unfit)
		sl_region_close(&s->memory); /* it is faster without */
	return 0;
}

static void describe(const struct sl_spots *s, struct sl_stage_terms *terms)
{
	terms->outputs = 2;
	terms->output[0] = (struct sl_shape){.name = "spots",
					     .doc = "module, row, column, sum, deviations, pixels, "
						    "brightest pixel, mean of its box",
					     .dtype = SL_F32,
					     .rank = 2,
					     .dim = {s->max_spots, COLUMNS},
					     .ragged = 1};
	terms->output[1] = (struct sl_shape){.name = "spots_found",
					     .doc = "spots that there were, in the list or not",
					     .dtype = SL_U32,
					     .rank = 1,
					     .dim = {1}};
}

static int open_spots(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	struct sl_spots *s = state;
	const struct sl_geometry *g = env->geometry;
	double photon = sl_shape_photon(in, g->photon_energy_keV);
	int err = check(s, env, in);

	if (!err)
		err = make_mask(s, env);
	if (err)
		return err;
	s->settings = (struct sl_spots_settings){
		.modules = g->modules,
		.rows = g->rows,
		.columns = g->columns,
		.mask = s->memory.base,
		.threshold = (float)(s->threshold * photon),
		.sigmas = (float)s->sigmas,
		.box = s->box,
		.min_pixels = s->min_pixels,
		.max_pixels = s->max_pixels,
	};
	s->dtype = in->dtype;
	s->find = sl_spots_find(in->dtype, s->vectors);
	s->input = terms->input;
	s->result = terms->result;
	describe(s, terms);
	s->work_bytes = sl_spots_work_bytes(&s->settings);
	sl_workspace_ask(terms, env, s->work_bytes + sl_whole_bytes(in, s->input));
	s->scratch_bytes = terms->scratch_bytes;
	return 0;
}

static void close_spots(void *state)
{
	struct sl_spots *s = state;

	if (s->memory.base)
		sl_region_close(&s->memory);
}

static void measure(const struct sl_spots *s, const struct sl_spots_work *w, const void *image,
		    uint32_t n, float row[COLUMNS])
{
	const struct sl_blob_pixel *brightest = w->blobs.member;
	uint32_t module = brightest->at / (s->settings.rows * s->settings.columns);
	double sum = 0, y = 0, x = 0, d, spread;
	float value, most = -INFINITY;
	struct sl_spots_box box;

	for (uint32_t i = 0; i < n; i++) {
		const struct sl_blob_pixel *pixel = &w->blobs.member[i];

		sl_pixel_read(s->dtype, image, pixel->at, &value);
		sum += value;
		y += (double)value * pixel->row;
		x += (double)value * pixel->column;
		brightest = value > most ? pixel : brightest;
		most = value > most ? value : most;
	}
	sl_spots_look(&s->settings, s->dtype, image, module, brightest->row, brightest->column,
		      &box);
	d = most * box.n - box.sum;
	spread = box.n * box.square - box.sum * box.sum;
	row[0] = (float)module;
	row[1] = (float)(y / sum + 0.5);
	row[2] = (float)(x / sum + 0.5);
	row[3] = (float)sum;
	row[4] = sl_spots_strength((float)d, (float)spread, (sl_i32)box.n);
	row[5] = (float)n;
	row[6] = most;
	row[7] = (float)(box.sum / box.n);
}

/* How many there are; the first max_spots are written. */
static uint32_t find(const struct sl_spots *s, void *memory, const void *image, float *spot)
{
	struct sl_spots_work work;
	uint32_t found = 0, at = 0;

	sl_spots_work_init(&work, &s->settings, memory);
	s->find(&work, image);
	while (sl_blobs_next(&work.blobs, false, &at)) {
		uint32_t n = sl_blobs_fill(&work.blobs, at);

		if (!n || n < s->min_pixels)
			continue;
		if (found < s->max_spots)
			measure(s, &work, image, n, spot + (size_t)found * COLUMNS);
		found++;
	}
	return found;
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_spots *s = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_array *spots = &frame->result[s->result];
	uint32_t *found = frame->result[s->result + 1].host;
	char *memory = sl_workspace(scratch, s->scratch_bytes, f);
	const void *image;

	spots->rows = 0;
	*found = 0;
	if (frame->flags & SL_FRAME_DARK ||
	    (s->look == SL_SPOTS_OF_KEPT && !sl_frame_is_kept(frame)))
		return;
	image = sl_whole_image(frame, s->input, s->settings.rows,
			       s->settings.columns * sl_dtype_bytes(s->dtype),
			       memory + s->work_bytes);
	*found = find(s, memory, image, spots->host);
	spots->rows = *found < s->max_spots ? *found : s->max_spots;
	if (s->min_spots)
		sl_frame_decide(frame, *found >= s->min_spots, (float)*found, SL_REASON_SPOTS);
}

const struct sl_stage sl_stage_spots = {
	.name = "spots",
	.doc = "finds spots of pixels that stand out from the box around them, and keeps frames "
	       "with enough",
	.state_bytes = sizeof(struct sl_spots),
	.options = options,
	.input = "image",
	.gpu = &sl_gpu_spots,
	.open = open_spots,
	.close = close_spots,
	.frame = frame,
};
