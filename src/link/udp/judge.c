/* judge.c - one packet, wherever it came from: whether it is intact, which queue it is for, whether
 * that queue's service (UC or RC) accepts it; then it is placed (link/place.h). What is refused is
 * counted by cause. */
#include <string.h>

#include "link/udp/udp.h"

void sl_udp_count(struct sl_udp *udp, enum sl_drop why)
{
	atomic_fetch_add_explicit(&udp->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* What the protocol calls it, and what the user is told. */
static enum sl_drop cause_of(enum sl_roce_drop drop)
{
	switch (drop) {
	case SL_ROCE_DROP_QUEUE:
	case SL_ROCE_DROP_TRANSPORT:
	case SL_ROCE_DROP_PKEY:
	case SL_ROCE_DROP_STATE:
		return SL_DROP_QUEUE;
	case SL_ROCE_DROP_PEER:
		return SL_DROP_PEER;
	case SL_ROCE_DROP_BROKEN:
		return SL_DROP_BROKEN;
	case SL_ROCE_DROP_AHEAD:
		return SL_DROP_GAP;
	case SL_ROCE_DROP_KEY:
	case SL_ROCE_DROP_ACCESS:
		return SL_DROP_KEY;
	case SL_ROCE_DROP_RANGE:
		return SL_DROP_RANGE;
	case SL_ROCE_DROP_DUPLICATE:
		return SL_DROP_DUPLICATE;
	default:
		return SL_DROP_MALFORMED;
	}
}

struct sl_udp_queue *sl_udp_queue_of(struct sl_udp *udp, uint32_t qpn)
{
	uint32_t index = qpn - udp->qpn_base;
	struct sl_udp_queue *queue;

	if (index >= SL_UDP_TRANSFERS)
		return NULL;
	queue = &udp->queue[index];
	/* Acquire: pairs with the release in accept. */
	return atomic_load_explicit(&queue->active, memory_order_acquire) ? queue : NULL;
}

/* False when the plan has no such packet; it is counted. */
static bool place(struct sl_udp *udp, struct sl_udp_queue *queue,
		  const struct sl_roce_packet *packet, const struct sl_roce_action *action,
		  uint64_t now_ns)
{
	if (action->place == SL_ROCE_PLACE_MEMORY)
		return sl_placer_put(&queue->placer, packet->psn, action->va, packet->payload,
				     action->bytes, action->message_bytes - action->offset, now_ns);
	if (action->place == SL_ROCE_PLACE_RECEIVE)
		return sl_placer_put_next(&queue->placer, packet->psn, packet->payload,
					  action->bytes, now_ns);
	/* A message of nothing: none of the plan's packets, but no error either (InfiniBand
	 * C9-88: no key is checked). */
	sl_udp_count(udp, SL_DROP_RANGE);
	return true;
}

static void receive_uc(struct sl_udp *udp, struct sl_udp_queue *queue,
		       const struct sl_roce_path *path, const struct sl_roce_packet *packet,
		       uint64_t now_ns)
{
	struct sl_roce_action action;
	enum sl_roce_drop drop = sl_roce_responder_receive(&queue->uc, path, packet, sl_udp_key_of,
							   &queue->key, &action);

	if (drop != SL_ROCE_ACCEPTED)
		sl_udp_count(udp, cause_of(drop));
	else
		place(udp, queue, packet, &action, now_ns);
}

/* A source without credits may be faster than its slots open: it is asked to come again. */
static bool defer(struct sl_udp *udp, struct sl_udp_queue *queue, const struct sl_roce_path *path,
		  const struct sl_roce_packet *packet)
{
	struct sl_roce_reply reply;

	if (queue->rc.state < SL_ROCE_RTR || queue->rc.state > SL_ROCE_RTS ||
	    sl_placer_may_put(&queue->placer, packet->psn) != SL_PLACE_AHEAD ||
	    !sl_roce_rc_responder_defer(&queue->rc.responder, path, packet, &reply))
		return false;
	sl_udp_reply(udp, queue, &reply);
	sl_udp_count(udp, SL_DROP_AHEAD);
	return true;
}

static void receive_rc(struct sl_udp *udp, struct sl_udp_queue *queue,
		       const struct sl_roce_path *path, const struct sl_roce_packet *packet,
		       uint64_t now_ns)
{
	struct sl_roce_outcome outcome;
	enum sl_roce_drop drop;

	if (defer(udp, queue, path, packet))
		return;
	drop = sl_roce_rc_queue_receive(&queue->rc, path, packet, now_ns, sl_udp_key_of,
					&queue->key, &outcome);
	if (drop != SL_ROCE_ACCEPTED) {
		sl_udp_count(udp, cause_of(drop));
	} else if (outcome.request && !place(udp, queue, packet, &outcome.action, now_ns)) {
		sl_roce_rc_responder_refuse(&queue->rc.responder, packet, &outcome.reply);
		sl_roce_rc_queue_modify(&queue->rc, SL_ROCE_ERROR);
	}
	if (queue->rc.state == SL_ROCE_ERROR)
		sl_udp_failed(queue, drop ? cause_of(drop) : SL_DROP_RANGE);
	/* After the payload is in place, or was dropped for being late: its frame has an
	 * outcome. */
	if (outcome.reply.pending)
		sl_udp_reply(udp, queue, &outcome.reply);
}

void sl_udp_judge(struct sl_udp *udp, struct sl_udp_queue *queue, const struct sl_roce_path *path,
		  const struct sl_roce_packet *packet, uint64_t now_ns)
{
	if (queue->plan.service == SL_SERVICE_RC)
		receive_rc(udp, queue, path, packet, now_ns);
	else
		receive_uc(udp, queue, path, packet, now_ns);
}

void sl_udp_receive(struct sl_udp *udp, unsigned poller, const uint8_t *data, size_t bytes,
		    const struct sl_roce_path *path, bool marked, uint64_t now_ns)
{
	struct sl_roce_packet packet;
	struct sl_udp_queue *queue;

	if (sl_roce_parse(data, bytes, &packet)) {
		sl_udp_count(udp, SL_DROP_MALFORMED);
		return;
	}
	queue = sl_udp_queue_of(udp, packet.qpn);
	if (udp->icrc == SL_UDP_ICRC_CHECK &&
	    !sl_udp_icrc_good(path, data, bytes, queue ? queue->plan.ip_id : SL_IP_ID_ANY)) {
		sl_udp_count(udp, SL_DROP_ICRC);
		return;
	}
	if (!queue) {
		sl_udp_count(udp, SL_DROP_QUEUE);
		return;
	}
	/* A queue is one thread's. What comes to another's socket comes from another source, or
	 * from another port than its source offered. */
	if (queue->poller != poller) {
		sl_udp_count(udp, SL_DROP_PEER);
		return;
	}
	if (marked && !memcmp(path->source, queue->plan.source.ip, sizeof(path->source)))
		sl_udp_notify(udp, queue, now_ns);
	sl_udp_judge(udp, queue, path, &packet, now_ns);
}
