/* offer.c - transfers of a source: what it can do, and what the plan makes of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secret.h"
#include "link/udp/udp.h"

enum { WORKS_MAX = 8192 };

/* Replies to all transfers may come to one socket: numbers tell them apart. */
static uint32_t unused_qpn(const struct sl_udp *udp)
{
	uint32_t qpn = 0;
	bool taken = true;

	while (taken) {
		qpn = 16 + sl_secret_u32() % 0xffff00;
		taken = false;
		for (uint32_t i = 0; i < udp->sources; i++)
			taken |= udp->send[i].offer.credit_qpn == qpn;
	}
	return qpn;
}

int sl_udp_offer(void *state, struct sl_offer *offer)
{
	struct sl_udp *udp = state;
	struct sl_udp_source *source = &udp->send[udp->sources];
	int fd;

	if (udp->sources == SL_UDP_TRANSFERS)
		return -ENOSPC;
	fd = sl_net_open(udp->local, 0);
	if (fd < 0)
		return fd;
	sl_net_set_class(fd, (uint8_t)udp->traffic_class);
	if (!udp->checksum && sl_net_leave_checksum(fd) == 0)
		udp->segment = false; /* the kernel cuts nothing that has no checksum */
	*source = (struct sl_udp_source){.fd = fd, .cursor = {.done = true}};
	offer->services = SL_SERVICE_UC | SL_SERVICE_RC;
	offer->operations = SL_OPERATION_WRITE | SL_OPERATION_SEND;
	offer->messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE;
	offer->max_pmtu = SL_ROCE_PMTU_MAX;
	udp->segment &= sl_net_segments(fd);
	offer->ip_id = udp->segment ? SL_IP_ID_COUNTS : SL_IP_ID_ZERO;
	memcpy(offer->source.ip, udp->local, sizeof(offer->source.ip));
	offer->source.port = sl_net_port(fd);
	offer->credit_port = udp->reply_port ? (uint16_t)udp->reply_port : offer->source.port;
	offer->credit_qpn = unused_qpn(udp);
	offer->credit_rkey = sl_secret_u32();
	/* 0 means: no credits. */
	offer->credit_va = udp->credits ? ((uint64_t)sl_secret_u32() << 8) + 8 : 0;
	source->offer = *offer;
	udp->sources++;
	return 0;
}

void sl_udp_source_close(struct sl_udp_source *source)
{
	close(source->fd);
	free(source->work);
	free(source->write);
	free(source->held);
	source->held = NULL;
	source->work = NULL;
	source->write = NULL;
}

/* Who judges the credits that come back. */
static void describe_responder(const struct sl_udp_source *source, uint8_t transport,
			       struct sl_roce_responder *responder)
{
	*responder = (struct sl_roce_responder){
		.transport = transport,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = source->offer.credit_qpn,
		.pmtu = source->plan.pmtu,
		.access = SL_ROCE_REMOTE_WRITE,
		.expected_psn = source->plan.credit_psn,
	};
	memcpy(responder->peer, source->back.source, SL_ROCE_GID_BYTES);
	memcpy(responder->local, source->back.dest, SL_ROCE_GID_BYTES);
}

/* Room for what the window lets out, so that acknowledgements decide how fast it goes. */
static uint32_t capacity_for(const struct sl_plan *plan)
{
	uint64_t messages = plan->message == SL_MESSAGE_MODULE
				    ? 4 + plan->window_bytes / plan->block_bytes
				    : 2 * plan->packets + plan->window_bytes / plan->pmtu;

	return messages < WORKS_MAX ? (uint32_t)messages : WORKS_MAX;
}

static int open_rc(const struct sl_udp *udp, struct sl_udp_source *source)
{
	struct sl_roce_rc_queue *rc = &source->rc;
	uint32_t capacity = capacity_for(&source->plan);

	source->work = calloc(capacity, sizeof(*source->work));
	source->write = calloc(capacity, sizeof(*source->write));
	if (!source->work || !source->write)
		return -ENOMEM;
	memset(rc, 0, sizeof(*rc));
	describe_responder(source, SL_ROCE_RC, &rc->responder.queue);
	rc->responder.peer_qpn = source->plan.qpn;
	rc->responder.rnr_timer = (uint8_t)udp->min_rnr_timer;
	rc->requester.psn = source->plan.first_psn;
	rc->requester.window = SL_UDP_RC_WINDOW;
	rc->requester.ack_every = SL_UDP_ACK_EVERY;
	rc->requester.timeout_ns = sl_roce_timeout_ns(udp->timeout);
	rc->requester.retries = (uint8_t)udp->retry;
	rc->requester.rnr_retries = (uint8_t)udp->rnr_retry;
	rc->requester.works = source->work;
	rc->requester.capacity = capacity;
	for (int state = SL_ROCE_INIT; state <= SL_ROCE_RTS; state++)
		if (sl_roce_rc_queue_modify(rc, (enum sl_roce_state)state))
			return -EINVAL;
	return 0;
}

int sl_udp_connect(void *state, const struct sl_plan *plan)
{
	struct sl_udp *udp = state;
	struct sl_udp_source *source = NULL;
	struct sl_udp_path back;

	for (uint32_t i = 0; i < udp->sources && !source; i++)
		if (udp->send[i].offer.source.port == plan->source.port)
			source = &udp->send[i];
	if (!source || !sl_roce_pmtu_valid(plan->pmtu) || plan->qpn > SL_ROCE_QPN_MASK ||
	    plan->first_psn > SL_ROCE_PSN_MASK || plan->credit_psn > SL_ROCE_PSN_MASK)
		return -EINVAL;
	source->plan = *plan;
	sl_udp_path_set(&source->out, udp->local, plan->source.port, plan->dest.ip,
			plan->dest.port);
	if (source->out.to_bytes != sl_net_address(udp->local, 0, &back.to)) {
		sl_error("the receiver's address and link.source must both be IPv4 or both IPv6");
		return -EAFNOSUPPORT;
	}
	sl_udp_path_set(&back, plan->dest.ip, plan->dest.port, udp->local,
			source->offer.credit_port);
	source->back = back.path;
	source->rate =
		(struct sl_roce_rate){.scale = udp->congestion_us * 1000 / SL_ROCE_RATE_TIMER_NS};
	sl_roce_rate_init(&source->rate);
	if (!plan->credit_va)
		source->granted = UINT64_MAX; /* open loop */
	source->key = (struct sl_roce_key){.rkey = source->offer.credit_rkey,
					   .access = SL_ROCE_REMOTE_WRITE,
					   .base = source->offer.credit_va,
					   .bytes = sizeof(source->granted)};
	if (sl_udp_reorder_open(udp, source))
		return -ENOMEM;
	if (plan->service == SL_SERVICE_RC)
		return open_rc(udp, source);
	describe_responder(source, SL_ROCE_UC, &source->uc);
	return sl_roce_responder_init(&source->uc) ? -EINVAL : 0;
}
