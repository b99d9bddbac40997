/* jungfrau.c - an adaptive-gain photon detector: modules of 512 x 1024 pixels of 75 um, from one
 * (0.5M) to 8 (4M), 18 (9M) and 32 (16M), laid out as real ones are (places.c).
 *
 * A raw pixel is gain << 14 | ADU. A pixel starts in G0 (41 ADU per keV) and switches to G1, then
 * G2, whose ADU fall with charge, when it has too much of it; beyond G2 it reads 0xc000. Pedestals,
 * gains and noise are spread as on real modules at 12.4 keV; a few pixels are stuck, dead or hot.
 * Pixels at the edges of ASICs are wide and collect two or four times as much. With several storage
 * cells frames are in each in turn, and each has pedestals of its own. Partial readout (read_rows,
 * readnrows of slsDetectorPackage) has the rows in the middle of each module, half of them in
 * either row of ASICs; they stay where they lie in the image.
 *
 * Hits and blanks: with the defaults a blank has about 0.4 background photons per pixel, one at
 * most near the beam, and few pixels of ten or more: wide ones, some per frame even with 64
 * modules. A hit has 30 spots or more, each with at least 15 expected photons in its middle and
 * most with far more: hundreds of pixels have ten or more. The default veto (20 pixels of at least
 * 10 photons) lies far from both.
 *
 * Threads: as detector.h says. Cost: 1 MiB per module and rendered frame, 2-4 ms each; 27 bytes per
 * pixel, and 12 for every storage cell but the first. */
#include <errno.h>

#include <sluice/detector.h>

#include "base/log.h"
#include "detector/jungfrau/jungfrau.h"
#include "detector/places.h"

static const struct sl_option options[] = {
	SL_SCENE_ROWS,
	SL_F64(struct sl_jungfrau, noise_ADU, 23.9, 0, 1000, "ADU", "RMS noise of a pixel in G0"),
	SL_U32(struct sl_jungfrau, bad_pixels, 24, 0, 4096, "pixels",
	       "stuck, dead or hot pixels of each module, a quarter each, two for stuck ones"),
	SL_U32(struct sl_jungfrau, storage_cells, 1, 1, 16, "cells",
	       "used in turn, frame by frame, each with pedestals of its own"),
	SL_U32(struct sl_jungfrau, read_rows, 512, SL_JF_ROWS_STEP, SL_JF_ROWS, "rows",
	       "of each module that are read out, the middle ones; a multiple of 8 (readnrows)"),
	SL_OPTION_END};

static void describe(const struct sl_jungfrau *j, struct sl_geometry *geometry)
{
	*geometry = (struct sl_geometry){
		.detector = "jungfrau",
		.modules = j->modules,
		.rows = j->read_rows,
		.columns = SL_JF_COLUMNS,
		.dtype = SL_U16,
		.bit_depth = 16,
		.unread_rows = (SL_JF_ROWS - j->read_rows) / 2,
		.module_bytes = j->pixels * sizeof(uint16_t),
		.pixel_size_m = 75e-6,
		.sensor_thickness_m = 320e-6,
		.sensor_material = "Si",
		.cells = j->storage_cells,
	};
	sl_places_fill(&sl_places_jungfrau, geometry);
}

/* A frame is given by its exposure and its storage cell. */
static uint32_t pool_entries(const struct sl_jungfrau *j)
{
	uint32_t a = j->options.pool, b = j->storage_cells;

	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return j->options.pool / a * j->storage_cells;
}

static int open_jungfrau(void *state, const struct sl_detector_options *run,
			 struct sl_geometry *geometry)
{
	struct sl_jungfrau *j = state;
	int err;

	if (j->read_rows % SL_JF_ROWS_STEP) {
		sl_error("detector.read_rows: %u is no multiple of %d", j->read_rows,
			 SL_JF_ROWS_STEP);
		return -EINVAL;
	}
	j->modules = run->modules;
	j->pixels = j->read_rows * SL_JF_COLUMNS;
	j->seed = run->seed;
	j->period_ns = sl_detector_period_ns(run);
	describe(j, geometry);
	err = sl_jf_tables_open(j);
	if (!err)
		err = sl_frame_cache_open(&j->cache, pool_entries(j), j->modules,
					  geometry->module_bytes);
	if (!err)
		err = sl_scene_open(&j->options, j->seed, geometry, &j->scene);
	if (err == -ENOMEM)
		sl_error("jungfrau: no memory for %u modules", j->modules);
	return err;
}

static void close_jungfrau(void *state)
{
	struct sl_jungfrau *j = state;

	sl_jf_tables_close(j);
	sl_frame_cache_close(&j->cache);
	sl_scene_close(&j->scene);
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct sl_jungfrau *j = state;

	return sl_frame_cache_get(&j->cache, frame, module, flags & SL_RECORD_DARK, sl_jf_make, j,
				  pixels);
}

static int prepare(void *state)
{
	struct sl_jungfrau *j = state;

	return sl_frame_cache_fill(&j->cache, sl_jf_make, j, "jungfrau");
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	struct sl_jungfrau *j = state;

	if (flags & SL_RECORD_DARK)
		*truth = (struct sl_truth){.hit = false};
	else
		sl_scene_truth(&j->scene, (uint32_t)(frame % j->options.pool), truth);
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	struct sl_jungfrau *j = state;

	if (flags & SL_RECORD_DARK)
		return 0;
	return sl_scene_truth_rows(&j->scene, (uint32_t)(frame % j->options.pool), table, most);
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct sl_jungfrau *)state)->period_ns;
}

static int calibration(void *state, struct sl_calibration *calibration)
{
	struct sl_jungfrau *j = state;

	*calibration = (struct sl_calibration){.cells = j->storage_cells, .mask = j->mask};
	for (int g = 0; g < SL_JF_GAINS; g++) {
		calibration->pedestal[g] = j->pedestal[g];
		calibration->gain[g] = j->gain[g];
	}
	return 0;
}

static uint32_t repeats_after(const void *state)
{
	return ((const struct sl_jungfrau *)state)->options.pool;
}

const struct sl_detector sl_detector_jungfrau = {
	.name = "jungfrau",
	.doc = "512 x 1024 pixel modules with adaptive gain, up to 16M and more: pedestals, noise, "
	       "storage cells, a crystal's diffraction",
	.state_bytes = sizeof(struct sl_jungfrau),
	.options = options,
	.rate_Hz = 2000,
	.truth_columns = sl_scene_columns,
	.open = open_jungfrau,
	.close = close_jungfrau,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.truth_rows = truth_rows,
	.timestamp = timestamp,
	.parallel = 1,
	.calibration = calibration,
	.repeats_after = repeats_after,
};
