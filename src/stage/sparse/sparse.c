/* sparse.c - the few pixels that matter, as a list: where they are and what they count.
 *
 * threshold: pixels with at least `threshold` photons (counts of an unsigned image; keV of as many
 * photons in a float one). Bad pixels, and the largest number of an unsigned image, never are;
 * overloads always are. radial: see radial.c.
 *
 * Adds, for each frame: "sparse_index" (uint32: the pixel's number in [modules][rows][columns],
 * rising) and "sparse_value" (as in the image), ragged; "sparse_found", how many there were. More
 * than `max_pixels`: the first by index are kept, and found is higher than the rows. With
 * row_pointers "sparse_row_pointer" [rows of all modules + 1], which makes it a matrix in CSR form.
 * With radial "sparse_background" and "sparse_deviation" [bins]. Dark frames have empty lists; so
 * have, with radial, frames that were rejected before.
 *
 * Cost: by threshold one pass over the tile, which is in cache when `correct` just wrote it; no
 * image need go to memory for it.
 * Threads: every worker has lists of its own, in scratch; finish() merges them (lists.c). */
#include "stage/sparse/sparse.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/vectors.h"

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_sparse, method, threshold, "threshold|radial",
		  "pixels over a threshold, or over the background at their distance from the "
		  "beam"),
	SL_U32(struct sl_sparse, threshold, 10, 1, 4294967294., "photons",
	       "threshold: a pixel is picked when it has at least as many (or counts)"),
	SL_U32(struct sl_sparse, max_pixels, 100000, 1, 16777216, "pixels",
	       "most of a frame that are kept; more are counted"),
	SL_BOOL(struct sl_sparse, row_pointers, false,
		"also where each row of the image begins in the lists"),
	SL_U32(struct sl_sparse, bins, 800, 1, 65535, "bins", "radial: of the background"),
	SL_CHOICE(struct sl_sparse, unit, r_mm, "q_nm|tth_deg|r_mm|r_pixels",
		  "radial: what bins are equally wide in: q in 1/nm, 2 theta in degrees, the "
		  "distance from the beam in mm or pixels"),
	SL_F64(struct sl_sparse, low, 0, 0, 1e6, "", "radial: where the first bin begins"),
	SL_F64(struct sl_sparse, high, 0, 0, 1e6, "",
	       "radial: where the last one ends; 0: at the farthest pixel"),
	SL_BOOL(struct sl_sparse, solid_angle, false,
		"radial: pixels far out see less of the sample: divide by what they see"),
	SL_F64(struct sl_sparse, polarisation, 0, -1, 1, "",
	       "radial: of the beam, to divide by; 0: none, 0.99: a synchrotron's"),
	SL_U32(struct sl_sparse, cycle, 5, 0, SL_SPARSE_CYCLES, "rounds",
	       "radial: of clipping what stands out, at most"),
	SL_F64(struct sl_sparse, cutoff_clip, 0, 0, 1000, "sigma",
	       "radial: to clip at; at least what Chauvenet's criterion says"),
	SL_F64(struct sl_sparse, cutoff_pick, 3, 0, 1000, "sigma",
	       "radial: a pixel is picked when it is above the background by so much"),
	SL_F64(struct sl_sparse, noise, 1, 0, 1e6, "photons",
	       "radial: of the detector, added to the deviation; the least to be picked"),
	SL_BOOL(struct sl_sparse, rejected, false,
		"radial: look at frames, too, that an earlier stage rejected"),
	SL_VECTORS_OPTION(struct sl_sparse),
	SL_OPTION_END};

