/* run.c - sluice run: a session with one run, its progress line, and its report. */
#include "cmd/run/run.h"
#include "cmd/print.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/run/all.h"
#include "cmd/signals.h"
#include "cmd/truth.h"
#include "monitor/report.h"
#include "monitor/summary.h"
#include "session/child.h"
#include "session/probe.h"
#include "session/session.h"

enum { LOOK_MS = 20 };

struct sl_run_options {
	bool emulate, live, quiet, still;
	uint32_t summary_version;
	char name[64];
	char summary[1024], outcomes[1024], port_file[1024], truth[1024], root[1024],
		transfer[SL_TRANSFER_NAME];
};

struct run {
	struct sl_run_options options;
	struct sl_args args;
	const struct sl_run_plan *plan; /* NULL: as the file says */
	const char *folder;		/* of the program that started this one; NULL: none */
	const char *flight;		/* likewise: beside which summary a flight record goes */
	struct sl_session *session;
	struct sl_status status;
	bool stopped; /* the signal was passed on */
};

static const struct sl_option options[] = {
	SL_BOOL(struct sl_run_options, emulate, false,
		"start the detector side as a child process"),
	SL_BOOL(struct sl_run_options, live, false,
		"for people who look on: a sink share (latest_Hz: 10) unless the file has one, and "
		"with "
		"--root a picture in the run's folder"),
	SL_STRING(
		struct sl_run_options, root, "",
		"make a folder for this run in that one, with a number; relative paths of outputs "
		"begin there"),
	SL_STRING(struct sl_run_options, summary, "",
		  "write the outcome of the run to this file, as JSON"),
	SL_U32(struct sl_run_options, summary_version, 2, 1, SL_SUMMARY_VERSION, "",
	       "words of the summary: 2, or 1 as before"),
	SL_STRING(struct sl_run_options, outcomes, "",
		  "write a line per module-frame to this file: sequence module outcome cause"),
	SL_STRING(struct sl_run_options, port_file, "",
		  "write the control port (the link's, where nothing goes back to the detector) to "
		  "this file once front ends may come"),
	SL_STRING(struct sl_run_options, truth, "",
		  "write what is known of the run's synthetic frames to this file, as HDF5"),
	SL_STRING(struct sl_run_options, transfer, "",
		  "receive this one of the file's transfers; otherwise all, a process each"),
	SL_STRING(struct sl_run_options, name, "",
		  "name for sluice ps and sluice ctl; otherwise the file's, with a number where "
		  "that is taken"),
	SL_BOOL(struct sl_run_options, quiet, false, "no progress line and no report"),
	SL_BOOL(struct sl_run_options, still, false, "no progress line"),
	SL_OPTION_END,
};

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int open_session(struct run *run)
{
	const struct sl_run_options *o = &run->options;
	char name[64];
	const struct sl_session_hooks hooks = {
		.change = run->plan ? run->plan->change : NULL,
		.arg = run->plan ? run->plan->arg : NULL,
		.truth = o->truth,
		.folder = run->folder,
		.flight = run->flight,
		.report = !o->quiet,
		.still = o->still,
		.quiet = o->quiet,
		.single = true,
		.any_name = !o->name[0],
		.may_lack_socket = true,
	};
	const struct sl_session_options options = {
		.bytes = sizeof(options),
		.path = run->args.plain[0],
		.transfer = or_null(o->transfer),
		.set = run->args.set,
		.sets = run->args.sets,
		.emulate = o->emulate,
		.live = o->live,
		.summary = or_null(o->summary),
		.outcomes = or_null(o->outcomes),
		.port_file = or_null(o->port_file),
		.summary_version = o->summary_version,
		.program = sl_child_self(),
		.root = or_null(o->root),
		.name = o->name[0] ? o->name : name,
	};

	sl_experiment_name(run->args.plain[0], o->transfer, name, sizeof(name));
	return sl_session_open_with(&options, &hooks, &run->session, NULL);
}

static void pass_signals_on(struct run *run)
{
	if (sl_signal && !run->stopped) {
		if (sl_session_wait(run->session, 1 << SL_STATE_RUNNING, 0) == SL_STATE_RUNNING)
			sl_info("%s: stopping the front ends; once more to give up at once",
				sl_signal_name(sl_signal));
		sl_session_stop(run->session, sl_signal_name(sl_signal));
		run->stopped = true;
	}
	/* A client's stop may have come before the start. */
	if (sl_session_asked_to_close(run->session))
		sl_session_stop(run->session, "request");
	if (sl_front_end_ended)
		sl_session_no_front_end(run->session);
}

/* Until the run has ended, or failed. */
static void watch(struct run *run)
{
	const uint32_t over = 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT;
	const uint32_t begun = over | 1 << SL_STATE_RUNNING | 1 << SL_STATE_STOPPING;
	bool draws = !run->options.quiet && !run->options.still;
	struct sl_progress_line line;

	while (sl_session_wait(run->session, begun, LOOK_MS) < 0)
		pass_signals_on(run);
	sl_progress_line_begin(&line);
	while (sl_session_wait(run->session, over, LOOK_MS) < 0) {
		pass_signals_on(run);
		if (!draws || !sl_progress_line_is_due(&line))
			continue;
		sl_session_status(run->session, &run->status, sizeof(run->status));
		sl_progress_line_draw(&line, &run->status);
	}
	sl_session_status(run->session, &run->status, sizeof(run->status));
	if (draws && run->status.ended_unix_ns)
		sl_progress_line_end(&line, &run->status);
}

