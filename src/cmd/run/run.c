/* run.c - sluice run: the receiving side from file to ledger. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/outputs.h"
#include "cmd/run/all.h"
#include "cmd/run/child.h"
#include "cmd/run/state.h"
#include "cmd/signals.h"
#include "cmd/truth.h"
#include "monitor/summary.h"

static const struct sl_option options[] = {
	SL_BOOL(struct sl_run_options, emulate, false,
		"start the detector side as a child process"),
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
	SL_BOOL(struct sl_run_options, quiet, false, "no progress line and no report"),
	SL_BOOL(struct sl_run_options, still, false, "no progress line"),
	SL_OPTION_END,
};

static enum sl_result conclude(struct sl_run_state *run)
{
	struct sl_status *status = &run->status;
	const char *signal = sl_signal_name(sl_signal), *early;
	bool failed = false;

	sl_receiver_status(run->receiver, status);
	status->started_unix_ns = run->started_unix_ns;
	status->ended_unix_ns = sl_clock_unix_ns();
	snprintf(status->experiment, sizeof(status->experiment), "%s", run->args.plain[0]);
	snprintf(status->stopped_by, sizeof(status->stopped_by), "%s", signal ? signal : "");
	early = sl_result_early(status);
	snprintf(status->early, sizeof(status->early), "%s", early ? early : "");
	status->result = sl_result_of(status);
	if (!run->options.quiet) {
		sl_report(stdout, status);
		if (ferror(stdout)) {
			sl_error("the report could not be written: %s", strerror(errno));
			failed = true;
		}
	}
	if (run->options.summary[0] &&
	    sl_summary_write(run->options.summary, status, run->options.summary_version))
		failed = true;
	failed |= status->unsaved;
	return failed ? SL_RESULT_ERROR : (enum sl_result)status->result;
}

static int check_outputs(const struct sl_run_state *run)
{
	const char *const ours[] = {run->options.summary, run->options.outcomes,
				    run->options.port_file, run->options.truth};

	return sl_outputs_check_run(run->experiment, run->args.plain[0], ours, 4);
}

/* A front end that listens for answers stays until it has them, and has a say in the result. */
static enum sl_result end_child(struct sl_run_state *run, enum sl_result result)
{
	const struct sl_feedback_options *feedback = &run->experiment->feedback;
	bool listens = feedback->address[0] && result != SL_RESULT_ERROR;
	uint64_t end = sl_clock_ns() + (uint64_t)(feedback->wait_s * 1e9);

	while (listens && run->child && sl_child_alive(&run->child, &run->child_status) &&
	       sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + SL_RUN_POLL_MS * UINT64_C(1000000));
	sl_child_end(&run->child, &run->child_status);
	if (!listens || !run->experiment->emulate_local || !run->child_status)
		return result;
	sl_error("the front end did not hear exactly one answer to each event, or failed");
	return result == SL_RESULT_INTACT || result == SL_RESULT_EMPTY ? SL_RESULT_ERROR : result;
}

/* Sources that begin by themselves need slots before they are told anything. */
static int start_early(struct sl_run_state *run)
{
	int err;

	if (!sl_controls_start_alone(&run->controls))
		return 0;
	err = sl_receiver_start(run->receiver);
	run->started = !err;
	return err ? err : sl_receiver_wait_open(run->receiver);
}

static int start(struct sl_run_state *run)
{
	int err = run->started ? 0 : sl_receiver_start(run->receiver);

	if (!err && !run->options.quiet && !run->options.still)
		sl_receiver_log(run->receiver);
	return err;
}

static enum sl_result run_experiment(struct sl_run_state *run)
{
	enum sl_result result = SL_RESULT_ERROR;

	run->started_unix_ns = sl_clock_unix_ns();
	if (check_outputs(run) ||
	    sl_run_handover_open(&run->handover, run->experiment,
				 run->options.outcomes[0] ? run->options.outcomes : NULL,
				 &run->receiver))
		return SL_RESULT_ERROR;
	if (sl_run_open_controls(run) || start_early(run) || sl_run_write_port_file(run) ||
	    (run->experiment->emulate_local && sl_run_spawn_child(run)) ||
	    sl_run_wait_for_sources(run) || sl_run_handover_store(&run->handover, run->receiver) ||
	    start(run))
		goto undo_receiver;
	sl_run_acquire(run);
	/* In this order: what a source sent is safe before it is told that it may forget it. */
	sl_receiver_finish(run->receiver);
	sl_run_handover_end(&run->handover, run->receiver);
	sl_controls_bye(&run->controls);
	result = conclude(run);

undo_receiver:
	sl_controls_close(&run->controls); /* a child notices and ends */
	result = end_child(run, result);
	sl_receiver_close(run->receiver);
	sl_run_handover_close(&run->handover);
	return result;
}

static enum sl_result run_one(struct sl_run_state *run)
{
	enum sl_result result;

	if (sl_experiment_open(run->args.plain[0], run->options.transfer, run->args.set,
			       run->args.sets, &run->experiment))
		return SL_RESULT_ERROR;
	if (run->plan && run->plan->change(run->plan->arg, run->experiment)) {
		sl_experiment_close(run->experiment);
		return SL_RESULT_ERROR;
	}
	run->experiment->emulate_local |= run->options.emulate;
	if (run->experiment->transfer[0])
		snprintf(run->transfer_path, sizeof(run->transfer_path), "transfers.%s.",
			 run->experiment->transfer);
	result = run_experiment(run);
	sl_experiment_close(run->experiment);
	if (run->options.truth[0] && result != SL_RESULT_ERROR &&
	    sl_truth_write(&run->args, run->options.transfer, run->options.truth, 0))
		result = SL_RESULT_ERROR;
	return result;
}

enum sl_result sl_run(const struct sl_run_plan *plan)
{
	struct sl_run_state run = {.args = *plan->args, .plan = plan};

	sl_options_defaults(options, &run.options);
	run.options.quiet = plan->quiet;
	snprintf(run.options.transfer, sizeof(run.options.transfer), "%s", plan->transfer);
	snprintf(run.options.summary, sizeof(run.options.summary), "%s", plan->summary);
	run.options.summary_version = plan->summary_version;
	return run_one(&run);
}

/* Every transfer's file is read before any receiver begins: mistakes are told at once. */
static int run_many(struct sl_run_state *run, const struct sl_transfer_names *names)
{
	struct sl_run_all all = {
		.args = &run->args,
		.names = names,
		.emulate = run->options.emulate,
		.quiet = run->options.quiet,
		.summary = run->options.summary,
		.summary_version = run->options.summary_version,
		.outcomes = run->options.outcomes,
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
		if (e->feedback.address[0] && all.feedback_wait_s <= e->feedback.wait_s)
			all.feedback_wait_s = e->feedback.wait_s + 0.001;
		sl_experiment_close(e);
	}
	return sl_run_all(&all);
}

int sl_cmd_run(const struct sl_command *command, int argc, char **argv)
{
	struct sl_run_state run = {0};
	struct sl_transfer_names names;
	int err = sl_args_read(command, options, &run.options, argc, argv, &run.args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (run.args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return SL_RESULT_ERROR;
	}
	sl_signals_catch();
	if (sl_experiment_transfers(run.args.plain[0], run.args.set, run.args.sets, &names))
		return SL_RESULT_ERROR;
	return names.n > 1 && !run.options.transfer[0] ? run_many(&run, &names)
						       : sl_result_exit(run_one(&run));
}
