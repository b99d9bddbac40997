/* peaks.c - Bragg peaks, found as peakfinder8 finds them; a frame with enough of them is kept.
 *
 *   rings    pixels by their distance from the beam, rounded to whole pixels; mean and standard
 *            deviation of each ring, five times over, of the pixels strictly between the limits
 *            mean +- snr * sigma of the time before (the upper one at least `threshold`)
 *   pixels   strong: above the upper limit of their ring; those that touch, also at corners, belong
 *            together: min_pixels to max_pixels of them, not all at the edge of the module
 *   peak     background: mean and sigma of what is not above the limit in a disc of twice
 *            local_bg_radius; intensity: what the pixels have above it; SNR: that over sigma, at
 *            least `snr`; the brightest pixel is not below the brightest of the background; the
 *            position is the centroid of raw intensity
 *
 * A module is a panel: peaks do not reach from one to the next, and ASICs of a module are one
 * piece, as they lie in memory. Masked and bad pixels and overloads are not there.
 *
 * Adds "peaks", float32 [rows][8]: module, row, column, intensity, SNR, pixels, maximum,
 * background; (0.5, 0.5) is the middle of a module's first pixel, intensities are in the image's
 * unit. "peaks_found", uint32 [1], says how many there were, also when max_peaks are fewer. Peaks
 * come in the order of modules and of their first rows. The score is their number.
 *
 * Results are the same with all vectors, bit for bit.
 *
 * Cost: two passes over the image (sums.c, scan.c), then what strong pixels cost. */
#include <errno.h>
#include <string.h>

#include <sluice/stage.h>

#include "base/log.h"
#include "stage/peaks/peaks.h"
#include "stage/vectors.h"
#include "stage/whole.h"
#include "stage/workspace.h"

static const struct sl_option options[] = {
	SL_F64(struct sl_peaks, snr, 5, 0.1, 1000, "",
	       "signal to noise: of a pixel against its ring, and of a peak against what is around "
	       "it"),
	SL_F64(struct sl_peaks, threshold, 4, 0, 1000000, "photons",
	       "pixels that are not above this belong to no peak; counts, where the detector "
	       "counts"),
	SL_U32(struct sl_peaks, min_pixels, 2, 1, 65536, "pixels", "of a peak, at least"),
	SL_U32(struct sl_peaks, max_pixels, 200, 1, 65536, "pixels", "of a peak, at most"),
	SL_U32(struct sl_peaks, local_bg_radius, 3, 1, 32, "pixels",
	       "half of the distance up to which pixels are a peak's background"),
	SL_F64(struct sl_peaks, r_min, 0, 0, 1e6, "pixels",
	       "pixels that are nearer to the beam are left out"),
	SL_F64(struct sl_peaks, r_max, 0, 0, 1e6, "pixels", "those farther from it; 0: none"),
	SL_BOOL(struct sl_peaks, wide, false,
		"look at the wide pixels at the edges of ASICs, too, which seem brighter"),
	SL_U32(struct sl_peaks, min_peaks, 10, 0, 1000000, "peaks",
	       "keep the frame when there are at least as many; 0: peaks decide nothing"),
	SL_U32(struct sl_peaks, max_peaks, 1024, 1, 65536, "peaks",
	       "room for as many in the result; all are counted"),
	SL_CHOICE(struct sl_peaks, look, kept, "kept|all",
		  "at frames that no stage before it rejected, or at all"),
	SL_VECTORS_OPTION(struct sl_peaks),
	SL_OPTION_END};