/* A pipe that is not read must not keep this process. */
static int print_report(const struct sl_status *status)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int err = -ENOMEM;

	if (out) {
		sl_report(out, status);
		if (!fclose(out))
			err = sl_print_bounded(text, bytes);
	}
	free(text);
	return err;
}

static enum sl_result report(struct run *run)
{
	/* The report tells what became of the data; an output that failed is an error beside it. */
	enum sl_result result = sl_session_exit(run->session) == SL_RESULT_ERROR
					? SL_RESULT_ERROR
					: (enum sl_result)run->status.result;
	int err;

	if (!run->status.ended_unix_ns || run->options.quiet)
		return result; /* it never began */
	err = print_report(&run->status);
	if (!err)
		return result;
	sl_error("the report could not be written: %s",
		 err == -ETIMEDOUT ? "stdout is not read" : strerror(-err));
	return SL_RESULT_ERROR;
}

/* What was sent; 0: as many frames as the experiment says. */
static uint64_t frames_of_endless(const struct sl_status *status)
{
	uint64_t most = 1;

	for (uint32_t m = 0; m < status->modules; m++)
		if (status->column[m].settled > most)
			most = status->column[m].settled;
	return status->expected_frames ? 0 : most;
}

static enum sl_result run_one(struct run *run)
{
	enum sl_result result;

	if (open_session(run))
		return SL_RESULT_ERROR;
	if (sl_session_start(run->session)) {
		sl_session_close(run->session);
		return SL_RESULT_ERROR;
	}
	watch(run);
	result = report(run);
	sl_session_close(run->session);
	if (run->options.truth[0] && result != SL_RESULT_ERROR &&
	    sl_truth_write(&run->args, run->options.transfer, run->options.truth,
			   frames_of_endless(&run->status)))
		result = SL_RESULT_ERROR;
	return result;
}

enum sl_result sl_run(const struct sl_run_plan *plan)
{
	struct run run = {.args = *plan->args, .plan = plan};

	sl_options_defaults(options, &run.options);
	run.options.quiet = plan->quiet;
	snprintf(run.options.transfer, sizeof(run.options.transfer), "%s", plan->transfer);
	snprintf(run.options.summary, sizeof(run.options.summary), "%s", plan->summary);
	run.options.summary_version = plan->summary_version;
	return run_one(&run);
}

/* Every transfer's file is read before any receiver begins: mistakes are told at once. */
static int run_many(struct run *run, const struct sl_transfer_names *names)
{
	struct sl_run_all all = {
		.args = &run->args,
		.names = names,
		.emulate = run->options.emulate,
		.live = run->options.live,
		.quiet = run->options.quiet,
		.summary = run->options.summary,
		.summary_version = run->options.summary_version,
		.outcomes = run->options.outcomes,
		.root = run->options.root,
		.name = run->options.name,
	};

	if (run->options.port_file[0] || run->options.truth[0]) {
		sl_error("--port_file, --truth: each transfer has its own; name one with "
			 "--transfer");
		return SL_RESULT_ERROR;
	}
	for (unsigned i = 0; i < names->n; i++) {
		struct sl_experiment *e;

		if (sl_experiment_open(run->args.plain[0], names->name[i], run->args.set,
				       run->args.sets, &e))
			return SL_RESULT_ERROR;
		all.emulate |= e->emulate_local;
		if (e->control.token_file[0])
			snprintf(all.token_file, sizeof(all.token_file), "%s",
				 e->control.token_file);
		if (e->feedback.address[0] && all.feedback_wait_s <= e->feedback.wait_s)
			all.feedback_wait_s = e->feedback.wait_s + 0.001;
		sl_experiment_close(e);
	}
	return sl_run_all(&all);
}

/* What another sluice tells the one that it starts, in its first arguments. These are no options:
 * they are not for users. */
static const char *take_first(const char *name, int *argc, char ***argv)
{
	const char *value = *argc > 2 && !strcmp((*argv)[1], name) ? (*argv)[2] : NULL;

	if (value) {
		*argc -= 2;
		*argv += 2;
	}
	return value;
}

/* For a session that wants to know whether plug-ins crash. */
static int probe(const struct run *run, const char *folder)
{
	struct sl_experiment *e;
	int err = sl_experiment_open(run->args.plain[0], or_null(run->options.transfer),
				     run->args.set, run->args.sets, &e);

	if (err)
		return SL_RESULT_ERROR;
	err = sl_probe_run(e, folder);
	sl_experiment_close(e);
	return err;
}

int sl_cmd_run(const struct sl_command *command, int argc, char **argv)
{
	const char *probed = take_first(SL_PROBE_ARGUMENT, &argc, &argv);
	struct run run = {.folder = take_first(SL_RUN_IN_FOLDER, &argc, &argv),
			  .flight = take_first(SL_RUN_FLIGHT, &argc, &argv)};
	struct sl_transfer_names names;
	int err = sl_args_read(command, options, &run.options, argc, argv, &run.args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (run.args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return SL_RESULT_ERROR;
	}
	if (probed)
		return probe(&run, probed);
	sl_signals_catch();
	if (sl_experiment_transfers(run.args.plain[0], run.args.set, run.args.sets, &names))
		return SL_RESULT_ERROR;
	return names.n > 1 && !run.options.transfer[0] ? run_many(&run, &names)
						       : sl_result_exit(run_one(&run));
}
