/* exchange.c - a front end and its receiver, from plan to good-bye. */
#include "emulator/exchange.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define BYE_WARN_NS	   UINT64_C(30000000000)
#define BYE_AFTER_HURRY_NS UINT64_C(5000000000)

enum { COUNT_MS = 20 };

static bool set(const _Atomic int *flag)
{
	return flag && atomic_load(flag);
}

static void enter(struct sl_exchange *x, enum sl_exchange_phase phase)
{
	if (x->phase)
		x->phase(x->arg, phase);
}

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
static int wait_for_word(struct sl_exchange *x, enum sl_wire_type type)
{
	for (;;) {
		int word = sl_client_listen(&x->client, 100);

		if (set(x->stop))
			return -EINTR;
		if (word == (int)type)
			return 0;
		if (word != 0)
			return word < 0 ? word : -EPROTO;
	}
}

static void nap(void)
{
	sl_clock_sleep_until(sl_clock_ns() + COUNT_MS * UINT64_C(1000000));
}

/* Nobody is told, and nobody says stop: to the end of what was offered. */
static int go_on(struct sl_exchange *x)
{
	sl_warn("the receiver is gone; going on by the plan that it gave");
	while (!sl_emulator_finished(x->emulator)) {
		if (set(x->stop))
			sl_emulator_stop(x->emulator, true);
		nap();
		sl_emulator_log_faults(x->emulator);
	}
	return atomic_load(&x->emulator->error);
}

/* Stay until everything has arrived and is stored: sockets closed too early would throw away what
 * is in flight. Files may take long to close: a receiver that holds the connection is waited
 * for. */
static int wait_for_bye(struct sl_exchange *x)
{
	uint64_t warn_ns = sl_clock_ns() + BYE_WARN_NS;
	uint64_t hurry_ns = sl_clock_ns() + BYE_AFTER_HURRY_NS;

	enter(x, SL_EXCHANGE_STORE);
	for (;;) {
		int word = sl_client_listen(&x->client, 100);

		if (word == SL_WIRE_BYE)
			return 0;
		if (word < 0)
			return -EPIPE;
		if (set(x->abort))
			return -ECANCELED;
		if (set(x->hurry) && sl_clock_ns() > hurry_ns) {
			sl_warn("the receiver has not said that everything is stored; given up");
			return -EINTR;
		}
		if (!set(x->hurry))
			hurry_ns = sl_clock_ns() + BYE_AFTER_HURRY_NS;
		if (sl_clock_ns() < warn_ns)
			continue;
		sl_warn("the receiver has not said for 30 s that everything is stored; waiting on");
		warn_ns += BYE_WARN_NS;
	}
}

/* A word of the receiver while the run is under way. */
static int obey(struct sl_exchange *x, int word)
{
	if (set(x->abort))
		return -ECANCELED;
	if (set(x->stop) || word == SL_WIRE_STOP)
		sl_emulator_stop(x->emulator, false);
	else if (word < 0 || word == SL_WIRE_BYE || word == SL_WIRE_ERROR)
		return -EPIPE;
	return send_counts(x->emulator, &x->client, false) ? -EPIPE : 0;
}

/* The receiver has started the run, and this side is not to begin yet. Counts are a sign of
 * life. */
static int hold(struct sl_exchange *x)
{
	int err = 0;

	if (set(x->hold))
		enter(x, SL_EXCHANGE_HOLD);
	while (!err && set(x->hold) && !atomic_load(&x->emulator->stop))
		err = obey(x, sl_client_listen(&x->client, COUNT_MS));
	return err;
}

/* Send, report, listen. 0: all sent and the receiver said good-bye; -EPIPE: it vanished. */
static int serve(struct sl_exchange *x)
{
	struct sl_emulator *em = x->emulator;
	int err;

	enter(x, SL_EXCHANGE_SEND);
	err = sl_emulator_start(em);
	while (!err && !sl_emulator_finished(em)) {
		err = obey(x, sl_client_listen(&x->client, COUNT_MS));
		sl_emulator_log_faults(em);
	}
	if (err == -EPIPE && x->fixed)
		return go_on(x);
	if (err)
		sl_emulator_stop(em, true);
	if (!err)
		err = atomic_load(&em->error);
	if (!err && send_counts(em, &x->client, true))
		err = -EPIPE;
	return err ? err : wait_for_bye(x);
}

