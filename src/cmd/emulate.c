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
#include "control/tcp/client.h"
#include "emulator/emulator.h"

#define BYE_WARN_NS	    UINT64_C(30000000000)
#define BYE_AFTER_SIGNAL_NS UINT64_C(5000000000)

enum { COUNT_MS = 20, REOFFER_NS = 200 * 1000 * 1000 };

struct emulate_options {
	bool once, fixed, quiet, report;
	uint64_t first_frame;
	char modules[16], transfer[SL_TRANSFER_NAME];
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
	SL_OPTION_END,
};

static int send_counts(struct sl_emulator *em, struct sl_client *client, bool final)
{
	int err = 0;

	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_emulator_module *module = &em->module[m];
		/* Position first: it is then never ahead of what the rest says. */
		uint64_t position = atomic_load_explicit(&module->position, memory_order_acquire);
		uint64_t sent = atomic_load_explicit(&module->sent, memory_order_acquire);
		uint64_t next = atomic_load_explicit(&module->next, memory_order_relaxed);
		struct sl_wire_count count = {.transfer = module->plan.transfer,
					      .next = next,
					      .sent = sent,
					      .position = position};

		err = sl_client_count(client, &count, final);
	}
	return err;
}

static int agree(struct sl_emulator *em, struct sl_client *client)
{
	const struct sl_experiment *e = em->experiment;
	struct sl_wire_hello hello = {
		.modules = (uint16_t)(em->end_module - em->first_module),
		.host = sl_clock_host(),
		.experiment = sl_experiment_digest(e),
	};
	int err;

	snprintf(hello.link, sizeof(hello.link), "%s", e->link->wire);
	snprintf(hello.detector, sizeof(hello.detector), "%s", e->detector->name);
	err = sl_client_hello(client, &hello, e->control.token);
	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		err = sl_emulator_offer(em, m, &offer);
		if (!err)
			err = sl_client_offer(client, &offer, &plan);
		if (!err)
			err = sl_emulator_connect(em, &plan);
	}
	return err ? err : sl_client_ready(client);
}

/* -EPIPE: the receiver hung up; -EPROTO: it said something else.
 * The receiver may wait for other front ends, or for the next run: it decides how long. */
static int wait_for_word(struct sl_client *client, enum sl_wire_type type)
{
	for (;;) {
		int word = sl_client_listen(client, 100);

		if (sl_signal)
			return -EINTR;
		if (word == (int)type)
			return 0;
		if (word != 0)
			return word < 0 ? word : -EPROTO;
	}
}

/* Nobody is told, and nobody says stop: to the end of what was offered. */
static int go_on(struct sl_emulator *em)
{
	sl_warn("the receiver is gone; going on by the plan that it gave");
	while (!sl_emulator_finished(em)) {
		if (sl_signal)
			sl_emulator_stop(em, true);
		sl_clock_sleep_until(sl_clock_ns() + COUNT_MS * UINT64_C(1000000));
		sl_emulator_log_faults(em);
	}
	return atomic_load(&em->error);
}

/* Stay until everything has arrived and is stored: sockets closed too early would throw away what
 * is in flight. Files may take long to close: a receiver that holds the connection is waited
 * for. */
static int wait_for_bye(struct sl_client *client)
{
	uint64_t warn_ns = sl_clock_ns() + BYE_WARN_NS;
	uint64_t signal_ns = sl_clock_ns() + BYE_AFTER_SIGNAL_NS;

	for (;;) {
		int word = sl_client_listen(client, 100);

		if (word == SL_WIRE_BYE)
			return 0;
		if (word < 0)
			return -EPIPE;
		if (sl_signal && sl_clock_ns() > signal_ns) {
			sl_warn("the receiver has not said that everything is stored; given up");
			return -EINTR;
		}
		if (!sl_signal)
			signal_ns = sl_clock_ns() + BYE_AFTER_SIGNAL_NS;
		if (sl_clock_ns() < warn_ns)
			continue;
		sl_warn("the receiver has not said for 30 s that everything is stored; waiting on");
		warn_ns += BYE_WARN_NS;
	}
}

/* Send, report, listen. 0: all sent and the receiver said good-bye; -EPIPE: it vanished. */
static int serve(struct sl_emulator *em, struct sl_client *client, bool fixed)
{
	int err = sl_emulator_start(em), word;

	while (!err && !sl_emulator_finished(em)) {
		word = sl_client_listen(client, COUNT_MS);
		if (sl_signal || word == SL_WIRE_STOP)
			sl_emulator_stop(em, false);
		else if (word < 0 || word == SL_WIRE_BYE || word == SL_WIRE_ERROR)
			err = -EPIPE;
		if (!err && send_counts(em, client, false))
			err = -EPIPE;
		sl_emulator_log_faults(em);
	}
	if (err == -EPIPE && fixed)
		return go_on(em);
	if (err)
		sl_emulator_stop(em, true);
	if (!err)
		err = atomic_load(&em->error);
	if (!err && send_counts(em, client, true))
		err = -EPIPE;
	return err ? err : wait_for_bye(client);
}

