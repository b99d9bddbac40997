/* integrate.c - azimuthal integration: the mean of what pixels at the same distance from the beam
 * count, with its error; or of those at the same distance and angle.
 *
 *   intensity(cell) = sum of c * (raw - dark) / sum of c * norm   over valid pixels; c is a pixel's
 *   sigma(cell)     = sqrt(sum of c^2 * variance) / sum of c * norm      share of the cell
 *   norm            = flat * solid angle * polarisation * image pixels that it covers
 *   variance        = raw (Poisson; the dark image is an exact one), of keV that times the photon's
 *                     energy
 *
 * Bad pixels and overloads of the frame (INT16_MIN and INT16_MAX, NaN and infinity, the largest
 * number of an unsigned image) are left out, with their norm; so are modules that are missing. A
 * cell without a valid pixel is NaN. Counts are added as integers, so that the result does not
 * depend on tiles, workers or vectors; keV, and split counts of 32 bits, as doubles.
 *
 * Dark and norm are the same in every frame: their sums over a cell are known before the run, and
 * only those of bad pixels are taken away from them. So they cost nothing, and round nothing.
 *
 * Adds "profile", float32 [3][bins]: the middle of each bin, intensity, sigma. With azimuth_bins
 * instead "cake" and "cake_sigma", [azimuth_bins][bins], with "cake_radius" [bins] and
 * "cake_azimuth" [azimuth_bins], the middles in the unit and in degrees.
 *
 * Cost: one pass over the tile, which is in cache when `correct` just wrote it; tables (shares.h)
 * are read once for eight frames (integrate.h).
 * Threads: every worker adds into its own scratch; finish() brings the sums together. */
#include "stage/integrate/integrate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "calibration/field.h"
#include "stage/vectors.h"

enum { SPLIT_NONE, SPLIT_BBOX }; /* the choices of `split` */

static const struct sl_option options[] = {
	SL_U32(struct sl_integrate, bins, 1000, 1, 65535, "bins", "of the profile"),
	SL_U32(struct sl_integrate, azimuth_bins, 0, 0, 3600, "bins",
	       "of the azimuth, from -180 to 180 degrees: a cake; 0: a profile over all of it"),
	SL_CHOICE(struct sl_integrate, unit, q_nm, "q_nm|tth_deg|r_mm|r_pixels",
		  "what bins are equally wide in: q in 1/nm, 2 theta in degrees, the distance from "
		  "the beam in mm or pixels"),
	SL_F64(struct sl_integrate, low, 0, 0, 1e6, "", "where the first bin begins"),
	SL_F64(struct sl_integrate, high, 0, 0, 1e6, "",
	       "where the last one ends; 0: at the farthest pixel"),
	SL_CHOICE(struct sl_integrate, split, none, "none|bbox",
		  "pixels count whole where their middle lies, or in every bin that their bounding "
		  "box overlaps"),
	SL_BOOL(struct sl_integrate, solid_angle, true,
		"pixels far out see less of the sample: divide by what they see"),
	SL_F64(struct sl_integrate, polarisation, 0, -1, 1, "",
	       "of the beam, to divide by; 0: none, 0.99: a synchrotron's, 1: all along the rows"),
	SL_STRING(struct sl_integrate, dark, "",
		  "file with what pixels count without a beam, to subtract: HDF5 or raw"),
	SL_STRING(struct sl_integrate, flat, "",
		  "file with what pixels count of one, to divide by; 0: a bad pixel"),
	SL_CHOICE(struct sl_integrate, variance, counts, "counts|at_least_one",
		  "of a pixel: what it counts; or that, but at least one photon, as pyFAI has it"),
	SL_VECTORS_OPTION(struct sl_integrate),
	SL_OPTION_END};

static int value_bits(enum sl_dtype dtype)
{
	return dtype == SL_U8 ? 8 : dtype == SL_U16 || dtype == SL_I16 ? 16 : 0;
}

/* A file's numbers, one per pixel; NULL without a file. */
static int read_field(const char *path, const char *what, const struct sl_env *env, float **field)
{
	*field = NULL;
	return *path ? sl_field_read(path, what, env->geometry, field) : 0;
}

