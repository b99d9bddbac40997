/* peer_user.c - a peer over Sluice's endpoint: RoCEv2 in user space, on a UDP socket. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoint/endpoint.h"
#include "interop/peer_backend.h"
#include "net/net.h"

enum { BUDGET = 64, DOMAIN = 1, QPS = 256 };

static struct sl_endpoint *endpoint;

int peer_open(const char *address)
{
	struct sl_endpoint_options options = {.port = SL_ROCE_UDP_PORT, .qps = QPS};
	int result = sl_net_parse("address", address, options.address);
	return result ? result : sl_endpoint_open(&options, &endpoint);
}

void peer_close(void)
{
	sl_endpoint_close(endpoint);
}

static uint32_t access_flags(unsigned access)
{
	return (access & PEER_REMOTE_WRITE ? SL_ROCE_REMOTE_WRITE : 0) |
	       (access & PEER_REMOTE_READ ? SL_ROCE_REMOTE_READ : 0);
}

int peer_region_add(struct peer_region *region)
{
	struct sl_endpoint_memory memory = {.at = region->memory,
					    .bytes = region->bytes,
					    .access = access_flags(region->access),
					    .domain = DOMAIN};
	return sl_endpoint_register(endpoint, &memory, &region->rkey);
}

void peer_region_remove(struct peer_region *region)
{
	sl_endpoint_deregister(endpoint, region->rkey);
}

/* ---- queue pairs ---- */

int peer_qp_create(struct peer_qp *qp)
{
	static const uint8_t transports[] = {SL_ROCE_RC, SL_ROCE_UC, SL_ROCE_UD};
	struct sl_qp_options options = {.transport = transports[qp->transport],
					.domain = DOMAIN,
					.access = access_flags(qp->access),
					.sends = qp->depth,
					.receives = qp->depth};
	struct sl_qp *made;
	int result = sl_qp_create(endpoint, &options, &made);
	if (result)
		return result;
	/* As over verbs, receives may be posted before it is connected. */
	result = sl_qp_modify(made, SL_ROCE_INIT, NULL);
	if (result) {
		sl_qp_destroy(made);
		return result;
	}
	qp->handle = made;
	qp->qpn = sl_qp_number(made);
	return 0;
}

int peer_qp_connect(struct peer_qp *qp)
{
	struct sl_qp_attributes attributes;
	sl_qp_attributes_init(&attributes);
	if (qp->transport != PEER_UD && sl_net_parse("address", qp->peer, attributes.peer))
		return -EINVAL;
	attributes.peer_qpn = qp->peer_qpn;
	attributes.pmtu = qp->pmtu;
	attributes.qkey = qp->qkey;
	attributes.receive_psn = qp->peer_psn;
	attributes.send_psn = qp->psn;
	attributes.min_rnr_timer = qp->rnr_timer;
	attributes.timeout = qp->timeout;
	attributes.retries = qp->retries;
	attributes.rnr_retries = qp->rnr_retries;
	attributes.reads = qp->reads;
	int result = sl_qp_modify(qp->handle, SL_ROCE_RTR, &attributes);
	return result ? result : sl_qp_modify(qp->handle, SL_ROCE_RTS, &attributes);
}

void peer_qp_destroy(struct peer_qp *qp)
{
	sl_qp_destroy(qp->handle);
}

const char *peer_qp_state(struct peer_qp *qp)
{
	switch (sl_qp_state(qp->handle)) {
	case SL_ROCE_RESET:
		return "reset";
	case SL_ROCE_INIT:
		return "init";
	case SL_ROCE_RTR:
		return "rtr";
	case SL_ROCE_RTS:
		return "rts";
	case SL_ROCE_ERROR:
		return "error";
	default:
		return "other";
	}
}

/* ---- work ---- */

static struct sl_piece piece_of(const struct peer_work *work)
{
	return (struct sl_piece){work->region->memory + work->offset, work->bytes};
}

