/* host.c - seats for FEROCE front ends: what they ask, and what they answer. */
#include "control/feroce/host.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum {
	ROCE_PORT = 4791, /* where a front end hears acknowledgements */
	PMTU_MAX = 4096,
	TOLD_MAX = 8,
};

static const char REFUSES[] = "it refuses; has it queue pairs left from before?";

struct name {
	char text[16];
};

static struct name name_of(uint32_t ip)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255,
		 ip >> 8 & 255, ip & 255);
	return name;
}

void sl_feroce_host_init(struct sl_feroce_host *host, const struct sl_feroce_options *options,
			 const struct sl_control_ops *ops, void *arg, sl_feroce_send *send,
			 void *send_arg)
{
	*host = (struct sl_feroce_host){
		.options = *options, .ops = ops, .arg = arg, .send = send, .send_arg = send_arg};
	for (uint32_t i = 0; i < options->devices; i++)
		host->seat[i] = (struct sl_feroce_seat){.phase = SL_FEROCE_SEAT_ASKED,
							.asked = true,
							.ip = options->device[i],
							.port = SL_FEROCE_PORT,
							.queue.ip = options->device[i]};
}

uint32_t sl_feroce_host_module(const struct sl_feroce_host *host, const struct sl_feroce_seat *seat)
{
	return (uint32_t)(seat - host->seat);
}

/* What a front end must know of its plan. Who is told where by the receiver needs no key. */
static struct sl_feroce_queue ours(const struct sl_plan *plan)
{
	const uint8_t *ip = plan->dest.ip + 12;
	struct sl_feroce_queue queue = {
		.qpn = plan->qpn,
		.psn = plan->first_psn,
		.ip = (uint32_t)ip[0] << 24 | ip[1] << 16 | ip[2] << 8 | ip[3],
	};

	if (plan->operation != SL_OPERATION_SEND) {
		queue.rkey = plan->rkey;
		queue.va = sl_plan_address(plan, plan->first_sequence, 0);
	}
	return queue;
}

void sl_feroce_host_say(struct sl_feroce_host *host, const struct sl_feroce_seat *seat,
			enum sl_feroce_request request, enum sl_feroce_answer ack)
{
	const struct sl_feroce_message message = {
		.info = true,
		.request = request,
		.answer = ack != SL_FEROCE_ACK_NONE,
		.ack = ack,
		.local = ours(&seat->plan),
		.remote = seat->queue,
		.port = host->options.port,
	};

	host->send(host->send_arg, seat->ip, seat->port, &message);
}

/* To who has no seat: its own words, turned round. */
static void turn_round(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m,
		       enum sl_feroce_answer ack)
{
	const struct sl_feroce_message answer = {
		.info = true,
		.request = m->request,
		.answer = true,
		.ack = ack,
		.local = m->remote,
		.remote = m->local,
		.port = host->options.port,
	};

	host->send(host->send_arg, ip, m->port, &answer);
}

/* A plan for the front end of this seat. */
int sl_feroce_host_plan(struct sl_feroce_host *host, struct sl_feroce_seat *seat, char *why,
			size_t why_bytes)
{
	const struct sl_feroce_options *o = &host->options;
	struct sl_offer offer = {
		.module = (uint16_t)sl_feroce_host_module(host, seat),
		.services = SL_SERVICE_RC,
		.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
		.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE,
		.max_pmtu = PMTU_MAX,
		.ip_id = SL_IP_ID_ANY,
		.credit_port = ROCE_PORT,
		.credit_qpn = seat->queue.qpn,
		.block_bytes = o->block_bytes,
		.frames = o->frames,
		.bare = o->bare,
		.darks = o->darks,
		/* A core begins with the PSN that it was told, other senders with the one they
		 * told: equal, they cannot be mistaken. */
		.psn_plus_1 = seat->queue.psn + 1,
	};

	offer.source.ip[10] = offer.source.ip[11] = 0xff;
	for (unsigned i = 0; i < 4; i++)
		offer.source.ip[12 + i] = (uint8_t)(seat->ip >> (24 - 8 * i));
	return host->ops->accept(host->arg, &offer, false, &seat->plan, why, why_bytes);
}

uint32_t sl_feroce_host_planned(const struct sl_feroce_host *host)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < host->options.modules; i++)
		n += host->seat[i].phase >= SL_FEROCE_SEAT_OPEN;
	return n;
}

