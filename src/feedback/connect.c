/* connect.c - the thread behind a way back: finds the front end, agrees on a plan, tells how
 * much was sent, notices that it is gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/answer.h"
#include "feedback/sender.h"
#include "frontend/descriptor.h"
#include "net/net.h"

enum {
	ATTEMPT_MS = 500,
	ANSWER_MS = 2000,
	LOOK_NS = 10 * 1000 * 1000,
	AGAIN_NS = 300 * 1000 * 1000, /* after an attempt that was refused, or cut short */
	ATTEMPTS = 3,		      /* of the latter kind, before it is said */
	SLOW = 10,		      /* times as long, when nobody waits for it any more */
	BUSY_NS = 1000 * 1000,
	COUNT_NS = 20 * 1000 * 1000,
	BYE_NS = 2000000000,
};

/* ---- the plan ---- */

/* The address of this host from which the front end is reached. */
static int find_source(const struct sl_feedback_sender *b, char text[SL_NET_TEXT_BYTES])
{
	uint8_t gid[SL_NET_GID_BYTES];
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(b->address, b->port, &at);
	int fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, &at.any, bytes) < 0)
		err = -errno;
	bytes = sizeof(at);
	if (!err && getsockname(fd, &at.any, &bytes) < 0)
		err = -errno;
	close(fd);
	if (err) {
		sl_error("feedback: no way to %s, port %u: %s", b->address, b->port,
			 strerror(-err));
		return err;
	}
	sl_net_gid(&at, gid);
	sl_net_format(gid, text);
	return 0;
}

/* Where the user names none, packets leave from there; unless the link finds an address by itself
 * (an RDMA device). */
static int set_source(struct sl_feedback_sender *b)
{
	struct sl_link_facts facts;
	char text[SL_NET_TEXT_BYTES];
	int err;

	if (b->source[0])
		return sl_feedback_link_set(&b->over, "feedback", "source", b->source);
	sl_link_facts(b->over.link, b->over.options, &facts);
	if (!facts.source[0])
		return 0;
	err = find_source(b, text);
	return err ? err : sl_feedback_link_set(&b->over, "feedback", "source", text);
}

static int open_link(struct sl_feedback_sender *b)
{
	const struct sl_link_env env = {
		.service = b->over.service,
		.fault = b->fault,
		.fault_arg = b->fault_arg,
	};
	int err = set_source(b);

	if (err)
		return err;
	b->link_open = true; /* close() is due even when open() failed */
	return sl_feedback_link_open(&b->over, &env);
}

/* A plan is outside input. */
static int check_plan(const struct sl_feedback_sender *b, const struct sl_plan *plan)
{
	bool rc = b->over.service == SL_SERVICE_RC;

	if (!sl_transfer_agrees(&b->transfer, plan) || plan->module || plan->first_sequence) {
		sl_error("feedback: the front end's plan does not fit what was offered");
		return -EPROTO;
	}
	if (plan->service == b->over.service)
		return 0;
	sl_error(
		"feedback: service of the sink is %s, feedback.service of the front end is %s: set "
		"both to the same",
		rc ? "rc" : "uc", rc ? "uc" : "rc");
	return -EINVAL;
}

static int make_writes(struct sl_feedback_sender *b)
{
	b->writes = sl_descriptor_count(&b->plan);
	free(b->write);
	b->write = calloc((size_t)SL_FEEDBACK_SENDER_BLOCKS * b->writes, sizeof(*b->write));
	return b->write ? 0 : -ENOMEM;
}

static int agree(struct sl_feedback_sender *b)
{
	struct sl_wire_hello hello = {
		.modules = 1,
		.host = sl_clock_host(),
		.experiment = b->feedback->experiment,
		.detector = "answers",
	};
	struct sl_offer offer = {.module = 0};
	int err;

	snprintf(hello.link, sizeof(hello.link), "%s", b->over.link->wire);
	sl_transfer_describe(&b->transfer, &offer);
	err = b->over.link->sending->offer(b->over.state, &offer);
	if (!err)
		err = sl_client_hello(&b->client, &hello, b->feedback->token);
	if (!err)
		err = sl_client_offer(&b->client, &offer, &b->plan);
	if (!err)
		err = check_plan(b, &b->plan);
	if (!err)
		err = make_writes(b);
	if (!err)
		err = b->over.link->sending->connect(b->over.state, &b->plan);
	return err ? err : sl_client_ready(&b->client);
}

/* What a front end would have answered. A device grants nothing and knows of no lines. */
static int plan_for_device(const struct sl_feedback_sender *b, const struct sl_offer *offer,
			   struct sl_plan *plan)
{
	const struct sl_feedback_target *d = &b->device;
	struct sl_offer open_loop = *offer;
	struct sl_plan_terms terms = {
		.service = b->over.service,
		.operation = SL_OPERATION_WRITE,
		.message = b->over.message,
		.pmtu = d->pmtu,
		.fixed_pmtu = true,
		.qpn = d->qpn,
		.rkey = d->rkey,
		.psn = d->psn,
		.modules = 1,
		.slots = d->slots,
		.base = d->memory,
		.stride = d->stride ? d->stride : offer->block_bytes,
		.block_bytes = offer->block_bytes,
		.window_bytes = d->slots * offer->block_bytes,
	};
	union sl_net_address at;