static int check(const struct sl_sparse *s, const struct sl_env *env, double photon)
{
	static const uint32_t most[SL_DTYPES] = {[SL_U8] = UINT8_MAX - 1,
						 [SL_U16] = UINT16_MAX - 1,
						 [SL_U32] = UINT32_MAX - 1,
						 [SL_I16] = INT16_MAX - 1,
						 [SL_F32] = UINT32_MAX - 1};

	if (!most[s->dtype]) {
		sl_error("sparse reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(s->dtype));
		return -EINVAL;
	}
	if (s->method == SL_SPARSE_THRESHOLD && s->threshold > most[s->dtype]) {
		sl_error("sparse: no pixel of %s can count %u; threshold may be %u at most",
			 sl_dtype_name(s->dtype), s->threshold, most[s->dtype]);
		return -EINVAL;
	}
	if (s->method == SL_SPARSE_THRESHOLD && !(photon > 0)) {
		sl_error("sparse: a threshold in photons needs a photon energy; detector '%s' has "
			 "none",
			 env->geometry->detector);
		return -EINVAL;
	}
	if (s->modules * s->module_pixels > UINT32_MAX) {
		sl_error("sparse: an index has 32 bits, and the detector has more pixels");
		return -EINVAL;
	}
	return 0;
}

static int add_output(struct sl_stage_terms *terms, const char *name, enum sl_dtype dtype,
		      uint32_t rank, uint32_t dim)
{
	struct sl_shape *shape = &terms->output[terms->outputs];

	*shape = (struct sl_shape){.dtype = dtype, .rank = rank, .dim = {dim}};
	strcpy(shape->name, name);
	return (int)terms->outputs++;
}

static void add_outputs(struct sl_sparse *s, struct sl_stage_terms *terms)
{
	add_output(terms, "sparse_index", SL_U32, 1, s->room);
	add_output(terms, "sparse_value", s->dtype, 1, s->room);
	terms->output[0].ragged = terms->output[1].ragged = 1;
	add_output(terms, "sparse_found", SL_U32, 0, 0);
	s->background = s->pointers = 0;
	if (s->method == SL_SPARSE_RADIAL) {
		s->background = add_output(terms, "sparse_background", SL_F32, 1, s->radial.bins);
		add_output(terms, "sparse_deviation", SL_F32, 1, s->radial.bins);
	}
	if (s->row_pointers)
		s->pointers = add_output(terms, "sparse_row_pointer", SL_U32, 1,
					 s->modules * s->rows + 1);
}

static void add_constants(const struct sl_sparse *s, struct sl_stage_terms *terms)
{
	const struct sl_shape image = {
		.dtype = SL_F32, .rank = 2, .dim = {s->modules * s->rows, s->columns}};
	struct sl_constant *c = terms->constant;

	c[0] = (struct sl_constant){image, s->radius};
	strcpy(c[0].shape.name, "sparse_mask");
	c[1] = (struct sl_constant){{"sparse_radius", SL_F32, 1, {s->radial.bins}, 0}, s->middle};
	c[2] = (struct sl_constant){image, s->radial.norm};
	strcpy(c[2].shape.name, "sparse_normalization");
	terms->constants = 3;
}

static const struct sl_stage by_threshold, by_radius;

static int open_sparse(void *state, const struct sl_env *env, const struct sl_shape *in,
		       struct sl_stage_terms *terms)
{
	struct sl_sparse *s = state;
	const struct sl_geometry *g = env->geometry;
	double photon = sl_shape_photon(in, g->photon_energy_keV);
	bool radial = s->method == SL_SPARSE_RADIAL;
	int err;

	s->dtype = in->dtype;
	s->modules = g->modules;
	s->rows = g->rows;
	s->columns = g->columns;
	s->module_pixels = sl_geometry_pixels(g);
	s->input = terms->input;
	s->result = terms->result;
	s->photon = photon > 0 ? (float)photon : 1;
	err = check(s, env, photon);
	if (!err && radial)
		err = sl_sparse_radial_open(s, env);
	if (err)
		return err;
	s->room = s->modules * s->module_pixels < s->max_pixels
			  ? (uint32_t)(s->modules * s->module_pixels)
			  : s->max_pixels;
	s->outside = sl_outside_choose(s->dtype, s->vectors);
	s->bounds = (struct sl_outside_bounds){
		.low = s->dtype == SL_I16 ? INT16_MIN : 0,
		.high = (int64_t)s->threshold - 1,
		.real_low = -INFINITY,
		.real_high = nextafterf((float)(s->threshold * photon), -INFINITY)};
	add_outputs(s, terms);
	if (radial)
		add_constants(s, terms);
	terms->as = radial ? &by_radius : &by_threshold;
	terms->scratch_bytes = radial ? sl_sparse_radial_scratch(s) : sl_sparse_entry_bytes(s);
	terms->stale_bytes = terms->scratch_bytes - (radial ? 0 : sizeof(struct sl_sparse_head));
	return 0;
}

static void close_sparse(void *state)
{
	sl_sparse_radial_close(state);
}

#define SPARSE                                                                                \
	.name = "sparse",                                                                     \
	.doc = "lists the pixels over a threshold, or over the background at their distance " \
	       "from the beam",                                                               \
	.state_bytes = sizeof(struct sl_sparse), .options = options, .input = "image",        \
	.gpu = &sl_gpu_sparse, .open = open_sparse, .close = close_sparse

static const struct sl_stage by_threshold = {SPARSE, .tile = sl_sparse_tile,
					     .finish = sl_sparse_finish};
static const struct sl_stage by_radius = {SPARSE, .frame = sl_sparse_frame};

/* Which of the two it is, the option decides. */
const struct sl_stage sl_stage_sparse = {SPARSE, .tile = sl_sparse_tile, .frame = sl_sparse_frame,
					 .finish = sl_sparse_finish};