static void connected(struct sl_feroce_seat *seat)
{
	const struct sl_plan *plan = &seat->plan;

	seat->phase = SL_FEROCE_SEAT_OPEN;
	sl_info("module %u: FEROCE front end %s, its queue pair %u", plan->module,
		name_of(seat->ip).text, seat->queue.qpn);
	/* The protocol has no field for it, so the firmware must know. */
	if (plan->operation != SL_OPERATION_SEND)
		sl_info("module %u: block k goes to the address it was told + (k mod %u) * %llu; "
			"%llu bytes, %u packets",
			plan->module, plan->slots, (unsigned long long)plan->stride,
			(unsigned long long)plan->block_bytes, plan->packets);
}

/* ---- requests ---- */

static struct sl_feroce_seat *seat_of_device(struct sl_feroce_host *host, uint32_t ip, uint32_t qpn)
{
	for (uint32_t i = 0; i < host->options.modules; i++) {
		struct sl_feroce_seat *seat = &host->seat[i];

		if (seat->phase >= SL_FEROCE_SEAT_OPEN && seat->ip == ip && seat->queue.qpn == qpn)
			return seat;
	}
	return NULL;
}

/* By our queue pair; also one that was closed and not given away since, so that a CLOSE that comes
 * twice is answered twice. */
static struct sl_feroce_seat *seat_of_queue(struct sl_feroce_host *host, uint32_t ip, uint32_t qpn)
{
	struct sl_feroce_seat *old = NULL;

	for (uint32_t i = 0; i < host->options.modules; i++) {
		struct sl_feroce_seat *seat = &host->seat[i];

		if (!seat->plan.version || seat->ip != ip || seat->plan.qpn != qpn)
			continue;
		if (seat->phase != SL_FEROCE_SEAT_FREE)
			return seat;
		old = seat;
	}
	return old;
}

void sl_feroce_host_turn_away(struct sl_feroce_host *host, uint32_t ip, const char *why)
{
	host->misplaced++;
	if (host->told++ < TOLD_MAX) /* it will ask again, and again */
		sl_warn("the FEROCE front end at %s cannot be served: %s", name_of(ip).text, why);
}

static void open_again(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint16_t port)
{
	bool fresh = seat->phase == SL_FEROCE_SEAT_OPEN;

	seat->port = port;
	if (seat->phase == SL_FEROCE_SEAT_RUNNING) {
		host->ops->progress(host->arg, sl_feroce_host_module(host, seat), &seat->seen);
		fresh = !seat->seen.reached;
	}
	if (fresh && !seat->held)
		sl_feroce_host_say(host, seat, SL_FEROCE_OPEN, SL_FEROCE_ACK);
	host->misplaced += !fresh;
}

static void open_new(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m)
{
	struct sl_feroce_seat *seat = host->seat, *end = seat + host->options.modules;
	char why[160] = "the link does not take it";

	if (host->started) {
		sl_feroce_host_turn_away(host, ip, "the run has already started");
		return;
	}
	while (seat < end && seat->phase != SL_FEROCE_SEAT_FREE)
		seat++;
	if (seat == end) {
		sl_feroce_host_turn_away(host, ip,
					 "every module (detector.modules) has its front end");
		return;
	}
	*seat = (struct sl_feroce_seat){.ip = ip, .port = m->port, .queue = m->local};
	if (sl_feroce_host_plan(host, seat, why, sizeof(why))) {
		seat->plan.version = 0;
		sl_feroce_host_turn_away(host, ip, why);
		return;
	}
	connected(seat);
	/* Who gets an answer may send. When this was the last one, the receiver is about to start:
	 * the answer waits until packets are taken. */
	seat->held = sl_feroce_host_planned(host) == host->options.modules;
	if (!seat->held)
		sl_feroce_host_say(host, seat, SL_FEROCE_OPEN, SL_FEROCE_ACK);
}

/* A front end leaves before the start. Who waited for the start with it gets its answer now. */
static void leave(struct sl_feroce_host *host, struct sl_feroce_seat *seat)
{
	host->ops->cancel_plan(host->arg, seat->plan.transfer);
	seat->phase = seat->asked ? SL_FEROCE_SEAT_ASKED : SL_FEROCE_SEAT_FREE;
	seat->held = false;
	if (seat->asked)
		seat->plan.version = 0;
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (host->seat[i].held) {
			host->seat[i].held = false;
			sl_feroce_host_say(host, &host->seat[i], SL_FEROCE_OPEN, SL_FEROCE_ACK);
		}
}

static void hear_open(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m)
{
	struct sl_feroce_seat *seat = seat_of_device(host, ip, m->local.qpn);

	if (m->local.qpn < 2) {
		host->misplaced++; /* 0 and 1 are for management */
		return;
	}
	if (seat && seat->phase == SL_FEROCE_SEAT_OPEN && seat->queue.psn != m->local.psn) {
		leave(host, seat); /* it begins anew, with another PSN */
		seat = NULL;
	}
	if (seat)
		open_again(host, seat, m->port);
	else
		open_new(host, ip, m);
}