	open_loop.lines = open_loop.credit_rkey = 0;
	open_loop.credit_va = 0;
	sl_net_numeric(b->address, b->port, &at);
	terms.dest.port = sl_net_gid(&at, terms.dest.ip);
	return sl_plan_answer(&open_loop, &terms, plan);
}

static int assume(struct sl_feedback_sender *b)
{
	struct sl_offer offer = {.module = 0};
	const struct sl_plan *plan = &b->plan;
	int err;

	sl_transfer_describe(&b->transfer, &offer);
	err = b->over.link->sending->offer(b->over.state, &offer);
	if (!err)
		err = plan_for_device(b, &offer, &b->plan);
	if (err)
		return err;
	if (plan->stride < plan->block_bytes) {
		sl_error("feedback.stride: a block has %llu bytes, with its record",
			 (unsigned long long)plan->block_bytes);
		return -EINVAL;
	}
	err = check_plan(b, plan);
	if (!err)
		err = make_writes(b);
	if (!err)
		err = b->over.link->sending->connect(b->over.state, plan);
	if (err)
		return err;
	sl_info("feedback: block k is written to 0x%llx + (k mod %u) * %llu: %llu bytes in %u "
		"packets, from queue pair 0x%x",
		(unsigned long long)plan->base, plan->slots, (unsigned long long)plan->stride,
		(unsigned long long)plan->block_bytes, plan->packets, offer.credit_qpn);
	return 0;
}

static int wait_for_start(struct sl_feedback_sender *b)
{
	uint64_t end = sl_clock_ns() + ANSWER_MS * UINT64_C(1000000);
	int word = 0;

	while (word == 0 && sl_clock_ns() < end)
		word = sl_client_listen(&b->client, 100);
	if (word == SL_WIRE_START)
		return 0;
	if (word == SL_WIRE_ERROR)
		return -ECONNREFUSED;
	return word < 0 ? word : word ? -EPROTO : -ETIMEDOUT;
}

static void hang_up(struct sl_feedback_sender *b)
{
	if (b->link_open)
		b->over.link->close(b->over.state);
	b->link_open = false;
	if (b->online)
		sl_client_close(&b->client);
	b->online = false;
}

/* Not under the lock: until it is connected nobody else looks at what this touches. -EAGAIN: nobody
 * is there yet. */
static int attempt(struct sl_feedback_sender *b)
{
	int err = 0;

	if (!b->device.qpn) {
		if (sl_client_try(&b->client, "feedback: the front end", b->address, b->port,
				  ATTEMPT_MS))
			return -EAGAIN;
		b->online = true;
		b->client.quiet = true;
		b->client.purpose = SL_PROOF_FEEDBACK;
		b->client.answer_ms = ANSWER_MS;
	}
	err = open_link(b);
	if (!err)
		err = b->online ? agree(b) : assume(b);
	if (!err && b->online)
		err = wait_for_start(b);
	if (err)
		hang_up(b);
	return err;
}

/* ---- under the lock ---- */

static void enter(struct sl_feedback_sender *b, enum sl_feedback_sender_state state)
{
	b->state = state;
	pthread_cond_broadcast(&b->changed);
}

static void count_missing(struct sl_feedback_sender *b)
{
	for (; b->reaped < b->begun; b->reaped++)
		b->missing += b->block[b->reaped % SL_FEEDBACK_SENDER_BLOCKS].items;
}

void sl_feedback_sender_log_why(struct sl_feedback_sender *b)
{
	if (b->why)
		sl_error("feedback: the front end at %s, port %u is gone, and answers with it: %s",
			 b->address, b->port, strerror(-b->why));
	b->why = 0;
}

/* A front end that has all its answers may go: nobody needs to hear of it, unless there are
 * more. */
void sl_feedback_sender_disconnect(struct sl_feedback_sender *b, int why)
{
	b->why = why;
	if (b->reaped < b->begun)
		sl_feedback_sender_log_why(b);
	count_missing(b);
	hang_up(b);
	/* A device does not say where it would go on. */
	enter(b, b->device.qpn ? SL_FEEDBACK_SENDER_FAILED : SL_FEEDBACK_SENDER_LOOKING);
}

static void begin(struct sl_feedback_sender *b)
{
	b->begun = b->posted = b->reaped = 0;
	b->stuck = b->given_up = b->cut_short = false;
	b->refusal[0] = 0;
	b->why = 0;
	b->counted_ns = 0;
	b->connections++;
	enter(b, SL_FEEDBACK_SENDER_CONNECTED);
}

/* For so long, or until somebody has something to do. */
static void nap(struct sl_feedback_sender *b, uint64_t ns)
{
	uint64_t end = sl_clock_ns() + ns;
	struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};

	if (!b->stop)
		pthread_cond_timedwait(&b->changed, &b->lock, &until);
}

