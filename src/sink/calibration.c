/* calibration.c - pedestal, noise and bad pixels from the dark frames of a run, in a file.
 *
 * Dark frames are those that their source marks so; with `all`, every one. A run measures one gain:
 * G0 as a rule, G1 or G2 where the detector is forced into it. Pedestals of the others and gains
 * come from `base`, an earlier file, or else are what the run has (calibration.file and gains, or
 * the detector's own).
 *
 * The file is written when the run ends well, and has its name only when it is whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/log.h"
#include "calibration/sums.h"
#include "sink/calibration.h"

struct calibration {
	struct sl_calibration_sink o; /* first: options, see calibration.h */

	const struct sl_env *env;
	struct sl_sums sums;
	struct sl_tables tables;
	struct sl_bad bad;
	uint64_t frames, left_out; /* taken; bright ones, and those beyond frames_max */
	bool open;
};

static const struct sl_option options[] = {
	SL_OUTPUT(struct sl_calibration_sink, path, "calibration.h5",
		  "the file; missing folders are created"),
	SL_CHOICE(
		struct sl_calibration_sink, gain, auto, "auto|g0|g1|g2|plain",
		"gain that is measured; auto: g0 where the detector has gains, else plain: pixels "
		"are numbers without gain bits"),
	SL_STRING(struct sl_calibration_sink, base, "",
		  "calibration file that has what is not measured here"),
	SL_BOOL(struct sl_calibration_sink, all, false,
		"take all frames for dark ones, marked or not: there is no beam"),
	SL_U64(struct sl_calibration_sink, frames_max, 0, 0, 4e9, "frames",
	       "take no more than so many; 0: all"),
	SL_F64(struct sl_calibration_sink, pedestal_min, 0, -1e9, 1e9, "ADU",
	       "a pixel with less is bad; 0: no such bound"),
	SL_F64(struct sl_calibration_sink, pedestal_max, 0, -1e9, 1e9, "ADU", "and one with more"),
	SL_F64(struct sl_calibration_sink, rms_min, 0, 0, 1e9, "ADU",
	       "a pixel with less noise is bad"),
	SL_F64(struct sl_calibration_sink, rms_max, 0, 0, 1e9, "ADU", "and one with more"),
	SL_F64(struct sl_calibration_sink, spreads, 10, 0, 1e6, "",
	       "pedestal or noise further than so many spreads from the module's median is bad; 0: "
	       "no such bound"),
	SL_F64(struct sl_calibration_sink, wrong_share, 0.01, 0, 1, "",
	       "a pixel with a larger share of its samples in another gain is bad; 0: no such "
	       "bound"),
	SL_BOOL(struct sl_calibration_sink, stuck, true,
		"a pixel that always reads the same is bad"),
	SL_OPTION_END};

static int gain_of(const struct calibration *c, const struct sl_env *env)
{
	static const int gains[] = {0, 0, 1, 2, -1};

	if (c->o.gain == SL_CALIBRATION_AUTO &&
	    (!sl_calibration_has_gains(env->calibration) || env->geometry->dtype != SL_U16))
		return -1;
	return gains[c->o.gain];
}

/* What the run works with is stored beside what is measured: one file is all that `correct`
 * needs. */
static int take(struct calibration *c, const float *from, uint32_t from_cells, uint32_t cells,
		float **table)
{
	uint64_t pixels = c->tables.pixels;
	int err;

	if (*table || !from)
		return 0;
	err = sl_tables_make(&c->tables, table, cells);
	for (uint32_t cell = 0; cell < cells && !err; cell++)
		memcpy(*table + cell * pixels, from + cell % from_cells * pixels,
		       pixels * sizeof(float));
	return err;
}

static int take_others(struct calibration *c, const struct sl_calibration *own)
{
	uint32_t own_cells = own && own->cells ? own->cells : 1;
	int err = 0;

	for (int g = 0; g < SL_GAINS && own && !err; g++) {
		err = take(c, own->gain[g], 1, 1, &c->tables.gain[g]);
		if (!err && g != c->sums.gain)
			err = take(c, own->pedestal[g], own_cells, c->tables.cells,
				   &c->tables.pedestal[g]);
	}
	return err;
}

