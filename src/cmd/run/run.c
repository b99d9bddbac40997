/* run.c - sluice run: the receiving side from file to ledger. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/outputs.h"
#include "cmd/run/all.h"
#include "cmd/run/child.h"
#include "cmd/run/front_ends.h"
#include "cmd/run/handover.h"
#include "cmd/run/run.h"
#include "cmd/signals.h"
#include "cmd/truth.h"
#include "control/one_way.h"
#include "control/tcp/server.h"
#include "monitor/report.h"
#include "monitor/summary.h"
#include "receiver/receiver.h"

enum { POLL_MS = 10, STOP_GRACE_S = 30 };

struct run_options {
	bool emulate, quiet, still;
	char summary[1024], outcomes[1024], port_file[1024], truth[1024], transfer[SL_STREAM_NAME];
};

static const struct sl_option options[] = {
	SL_BOOL(struct run_options, emulate, false, "start the detector side as a child process"),
	SL_STRING(struct run_options, summary, "",
		  "write the outcome of the run to this file, as JSON"),
	SL_STRING(struct run_options, outcomes, "",
		  "write a line per module-frame to this file: sequence module outcome cause"),
	SL_STRING(struct run_options, port_file, "",
		  "write the control port (the link's, where nothing goes back to the detector) to "
		  "this file once front ends may come"),
	SL_STRING(struct run_options, truth, "",
		  "write what is known of the run's synthetic frames to this file, as HDF5"),
	SL_STRING(struct run_options, transfer, "",
		  "receive this one of the file's transfers; otherwise all, a process each"),
	SL_BOOL(struct run_options, quiet, false, "no progress line and no report"),
	SL_BOOL(struct run_options, still, false, "no progress line"),
	SL_OPTION_END,
};

struct run {
	struct run_options options;
	struct sl_args args;
	struct sl_experiment *experiment;
	struct sl_receive *receive;
	struct sl_server *server;	 /* NULL: nobody asks */
	struct sl_feroce_server *feroce; /* NULL: modules come over TCP */
	struct sl_oneway oneway;	 /* where the link goes one way */
	struct sl_progress progress;
	uint64_t expected;
	struct sl_heir heir;
	pid_t child;				 /* 0: none */
	int child_status;			 /* once it has ended */
	char transfer_path[SL_STREAM_NAME + 16]; /* of its sections in the file */
	bool stopping;
	const struct sl_run_plan *plan; /* NULL: as the file says */
};

static int accept_offer(void *arg, const struct sl_wire_hello *hello, const struct sl_offer *offer,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct run *run = arg;

	if (offer->frames > run->expected)
		run->expected = offer->frames;
	return sl_receive_accept(run->receive, offer, hello->host == sl_clock_host(), plan, why,
				 why_bytes);
}

static int take_count(void *arg, uint32_t module, const struct sl_wire_count *count, bool final,
		      char *why, size_t why_bytes)
{
	struct run *run = arg;
	uint64_t offered = run->receive->source[module].offered;
	int err = sl_receive_count(run->receive, module, count->next, count->sent, count->position,
				   final, why, why_bytes);

	if (!err && final && offered && count->next < offered && !run->stopping)
		sl_warn("module %u ends after %llu of the %llu frames that it offered", module,
			(unsigned long long)count->next, (unsigned long long)offered);
	return err;
}

static void withdraw(void *arg, uint16_t transfer)
{
	struct run *run = arg;

	sl_receive_withdraw(run->receive, transfer);
}

static void gone(void *arg, uint32_t module)
{
	struct run *run = arg;

	sl_warn("the front end of module %u vanished", module);
	sl_receive_gone(run->receive, module);
}

static void waive(void *arg, uint32_t module)
{
	struct run *run = arg;

	sl_receive_waive(run->receive, module);
}

static const struct sl_server_ops server_ops = {
	.accept = accept_offer,
	.count = take_count,
	.withdraw = withdraw,
	.gone = gone,
	.waive = waive,
};