static int check(const struct sl_peaks *p, const struct sl_env *env, const struct sl_shape *in)
{
	if (in->dtype == SL_I32) {
		sl_error("peaks reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	if (!(sl_shape_photon(in, env->geometry->photon_energy_keV) > 0)) {
		sl_error("peaks: a threshold in photons needs a photon energy; detector '%s' has "
			 "none",
			 env->geometry->detector);
		return -EINVAL;
	}
	if (p->min_pixels > p->max_pixels) {
		sl_error("peaks: min_pixels %u is more than max_pixels %u", p->min_pixels,
			 p->max_pixels);
		return -EINVAL;
	}
	if (p->r_max > 0 && !(p->r_max > p->r_min)) {
		sl_error("peaks: r_max must be above r_min, or 0");
		return -EINVAL;
	}
	return 0;
}

static void describe(const struct sl_peaks *p, struct sl_stage_terms *terms)
{
	terms->outputs = 2;
	terms->output[0] = (struct sl_shape){.name = "peaks",
					     .doc = "module, row, column, intensity, SNR, pixels, "
						    "brightest pixel, background per pixel",
					     .dtype = SL_F32,
					     .rank = 2,
					     .dim = {p->max_peaks, SL_PEAKS_COLUMNS},
					     .ragged = 1};
	terms->output[1] = (struct sl_shape){.name = "peaks_found",
					     .doc = "peaks that there were, in the list or not",
					     .dtype = SL_U32,
					     .rank = 1,
					     .dim = {1}};
}

static int open_peaks(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	struct sl_peaks *p = state;
	double photon = sl_shape_photon(in, env->geometry->photon_energy_keV);
	int err = check(p, env, in);

	if (!err)
		err = sl_peaks_table_open(&p->table, env, p->wide, p->r_min, p->r_max);
	if (err)
		return err;
	p->settings = (struct sl_peaks_settings){
		.snr = (float)p->snr,
		.threshold = (float)(p->threshold * photon),
		.min_pixels = p->min_pixels,
		.max_pixels = p->max_pixels,
		.radius = p->local_bg_radius,
	};
	p->dtype = in->dtype;
	p->sums = sl_peaks_sums(in->dtype, p->vectors);
	p->scan = sl_peaks_scan(in->dtype, p->vectors);
	p->input = terms->input;
	p->result = terms->result;
	describe(p, terms);
	p->work_bytes = sl_peaks_work_bytes(&p->table, &p->settings);
	sl_workspace_ask(terms, env, p->work_bytes + sl_whole_bytes(in, p->input));
	p->scratch_bytes = terms->scratch_bytes;
	return 0;
}

static void close_peaks(void *state)
{
	sl_peaks_table_close(&((struct sl_peaks *)state)->table);
}

/* How many there are; the first max_peaks are written. */
static uint32_t find(const struct sl_peaks *p, void *memory, const void *image, float *peak)
{
	float spare[SL_PEAKS_COLUMNS];
	struct sl_peaks_work work;
	uint32_t found = 0, at = 0;

	sl_peaks_work_init(&work, &p->table, &p->settings, p->dtype, memory);
	sl_peaks_rings(&work, p->sums, p->scan, image);
	while (sl_blobs_next(&work.blobs, true, &at)) {
		uint32_t n = sl_blobs_fill(&work.blobs, at);
		float *row = found < p->max_peaks ? peak + (size_t)found * SL_PEAKS_COLUMNS : spare;

		if (n)
			found += sl_peaks_measure(&work, image, n, row);
	}
	return found;
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_peaks *p = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_array *peaks = &frame->result[p->result];
	uint32_t *found = frame->result[p->result + 1].host;
	char *memory = sl_workspace(scratch, p->scratch_bytes, f);
	const void *image;

	peaks->rows = 0;
	*found = 0;
	if (frame->flags & SL_FRAME_DARK ||
	    (p->look == SL_PEAKS_OF_KEPT && !sl_frame_is_kept(frame)))
		return;
	image = sl_whole_image(frame, p->input, p->table.rows,
			       p->table.columns * sl_dtype_bytes(p->dtype), memory + p->work_bytes);
	*found = find(p, memory, image, peaks->host);
	peaks->rows = *found < p->max_peaks ? *found : p->max_peaks;
	if (p->min_peaks)
		sl_frame_decide(frame, *found >= p->min_peaks, (float)*found, SL_REASON_PEAKS);
}

const struct sl_stage sl_stage_peaks = {
	.name = "peaks",
	.doc = "finds Bragg peaks as peakfinder8 does, and keeps frames with enough of them",
	.state_bytes = sizeof(struct sl_peaks),
	.options = options,
	.input = "image",
	.gpu = &sl_gpu_peaks,
	.open = open_peaks,
	.close = close_peaks,
	.frame = frame,
};
