/* emulate.c - sluice emulate: the detector side, from plan to plan. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"
#include "emulator/exchange.h"
#include "emulator/side/side.h"

enum { REOFFER_NS = 200 * 1000 * 1000, LOOK_NS = 20 * 1000 * 1000 };

struct emulate_options {
	bool once, fixed, quiet, report, serve;
	uint64_t first_frame;
	char modules[16], transfer[SL_TRANSFER_NAME], detector[SL_DETECTOR_NAME], name[64];
};

static const struct sl_option options[] = {
	SL_BOOL(struct emulate_options, once, false,
		"end when the receiver goes away, instead of offering again"),
	SL_BOOL(struct emulate_options, fixed, false,
		"be a device whose plan is set once: go on by it when the receiver goes away"),
	SL_BOOL(struct emulate_options, quiet, false, "say nothing but errors"),
	SL_BOOL(struct emulate_options, report, false,
		"quiet, but for what answers came in the end"),
	SL_U64(struct emulate_options, first_frame, 0, 0, 1e15, "frames",
	       "take part from this frame on in a detector that runs already, after another front "
	       "end of these modules has gone"),
	SL_STRING(struct emulate_options, modules, "",
		  "only these: one, or first-last; other front ends send the others"),
	SL_STRING(struct emulate_options, transfer, "",
		  "only this one of the file's transfers; other front ends send the others"),
	SL_STRING(struct emulate_options, detector, "",
		  "only this one of the file's detectors; other front ends are the others"),
	SL_BOOL(struct emulate_options, serve, false,
		"stay up, and be configured, armed and started from outside: sluice ctl, "
		"telegrams"),
	SL_STRING(struct emulate_options, name, "",
		  "of --serve: its name for sluice ctl; that of the experiment with .detector, if "
		  "none is given"),
	SL_OPTION_END,
};

/* The receiver is a session that takes more runs: stay, and begin again when it says so. A front
 * end that counts answers has its account of one run: it ends. */
static bool stays(const struct sl_exchange *x, const struct emulate_options *o)
{
	return sl_exchange_stays(x) && !x->emulator->feedback && !o->fixed && !sl_signal;
}

static int all_runs(struct sl_exchange *x, const struct emulate_options *o, bool comes_again)
{
	int err = sl_exchange_connect(x);

	if (err)
		return err;
	err = sl_exchange_run(x);
	while (!err && stays(x, o)) {
		err = sl_exchange_again(x);
		/* BYE: the session takes no more runs. It hangs up without a word when it is
		 * configured anew: then it is offered to again, with all frames. */
		if (err == -EPROTO || (err && o->once)) {
			err = 0;
			break;
		}
		sl_emulator_again(x->emulator);
		if (!err)
			err = sl_exchange_run(x);
	}
	sl_exchange_close(x);
	/* The run that it was part of was aborted, and is not over yet: the next will do. */
	if (err == -ECONNREFUSED && comes_again && strstr(x->client.refusal, "already started"))
		err = -EPIPE;
	return err;
}

/* The stream of a transfer or a detector to its receiver. Each has a thread, a link and a generator
 * of its own: a receiver that is slow holds up no other stream. */
struct sent_transfer {
	const struct emulate_options *options;
	struct sl_experiment *experiment;
	struct sl_emulator *emulator;
	struct sl_thread thread;
	int err;
};

static double us(uint64_t ns)
{
	return (double)ns * 1e-3;
}

/* What its messages begin with; empty where there is one. */
static const char *name_of(const struct sl_experiment *e)
{
	return e->transfer[0] ? e->transfer : e->detector_name;
}

static int check_answers(struct sl_emulator *em, const char *name, const char *colon,
			 const struct emulate_options *o)
{
	char begin[SL_TRANSFER_NAME + 2];

	snprintf(begin, sizeof(begin), "%s%s", name, colon);
	if (o->report)
		sl_log_level(SL_LOG_INFO);
	return sl_feedback_listener_finish(em->feedback, begin, o->quiet && !o->report);
}