static int open_server(struct run *run)
{
	const struct sl_experiment *e = run->experiment;
	struct sl_server_options o = {
		.address = e->control.address,
		/* With a child of our own any port will do, and two runs do not get in each
		 * other's way. */
		.port = (uint16_t)(e->emulate_local ? 0 : e->control.port),
		.token = e->control.token,
		.modules = e->feroce.enable || run->heir.adopted ? 0 : e->run.modules,
		.experiment = sl_experiment_digest(e),
		.link = e->link->wire,
		.detector = e->detector->name,
		.silence_ms = (uint32_t)(e->control.silence_s * 1000),
		/* Where frames are put together by sequence, one that comes back has no place. */
		.rejoin = e->ring.align != SL_ALIGN_SEQUENCE,
	};
	int err = 0;

	if (e->link->oneway) {
		run->expected = e->run.dark_frames + e->run.frames;
		return sl_oneway_open(&run->oneway, run->receive);
	}
	if (run->heir.adopted) {
		run->expected = run->receive->source[0].offered;
	} else if (e->feroce.enable) {
		run->expected = e->run.dark_frames + e->run.frames;
		err = sl_devices_open(e, run->receive, &run->feroce);
	}
	return err ? err : sl_server_open(&o, &server_ops, run, &run->server);
}

static void poll_front_ends(struct run *run)
{
	if (run->feroce)
		sl_feroce_server_poll(run->feroce);
	if (run->server) {
		sl_server_poll(run->server, POLL_MS);
	} else {
		sl_clock_sleep_until(sl_clock_ns() + POLL_MS * UINT64_C(1000000));
		sl_oneway_poll(&run->oneway, sl_clock_ns());
	}
	sl_heir_poll(&run->heir);
	sl_receive_serve(run->receive);
}

static uint32_t planned(const struct run *run)
{
	if (run->heir.adopted)
		return run->experiment->run.modules;
	return run->feroce ? sl_feroce_server_planned(run->feroce) : sl_server_planned(run->server);
}

static unsigned port_of(const struct run *run)
{
	return run->server ? sl_server_port(run->server) : run->receive->source[0].plan.dest.port;
}

static int write_port_file(const struct run *run)
{
	FILE *file;

	if (!run->options.port_file[0])
		return 0;
	file = fopen(run->options.port_file, "w");
	if (!file || fprintf(file, "%u\n", port_of(run)) < 0 || fclose(file) != 0) {
		sl_error("cannot write '%s': %s", run->options.port_file, strerror(errno));
		return -errno;
	}
	return 0;
}

/* The detector side as a process of its own. */
static int spawn_child(struct run *run)
{
	char port[SL_STREAM_NAME + 40];
	char *argv[2 * SL_ARGS_SETS + 11];
	int n = 0;

	snprintf(port, sizeof(port), "%s%s=%u", run->transfer_path,
		 run->server ? "control.port" : "link.port", port_of(run));
	argv[n++] = (char *)"sluice";
	argv[n++] = (char *)"emulate";
	argv[n++] = (char *)run->args.plain[0];
	for (unsigned i = 0; i < run->args.sets; i++) {
		argv[n++] = (char *)"--set";
		argv[n++] = (char *)run->args.set[i];
	}
	argv[n++] = (char *)"--set";
	argv[n++] = port;
	if (run->experiment->transfer[0]) {
		argv[n++] = (char *)"--transfer";
		argv[n++] = run->experiment->transfer;
	}
	argv[n++] = (char *)"--once";
	argv[n++] = (char *)"--quiet";
	if (!run->options.quiet)
		argv[n++] = (char *)"--report";
	argv[n] = NULL;
	return sl_child_start(argv, NULL, &run->child);
}

/* Until every module has a plan and every front end is ready. */
static int wait_for_front_ends(struct run *run)
{
	const struct sl_experiment *e = run->experiment;
	uint64_t start = sl_clock_ns();

	if (!run->server)
		return 0; /* nobody will say that he is ready */
	if (run->feroce)
		sl_info("waiting for %u FEROCE devices", e->run.modules);
	else if (!e->emulate_local && !run->options.still)
		sl_info("waiting for front ends at %s:%u (sluice emulate %s)", e->control.address,
			sl_server_port(run->server), run->args.plain[0]);
	while (!sl_server_ready(run->server) || planned(run) < e->run.modules) {
		poll_front_ends(run);
		if (sl_signal) {
			sl_info("stopped before it began");
			return -EINTR;
		}
		if (!sl_child_alive(&run->child, NULL) || sl_front_end_ended) {
			sl_error("the front end ended before the run began");
			return -ECHILD;
		}
		if ((double)(sl_clock_ns() - start) * 1e-9 > e->control.wait_s) {
			sl_error("%u of %u modules were offered within %g s (control.wait_s)",
				 planned(run), e->run.modules, e->control.wait_s);
			return -ETIMEDOUT;
		}
	}
	return 0;
}

static void stop(struct run *run)
{
	if (run->server)
		sl_server_stop(run->server);
	else
		sl_oneway_stop(&run->oneway);
	if (run->feroce)
		sl_devices_stop(run->receive, run->feroce);
	sl_heir_stop(&run->heir);
	run->stopping = true;
}

