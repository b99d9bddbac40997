/* reduce.c - a frame in a few numbers, or in fewer pixels.
 *
 * Adds "statistics", float64 [regions][5]: sum, mean, maximum, valid pixels, overloads. The first
 * region is the whole image, then come the rectangles of `roi`. Bad pixels and overloads have no
 * part in sum, mean and maximum; where nothing is left these are 0, NaN, NaN. Sums of whole numbers
 * are exact up to 2^53; those of floats as sums.c says. A region's result does not depend on
 * tiles or workers.
 *
 * With `bin` also "binned", an image of N x N pixels in one; with `window`, "window_sum" and
 * "window_max" of as many kept frames, which the last of them carries (bins.c). Dark frames
 * have zeros.
 *
 * Cost: statistics are one pass over the tile, which is in cache when `correct` just wrote it;
 * binning one pass over each image.
 * Threads: every worker adds into its own scratch; finish() brings the sums together. */
#include "stage/reduce/reduce.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/vectors.h"

enum { COLUMNS = 5 };

static const struct sl_option options[] = {
	SL_STRING(
		struct sl_reduce, roi, "",
		"rectangles to have statistics of: 'row, column, rows, columns; ...', 16 at most"),
	SL_CHOICE(struct sl_reduce, roi_in, image, "image|modules",
		  "their rows and columns: of the assembled image, or of modules one below the "
		  "other"),
	SL_U32(struct sl_reduce, bin, 0, 0, 1024, "pixels",
	       "make an image of N x N pixels in one; 0: none"),
	SL_CHOICE(struct sl_reduce, binned, sum, "sum|mean",
		  "what a binned pixel is of its pixels"),
	SL_U32(struct sl_reduce, window, 0, 0, 1000000, "frames",
	       "add up binned images of so many kept frames; 0: none"),
	SL_VECTORS_OPTION(struct sl_reduce),
	SL_OPTION_END};

static const struct sl_stage without_bins, without_windows;

static int open_reduce(void *state, const struct sl_env *env, const struct sl_shape *in,
		       struct sl_stage_terms *terms)
{
	struct sl_reduce *r = state;
	int err;

	r->dtype = in->dtype;
	r->modules = env->geometry->modules;
	r->rows = env->geometry->rows;
	r->columns = env->geometry->columns;
	r->module_pixels = sl_geometry_pixels(env->geometry);
	r->input = terms->input;
	r->result = terms->result;
	r->add = sl_reduce_choose(in->dtype, r->vectors);
	if (!r->add) {
		sl_error("reduce reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	if (r->window && !r->bin) {
		sl_error("reduce: a window is of binned images: set bin, to 1 for all pixels");
		return -EINVAL;
	}
	err = sl_reduce_regions_open(r, env);
	if (err)
		return err;
	terms->output[0] = (struct sl_shape){
		.name = "statistics",
		.doc = "sum, mean, maximum, valid pixels, overloads: of each region",
		.dtype = SL_F64,
		.rank = 2,
		.dim = {r->regions, COLUMNS}};
	terms->outputs = 1;
	terms->scratch_bytes = r->regions * sizeof(struct sl_reduce_sum);
	if (!r->window)
		terms->as = r->bin ? &without_windows : &without_bins;
	return r->bin ? sl_reduce_bins_open(r, terms) : 0;
}

static void close_reduce(void *state)
{
	sl_reduce_regions_close(state);
	sl_reduce_bins_close(state);
}

static int again(void *state)
{
	sl_reduce_window_begin(state);
	return 0;
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	const struct sl_reduce *r = state;
	uint64_t first = tile->module * r->module_pixels + tile->first;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_reduce_sum *sum = (struct sl_reduce_sum *)scratch + f * r->regions;

		if (batch->frame[f]->flags & SL_FRAME_DARK)
			continue; /* has no image */
		/* Zeroed scratch would hide maxima below 0. */
		for (uint32_t k = 0; k < r->regions; k++)
			if (!sum[k].valid)
				sum[k].most = -INFINITY;
		r->add(tile->in[f], tile->count, &sum[0]);
		for (uint32_t k = 1; k < r->regions; k++)
			sl_reduce_region_add(r, k, tile->in[f], first, tile->count, &sum[k]);
	}
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_reduce *r = state;
	struct sl_frame *frame = batch->frame[f];

	if (frame->flags & SL_FRAME_DARK)
		memset(frame->result[r->result + 1].host, 0,
		       r->bins * sl_dtype_bytes(r->bin_dtype));
	else
		sl_reduce_bins_frame(r, frame);
	sl_reduce_bins_judge(r, frame); /* before stages behind this one do */
}

static void conclude(const struct sl_reduce *r, void *const *scratch, unsigned workers, uint32_t f,
		     uint32_t region, double *row)
{
	struct sl_reduce_sum all = {.most = -INFINITY};
	double sum;

	for (unsigned w = 0; w < workers; w++) {
		const struct sl_reduce_sum *one = (const struct sl_reduce_sum *)scratch[w] +
						  f * r->regions + region;

		all.whole += one->whole;
		all.rest += one->rest;
		all.valid += one->valid;
		all.overloads += one->overloads;
		if (one->valid && one->most > all.most)
			all.most = one->most;
	}
	sum = (double)all.whole + (double)all.rest * 0x1p-32;
	row[0] = sum;
	row[1] = all.valid ? sum / (double)all.valid : NAN;
	row[2] = all.valid ? all.most : NAN;
	row[3] = (double)all.valid;
	row[4] = (double)all.overloads;
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	struct sl_reduce *r = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];
		double *table = frame->result[r->result].host;

		memset(table, 0, r->regions * COLUMNS * sizeof(*table));
		for (uint32_t k = 0; k < r->regions && !(frame->flags & SL_FRAME_DARK); k++)
			conclude(r, scratch, workers, f, k, table + k * COLUMNS);
		sl_reduce_bins_window(r, frame);
	}
}

#define REDUCE                                                                                     \
	.name = "reduce",                                                                          \
	.doc = "sum, mean and maximum of the image and of rectangles; binned images, and windows " \
	       "of them",                                                                          \
	.state_bytes = sizeof(struct sl_reduce), .options = options, .input = "image",             \
	.gpu = &sl_gpu_reduce, .open = open_reduce, .close = close_reduce, .tile = tile,           \
	.finish = finish

static const struct sl_stage without_bins = {REDUCE};
static const struct sl_stage without_windows = {REDUCE, .frame = frame};

/* With bins it looks at whole frames, and with windows at one after the other. */
const struct sl_stage sl_stage_reduce = {REDUCE, .frame = frame, .ordered = SL_ORDER_PARTS,
					 .again = again};