static int open_tables(struct sl_integrate *s, const struct sl_env *env)
{
	const struct sl_rays_options r = {.unit = s->unit,
					  .solid_angle = s->solid_angle,
					  .polarisation = s->polarisation,
					  .azimuth = s->azimuth_bins > 0};
	struct sl_shares_options o = {.bins = s->bins,
				      .sectors = s->azimuth_bins,
				      .boxes = s->split == SPLIT_BBOX,
				      .low = s->low,
				      .high = s->high,
				      .value_bits = (uint32_t)value_bits(s->dtype)};
	float *dark = NULL, *flat = NULL;
	struct sl_rays rays;
	int err = sl_rays_open(&rays, &r, env, "integrate");

	if (!err)
		err = read_field(s->dark, "integrate: dark", env, &dark);
	if (!err)
		err = read_field(s->flat, "integrate: flat", env, &flat);
	o.dark = dark;
	o.flat = flat;
	if (!err)
		err = sl_shares_open(&s->shares, &o, &rays, env, "integrate");
	free(dark);
	free(flat);
	return err;
}

static struct sl_shape shape_of(const char *name, const char *doc, uint32_t rank, uint32_t first,
				uint32_t second)
{
	struct sl_shape shape = {.dtype = SL_F32, .rank = rank, .dim = {first, second}, .doc = doc};

	strcpy(shape.name, name);
	return shape;
}

static const char *const axis_docs[] = {"q (1/nm)", "2 theta (degrees)", "radius (mm)",
					"radius (pixels)"};

static void declare(struct sl_integrate *s, struct sl_stage_terms *terms)
{
	static const char *const profile[] = {"q (1/nm), intensity, sigma: of each bin",
					      "2 theta (degrees), intensity, sigma: of each bin",
					      "radius (mm), intensity, sigma: of each bin",
					      "radius (pixels), intensity, sigma: of each bin"};
	s->result = terms->result;
	terms->outputs = s->azimuth_bins ? 4 : 1;
	terms->output[0] = shape_of("profile", profile[s->unit], 2, 3, s->bins);
	if (s->azimuth_bins) {
		terms->output[0] =
			shape_of("cake", "intensity: azimuth, radius", 2, s->azimuth_bins, s->bins);
		terms->output[1] = shape_of("cake_sigma", "its sigma", 2, s->azimuth_bins, s->bins);
		terms->output[2] = shape_of("cake_radius", axis_docs[s->unit], 1, s->bins, 0);
		terms->output[3] =
			shape_of("cake_azimuth", "azimuth (degrees)", 1, s->azimuth_bins, 0);
	}
	terms->scratch_bytes = sl_integrate_frame_bytes(s);
}

/* The axes, once for all frames: RESULT_AXIS, slowest first. */
static int declare_axes(struct sl_integrate *s, struct sl_stage_terms *terms)
{
	static const char *const name[] = {"q", "two_theta", "radius", "radius"};
	const char *of = s->azimuth_bins ? "cake" : "profile";
	struct sl_constant *constant = terms->constant;
	float *bin, *sector;

	s->axis = calloc((size_t)s->bins + s->azimuth_bins, sizeof(*s->axis));
	if (!s->axis)
		return -ENOMEM;
	bin = s->axis;
	sector = s->axis + s->bins;
	for (uint32_t b = 0; b < s->bins; b++)
		bin[b] = (float)sl_shares_bin(&s->shares, b);
	for (uint32_t a = 0; a < s->azimuth_bins; a++)
		sector[a] = (float)sl_shares_sector(&s->shares, a);
	if (s->azimuth_bins)
		*constant++ = (struct sl_constant){
			shape_of("cake_azimuth", "azimuth (degrees)", 1, s->azimuth_bins, 0),
			sector};
	*constant = (struct sl_constant){shape_of("", axis_docs[s->unit], 1, s->bins, 0), bin};
	snprintf(constant->shape.name, sizeof(constant->shape.name), "%s_%s", of, name[s->unit]);
	terms->constants = s->azimuth_bins ? 2 : 1;
	return 0;
}

static int open_integrate(void *state, const struct sl_env *env, const struct sl_shape *in,
			  struct sl_stage_terms *terms)
{
	struct sl_integrate *s = state;
	bool is_float = in->dtype == SL_F32;
	int err;