/* ring.overrun stop: the first module-frame that found no room ends the run. */
static bool overrun(const struct run *run)
{
	return run->experiment->ring.overrun == SL_OVERRUN_STOP &&
	       sl_receive_turned_away(run->receive) > 0;
}

/* That it vanished shows on its connection, where there is one. */
static void reap_child(struct run *run)
{
	if (sl_child_alive(&run->child, &run->child_status) || !run->child_status || run->server)
		return;
	sl_error("the front end failed: nothing more will come");
	sl_oneway_hasten(&run->oneway);
}

static void acquire(struct run *run)
{
	uint64_t stop_ns = 0;

	sl_progress_begin(&run->progress, run->expected);
	if (run->server)
		sl_server_start(run->server);
	else
		sl_oneway_start(&run->oneway, sl_clock_ns());
	if (run->feroce)
		sl_feroce_server_start(run->feroce);
	while (!sl_receive_done(run->receive)) {
		poll_front_ends(run);
		reap_child(run);
		if (!run->options.quiet && !run->options.still)
			sl_progress_draw(&run->progress, run->receive);
		if (sl_signal && !run->stopping) {
			sl_info("%s: stopping the front ends; once more to give up at once",
				sl_signal_name(sl_signal));
			stop(run);
			stop_ns = sl_clock_ns();
		} else if (!run->stopping && overrun(run)) {
			sl_error(
				"a front end was faster than its slots opened, and what came was "
				"turned away: stopping. Slow it down, give the ring more slots, or "
				"choose another ring.overrun");
			run->receive->overrun = true;
			stop(run);
			stop_ns = sl_clock_ns();
		}
		if (run->stopping &&
		    sl_clock_ns() - stop_ns > STOP_GRACE_S * UINT64_C(1000000000)) {
			if (run->server) /* who does not stop is left behind */
				sl_server_abandon(run->server);
			if (run->feroce)
				sl_feroce_server_abandon(run->feroce);
			sl_heir_abandon(&run->heir);
			stop_ns = sl_clock_ns();
		}
	}
	if (run->server)
		sl_server_bye(run->server);
	if (!run->options.quiet && !run->options.still)
		sl_progress_end(&run->progress, run->receive);
}

static enum sl_result conclude(struct run *run, const char *started)
{
	struct sl_summary_run summary = {
		.file = run->args.plain[0],
		.started = started,
		.stopped_by = sl_signal_name(sl_signal),
	};
	bool failed = false;

	sl_receive_finish(run->receive);
	summary.result = sl_result_of(run->receive);
	summary.early = sl_result_early(run->receive, summary.stopped_by);
	if (!run->options.quiet) {
		sl_report(stdout, run->receive, summary.result, summary.early);
		if (ferror(stdout)) {
			sl_error("the report could not be written: %s", strerror(errno));
			failed = true;
		}
	}
	if (run->options.summary[0] &&
	    sl_summary_write(run->options.summary, run->receive, &summary))
		failed = true;
	failed |= run->receive->outcomes_failed;
	return failed ? SL_RESULT_ERROR : summary.result;
}

/* A file that an add-on reads, if it has an option of that name; FILE:/DATASET is FILE. */
static int spare_input(const struct sl_option *table, const void *state, const char *name,
		       const char *const *path, size_t n)
{
	const struct sl_option *option = table ? sl_option_find(table, name) : NULL;
	char input[1024], *dataset;

	if (!option || option->type != SL_OPTION_STRING)
		return 0;
	sl_option_print(option, state, input, sizeof(input));
	dataset = access(input, F_OK) ? strstr(input, ":/") : NULL;
	if (dataset)
		*dataset = '\0';
	return sl_outputs_spare(input, path, n);
}

/* Detectors that play files, and stages that read some, name them in these options. */
static int spare_inputs(const struct sl_experiment *e, const char *const *path, size_t n)
{
	static const char *const of_detector[] = {"file", "darks"}, *const of_stage[] = {"dark",
											 "flat"};
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++)
		err = spare_input(e->source->options, e->source_state, of_detector[i], path, n);
	for (unsigned i = 0; i < 2 * e->stages && !err; i++)
		err = spare_input(e->stage[i / 2]->options, e->stage_state[i / 2], of_stage[i % 2],
				  path, n);
	return err;
}

