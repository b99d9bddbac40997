/* emulate.c - sluice emulate: the detector side, from plan to plan. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"
#include "control/client.h"
#include "pipeline/emulate.h"

enum { COUNT_MS = 20, BYE_MS = 30000, REOFFER_NS = 200 * 1000 * 1000 };

struct emulate_options {
	bool once, quiet;
	char modules[16];
};

static const struct sl_option options[] = {
	SL_BOOL(struct emulate_options, once, false,
		"end when the receiver goes away, instead of offering again"),
	SL_BOOL(struct emulate_options, quiet, false, "say nothing but errors"),
	SL_STRING(struct emulate_options, modules, "",
		  "only these: one, or first-last; other front ends send the others"),
	SL_OPTION_END,
};

static int send_counts(struct sl_emulate *em, struct sl_client *client, bool final)
{
	int err = 0;

	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_emulate_module *module = &em->module[m];
		/* Position first: it is then never ahead of what the rest says. No sequence is left
		 * out, so as many were sent as there are below next. */
		uint64_t position = atomic_load_explicit(&module->position, memory_order_acquire);
		uint64_t next = atomic_load_explicit(&module->next, memory_order_acquire);
		struct sl_wire_count count = {.transfer = module->plan.transfer,
					      .next = next,
					      .sent = next,
					      .position = position};

		err = sl_client_count(client, &count, final);
	}
	return err;
}

static int agree(struct sl_emulate *em, struct sl_client *client)
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
	memcpy(hello.token, e->control.token, sizeof(hello.token));
	err = sl_client_hello(client, &hello);
	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		err = sl_emulate_offer(em, m, &offer);
		if (!err)
			err = sl_client_offer(client, &offer, &plan);
		if (!err)
			err = sl_emulate_connect(em, &plan);
	}
	return err ? err : sl_client_ready(client);
}

/* The receiver may wait for other front ends: no time-out here, it is its own that counts. */
static int wait_for_start(struct sl_client *client)
{
	for (;;) {
		int word = sl_client_listen(client, 100);

		if (sl_signal)
			return -EINTR;
		if (word == SL_WIRE_START)
			return 0;
		if (word != 0)
			return word < 0 ? word : -EPROTO;
	}
}

/* Send, report, listen. 0: all sent and the receiver said good-bye; -EPIPE: it vanished. */
static int serve(struct sl_emulate *em, struct sl_client *client)
{
	uint64_t end;
	int err = sl_emulate_start(em), word;

	while (!err && !sl_emulate_finished(em)) {
		word = sl_client_listen(client, COUNT_MS);
		if (sl_signal || word == SL_WIRE_STOP)
			sl_emulate_stop(em, false);
		else if (word < 0 || word == SL_WIRE_BYE || word == SL_WIRE_ERROR)
			err = -EPIPE;
		if (!err && send_counts(em, client, false))
			err = -EPIPE;
		sl_emulate_log_faults(em);
	}
	if (err)
		sl_emulate_stop(em, true);
	if (!err)
		err = atomic_load(&em->error);
	if (!err && send_counts(em, client, true))
		err = -EPIPE;
	/* Stay until everything has arrived: sockets closed too early would throw away what is in
	 * flight. */
	for (end = sl_clock_ns() + BYE_MS * UINT64_C(1000000); !err && sl_clock_ns() < end;) {
		word = sl_client_listen(client, 100);
		if (word == SL_WIRE_BYE)
			return 0;
		if (word < 0)
			err = -EPIPE;
	}
	if (!err) {
		sl_error("the receiver did not say within %d s that everything arrived",
			 BYE_MS / 1000);
		err = -ETIMEDOUT;
	}
	return err;
}

static int one_plan(struct sl_emulate *em, bool quiet)
{
	const struct sl_control_run *control = &em->experiment->control;
	struct sl_client client;
	int err = sl_client_connect(&client, control->address, (uint16_t)control->port,
				    control->wait_s, &sl_signal);
	int end_err;

	if (err)
		return err;
	err = sl_emulate_plan_begin(em);
	if (!err)
		err = agree(em, &client);
	if (!err)
		err = wait_for_start(&client);
	if (!err) {
		if (!quiet)
			sl_info("sending %s from frame %llu on", em->experiment->detector->name,
				(unsigned long long)em->first_frame);
		err = serve(em, &client);
	}
	end_err = sl_emulate_plan_end(em);
	sl_client_close(&client);
	return end_err && end_err != -EPIPE ? end_err : err;
}

static int emulate(struct sl_emulate *em, const struct emulate_options *o)
{
	int err;

	for (;;) {
		err = one_plan(em, o->quiet);
		if (err != -EPIPE || o->once || sl_signal)
			break;
		sl_warn("the receiver is gone; offering again, from frame %llu on",
			(unsigned long long)em->frame);
		sl_clock_sleep_until(sl_clock_ns() + REOFFER_NS);
	}
	if (!err && !o->quiet)
		sl_info("done: %llu frames sent", (unsigned long long)em->frame);
	if (err == -EPIPE)
		sl_error("the receiver is gone");
	return err == -EINTR ? 0 : err;
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

int sl_cmd_emulate(const struct sl_command *command, int argc, char **argv)
{
	struct emulate_options o;
	struct sl_args args;
	struct sl_experiment *experiment;
	struct sl_emulate *em;
	uint32_t first, last;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return 1;
	}
	if (read_modules(o.modules, &first, &last))
		return 1;
	if (o.quiet)
		sl_log_level(SL_LOG_WARN);
	if (o.once)
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* a child of sluice run does not outlive it */
	sl_signals_catch();
	if (sl_experiment_open(args.plain[0], args.set, args.sets, &experiment))
		return 1;
	err = sl_emulate_open(experiment, first, last, &em);
	if (!err) {
		err = emulate(em, &o);
		sl_emulate_close(em);
	}
	sl_experiment_close(experiment);
	return err ? 1 : 0;
}
