/* return.c - what a receiver sends back: credits, acknowledgements, word of congestion. */
#include "base/crc.h"
#include "link/udp/udp.h"
#include "roce/icrc.h"

enum { SETTLE_NS = 20 * 1000 * 1000 };

static void send_replies(struct sl_udp *udp, struct sl_udp_queue *queue)
{
	for (unsigned i = 0; i < queue->replies; i++) {
		struct sl_roce_reply *reply = &queue->reply[i];
		uint8_t header[SL_ROCE_HEADERS_MAX];
		struct sl_roce_fragment fragment;

		/* Queues here grant no READ, so there is never more than one packet and no
		 * payload. One that the socket has no room for counts as lost: the peer asks
		 * again. */
		while (sl_roce_reply_next(reply, header, &fragment))
			sl_udp_send_one(udp->fd, &queue->back, header, fragment.header_bytes, NULL,
					0);
	}
	queue->replies = 0;
}

void sl_udp_reply(struct sl_udp *udp, struct sl_udp_queue *queue, const struct sl_roce_reply *reply)
{
	if (queue->replies && sl_roce_reply_merge(&queue->reply[queue->replies - 1], reply))
		return;
	if (queue->replies == SL_UDP_REPLIES) {
		sl_udp_note(queue);
		send_replies(udp, queue);
	}
	queue->reply[queue->replies++] = *reply;
}

void sl_udp_notify(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t now_ns)
{
	uint8_t packet[SL_ROCE_CNP_BYTES + SL_ROCE_TRAILER_MAX];
	struct iovec iov = {packet, SL_ROCE_CNP_BYTES};
	struct msghdr message = {.msg_name = &queue->back.to,
				 .msg_namelen = queue->back.to_bytes,
				 .msg_iov = &iov,
				 .msg_iovlen = 1};

	atomic_fetch_add_explicit(&udp->env.counters->marked, 1, memory_order_relaxed);
	if (!sl_roce_cnp_due(&queue->cnp, now_ns) ||
	    sl_roce_cnp_encode(queue->plan.credit_qpn, packet))
		return;
	iov.iov_len += sl_roce_seal(&queue->back.path, packet, SL_ROCE_CNP_BYTES, NULL, 0, sl_crc32,
				    packet + SL_ROCE_CNP_BYTES);
	if (!sl_net_send(udp->fd, &message, SL_ROCE_CNP_DSCP << 2))
		atomic_fetch_add_explicit(&udp->env.counters->notified, 1, memory_order_relaxed);
}

/* The grant as an 8-byte RDMA write into the source's credit word. If the socket has no room,
 * the next one does it. */
static void grant_uc(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t grant)
{
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = SL_ROCE_KIND_WRITE,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = queue->plan.pmtu,
		.qpn = queue->plan.credit_qpn,
		.psn = queue->credit_psn,
		.rkey = queue->plan.credit_rkey,
		.va = queue->plan.credit_va,
		.bytes = sizeof(grant),
	};
	uint8_t header[SL_ROCE_HEADERS_MAX];
	struct sl_roce_requester cursor;
	struct sl_roce_fragment fragment;

	if (sl_roce_requester_begin(&cursor, &message) ||
	    !sl_roce_requester_next(&cursor, header, &fragment))
		return;
	if (sl_udp_send_one(udp->fd, &queue->back, header, fragment.header_bytes, &grant,
			    sizeof(grant)))
		queue->credit_psn = cursor.psn;
}

void sl_udp_grant_rc(struct sl_udp_queue *queue, uint64_t grant)
{
	uint64_t id = queue->grants % SL_UDP_GRANTS;
	const struct sl_roce_work work = {
		.id = id,
		.kind = SL_ROCE_KIND_WRITE,
		.rkey = queue->plan.credit_rkey,
		.va = queue->plan.credit_va,
		.bytes = sizeof(grant),
	};

	if (sl_roce_rc_queue_post(&queue->rc, &work))
		return;
	queue->grant[id] = grant;
	queue->grants++;
}

/* Credits that are due, those of earlier that were lost among them. */
static void send_grants(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t now_ns)
{
	struct sl_roce_completion completion;
	uint8_t header[SL_ROCE_HEADERS_MAX];
	struct sl_roce_request request;

	while (sl_roce_rc_queue_next(&queue->rc, now_ns, header, &request))
		sl_udp_send_one(udp->fd, &queue->back, header, request.fragment.header_bytes,
				&queue->grant[request.id], sizeof(queue->grant[0]));
	while (sl_roce_rc_queue_complete(&queue->rc, &completion))
		if (completion.status == SL_ROCE_REMOTE_ACCESS ||
		    completion.status == SL_ROCE_REMOTE_INVALID)
			sl_udp_failed(queue, SL_DROP_KEY); /* its own credit word, refused */
}

static bool may_grant(const struct sl_udp_queue *queue)
{
	const struct sl_roce_rc_requester *requester = &queue->rc.requester;

	return queue->plan.credit_va &&
	       (queue->plan.service == SL_SERVICE_UC ||
		requester->posted - requester->taken < requester->capacity);
}

/* What the source says it sent and what never came is lost: but its word travels another way and
 * may overtake packets that still wait in some queue of the kernel, so it has to grow old first. */
static void catch_up(struct sl_udp_queue *queue, uint64_t now_ns)
{
	struct sl_placer *placer = &queue->placer;

	if (queue->heard <= placer->seen) {
		queue->heard = atomic_load_explicit(&queue->reported, memory_order_acquire);
		queue->heard_ns = now_ns;
	} else if (now_ns - queue->heard_ns >= SETTLE_NS) {
		sl_placer_catch_up(placer, queue->heard);
	}
}

/* Another thread has packets for it. All that was done to it here is seen there. */
static void hand_over(struct sl_udp_queue *queue)
{
	unsigned wanted = atomic_load_explicit(&queue->wanted, memory_order_relaxed);

	if (!wanted)
		return;
	atomic_store_explicit(&queue->wanted, 0, memory_order_relaxed);
	/* Release: pairs with the acquire in return_all and in pieces.c. */
	atomic_store_explicit(&queue->poller, wanted - 1, memory_order_release);
}

void sl_udp_return_all(struct sl_udp *udp, unsigned poller, bool idle, uint64_t now_ns)
{
	udp->opened_seen[poller] =
		atomic_load_explicit(&udp->env.ring->opened, memory_order_acquire);
	for (uint32_t i = 0; i < udp->queues; i++) {
		struct sl_udp_queue *queue = &udp->queue[i];
		uint64_t grant;
		bool rc, due;

		/* Acquire: pairs with the release in accept. */
		if (!atomic_load_explicit(&queue->active, memory_order_acquire) ||
		    atomic_load_explicit(&queue->poller, memory_order_acquire) != poller)
			continue;
		rc = queue->plan.service == SL_SERVICE_RC;
		if (idle)
			catch_up(queue, now_ns);
		due = may_grant(queue) && sl_credit_due(&queue->credit, &queue->plan, udp->env.ring,
							queue->placer.seen, idle, now_ns, &grant);
		if (due && rc)
			sl_udp_grant_rc(queue, grant);
		sl_udp_note(queue);
		send_replies(udp, queue);
		if (due && !rc)
			grant_uc(udp, queue, grant);
		if (rc)
			send_grants(udp, queue, now_ns);
		hand_over(queue);
	}
}