/* Sinks name theirs in an option called path. */
static int check_outputs(const struct run *run)
{
	const struct sl_experiment *e = run->experiment;
	static char sink_path[SL_EXPERIMENT_SINKS][1024];
	const char *path[4 + SL_EXPERIMENT_SINKS] = {run->options.summary, run->options.outcomes,
						     run->options.port_file, run->options.truth};
	size_t n = 4;
	int err;

	for (unsigned i = 0; i < e->sinks; i++) {
		const struct sl_option *options_of = e->sink[i]->options;
		const struct sl_option *option = options_of ? sl_option_find(options_of, "path")
							    : NULL;

		if (!option)
			continue;
		sl_option_print(option, e->sink_state[i], sink_path[i], sizeof(sink_path[i]));
		path[n++] = sink_path[i];
	}
	/* The sinks' own must not collide; whether they can be written is theirs to find out. */
	err = sl_outputs_check(path, n, 4);
	if (!err)
		err = sl_outputs_spare(run->args.plain[0], path, n);
	return err ? err : spare_inputs(e, path, n);
}

/* A front end that listens for answers stays until it has them, and has a say in the result. */
static enum sl_result end_child(struct run *run, enum sl_result result)
{
	const struct sl_answers_options *answers = &run->experiment->answers;
	bool listens = answers->address[0] && result != SL_RESULT_ERROR;
	uint64_t end = sl_clock_ns() + (uint64_t)(answers->wait_s * 1e9);

	while (listens && run->child && sl_child_alive(&run->child, &run->child_status) &&
	       sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + POLL_MS * UINT64_C(1000000));
	sl_child_end(&run->child, &run->child_status);
	if (!listens || !run->experiment->emulate_local || !run->child_status)
		return result;
	sl_error("the front end did not hear exactly one answer to each event, or failed");
	return result == SL_RESULT_INTACT || result == SL_RESULT_EMPTY ? SL_RESULT_ERROR : result;
}

static enum sl_result run_experiment(struct run *run)
{
	enum sl_result result = SL_RESULT_ERROR;
	char started[64];

	sl_clock_iso8601(started, sizeof(started));
	if (check_outputs(run) ||
	    sl_heir_open(&run->heir, run->experiment,
			 run->options.outcomes[0] ? run->options.outcomes : NULL, &run->receive))
		return SL_RESULT_ERROR;
	if (open_server(run))
		goto undo_receive;
	/* Who asks nobody begins at once: then everything must be ready before. */
	if (!run->server && (sl_receive_start(run->receive) || sl_oneway_wait(&run->oneway)))
		goto undo_receive;
	if (write_port_file(run) || (run->experiment->emulate_local && spawn_child(run)))
		goto undo_receive;
	if (wait_for_front_ends(run) || sl_heir_store(&run->heir, run->receive) ||
	    (run->server && sl_receive_start(run->receive)))
		goto undo_receive;
	if (!run->options.quiet && !run->options.still)
		sl_receive_tell(run->receive);
	acquire(run);
	sl_heir_end(&run->heir, run->receive);
	result = conclude(run, started);

undo_receive:
	if (run->feroce)
		sl_feroce_server_close(run->feroce);
	if (run->server)
		sl_server_close(run->server); /* a child notices and ends */
	result = end_child(run, result);
	sl_receive_close(run->receive);
	sl_heir_close(&run->heir);
	return result;
}

static enum sl_result run_one(struct run *run)
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
	struct run run = {.args = *plan->args, .plan = plan};

	sl_options_defaults(options, &run.options);
	run.options.quiet = plan->quiet;
	snprintf(run.options.transfer, sizeof(run.options.transfer), "%s", plan->transfer);
	snprintf(run.options.summary, sizeof(run.options.summary), "%s", plan->summary);
	return run_one(&run);
}

/* Every transfer's file is read before any receiver begins: mistakes are told at once. */
static int run_many(struct run *run, const struct sl_stream_names *names)
{
	struct sl_run_all all = {
		.args = &run->args,
		.names = names,
		.emulate = run->options.emulate,
		.quiet = run->options.quiet,
		.summary = run->options.summary,
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
		if (e->answers.address[0] && all.answers_wait_s <= e->answers.wait_s)
			all.answers_wait_s = e->answers.wait_s + 0.001;
		sl_experiment_close(e);
	}
	return sl_run_all(&all);
}

int sl_cmd_run(const struct sl_command *command, int argc, char **argv)
{
	struct run run = {0};
	struct sl_stream_names names;
	int err = sl_args_read(command, options, &run.options, argc, argv, &run.args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (run.args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return SL_RESULT_ERROR;
	}
	sl_signals_catch();
	if (sl_experiment_streams(run.args.plain[0], run.args.set, run.args.sets, &names))
		return SL_RESULT_ERROR;
	return names.n > 1 && !run.options.transfer[0] ? run_many(&run, &names)
						       : sl_result_exit(run_one(&run));
}
