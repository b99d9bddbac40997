/* calibrate.c - sluice calibrate: a run whose dark frames end in a calibration file.
 *
 * The run is that of the experiment file, with the sink `calibration` in the place of its stages
 * and sinks; options of that sink are options of this command. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/calibrate/calibrate.h"
#include "cmd/run/run.h"
#include "cmd/signals.h"
#include "core/registry.h"
#include "monitor/summary.h"
#include "session/outputs.h"
#include "sink/calibration.h"

enum { OPTIONS = 48, ALIGN = 64 };

struct calibrate_options {
	uint32_t summary_version;
	char output[256], file[384], dataset[128], summary[1024], transfer[SL_TRANSFER_NAME];
	uint64_t frames;
	bool quiet;
};

static const struct sl_option own[] = {
	SL_STRING(struct calibrate_options, output, "", "the calibration file; must be given"),
	SL_U64(struct calibrate_options, frames, 0, 0, 1e9, "frames",
	       "dark frames to take (detector.dark_frames); 0: as many as the file says"),
	SL_STRING(struct calibrate_options, file, "",
		  "take them from this file, HDF5 or raw binary, rather than from the detector"),
	SL_STRING(struct calibrate_options, dataset, "", "where in it; empty: found"),
	SL_U32(struct calibrate_options, summary_version, 2, 1, SL_SUMMARY_VERSION, "",
	       "words of the summary: 2, or 1 as before"),
	SL_STRING(struct calibrate_options, summary, "",
		  "write the outcome of the run to this file, as JSON"),
	SL_STRING(struct calibrate_options, transfer, "",
		  "receive this one of the file's transfers"),
	SL_BOOL(struct calibrate_options, quiet, false,
		"no progress line and no report of the run"),
	SL_OPTION_END,
};

struct calibrate {
	const struct sl_sink *sink;
	struct calibrate_options *options;
	struct sl_calibration_sink *sink_options; /* the sink's state before it is opened */
	struct sl_option table[OPTIONS];
	struct sl_args args;
	char set[2][64];
};

static int set_sink(struct calibrate *c, const char *name, const char *value)
{
	char why[200];
	int err = sl_options_set(c->sink->options, c->sink_options, name, value, why, sizeof(why));

	if (err)
		sl_error("%s '%s': %s", name, value, why);
	return err;
}

/* One table for both: the sink's options follow ours in memory. `path` is our `output`. */
static int make_table(struct calibrate *c)
{
	size_t before = (sizeof(struct calibrate_options) + ALIGN - 1) / ALIGN * ALIGN;
	uint8_t *memory = calloc(1, before + c->sink->state_bytes);
	unsigned n = 0;

	if (!memory)
		return -ENOMEM;
	c->options = (void *)memory;
	c->sink_options = (void *)(memory + before);
	for (const struct sl_option *o = own; o->name; o++)
		c->table[n++] = *o;
	for (const struct sl_option *o = c->sink->options; o->name && n < OPTIONS - 1; o++) {
		if (o->offset == offsetof(struct sl_calibration_sink, path) ||
		    o->offset == offsetof(struct sl_calibration_sink, frames_max))
			continue;
		c->table[n] = *o;
		c->table[n++].offset += before;
	}
	c->table[n] = (struct sl_option)SL_OPTION_END;
	sl_options_defaults(c->sink->options, c->sink_options);
	return 0;
}

/* Stages and sinks make room for the one sink. */
static int change(void *arg, struct sl_experiment *e)
{
	struct calibrate *c = arg;
	void *state = malloc(c->sink->state_bytes);

	if (!state)
		return -ENOMEM;
	if (!c->sink_options->all && !e->run.dark_frames && !e->run.dark_every) {
		sl_error(
			"%s has no dark frames (detector.dark_frames): say how many with --frames, "
			"or --all where all are dark",
			c->args.plain[0]);
		free(state);
		return -EINVAL;
	}
	for (unsigned i = 0; i < SL_EXPERIMENT_STAGES; i++) {
		free(e->stage_state[i]);
		e->stage_state[i] = NULL;
	}
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++) {
		free(e->sink_state[i]);
		e->sink_state[i] = NULL;
	}
	memcpy(state, c->sink_options, c->sink->state_bytes);
	e->stages = 0;
	e->sinks = 1;
	e->sink[0] = c->sink;
	e->sink_state[0] = state;
	return 0;
}

