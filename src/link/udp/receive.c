/* receive.c - packets from the socket: check, judge, place. */
#include <string.h>

#include "base/clock.h"
#include "link/udp/udp.h"

enum { SHARED_EVERY = 16 };

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
				     action->bytes, now_ns);
	if (action->place == SL_ROCE_PLACE_RECEIVE)
		return sl_placer_put_next(&queue->placer, packet->psn, packet->payload,
					  action->bytes, now_ns);
	sl_udp_count(udp, SL_DROP_RANGE); /* a message of nothing */
	return false;
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
	/* A queue is one thread's. What comes to another's socket comes from somebody else, or from
	 * another port than its source offered. */
	if (queue->poller != poller) {
		sl_udp_count(udp, SL_DROP_PEER);
		return;
	}
	if (marked && !memcmp(path->source, queue->plan.source.ip, sizeof(path->source)))
		sl_udp_notify(udp, queue, now_ns);
	sl_udp_judge(udp, queue, path, &packet, now_ns);
}

/* The socket that everybody may send to: sources whose port nobody knows, and strangers. */
static int poll_shared(struct sl_udp *udp, unsigned budget, uint64_t now_ns)
{
	struct sl_udp_buffers *b = udp->buffers;
	unsigned batch = budget < SL_UDP_BATCH ? budget : SL_UDP_BATCH;
	int n;

	for (unsigned i = 0; i < batch; i++) {
		b->iov[i] = (struct iovec){b->packet[i], sizeof(b->packet[i])};
		b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->peer[i],
							.msg_namelen = sizeof(b->peer[i]),
							.msg_iov = &b->iov[i],
							.msg_iovlen = 1,
							.msg_control = b->control[i],
							.msg_controllen = sizeof(b->control[i])};
	}
	for (uint32_t i = 0; udp->env.notes && i < udp->queues; i++)
		if (atomic_load_explicit(&udp->queue[i].active, memory_order_acquire) &&
		    udp->queue[i].fd < 0)
			sl_udp_note_reading(&udp->queue[i], batch);
	n = recvmmsg(udp->fd, b->message, batch, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		const struct msghdr *message = &b->message[i].msg_hdr;
		bool marked = (sl_net_class(message) & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
		struct sl_roce_path path = {.dest_port = (uint16_t)udp->port,
					    .dont_fragment = true};

		path.source_port = sl_net_gid(&b->peer[i], path.source);
		memcpy(path.dest, udp->local, sizeof(path.dest));
		if (message->msg_flags & MSG_TRUNC)
			sl_udp_count(udp, SL_DROP_MALFORMED);
		else
			sl_udp_receive(udp, 0, b->packet[i], b->message[i].msg_len, &path, marked,
				       now_ns);
	}
	/* Empty, or an ICMP error of a credit packet: nothing to receive either way. */
	return n < 0 ? 0 : n;
}

int sl_udp_poll(void *state, unsigned poller, unsigned budget)
{
	struct sl_udp *udp = state;
	uint64_t now_ns = sl_clock_ns();
	unsigned n = 0;

	sl_ring_enter(udp->env.ring, poller);
	for (uint32_t i = 0; i < udp->queues; i++) {
		struct sl_udp_queue *queue = &udp->queue[i];

		/* Acquire: pairs with the release in accept. */
		if (atomic_load_explicit(&queue->active, memory_order_acquire) && queue->fd >= 0 &&
		    queue->poller == poller)
			n += sl_udp_flow_poll(udp, queue, budget, now_ns);
	}
	/* Where every source has its own socket, only strangers come to the other one. */
	if (poller == 0 && (udp->shared || n == 0 || udp->polls++ % SHARED_EVERY == 0))
		n += (unsigned)poll_shared(udp, budget, now_ns);
	sl_ring_leave(udp->env.ring, poller);
	sl_udp_return_all(udp, poller, n == 0, now_ns);
	return (int)n;
}
