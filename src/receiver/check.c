/* check.c - what a receiver would refuse when it is opened, without opening it. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "experiment/experiment.h"
#include "receiver/calibration.h"
#include "receiver/chain.h"
#include "receiver/receiver.h"

/* Pixels times storage cells. With a Jungfrau 4M (half of this) detector and stages make their
 * tables in 0.5 s and 300 MB; with a 16M of four cells the stages alone would take 3 s and 2 GB. */
enum { TABLE_CELLS_MOST = 8 << 20 };

static void note_reading(void *arg, enum sl_file_use use, const char *path)
{
	bool *reads = arg;

	*reads |= use == SL_FILE_READ;
}

static bool reads_files(const struct sl_experiment *e)
{
	bool reads = e->calibration.file[0] || e->calibration.gains[0];

	sl_experiment_files(e, note_reading, &reads);
	return reads;
}

static bool is_large(const struct sl_geometry *g)
{
	uint64_t cells = (uint64_t)g->modules * sl_geometry_pixels(g) * (g->cells ? g->cells : 1);

	if (cells <= TABLE_CELLS_MOST)
		return false;
	sl_info("the tables of this detector are large: whether the stages fit it is left to "
		"sluice run");
	return true;
}

/* Of the detectors that attach to events. */
struct others {
	struct sl_geometry geometry[SL_EXPERIMENT_OTHERS];
	struct sl_env_detector detector[SL_EXPERIMENT_OTHERS];
};

static int check_stages(struct sl_experiment *e, const struct sl_geometry *geometry,
			const struct others *others)
{
	struct sl_env env = {
		.geometry = geometry,
		.other = others->detector,
		.others = e->others,
		.detector = e->detector,
		.detector_state = e->detector_state,
		.frame_rate_Hz = e->run.frame_rate_Hz,
		.batch_frames = e->unit_options.batch,
	};
	struct sl_calibrated calibrated = {0};
	struct sl_calibration calibration;
	struct sl_chain_build build;
	int err = sl_calibrate(e, geometry, &calibrated, &calibration);

	if (err > 0)
		env.calibration = &calibration;
	if (err >= 0) {
		err = sl_chain_open(e, &env, &build);
		if (!err)
			sl_chain_close(&build);
	}
	sl_calibrated_free(&calibrated);
	return err;
}

static int open_other(const struct sl_experiment_other *other, struct sl_geometry *geometry)
{
	struct sl_experiment *e = other->experiment;
	struct sl_lines lines;
	int err = sl_experiment_open_detector(e, geometry);

	if (err)
		sl_error("detector '%s' cannot be opened: %s", other->name, strerror(-err));
	else
		err = sl_ring_options_lines(&e->ring, geometry, &lines);
	e->detector->close(e->detector_state);
	return err;
}

static int open_others(const struct sl_experiment *e, uint32_t modules, struct others *others)
{
	int err = 0;

	for (unsigned i = 0; i < e->others && !err; i++) {
		err = open_other(&e->other[i], &others->geometry[i]);
		others->detector[i] = (struct sl_env_detector){.name = e->other[i].name,
							       .geometry = &others->geometry[i],
							       .first_module = modules};
		modules += others->geometry[i].modules;
	}
	return err;
}

int sl_receiver_check(struct sl_experiment *e)
{
	struct others others;
	struct sl_geometry geometry;
	struct sl_lines lines;
	int err, stages;

	if (reads_files(e))
		return 0;
	err = sl_experiment_open_detector(e, &geometry);
	if (err) {
		sl_error("detector '%s' cannot be opened: %s", e->detector->name, strerror(-err));
	} else {
		err = sl_ring_options_lines(&e->ring, &geometry, &lines);
		if (!err)
			err = open_others(e, geometry.modules, &others);
		stages = err || is_large(&geometry) ? 0 : check_stages(e, &geometry, &others);
		err = err ? err : stages;
	}
	e->detector->close(e->detector_state); /* due even when open() failed */
	return err;
}