	if (in->dtype == SL_I32) {
		sl_error("integrate reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	s->dtype = in->dtype;
	s->real = is_float || (in->dtype == SL_U32 && s->split == SPLIT_BBOX);
	s->photon = sl_shape_photon(in, env->geometry->photon_energy_keV);
	s->photon = s->photon > 0 ? s->photon : 1;
	if (s->variance == SL_VARIANCE_AT_LEAST_ONE)
		s->least = s->photon;
	else
		s->least = is_float ? -(double)INFINITY : in->dtype == SL_I16 ? INT16_MIN : 0;
	s->module_pixels = sl_geometry_pixels(env->geometry);
	err = open_tables(s, env);
	if (err)
		return err;
	s->add = sl_integrate_choose(s);
	declare(s, terms);
	return declare_axes(s, terms);
}

static void close_integrate(void *state)
{
	struct sl_integrate *s = state;

	sl_shares_close(&s->shares);
	free(s->axis);
	s->axis = NULL;
}

/* How many frames from f on are worked on together. */
static uint32_t members_at(const struct sl_batch *batch, uint32_t f)
{
	return batch->frames - f >= SL_INTEGRATE_MEMBERS ? SL_INTEGRATE_MEMBERS : 1;
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	const struct sl_integrate *s = state;
	size_t bytes = sl_integrate_frame_bytes(s);
	struct sl_integrate_span span = {.at = tile->module * s->module_pixels + tile->first,
					 .count = tile->count};

	for (uint32_t f = 0; f < batch->frames; f += span.members) {
		uint32_t bright = SL_INTEGRATE_MEMBERS;

		span.members = members_at(batch, f);
		span.group = (char *)scratch + f * bytes;
		for (uint32_t l = 0; l < span.members; l++) {
			const struct sl_frame *frame = batch->frame[f + l];

			span.in[l] = tile->in[f + l];
			span.is_missing[l] = sl_frame_misses(frame, tile->module);
			if (!(frame->flags & SL_FRAME_DARK))
				bright = l;
		}
		/* A dark frame has no image: it gets another's, and nobody will look at it. */
		for (uint32_t l = 0; l < span.members && bright < SL_INTEGRATE_MEMBERS; l++)
			if (batch->frame[f + l]->flags & SL_FRAME_DARK)
				span.in[l] = span.in[bright];
		if (bright < SL_INTEGRATE_MEMBERS)
			s->add(s, &span);
	}
}

static void fill_axes(const struct sl_integrate *s, struct sl_frame *frame)
{
	float *radius = s->azimuth_bins ? frame->result[s->result + 2].host
					: frame->result[s->result].host;

	for (uint32_t b = 0; b < s->bins; b++)
		radius[b] = (float)sl_shares_bin(&s->shares, b);
	for (uint32_t a = 0; a < s->azimuth_bins; a++)
		((float *)frame->result[s->result + 3].host)[a] =
			(float)sl_shares_sector(&s->shares, a);
}

static void finish_group(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			 struct sl_batch *batch, uint32_t f, uint32_t members)
{
	float *intensity[SL_INTEGRATE_MEMBERS], *sigma[SL_INTEGRATE_MEMBERS];

	for (uint32_t l = 0; l < members; l++) {
		struct sl_frame *frame = batch->frame[f + l];
		float *first = frame->result[s->result].host;

		fill_axes(s, frame);
		intensity[l] = s->azimuth_bins ? first : first + s->bins;
		sigma[l] = s->azimuth_bins ? frame->result[s->result + 1].host
					   : first + 2 * (size_t)s->bins;
	}
	sl_integrate_conclude(s, scratch, workers, f * sl_integrate_frame_bytes(s), members,
			      intensity, sigma);
	for (uint32_t l = 0; l < members; l++)
		if (batch->frame[f + l]->flags & SL_FRAME_DARK) {
			memset(intensity[l], 0, s->shares.cells * sizeof(float));
			memset(sigma[l], 0, s->shares.cells * sizeof(float));
		}
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	const struct sl_integrate *s = state;

	for (uint32_t f = 0, members; f < batch->frames; f += members) {
		members = members_at(batch, f);
		finish_group(s, scratch, workers, batch, f, members);
	}
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct sl_integrate *s = state;
	const char *const text[] = {s->dark, s->flat};

	for (unsigned i = 0; i < 2; i++) {
		char path[SL_INTEGRATE_PATH];

		sl_field_path(text[i], path, sizeof(path));
		each(arg, SL_FILE_READ, path);
	}
}

const struct sl_stage sl_stage_integrate = {
	.name = "integrate",
	.doc = "azimuthal integration: a profile of intensity over q, angle or distance, or a cake "
	       "of it, with errors",
	.state_bytes = sizeof(struct sl_integrate),
	.options = options,
	.input = "image",
	.gpu = &sl_gpu_integrate,
	.open = open_integrate,
	.close = close_integrate,
	.tile = tile,
	.finish = finish,
	.files = files,
};
