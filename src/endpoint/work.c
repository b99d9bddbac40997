/* work.c - posted work and receives, from posting to completion. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/state.h"

int sl_works_init(struct sl_qp *qp)
{
	const struct sl_qp_options *o = &qp->options;
	bool rc = o->transport == SL_ROCE_RC;

	/* An ACK may wait between two READs, and a NAK behind them all. */
	qp->replies.depth = 2 * o->peer_reads + 2;
	qp->sends.depth = o->sends;
	qp->receives.depth = o->receives;
	qp->sends.slot = calloc(o->sends, sizeof(*qp->sends.slot));
	qp->receives.slot = calloc(o->receives, sizeof(*qp->receives.slot));
	if (!qp->sends.slot || !qp->receives.slot)
		return -ENOMEM;
	if (!rc)
		return 0;
	qp->works = calloc(o->sends, sizeof(*qp->works));
	qp->replies.slot = calloc(qp->replies.depth, sizeof(*qp->replies.slot));
	return qp->works && qp->replies.slot ? 0 : -ENOMEM;
}

void sl_works_fini(struct sl_qp *qp)
{
	free(qp->sends.slot);
	free(qp->receives.slot);
	free(qp->works);
	free(qp->replies.slot);
}

void sl_works_forget(struct sl_qp *qp)
{
	struct sl_send_queue *sends = &qp->sends;
	struct sl_receive_queue *receives = &qp->receives;

	sends->posted = sends->begun = sends->completed = sends->taken = 0;
	sends->offset = 0;
	receives->posted = receives->completed = receives->taken = 0;
	qp->replies.put = qp->replies.taken = 0;
	qp->sending.done = true;
	sl_works_offer(qp);
}

/* ---- pieces ---- */

/* Both walk the pieces to `offset`; what was posted is as long as was checked. */
void sl_pieces_scatter(const struct sl_piece *pieces, uint32_t offset, const void *from,
		       uint32_t bytes)
{
	const uint8_t *p = from;

	for (unsigned i = 0; i < SL_QP_PIECES && bytes; i++) {
		uint32_t room = pieces[i].bytes > offset ? pieces[i].bytes - offset : 0;
		uint32_t n = bytes < room ? bytes : room;

		if (n)
			memcpy((uint8_t *)pieces[i].at + offset, p, n);
		offset -= n ? offset : pieces[i].bytes;
		p += n;
		bytes -= n;
	}
}

unsigned sl_pieces_gather(const struct sl_piece *pieces, uint32_t offset, uint32_t bytes,
			  struct sl_roce_piece *out)
{
	unsigned count = 0;

	for (unsigned i = 0; i < SL_QP_PIECES && bytes; i++) {
		uint32_t left = pieces[i].bytes > offset ? pieces[i].bytes - offset : 0;
		uint32_t n = bytes < left ? bytes : left;

		if (n)
			out[count++] =
				(struct sl_roce_piece){(const uint8_t *)pieces[i].at + offset, n};
		offset -= n ? offset : pieces[i].bytes;
		bytes -= n;
	}
	return count;
}

/* Together; false when they are too long for a message, or point nowhere. */
static bool measure(const struct sl_piece *pieces, uint32_t *bytes)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SL_QP_PIECES; i++) {
		if (pieces[i].bytes && !pieces[i].at)
			return false;
		sum += pieces[i].bytes;
	}
	*bytes = (uint32_t)sum;
	return sum <= SL_ROCE_MESSAGE_MAX;
}

/* ---- the send queue ---- */

static struct sl_send *send_slot(const struct sl_qp *qp, uint64_t count)
{
	return &qp->sends.slot[count % qp->sends.depth];
}

/* Quiet work that went well needs no reaping. */
static void release_quiet(struct sl_qp *qp)
{
	struct sl_send_queue *ring = &qp->sends;

	while (ring->taken < ring->completed && send_slot(qp, ring->taken)->work.quiet &&
	       send_slot(qp, ring->taken)->status == SL_STATUS_SUCCESS)
		ring->taken++;
}

static bool sendable(const struct sl_qp *qp, const struct sl_work *work, uint32_t bytes)
{
	switch (work->kind) {
	case SL_ROCE_KIND_SEND:
		break;
	case SL_ROCE_KIND_WRITE:
		return qp->options.transport != SL_ROCE_UD;
	case SL_ROCE_KIND_READ:
		return qp->options.transport == SL_ROCE_RC && !work->immediate &&
		       qp->rc.requester.reads > 0;
	default:
		return false;
	}
	if (qp->options.transport != SL_ROCE_UD)
		return true;
	return bytes <= qp->pmtu && work->to.qpn <= SL_ROCE_QPN_MASK &&
	       sl_endpoint_same_family(qp->endpoint, work->to.address);
}

int sl_qp_send(struct sl_qp *qp, const struct sl_work *work)
{
	struct sl_send_queue *ring = &qp->sends;
	enum sl_roce_state state = sl_qp_state(qp);
	struct sl_send *slot = send_slot(qp, ring->posted);
	uint32_t bytes;

	if (state < SL_ROCE_RTS || !measure(work->piece, &bytes))
		return -EINVAL;
	if (state == SL_ROCE_RTS && !sendable(qp, work, bytes))
		return -EINVAL;
	release_quiet(qp);
	if (ring->posted - ring->taken == ring->depth)
		return -EAGAIN;
	*slot = (struct sl_send){*work, bytes, SL_STATUS_SUCCESS};
	ring->posted++;
	if (state == SL_ROCE_ERROR)
		sl_works_flush(qp);
	qp->endpoint->kicked = true;
	return 0;
}

