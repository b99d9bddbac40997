/* reply.c - what an RC queue pair owes its peer: acknowledgements and the data of READs, in order.
 */
#include "endpoint/state.h"
#include "roce/psn.h"

static struct sl_roce_reply *slot(const struct sl_qp *qp, uint64_t count)
{
	return &qp->replies.slot[count % qp->replies.depth];
}

bool sl_reply_room(const struct sl_qp *qp)
{
	return qp->replies.put - qp->replies.taken < qp->replies.depth;
}

/* The PSN after its last packet. */
static uint32_t end_of(const struct sl_roce_reply *reply)
{
	return sl_roce_psn_add(reply->psn,
			       sl_roce_packets(reply->bytes - reply->offset, reply->pmtu));
}

/* A peer that missed something asks for a READ again, from where it missed it. When the first
 * answer still waits or is under way, one of the two is enough: the one that begins earlier. */
static bool merge_read(const struct sl_qp *qp, const struct sl_roce_reply *again)
{
	for (uint64_t i = qp->replies.taken; again->read && i < qp->replies.put; i++) {
		struct sl_roce_reply *waiting = slot(qp, i);

		if (!waiting->read || waiting->rkey != again->rkey ||
		    end_of(waiting) != end_of(again))
			continue;
		if (sl_roce_psn_compare(again->psn, waiting->psn) < 0) {
			bool counted = waiting->counted;

			*waiting = *again;
			waiting->counted |= counted;
		}
		return true;
	}
	return false;
}

void sl_reply_put(struct sl_qp *qp, const struct sl_roce_reply *reply)
{
	struct sl_reply_queue *ring = &qp->replies;

	if (ring->put > ring->taken && sl_roce_reply_merge(slot(qp, ring->put - 1), reply))
		return;
	if (merge_read(qp, reply))
		return;
	*slot(qp, ring->put++) = *reply;
}

/* Where the next packet of a READ comes from. The key is looked up for every packet; false: it
 * was revoked since the request came. */
static bool find_data(const struct sl_qp *qp, const struct sl_roce_reply *reply,
		      struct sl_roce_piece *piece)
{
	uint32_t left = reply->bytes - reply->offset;
	uint32_t bytes = left < reply->pmtu ? left : reply->pmtu;
	uint64_t va = reply->va + reply->offset;
	const struct sl_roce_key *key;

	piece->bytes = bytes;
	if (!bytes)
		return true;
	key = sl_memory_lookup(qp->endpoint, reply->rkey);
	if (!key || key->domain != qp->options.domain || !(key->access & SL_ROCE_REMOTE_READ) ||
	    !sl_roce_key_covers(key, va, bytes))
		return false;
	piece->data = sl_memory_at(key, va);
	return true;
}

/* The rest of a READ becomes a refusal, which is the last thing this queue pair says. */
static void refuse(struct sl_qp *qp, struct sl_roce_reply *reply)
{
	reply->read = false;
	reply->syndrome = SL_ROCE_NAK_ACCESS;
	reply->bytes = reply->offset = 0;
	qp->replies.put = qp->replies.taken + 1;
	sl_roce_rc_queue_modify(&qp->rc, SL_ROCE_ERROR);
	sl_qp_failed(qp, 0);
}

static void count(struct sl_qp_counters *counters, const struct sl_roce_reply *reply)
{
	if (reply->read)
		return;
	switch (reply->syndrome & SL_ROCE_SYNDROME_TYPE) {
	case SL_ROCE_ACK:
		counters->acks_sent++;
		break;
	case SL_ROCE_RNR_NAK:
		counters->rnr_naks_sent++;
		break;
	default:
		counters->naks_sent++;
	}
}

/* Data is paced; a word about it is not. */
bool sl_reply_send(struct sl_qp *qp, uint64_t now)
{
	struct sl_reply_queue *ring = &qp->replies;
	const struct sl_packet_to to = {&qp->path, &qp->to, qp->to_bytes, true};
	struct sl_roce_reply *reply = slot(qp, ring->taken);
	struct sl_roce_piece piece = {NULL, 0};
	struct sl_roce_fragment fragment;

	if (ring->taken == ring->put || (reply->read && !sl_congestion_allows(qp, now)))
		return false;
	if (reply->read && !find_data(qp, reply, &piece))
		refuse(qp, reply);
	if (!reply->read)
		piece.bytes = 0;
	count(&qp->counters, reply);
	sl_roce_reply_next(reply, sl_out_headers(qp->endpoint), &fragment);
	sl_out_commit(qp->endpoint, &to, fragment.header_bytes, &piece, piece.bytes > 0, true);
	if (fragment.bytes)
		sl_congestion_charge(qp, now, &fragment);
	if (!reply->pending) {
		sl_roce_rc_responder_answered(&qp->rc.responder, reply);
		ring->taken++;
	}
	return true;
}