static int reads(const void *state, const char *image)
{
	return !strcmp(image, "raw");
}

static int open_calibration(void *state, const struct sl_env *env)
{
	struct calibration *c = state;
	int err;

	c->env = env;
	sl_tables_init(&c->tables, env->geometry);
	err = sl_sums_open(&c->sums, env->geometry, gain_of(c, env));
	if (!err && c->o.base[0])
		err = sl_calibration_read(c->o.base, &c->tables);
	if (!err && c->sums.gain >= 0)
		err = take_others(c, env->calibration);
	c->open = !err;
	return err;
}

static int put(void *state, struct sl_frame *frame)
{
	struct calibration *c = state;
	const struct sl_array *raw = sl_frame_result(frame, "raw");
	uint64_t bytes = c->env->geometry->module_bytes;

	if (!sl_frame_goes_on(frame))
		return 0;
	if (!raw || !raw->host)
		return -EINVAL;
	if ((!c->o.all && !(frame->flags & SL_FRAME_DARK)) ||
	    (c->o.frames_max && c->frames >= c->o.frames_max)) {
		c->left_out++;
		return 0;
	}
	for (uint32_t m = 0; m < c->sums.modules; m++) {
		uint16_t cell = frame->view[m].record.cell;

		if (sl_frame_misses(frame, m))
			continue;
		if (cell >= c->sums.cells) {
			sl_error("calibration: frame %" PRIu64 " is of storage cell %u, the "
				 "detector has %u",
				 frame->number, cell, c->sums.cells);
			return -EINVAL;
		}
		sl_sums_add(&c->sums, cell, m, (const uint8_t *)raw->host + m * bytes);
	}
	c->sums.frames = ++c->frames;
	return 0;
}

static int write(struct calibration *c)
{
	const struct sl_bounds bounds = {
		.pedestal_min = c->o.pedestal_min,
		.pedestal_max = c->o.pedestal_max,
		.rms_min = c->o.rms_min,
		.rms_max = c->o.rms_max,
		.spreads = c->o.spreads,
		.wrong_share = c->o.wrong_share,
		.stuck = c->o.stuck,
	};
	int err = sl_sums_tables(&c->sums, &c->tables);

	if (!err)
		err = sl_sums_mask(&c->sums, &bounds, &c->tables, &c->bad);
	return err ? err : sl_calibration_write(c->o.path, &c->tables);
}

static int close_calibration(void *state, const struct sl_status *status)
{
	struct calibration *c = state;
	int err = 0;

	if (c->open && status && !c->frames) {
		sl_warn("calibration: no dark frame came, so '%s' is not written; set "
			"detector.dark_frames, or all: true where frames are dark without saying "
			"so",
			c->o.path);
	} else if (c->open && status) {
		err = write(c);
	}
	c->open = false;
	sl_sums_close(&c->sums);
	sl_tables_free(&c->tables);
	return err;
}

static const char *where(const void *state)
{
	return ((const struct calibration *)state)->o.path;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct calibration *c = state;

	figure(arg, "frames", c->frames, 0);
	figure(arg, "frames_left_out", c->left_out, 0);
	figure(arg, "pixels_bad", c->bad.any, 0);
	figure(arg, "pixels_empty", c->bad.empty, 0);
	figure(arg, "pixels_in_wrong_gain", c->bad.gain, 0);
	figure(arg, "pixels_stuck", c->bad.stuck, 0);
	figure(arg, "pixels_pedestal", c->bad.pedestal, 0);
	figure(arg, "pixels_rms", c->bad.rms, 0);
}

/* Not `base`: open() reads all of it, and the file that is written may replace it. */
static void files(const void *state, sl_file_each *each, void *arg)
{
	each(arg, SL_FILE_WRITE, ((const struct calibration *)state)->o.path);
}

const struct sl_sink sl_sink_calibration = {
	.name = "calibration",
	.doc = "pedestal, noise and bad pixels from dark frames, written to a calibration file "
	       "(HDF5)",
	.state_bytes = sizeof(struct calibration),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_RAW,
	.reads = reads,
	.open = open_calibration,
	.put = put,
	.close = close_calibration,
	.where = where,
	.figures = figures,
	.files = files,
};