int peer_receive(struct peer_qp *qp, const struct peer_work *work)
{
	struct sl_piece pieces[SL_QP_PIECES] = {piece_of(work)};
	return sl_qp_receive(qp->handle, work->id, pieces);
}

int peer_post(struct peer_qp *qp, const struct peer_work *work)
{
	static const uint8_t kinds[PEER_KINDS] = {SL_ROCE_KIND_SEND, SL_ROCE_KIND_SEND,
						  SL_ROCE_KIND_WRITE, SL_ROCE_KIND_WRITE,
						  SL_ROCE_KIND_READ};
	struct sl_work posted = {.id = work->id,
				 .kind = kinds[work->kind],
				 .immediate = work->kind == PEER_SEND_IMM ||
					      work->kind == PEER_WRITE_IMM,
				 .imm = work->imm,
				 .piece = {piece_of(work)},
				 .rkey = work->rkey,
				 .va = work->va};
	if (qp->transport == PEER_UD) {
		if (sl_net_parse("to", work->to, posted.to.address))
			return -EINVAL;
		posted.to.qpn = work->to_qpn;
		posted.to.qkey = work->to_qkey;
	}
	return sl_qp_send(qp->handle, &posted);
}

bool peer_poll(struct peer_done *done)
{
	static const char *const whats[] = {
		[SL_COMPLETION_SEND] = "send",
		[SL_COMPLETION_WRITE] = "write",
		[SL_COMPLETION_READ] = "read",
		[SL_COMPLETION_RECEIVE] = "recv",
		[SL_COMPLETION_RECEIVE_WRITE] = "recv_write",
	};
	struct sl_completion completion;
	if (!sl_endpoint_reap(endpoint, NULL, &completion, 1))
		return false;
	*done = (struct peer_done){.id = completion.id,
				   .qpn = sl_qp_number(completion.qp),
				   .status = completion.status,
				   .what = whats[completion.kind],
				   .bytes = completion.bytes,
				   .imm = completion.imm,
				   .has_imm = completion.immediate};
	return true;
}

/* How long to sleep at most: until a timer is due, or for timeout_ms. */
static int sleep_ms(uint64_t now, int timeout_ms)
{
	uint64_t wake = sl_endpoint_wake(endpoint);
	if (wake <= now)
		return 0;
	uint64_t ms = (wake - now) / 1000000 + 1;
	return ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

void peer_wait(int fd, int timeout_ms)
{
	if (!endpoint) {
		struct pollfd only = {fd, POLLIN, 0};
		poll(&only, 1, timeout_ms);
		return;
	}
	if (sl_endpoint_poll(endpoint, sl_clock_ns(), BUDGET) > 0)
		return;
	struct pollfd fds[] = {{fd, POLLIN, 0},
			       {sl_endpoint_fd(endpoint), sl_endpoint_events(endpoint), 0}};
	poll(fds, 2, sleep_ms(sl_clock_ns(), timeout_ms));
	sl_endpoint_poll(endpoint, sl_clock_ns(), BUDGET);
}

void peer_counters(char *text, size_t bytes)
{
	struct sl_endpoint_counters counters;
	sl_endpoint_count(endpoint, &counters);
	int length = snprintf(text, bytes,
			      "received=%ju sent=%ju congested=%ju cnps_sent=%ju unsent=%ju",
			      (uintmax_t)counters.received, (uintmax_t)counters.sent,
			      (uintmax_t)counters.congested, (uintmax_t)counters.cnps_sent,
			      (uintmax_t)counters.unsent);
	for (unsigned i = 1; i < SL_ENDPOINT_DROPS && (size_t)length < bytes; i++)
		if (counters.dropped[i])
			length += snprintf(text + length, bytes - (size_t)length, " %s=%ju",
					   sl_endpoint_drop_name(i),
					   (uintmax_t)counters.dropped[i]);
}
