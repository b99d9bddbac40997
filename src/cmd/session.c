/* session.c - sluice session: one experiment, run after run, each in a folder of its own. */
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"
#include "experiment/experiment.h"
#include "monitor/result.h"
#include "session/child.h"

enum { LOOK_MS = 20, OVER = 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT };

struct session_options {
	bool emulate, live;
	uint32_t runs;
	char root[1024], outcomes[1024], port_file[1024], name[SL_STATUS_NAME],
		transfer[SL_TRANSFER_NAME];
};

struct session {
	struct session_options options;
	struct sl_args args;
	struct sl_session *session;
	int exit;     /* the worst of all runs; the control thread's until the session is closed */
	bool stopped; /* the first signal was passed on */
	bool aborted; /* and the second */
	bool failed;  /* a run was refused */
};

static const struct sl_option options[] = {
	SL_STRING(struct session_options, root, "", "the folder in which each run gets its own"),
	SL_U32(struct session_options, runs, 0, 0, 1e9, "runs",
	       "take this many runs one after another and end; 0: wait for requests"),
	SL_BOOL(struct session_options, emulate, false,
		"start the detector side as a child process"),
	SL_BOOL(struct session_options, live, false,
		"for people who look on: a sink share (latest_Hz: 10) unless the file has one, and "
		"a "
		"picture in the folder of each run"),
	SL_STRING(struct session_options, transfer, "",
		  "receive this one of the file's transfers; needed where it has several"),
	SL_STRING(struct session_options, name, "", "name for sluice ps and sluice ctl"),
	SL_STRING(struct session_options, outcomes, "",
		  "write a line per module-frame to this file of the run's folder: sequence module "
		  "outcome cause"),
	SL_STRING(struct session_options, port_file, "",
		  "write the control port to this file whenever front ends may come"),
	SL_OPTION_END,
};

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* ---- on the control thread ---- */

/* run.log has every line; the terminal of a session with a thousand runs, what needs a look. */
static void log_line(void *arg, enum sl_log_level level, const char *line)
{
	const struct sl_log_target *before = sl_log_target();

	if (level > SL_LOG_WARN)
		return;
	sl_log_set_target(NULL);
	sl_log_line(level, line);
	sl_log_set_target(before);
}

/* One line for each run, flushed: a program may read it from a pipe. */
static void print_run(void *arg, const struct sl_status *status, const struct sl_error *error)
{
	struct session *s = arg;
	enum sl_result result = status->result < 0 ? SL_RESULT_ERROR
						   : (enum sl_result)status->result;

	s->exit = sl_result_worse(s->exit, error->code ? SL_RESULT_ERROR : sl_result_exit(result));
	printf("run %" PRIu64 ": %s, %" PRIu64 " frames, %" PRIu64 " lost, %s", status->run,
	       sl_result_name(result), status->frames, sl_status_total(status, SL_LOST),
	       status->folder[0] ? status->folder : "-");
	if (error->code)
		printf(" (%s: %s)", sl_error_name(error->code), error->message);
	putchar('\n');
	fflush(stdout);
}

/* ---- on the main thread ---- */

static int open_session(struct session *s)
{
	const struct session_options *o = &s->options;
	const struct sl_session_hooks hooks = {
		.ended = print_run,
		.arg = s,
		.probe = true,
		.any_name = !o->name[0],
		/* With runs of its own it can do without; else no other way leads to it. */
		.may_lack_socket = o->runs > 0,
	};
	char name[64];
	const struct sl_session_options all = {
		.bytes = sizeof(all),
		.path = s->args.plain[0],
		.transfer = or_null(o->transfer),
		.set = s->args.set,
		.sets = s->args.sets,
		.emulate = o->emulate,
		.live = o->live,
		.outcomes = or_null(o->outcomes),
		.port_file = or_null(o->port_file),
		.program = sl_child_self(),
		.log = log_line,
		.root = o->root,
		.name = o->name[0] ? o->name : name,
	};

	sl_experiment_name(s->args.plain[0], o->transfer, name, sizeof(name));
	return sl_session_open_with(&all, &hooks, &s->session, NULL);
}

static void pass_signals_on(struct session *s)
{
	if (sl_signal && !s->stopped) {
		sl_session_stop(s->session, sl_signal_name(sl_signal));
		s->stopped = true;
	}
	if (sl_signal_again && !s->aborted) {
		sl_session_abort(s->session, sl_signal_name(sl_signal_again));
		s->aborted = true;
	}
}

/* A run that could not begin counts as one; the next may be luckier, when space came back for
 * instance. */
static int leave_fault(struct session *s)
{
	if (sl_session_wait(s->session, 1 << SL_STATE_FAULT, 0) != SL_STATE_FAULT)
		return 0;
	return sl_session_configure(s->session, NULL, 0);
}

static int take_run(struct session *s)
{
	int err = leave_fault(s);

	if (!err)
		err = sl_session_start(s->session);
	if (err)
		return err;
	while (sl_session_wait(s->session, OVER, LOOK_MS) < 0)
		pass_signals_on(s);
	return 0;
}

static void take_runs(struct session *s)
{
	for (uint32_t i = 0; i < s->options.runs && !sl_signal; i++)
		if (take_run(s)) {
			s->failed = true;
			return;
		}
}

static void say_ready(struct session *s)
{
	struct sl_status *status = malloc(sizeof(*status));

	if (status && !sl_session_status(s->session, status, sizeof(*status)))
		sl_info("session %s is ready: sluice ctl %s start; Ctrl-C, or sluice ctl %s close, "
			"ends it",
			status->session, status->session, status->session);
	free(status);
}

/* Requests come to the session's own socket; here only signals do, and the wish to end. */
static void wait_for_the_end(struct session *s)
{
	say_ready(s);
	while (!sl_signal && !sl_session_asked_to_close(s->session))
		sl_clock_sleep_until(sl_clock_ns() + LOOK_MS * UINT64_C(1000000));
	do {
		pass_signals_on(s);
	} while (sl_session_wait(s->session, OVER | 1 << SL_STATE_CONFIGURED, LOOK_MS) < 0);
}

static int serve(struct session *s)
{
	if (open_session(s))
		return SL_RESULT_ERROR;
	if (s->options.runs)
		take_runs(s);
	else
		wait_for_the_end(s);
	sl_session_close(s->session);
	if (!ferror(stdout))
		return s->failed ? SL_RESULT_ERROR : s->exit;
	sl_error("the results could not be written: %s", strerror(errno));
	return SL_RESULT_ERROR;
}

static int check_transfer(const struct session *s)
{
	struct sl_transfer_names names;
	int err = sl_experiment_transfers(s->args.plain[0], s->args.set, s->args.sets, &names);

	if (err || names.n < 2 || s->options.transfer[0])
		return err;
	sl_error("%s has %u transfers, and a session receives one: name it with --transfer. sluice "
		 "run "
		 "--root takes one run of all of them",
		 s->args.plain[0], names.n);
	return -EINVAL;
}

int sl_cmd_session(const struct sl_command *command, int argc, char **argv)
{
	struct session s = {0};
	int err = sl_args_read(command, options, &s.options, argc, argv, &s.args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (s.args.plains != 1 || !s.options.root[0]) {
		sl_error("%s? usage: sluice %s",
			 s.args.plains != 1 ? "which experiment" : "in which root", command->usage);
		return SL_RESULT_ERROR;
	}
	sl_signals_catch_twice();
	return check_transfer(&s) ? SL_RESULT_ERROR : serve(&s);
}