/* The receiver can neither ask nor answer: to the end of what there is, at the detector's pace. */
static int send_blindly(struct sl_emulator *em, const struct emulate_options *o)
{
	const struct sl_experiment *e = em->experiment;
	int err, end_err;

	if (!(e->run.frame_rate_Hz > 0) && !(e->link_options.rate_limit > 0)) {
		sl_error("link '%s' has no way back, and nothing would pace the front end: set "
			 "detector.frame_rate_Hz or link.rate_limit",
			 e->link->name);
		return -EINVAL;
	}
	err = sl_emulator_plan_begin(em);
	for (uint32_t m = em->first_module; m < em->end_module && !err; m++)
		err = sl_emulator_assume(em, m);
	if (!err && !o->quiet)
		sl_info("sending %s over link %s, frames from number %llu on", e->detector->name,
			e->link->name,
			(unsigned long long)(em->number_base +
					     sl_geometry_frame(&em->geometry, em->first_frame)));
	if (!err)
		err = sl_emulator_start(em);
	while (!err && !sl_emulator_finished(em)) {
		if (sl_signal)
			sl_emulator_stop(em, false);
		sl_clock_sleep_until(sl_clock_ns() + COUNT_MS * UINT64_C(1000000));
		sl_emulator_log_faults(em);
	}
	end_err = sl_emulator_plan_end(em);
	return err ? err : end_err;
}

/* One run: agree on plans, send, and wait until the receiver has stored it. */
static int one_run(struct sl_emulator *em, struct sl_client *client,
		   const struct emulate_options *o)
{
	int err = sl_emulator_plan_begin(em), end_err;

	if (!err)
		err = agree(em, client);
	if (!err)
		err = wait_for_word(client, SL_WIRE_START);
	if (!err) {
		if (!o->quiet)
			sl_info("sending %s%s%s from frame %llu on", em->experiment->detector->name,
				em->experiment->transfer[0] ? ", transfer " : "",
				em->experiment->transfer,
				(unsigned long long)sl_geometry_frame(&em->geometry,
								      em->first_frame));
		err = serve(em, client, o->fixed);
	}
	end_err = sl_emulator_plan_end(em);
	return end_err && end_err != -EPIPE ? end_err : err;
}

/* The receiver is a session that takes more runs: stay, and begin again when it says so. A front
 * end that counts answers has its account of one run: it ends. */
static bool stays(const struct sl_emulator *em, const struct sl_client *client,
		  const struct emulate_options *o)
{
	return client->more && !em->feedback && !o->fixed && !sl_signal;
}

static int all_runs(struct sl_emulator *em, const struct emulate_options *o, bool comes_again)
{
	const struct sl_control_options *control = &em->experiment->control;
	struct sl_client client;
	int err = sl_client_connect(&client, control->address, (uint16_t)control->port,
				    control->wait_s, &sl_signal);

	if (err)
		return err;
	err = one_run(em, &client, o);
	while (!err && stays(em, &client, o)) {
		err = wait_for_word(&client, SL_WIRE_AGAIN);
		/* BYE: the session takes no more runs. It hangs up without a word when it is
		 * configured anew: then it is offered to again, with all frames. */
		if (err == -EPROTO || (err && o->once)) {
			err = 0;
			break;
		}
		sl_emulator_again(em);
		if (!err)
			err = one_run(em, &client, o);
	}
	sl_client_close(&client);
	/* The run that it was part of was aborted, and is not over yet: the next will do. */
	if (err == -ECONNREFUSED && comes_again && strstr(client.refusal, "already started"))
		err = -EPIPE;
	return err;
}

/* One stream to its receiver. Each has a thread, a link and a detector of its own: a receiver that
 * is slow holds up nobody else. */
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
	const char *name = stream->experiment->transfer, *colon = name[0] ? ": " : "";
	bool comes_again = false;
	int err;

	for (;;) {
		err = em->experiment->link->oneway ? send_blindly(em, o)
						   : all_runs(em, o, comes_again);
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

static int open_sent(struct sent_transfer *stream, const struct sl_args *args, const char *transfer,
		     uint32_t first, uint32_t last, uint64_t first_frame)
{
	int err = sl_experiment_open(args->plain[0], transfer, args->set, args->sets,
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

/* All transfers of the file, or the one that was named. */
static int emulator(const struct emulate_options *o, const struct sl_args *args)
{
	struct sl_transfer_names names;
	struct sent_transfer *stream;
	uint32_t first, last;
	unsigned n;
	int err = read_modules(o->modules, &first, &last);

	if (!err)
		err = sl_experiment_transfers(args->plain[0], args->set, args->sets, &names);
	if (err)
		return err;
	n = o->transfer[0] || !names.n ? 1 : names.n;
	stream = calloc(n, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	for (unsigned i = 0; i < n && !err; i++) {
		stream[i].options = o;
		err = open_sent(&stream[i], args,
				o->transfer[0] || !names.n ? o->transfer : names.name[i], first,
				last, o->first_frame);
	}
	if (!err)
		err = run_transfers(stream, n);
	for (unsigned i = 0; i < n; i++)
		close_sent(&stream[i]);
	free(stream);
	return err;
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
	return emulator(&o, &args) ? 1 : 0;
}