static void *run_transfer(void *arg)
{
	struct sent_transfer *stream = arg;
	struct sl_emulator *em = stream->emulator;
	const struct emulate_options *o = stream->options;
	const char *name = name_of(stream->experiment), *colon = name[0] ? ": " : "";
	bool comes_again = false;
	struct sl_exchange x = {.emulator = em,
				.stop = &sl_signal,
				.hurry = &sl_signal,
				.fixed = o->fixed,
				.quiet = o->quiet};
	int err;

	for (;;) {
		err = em->experiment->link->oneway ? sl_exchange_blindly(&x)
						   : all_runs(&x, o, comes_again);
		if (err == -ERESTART && !sl_signal) {
			err = sl_emulator_rejoin(em);
			if (err)
				break;
			sl_info("%s%sgone, as asked for; coming back with frame %llu", name, colon,
				(unsigned long long)sl_geometry_frame(&em->geometry, em->frame));
			continue;
		}
		if (err != -EPIPE || o->once || o->fixed || sl_signal)
			break;
		sl_warn("%s%sthe receiver is gone; offering again, from frame %llu on", name, colon,
			(unsigned long long)sl_geometry_frame(&em->geometry, em->frame));
		sl_clock_sleep_until(sl_clock_ns() + REOFFER_NS);
		comes_again = true;
	}
	if (!err && !o->quiet)
		sl_info("%s%sdone: %llu frames sent", name, colon, (unsigned long long)em->frame);
	if (!err && !o->quiet && sl_histogram_count(&em->pace.late))
		sl_info("%s%sframes began after they were due by (us): p50 %.1f, p99 %.1f, max "
			"%.1f",
			name, colon, us(sl_histogram_percentile(&em->pace.late, 0.5)),
			us(sl_histogram_percentile(&em->pace.late, 0.99)),
			us(sl_histogram_max(&em->pace.late)));
	if (err == -EPIPE)
		sl_error("%s%sthe receiver is gone", name, colon);
	if (em->feedback) {
		int heard = check_answers(em, name, colon, o);

		err = err ? err : heard;
	}
	stream->err = err == -EINTR || err == -ENODATA || err == -ERESTART ? 0 : err;
	return NULL;
}

/* "3", "2-5", or nothing for all of them. */
static int read_modules(const char *text, uint32_t *first, uint32_t *last)
{
	bool digits = text[strspn(text, "0123456789-")] == 0 && text[0] != '-';
	int used = 0;

	*first = 0;
	*last = UINT32_MAX;
	if (!text[0])
		return 0;
	/* scanf alone would take signs, too. */
	if (digits && sscanf(text, "%4u-%4u%n", first, last, &used) == 2 && !text[used])
		return 0;
	if (digits && sscanf(text, "%4u%n", first, &used) == 1 && !text[used]) {
		*last = *first;
		return 0;
	}
	sl_error("--modules: '%s': takes one module, or first-last, as in 0-3", text);
	return -EINVAL;
}

/* What the file divides into streams: its detectors or its transfers. n 0: it does not. */
struct streams {
	bool detectors;
	unsigned n;
	struct sl_detector_names detector;
	struct sl_transfer_names transfer;
};

static int find_streams(const struct emulate_options *o, const struct sl_args *args,
			struct streams *s)
{
	int err = sl_experiment_detectors(args->plain[0], args->set, args->sets, &s->detector);

	s->detectors = s->detector.n || o->detector[0];
	s->n = s->detector.n;
	if (err || s->detectors)
		return err;
	err = sl_experiment_transfers(args->plain[0], args->set, args->sets, &s->transfer);
	s->n = s->transfer.n;
	return err;
}

/* The one that was named, or the i-th. */
static int open_sent(struct sent_transfer *stream, const struct sl_args *args,
		     const struct streams *s, unsigned i, uint32_t first, uint32_t last)
{
	const struct emulate_options *o = stream->options;
	const char *named = s->detectors ? o->detector : o->transfer;
	const char *const name = named[0] || !s->n ? named
				 : s->detectors	   ? s->detector.name[i]
						   : s->transfer.name[i];
	uint64_t first_frame = o->first_frame;
	int err = s->detectors ? sl_experiment_open_one(args->plain[0], name, args->set, args->sets,
							&stream->experiment)
			       : sl_experiment_open(args->plain[0], name, args->set, args->sets,
						    &stream->experiment);

	if (!err)
		err = sl_emulator_open(stream->experiment, first, last, &stream->emulator);
	if (!err && first_frame)
		err = sl_emulator_join(stream->emulator, first_frame);
	return err;
}