static void hear_close(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m)
{
	struct sl_feroce_seat *seat = seat_of_queue(host, ip, m->remote.qpn);

	if (!seat || seat->phase == SL_FEROCE_SEAT_ASKED) {
		turn_round(host, ip, m, SL_FEROCE_NO_QP);
		return;
	}
	if (seat->queue.qpn != m->local.qpn) {
		turn_round(host, ip, m, SL_FEROCE_NAK);
		return;
	}
	seat->closed = true;
	seat->port = m->port;
	sl_feroce_host_say(host, seat, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	if (seat->phase == SL_FEROCE_SEAT_OPEN) {
		sl_info("module %u: FEROCE front end %s closed before the start",
			sl_feroce_host_module(host, seat), name_of(ip).text);
		leave(host, seat);
	} else if (seat->phase != SL_FEROCE_SEAT_FREE && seat->phase != SL_FEROCE_SEAT_OVER) {
		sl_feroce_host_end(host, seat);
	}
}

/* INFO and RTS ask for nothing that an OPEN has not settled. */
static void hear_other(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m)
{
	struct sl_feroce_seat *seat = seat_of_device(host, ip, m->local.qpn);

	if (seat && !seat->held && seat->plan.qpn == m->remote.qpn)
		sl_feroce_host_say(host, seat, m->request, SL_FEROCE_ACK);
	else
		turn_round(host, ip, m, SL_FEROCE_NO_QP);
}

/* ---- answers ---- */

static void hear_of_open(struct sl_feroce_host *host, struct sl_feroce_seat *seat,
			 const struct sl_feroce_message *m)
{
	if (seat->phase != SL_FEROCE_SEAT_ASKED) {
		/* We asked twice and it took that for two: one too many. */
		if (m->ack == SL_FEROCE_ACK && seat->queue.qpn != m->local.qpn) {
			struct sl_feroce_seat second = *seat;

			second.queue = m->local;
			sl_feroce_host_say(host, &second, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
		}
		return;
	}
	if (m->ack != SL_FEROCE_ACK || m->local.qpn < 2) {
		sl_feroce_host_turn_away(host, seat->ip, REFUSES);
		return;
	}
	if (host->ops->set_queue(host->arg, seat->plan.transfer, m->local.qpn)) {
		sl_feroce_host_turn_away(host, seat->ip,
					 "the link must know its queue pair before");
		return;
	}
	seat->queue = m->local;
	seat->closed = false;
	connected(seat);
}

static bool waits_for_answer(const struct sl_feroce_host *host, uint32_t ip)
{
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (host->seat[i].phase == SL_FEROCE_SEAT_ASKED && host->seat[i].ip == ip)
			return true;
	return false;
}

static void hear_answer(struct sl_feroce_host *host, uint32_t ip, const struct sl_feroce_message *m)
{
	struct sl_feroce_seat *seat = seat_of_queue(host, ip, m->remote.qpn);

	/* A core without a free queue pair refuses an OPEN with NO_QP, and repeats all other fields
	 * of its answer before. It gives NO_QP to OPEN only, so the request is known. */
	if (m->ack == SL_FEROCE_NO_QP && waits_for_answer(host, ip))
		sl_feroce_host_turn_away(host, ip, REFUSES);
	else if (seat && seat->asked && m->request == SL_FEROCE_OPEN)
		hear_of_open(host, seat, m);
	else if (seat && seat->queue.qpn == m->local.qpn && m->request == SL_FEROCE_CLOSE)
		seat->closed =
			true; /* also by an error: a core gives it to a CLOSE that comes again */
	else
		host->misplaced++;
}

void sl_feroce_host_hear(struct sl_feroce_host *host, uint32_t ip, const void *data, size_t bytes)
{
	struct sl_feroce_message m;

	if (sl_feroce_decode(data, bytes, &m)) {
		host->malformed++;
		return;
	}
	/* Its packets come from the address that it names: it must be its own. */
	if (!m.info || m.local.ip != ip || !m.port)
		host->misplaced++;
	else if (m.answer)
		hear_answer(host, ip, &m);
	else if (m.request == SL_FEROCE_OPEN)
		hear_open(host, ip, &m);
	else if (m.request == SL_FEROCE_CLOSE)
		hear_close(host, ip, &m);
	else if (m.request == SL_FEROCE_INFO || m.request == SL_FEROCE_RTS)
		hear_other(host, ip, &m);
	else
		host->misplaced++;
}
