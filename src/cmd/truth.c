/* truth.c - sluice truth: what is known of an experiment's synthetic frames, as HDF5.
 *
 *   /truth          attribute: detector
 *     experiment    the file as it was read
 *     frame_number, dark, hit, count, first_row       [frames]: of each frame of the run in turn;
 *                                                      count rows from first_row on are its
 *     table/NAME    [rows]: a column of the detector's table each, with its units
 *
 * Detectors without a table have counts only. */
#include "cmd/truth.h"
#include "session/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "experiment/experiment.h"
#include "hdf5/file.h"

enum { ROWS_PER_CHUNK = 4096 };

struct truth_options {
	char output[1024], transfer[SL_TRANSFER_NAME];
	uint64_t frames;
};

static const struct sl_option options[] = {
	SL_STRING(struct truth_options, output, "truth.h5", "the file"),
	SL_U64(struct truth_options, frames, 0, 0, 1e12, "frames",
	       "how many of the run's, dark ones too; 0: all"),
	SL_STRING(struct truth_options, transfer, "", "of the file's transfers, this one"),
	SL_OPTION_END,
};

struct writer {
	const struct sl_detector *detector;
	void *state;
	struct sl_h5 *file;
	struct sl_h5_series *frame, *dark, *hit, *count, *first;
	struct sl_h5_series *column[SL_TRUTH_COLUMNS];
	uint32_t columns, room; /* rows that the table has room for */
	double *table;
	uint64_t rows;
};

static void begin(struct writer *w, const struct sl_experiment *e)
{
	const struct sl_h5_shape u64 = {.type = SL_H5_U64}, u8 = {.type = SL_H5_U8};
	const struct sl_h5_shape f64 = {.type = SL_H5_F64};
	char path[128];

	sl_h5_group(w->file, "/truth", "NXcollection");
	sl_h5_attribute_text(w->file, "/truth", "detector", w->detector->name);
	sl_h5_write_text(w->file, "/truth/experiment", e->text);
	sl_h5_series_open(w->file, "/truth/frame_number", &u64, ROWS_PER_CHUNK, &w->frame);
	sl_h5_series_open(w->file, "/truth/dark", &u8, ROWS_PER_CHUNK, &w->dark);
	sl_h5_series_open(w->file, "/truth/hit", &u8, ROWS_PER_CHUNK, &w->hit);
	sl_h5_series_open(w->file, "/truth/count", &u64, ROWS_PER_CHUNK, &w->count);
	sl_h5_series_open(w->file, "/truth/first_row", &u64, ROWS_PER_CHUNK, &w->first);
	sl_h5_group(w->file, "/truth/table", "NXcollection");
	for (const struct sl_truth_column *c = w->detector->truth_columns;
	     c && c->name && w->columns < SL_TRUTH_COLUMNS; c++) {
		snprintf(path, sizeof(path), "/truth/table/%s", c->name);
		sl_h5_series_open(w->file, path, &f64, ROWS_PER_CHUNK, &w->column[w->columns++]);
		if (c->unit[0])
			sl_h5_attribute_text(w->file, path, "units", c->unit);
	}
}

/* Room for all rows of a frame. */
static int grow(struct writer *w, uint32_t rows)
{
	double *more;

	if (rows <= w->room)
		return 0;
	more = realloc(w->table, (size_t)rows * w->columns * sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->table = more;
	w->room = rows;
	return 0;
}

static int add_frame(struct writer *w, uint64_t frame, bool is_dark)
{
	uint32_t flags = is_dark ? SL_RECORD_DARK : 0, rows = 0;
	uint8_t dark = is_dark, hit;
	struct sl_truth truth;
	uint64_t count;
	int err;

	w->detector->truth(w->state, frame, flags, &truth);
	if (w->detector->truth_rows)
		rows = w->detector->truth_rows(w->state, frame, flags, w->table, w->room);
	if (rows > w->room) {
		err = grow(w, rows);
		if (err)
			return err;
		w->detector->truth_rows(w->state, frame, flags, w->table, w->room);
	}
	err = sl_h5_reserve(w->file, (uint64_t)rows * w->columns * sizeof(double) + 64);
	if (err)
		return err;
	hit = truth.hit;
	count = truth.spots;
	sl_h5_series_append(w->frame, &frame);
	sl_h5_series_append(w->dark, &dark);
	sl_h5_series_append(w->hit, &hit);
	sl_h5_series_append(w->count, &count);
	sl_h5_series_append(w->first, &w->rows);
	for (uint32_t i = 0; i < rows * w->columns; i++)
		sl_h5_series_append(w->column[i % w->columns], &w->table[i]);
	w->rows += rows;
	return sl_h5_status(w->file);
}

static int write_frames(struct writer *w, const struct sl_experiment *e,
			const struct sl_geometry *geometry, uint64_t most)
{
	struct sl_darks darks = sl_detector_darks(&e->run);
	uint64_t frames = sl_detector_frames(&e->run, geometry);
	int err = sl_h5_status(w->file);

	if (frames == UINT64_MAX && !most) {
		sl_error("the truth of an endless run has no end: set detector.frames");
		return -EINVAL;
	}
	if (most && frames > most)
		frames = most;
	for (uint64_t k = 0; k < frames && !err; k++)
		err = add_frame(w, sl_geometry_frame(geometry, k), sl_darks_has(&darks, k));
	return err;
}

static int write_file(const struct sl_experiment *e, const struct sl_geometry *geometry,
		      const char *path, uint64_t most)
{
	struct writer w = {.detector = e->detector, .state = e->detector_state};
	int err = sl_h5_create(path, &w.file);

	if (err)
		return err;
	begin(&w, e);
	err = write_frames(&w, e, geometry, most);
	if (err) {
		sl_error("%s: the truth was not written: %s", path, strerror(-err));
		sl_h5_abandon(w.file);
	} else {
		err = sl_h5_finish(w.file);
	}
	free(w.table);
	return err;
}

int sl_truth_write(const struct sl_args *args, const char *transfer, const char *path,
		   uint64_t most)
{
	struct sl_experiment *e = NULL;
	struct sl_geometry geometry;
	int err = sl_experiment_open(args->plain[0], transfer, args->set, args->sets, &e);

	if (err)
		return err;
	err = sl_experiment_open_detector(e, &geometry);
	if (!err)
		err = write_file(e, &geometry, path, most);
	e->detector->close(e->detector_state);
	sl_experiment_close(e);
	return err;
}

int sl_cmd_truth(const struct sl_command *command, int argc, char **argv)
{
	struct truth_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);
	const char *output;

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return 1;
	}
	output = o.output;
	if (sl_outputs_spare(args.plain[0], &output, 1))
		return 1;
	return sl_truth_write(&args, o.transfer, o.output, o.frames) ? 1 : 0;
}