uint32_t sl_qp_sends(const struct sl_qp *qp)
{
	return (uint32_t)(qp->sends.posted - qp->sends.taken);
}

/* What the state machine completed. A READ may have been several requests: the work takes the first
 * bad status, and is complete with its last part. */
void sl_works_collect(struct sl_qp *qp)
{
	struct sl_roce_completion part;

	if (qp->options.transport != SL_ROCE_RC)
		return;
	while (sl_roce_rc_queue_complete(&qp->rc, &part)) {
		struct sl_send *send = &qp->sends.slot[part.id >> 32];

		if (!send->status)
			send->status = part.status;
		if ((uint32_t)part.id + part.bytes == send->bytes)
			qp->sends.completed++;
	}
}

/* ---- the receive queue ---- */

static struct sl_posted_receive *receive_slot(const struct sl_qp *qp, uint64_t count)
{
	return &qp->receives.slot[count % qp->receives.depth];
}

struct sl_posted_receive *sl_works_next_receive(struct sl_qp *qp)
{
	return qp->receives.completed < qp->receives.posted
		       ? receive_slot(qp, qp->receives.completed)
		       : NULL;
}

void sl_works_offer(struct sl_qp *qp)
{
	const struct sl_posted_receive *next = sl_works_next_receive(qp);
	uint32_t count = (uint32_t)(qp->receives.posted - qp->receives.completed);
	uint32_t bytes = next ? next->bytes : 0;

	qp->rc.responder.queue.receives = qp->uc.receives = qp->ud.receives = count;
	qp->rc.responder.queue.receive_bytes = qp->uc.receive_bytes = bytes;
	qp->ud.receive_bytes = bytes;
}

int sl_qp_receive(struct sl_qp *qp, uint64_t id, const struct sl_piece pieces[SL_QP_PIECES])
{
	struct sl_receive_queue *ring = &qp->receives;
	struct sl_posted_receive *slot = receive_slot(qp, ring->posted);
	enum sl_roce_state state = sl_qp_state(qp);
	uint32_t bytes;

	if (state == SL_ROCE_RESET || !measure(pieces, &bytes))
		return -EINVAL;
	if (ring->posted - ring->taken == ring->depth)
		return -EAGAIN;
	*slot = (struct sl_posted_receive){.bytes = bytes};
	memcpy(slot->piece, pieces, sizeof(slot->piece));
	slot->done.id = id;
	ring->posted++;
	if (state == SL_ROCE_ERROR)
		sl_works_flush(qp);
	sl_works_offer(qp);
	return 0;
}

uint32_t sl_qp_receives(const struct sl_qp *qp)
{
	return (uint32_t)(qp->receives.posted - qp->receives.taken);
}

void sl_works_received(struct sl_qp *qp, const struct sl_completion *done)
{
	struct sl_posted_receive *slot = sl_works_next_receive(qp);
	uint64_t id = slot->done.id;

	slot->done = *done;
	slot->done.id = id;
	slot->done.qp = qp;
	qp->receives.completed++;
	sl_works_offer(qp);
}

/* ---- completions ---- */

void sl_works_flush(struct sl_qp *qp)
{
	static const struct sl_completion flushed = {.status = SL_STATUS_FLUSHED,
						     .kind = SL_COMPLETION_RECEIVE};
	struct sl_send_queue *sends = &qp->sends;

	sl_works_collect(qp);
	for (; sends->completed < sends->posted; sends->completed++) {
		struct sl_send *send = send_slot(qp, sends->completed);

		if (!send->status)
			send->status = SL_STATUS_FLUSHED;
	}
	sends->begun = sends->posted;
	sends->offset = 0;
	qp->sending.done = true;
	while (sl_works_next_receive(qp))
		sl_works_received(qp, &flushed);
}

static struct sl_completion describe(struct sl_qp *qp, const struct sl_send *send)
{
	static const uint8_t kinds[] = {
		[SL_ROCE_KIND_SEND] = SL_COMPLETION_SEND,
		[SL_ROCE_KIND_WRITE] = SL_COMPLETION_WRITE,
		[SL_ROCE_KIND_READ] = SL_COMPLETION_READ,
	};

	return (struct sl_completion){
		.id = send->work.id,
		.qp = qp,
		.status = send->status,
		.kind = send->work.kind < sizeof(kinds) ? kinds[send->work.kind] : 0,
		.bytes = send->bytes,
	};
}

unsigned sl_works_reap(struct sl_qp *qp, struct sl_completion *completions, unsigned most)
{
	struct sl_send_queue *sends = &qp->sends;
	struct sl_receive_queue *receives = &qp->receives;
	unsigned count = 0;

	for (release_quiet(qp); count < most && sends->taken < sends->completed; release_quiet(qp))
		completions[count++] = describe(qp, send_slot(qp, sends->taken++));
	while (count < most && receives->taken < receives->completed)
		completions[count++] = receive_slot(qp, receives->taken++)->done;
	return count;
}