static void say_that_it_sends(const struct sl_exchange *x)
{
	const struct sl_emulator *em = x->emulator;

	if (!x->quiet)
		sl_info("sending %s%s%s from frame %llu on", em->experiment->detector->name,
			em->experiment->transfer[0] ? ", transfer " : "", em->experiment->transfer,
			(unsigned long long)sl_geometry_frame(&em->geometry, em->first_frame));
}

int sl_exchange_run(struct sl_exchange *x)
{
	int err, end_err;

	enter(x, SL_EXCHANGE_PLAN);
	err = sl_emulator_plan_begin(x->emulator);
	if (!err)
		err = agree(x->emulator, &x->client);
	if (!err) {
		enter(x, SL_EXCHANGE_READY);
		err = wait_for_word(x, SL_WIRE_START);
	}
	if (!err)
		err = hold(x);
	if (!err) {
		say_that_it_sends(x);
		err = serve(x);
	}
	end_err = sl_emulator_plan_end(x->emulator);
	enter(x, SL_EXCHANGE_REST);
	return end_err && end_err != -EPIPE ? end_err : err;
}

int sl_exchange_connect(struct sl_exchange *x)
{
	const struct sl_control_options *control = &x->emulator->experiment->control;
	int err;

	enter(x, SL_EXCHANGE_CONNECT);
	err = sl_client_connect(&x->client, control->address, (uint16_t)control->port,
				control->wait_s, x->stop);
	x->connected = !err;
	if (!err && x->patient && control->wait_s * 1e3 > x->client.answer_ms)
		x->client.answer_ms = control->wait_s < 1e6 ? (int)(control->wait_s * 1e3)
							    : 1000000000;
	return err;
}

void sl_exchange_close(struct sl_exchange *x)
{
	if (x->connected)
		sl_client_close(&x->client);
	x->connected = false;
}

bool sl_exchange_stays(const struct sl_exchange *x)
{
	return x->connected && x->client.more;
}

int sl_exchange_again(struct sl_exchange *x)
{
	enter(x, SL_EXCHANGE_AGAIN);
	return wait_for_word(x, SL_WIRE_AGAIN);
}

/* ---- over a link that goes one way ---- */

static bool has_pace(const struct sl_experiment *e)
{
	if (e->run.frame_rate_Hz > 0 || e->link_options.rate_limit > 0)
		return true;
	sl_error("link '%s' has no way back, and nothing would pace the front end: set "
		 "detector.frame_rate_Hz or link.rate_limit",
		 e->link->name);
	return false;
}

static int send_blindly(struct sl_exchange *x)
{
	struct sl_emulator *em = x->emulator;
	const struct sl_experiment *e = em->experiment;
	int err;

	if (!x->quiet)
		sl_info("sending %s over link %s, frames from number %llu on", e->detector->name,
			e->link->name,
			(unsigned long long)(em->number_base +
					     sl_geometry_frame(&em->geometry, em->first_frame)));
	enter(x, SL_EXCHANGE_SEND);
	err = sl_emulator_start(em);
	while (!err && !sl_emulator_finished(em)) {
		if (set(x->stop))
			sl_emulator_stop(em, set(x->abort));
		nap();
		sl_emulator_log_faults(em);
	}
	return err;
}

int sl_exchange_blindly(struct sl_exchange *x)
{
	struct sl_emulator *em = x->emulator;
	int err, end_err;

	if (!has_pace(em->experiment))
		return -EINVAL;
	err = sl_emulator_plan_begin(em);
	for (uint32_t m = em->first_module; m < em->end_module && !err; m++)
		err = sl_emulator_assume(em, m);
	if (!err && set(x->hold))
		enter(x, SL_EXCHANGE_HOLD);
	while (!err && set(x->hold) && !set(x->stop))
		nap();
	if (!err && set(x->hold))
		err = -EINTR;
	if (!err)
		err = send_blindly(x);
	end_err = sl_emulator_plan_end(em);
	enter(x, SL_EXCHANGE_REST);
	return err ? err : end_err;
}