/* Answers wait no longer. */
static void give_up(struct sl_feedback_sender *b)
{
	b->given_up = true;
	if (b->refusal[0] || b->cut_short)
		sl_error("feedback: no plan for answers to %s, port %u within %g s "
			 "(wait_s of the sink): none is sent before there is one",
			 b->address, b->port, (double)b->wait_ns * 1e-9);
	else
		sl_error("feedback: nobody takes answers at %s, port %u: a front end with "
			 "feedback: {by: write} must listen there (wait_s of the sink)",
			 b->address, b->port);
	pthread_cond_broadcast(&b->changed);
}

/* Each reason once, however often it is heard. */
static void tell_refusal(struct sl_feedback_sender *b)
{
	if (strcmp(b->refusal, b->client.refusal) == 0)
		return;
	snprintf(b->refusal, sizeof(b->refusal), "%s", b->client.refusal);
	sl_warn("feedback: the front end at %s, port %u refuses: %s; asking again", b->address,
		b->port, b->refusal);
}

static void tell_cut_short(struct sl_feedback_sender *b, int err)
{
	if (!b->cut_short)
		sl_warn("feedback: the front end at %s, port %u gives out no plan: %s; asking "
			"again",
			b->address, b->port, strerror(-err));
	b->cut_short = true;
}

/* One attempt, and a rest before the next. */
static void look(struct sl_feedback_sender *b, unsigned *failures)
{
	uint64_t times = b->given_up ? SLOW : 1;
	int err;

	pthread_mutex_unlock(&b->lock);
	err = attempt(b);
	pthread_mutex_lock(&b->lock);
	if (!err) {
		*failures = 0;
		begin(b);
	} else if (err == -EAGAIN) {
		nap(b, times * LOOK_NS);
	} else if (err == -ECONNREFUSED) {
		tell_refusal(b);
		nap(b, times * AGAIN_NS);
	} else if (err == -EPIPE || err == -ETIMEDOUT) {
		if (++*failures == ATTEMPTS)
			tell_cut_short(b, err);
		nap(b, times * AGAIN_NS);
	} else {
		sl_error("feedback: no plan for answers to %s, port %u: %s", b->address, b->port,
			 strerror(-err));
		enter(b, SL_FEEDBACK_SENDER_FAILED);
	}
}

static void look_if_time(struct sl_feedback_sender *b, unsigned *failures)
{
	if (b->give_up_ns && !b->connections && !b->given_up && sl_clock_ns() > b->give_up_ns)
		give_up(b);
	if (__atomic_load_n(&b->feedback->idle, __ATOMIC_RELAXED))
		nap(b, LOOK_NS);
	else
		look(b, failures);
}

/* What is with the link and acknowledged, where it asks for that, was sent. */
static int tell_count(struct sl_feedback_sender *b, bool final)
{
	const struct sl_wire_count count = {
		.transfer = b->plan.transfer,
		.next = b->reaped,
		.sent = b->reaped,
		.position = sl_plan_position(&b->plan, b->reaped, 0),
	};

	b->counted_ns = sl_clock_ns();
	return sl_client_count(&b->client, &count, final);
}

static void tend(struct sl_feedback_sender *b)
{
	int err = b->reaped < b->begun ? sl_feedback_sender_pump(b) : 0, word = 0;

	if (!err && b->online && sl_clock_ns() - b->counted_ns >= COUNT_NS) {
		err = tell_count(b, false);
		word = err ? err : sl_client_listen(&b->client, 0);
	}
	if (!err && word < 0)
		err = word;
	else if (!err && word > 0)
		err = -EPIPE; /* whatever it says, there is nothing that it should */
	if (err)
		sl_feedback_sender_disconnect(b, err);
}

/* All that could be was sent. */
static void leave(struct sl_feedback_sender *b)
{
	uint64_t end = sl_clock_ns() + BYE_NS;
	int word = b->online ? tell_count(b, true) : SL_WIRE_BYE;

	while (word == 0 && sl_clock_ns() < end)
		word = sl_client_listen(&b->client, 100);
	if (word != SL_WIRE_BYE)
		sl_warn("feedback: %s, port %u did not say that it has all answers", b->address,
			b->port);
	count_missing(b);
	hang_up(b);
}

void *sl_feedback_sender_run(void *arg)
{
	struct sl_feedback_sender *b = arg;
	unsigned failures = 0;

	pthread_mutex_lock(&b->lock);
	while (!b->stop) {
		if (b->state == SL_FEEDBACK_SENDER_LOOKING) {
			look_if_time(b, &failures);
		} else {
			if (b->state == SL_FEEDBACK_SENDER_CONNECTED)
				tend(b);
			nap(b, b->reaped < b->begun ? BUSY_NS : COUNT_NS);
		}
	}
	if (b->state == SL_FEEDBACK_SENDER_CONNECTED)
		leave(b);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}