/* --frames: so many dark ones. There is always a bright one; it is left out. */
static int set_frames(struct calibrate *c)
{
	unsigned long long frames = c->options->frames;
	bool all = c->sink_options->all;
	char text[32];

	if (!frames)
		return 0;
	if (c->args.sets + 2 > SL_ARGS_SETS) {
		sl_error("more than %d times --set", SL_ARGS_SETS - 2);
		return -EINVAL;
	}
	snprintf(c->set[0], sizeof(c->set[0]), "detector.dark_frames=%llu", all ? 0 : frames);
	snprintf(c->set[1], sizeof(c->set[1]), "detector.frames=%llu", all ? frames : 1);
	c->args.set[c->args.sets++] = c->set[0];
	c->args.set[c->args.sets++] = c->set[1];
	snprintf(text, sizeof(text), "%llu", frames);
	return set_sink(c, "frames_max", text);
}

static enum sl_result run(struct calibrate *c)
{
	struct sl_run_plan plan = {
		.args = &c->args,
		.transfer = c->options->transfer,
		.summary = c->options->summary,
		.summary_version = c->options->summary_version,
		.quiet = c->options->quiet,
		.change = change,
		.arg = c,
	};

	return sl_run(&plan);
}

static enum sl_result run_live(struct calibrate *c)
{
	struct sl_transfer_names names;

	if (set_frames(c) ||
	    sl_experiment_transfers(c->args.plain[0], c->args.set, c->args.sets, &names))
		return SL_RESULT_ERROR;
	if (names.n > 1 && !c->options->transfer[0]) {
		sl_error("%s has %u transfers: choose one with --transfer", c->args.plain[0],
			 names.n);
		return SL_RESULT_ERROR;
	}
	return run(c);
}

/* All that is in the file is dark, and of the detector that the experiment describes. */
static enum sl_result run_file(struct calibrate *c)
{
	struct sl_dark_file dark = {.file = c->options->file,
				    .dataset = c->options->dataset,
				    .frames = c->options->frames};
	struct sl_experiment *e;
	enum sl_result result = SL_RESULT_ERROR;
	int err = sl_experiment_open_no_sinks(c->args.plain[0], c->options->transfer, c->args.set,
					      c->args.sets, &e);

	if (err)
		return SL_RESULT_ERROR;
	err = sl_dark_file_open(e, &dark);
	/* The file does not tell whether its pixels have gains; the detector does. One that plays
	 * files knows a mask at most. */
	if (!err && c->sink_options->gain == SL_CALIBRATION_AUTO && e->generator->calibration &&
	    !e->generator->files)
		err = set_sink(c, "gain", "g0");
	if (!err)
		err = set_sink(c, "all", "true");
	sl_experiment_close(e);
	if (!err) {
		c->args = (struct sl_args){.plain = {dark.path}, .plains = 1};
		c->options->transfer[0] = 0;
		result = run(c);
	}
	if (dark.path[0])
		unlink(dark.path);
	return result;
}

/* A file that is written anew is another one than was there before. */
static ino_t number_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

static int calibrate(struct calibrate *c, const struct sl_command *command, int argc, char **argv)
{
	enum sl_result result;
	const char *output;
	ino_t before;
	int err = sl_args_read(command, c->table, c->options, argc, argv, &c->args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (c->args.plains != 1 || !c->options->output[0]) {
		sl_error("%s? usage: sluice %s",
			 c->args.plains != 1 ? "which experiment" : "where to (--output)",
			 command->usage);
		return SL_RESULT_ERROR;
	}
	output = c->options->output;
	if (sl_outputs_spare(c->args.plain[0], &output, 1) ||
	    sl_outputs_spare(c->options->file, &output, 1) || set_sink(c, "path", output))
		return SL_RESULT_ERROR;
	sl_signals_catch();
	before = number_of(c->options->output);
	result = c->options->file[0] ? run_file(c) : run_live(c);
	if (result == SL_RESULT_ERROR)
		return sl_result_exit(result);
	/* What was lost on the way is not in the sums; what they have is written all the same. */
	if (number_of(c->options->output) == before) {
		sl_error("'%s' was not written", c->options->output);
		return SL_RESULT_ERROR;
	}
	if (!sl_calibration_print(c->options->output))
		return sl_result_exit(result);
	sl_error("'%s' is removed", c->options->output);
	unlink(c->options->output);
	return SL_RESULT_ERROR;
}

int sl_cmd_calibrate(const struct sl_command *command, int argc, char **argv)
{
	struct calibrate c = {.sink = sl_sink_find("calibration")};
	int status;

	if (!c.sink) {
		sl_error("this program was built without HDF5 and writes no calibration files");
		return SL_RESULT_ERROR;
	}
	if (make_table(&c))
		return SL_RESULT_ERROR;
	status = calibrate(&c, command, argc, argv);
	free(c.options);
	return status;
}