static void close_sent(struct sent_transfer *stream)
{
	if (stream->emulator)
		sl_emulator_close(stream->emulator);
	if (stream->experiment)
		sl_experiment_close(stream->experiment);
}

static int run_transfers(struct sent_transfer *stream, unsigned n)
{
	unsigned running = 0;
	int err = 0;

	while (running < n && !err) {
		err = sl_thread_start(&stream[running].thread, "stream", NULL, run_transfer,
				      &stream[running]);
		running += !err;
	}
	if (err)
		sl_signal = SIGTERM; /* to those that run already */
	for (unsigned i = 0; i < running; i++) {
		sl_thread_join(&stream[i].thread);
		err = err ? err : stream[i].err;
	}
	return err;
}

/* All detectors or transfers of the file, or the one that was named. */
static int emulator(const struct emulate_options *o, const struct sl_args *args)
{
	struct streams streams = {0};
	struct sent_transfer *stream;
	uint32_t first, last;
	unsigned n;
	int err = read_modules(o->modules, &first, &last);

	if (!err)
		err = find_streams(o, args, &streams);
	if (err)
		return err;
	n = o->transfer[0] || o->detector[0] || !streams.n ? 1 : streams.n;
	stream = calloc(n, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	for (unsigned i = 0; i < n && !err; i++) {
		stream[i].options = o;
		err = open_sent(&stream[i], args, &streams, i, first, last);
	}
	if (!err)
		err = run_transfers(stream, n);
	for (unsigned i = 0; i < n; i++)
		close_sent(&stream[i]);
	free(stream);
	return err;
}

/* ---- --serve ---- */

static int check_serve(const struct emulate_options *o, const struct sl_command *command)
{
	const char *other = o->fixed	     ? "fixed"
			    : o->first_frame ? "first_frame"
			    : o->detector[0] ? "detector"
					     : "report";

	if (!o->serve && o->name[0])
		sl_error("--name goes with --serve; usage: sluice %s", command->usage);
	else if (o->serve && (o->fixed || o->first_frame || o->report || o->detector[0]))
		sl_error("--serve takes run after run from outside: leave --%s out", other);
	else
		return 0;
	return -EINVAL;
}

static int stay(const struct emulate_options *o, const struct sl_args *args)
{
	char file[SL_EXPERIMENT_NAME], name[SL_EXPERIMENT_NAME + 16];
	struct sl_side_options all = {
		.path = args->plain[0],
		.name = o->name[0] ? o->name : name,
		.any_name = !o->name[0],
		.transfer = o->transfer,
		.set = args->set,
		.sets = args->sets,
		.once = o->once,
		.quiet = o->quiet,
	};
	struct sl_side *side;
	int err = read_modules(o->modules, &all.first_module, &all.last_module);

	sl_experiment_name(args->plain[0], o->transfer, file, sizeof(file));
	snprintf(name, sizeof(name), "%.*s.detector", SL_EXPERIMENT_NAME - 10, file);
	if (!err)
		err = sl_side_open(&all, &side);
	if (err)
		return err;
	if (!o->quiet)
		sl_info("detector side %s is ready: sluice ctl %s start; Ctrl-C, or sluice ctl %s "
			"close, ends it",
			sl_side_name(side), sl_side_name(side), sl_side_name(side));
	while (!sl_signal && !sl_side_asked_to_close(side))
		sl_clock_sleep_until(sl_clock_ns() + LOOK_NS);
	sl_side_close(side);
	return 0;
}

int sl_cmd_emulate(const struct sl_command *command, int argc, char **argv)
{
	struct emulate_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return 1;
	}
	if (o.quiet)
		sl_log_level(SL_LOG_WARN);
	sl_signals_catch();
	if (check_serve(&o, command))
		return 1;
	return (o.serve ? stay(&o, &args) : emulator(&o, &args)) ? 1 : 0;
}
