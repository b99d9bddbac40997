/* send.c - which packet is next: replies before requests, queue pairs by turns. */
#include "endpoint/state.h"
#include "roce/psn.h"

static struct sl_packet_to to_peer(const struct sl_qp *qp)
{
	return (struct sl_packet_to){&qp->path, &qp->to, qp->to_bytes,
				     qp->options.transport == SL_ROCE_RC};
}

/* Bytes of a posted work behind the headers that are ready. */
static void commit(struct sl_qp *qp, const struct sl_send *send, uint32_t offset,
		   const struct sl_roce_fragment *fragment, const struct sl_packet_to *to)
{
	struct sl_roce_piece pieces[SL_QP_PIECES];
	unsigned count = sl_pieces_gather(send->work.piece, offset, fragment->bytes, pieces);

	sl_out_commit(qp->endpoint, to, fragment->header_bytes, pieces, count, false);
}

/* ---- RC ---- */

/* Hand work to the state machine. A long READ is asked for in parts, so that its data does not
 * overrun the receive buffer. */
static void rc_begin(struct sl_qp *qp)
{
	struct sl_send_queue *ring = &qp->sends;

	while (ring->begun < ring->posted) {
		const struct sl_send *send = &ring->slot[ring->begun % ring->depth];
		const struct sl_work *work = &send->work;
		bool read = work->kind == SL_ROCE_KIND_READ;
		uint32_t left = send->bytes - ring->offset;
		struct sl_roce_work part = {
			.id = (ring->begun % ring->depth) << 32 | ring->offset,
			.kind = work->kind,
			.immediate = work->immediate,
			.solicited = work->solicited,
			.quiet = work->quiet,
			.imm = work->imm,
			.rkey = work->rkey,
			.va = work->va + ring->offset,
			.bytes = read && left > qp->part ? qp->part : left,
		};

		if (sl_roce_rc_queue_post(&qp->rc, &part) != SL_ROCE_OK)
			return;
		ring->offset += part.bytes;
		if (ring->offset == send->bytes) {
			ring->begun++;
			ring->offset = 0;
		}
	}
}

static bool rc_send(struct sl_qp *qp, uint64_t now)
{
	const struct sl_packet_to to = to_peer(qp);
	struct sl_roce_request request;
	uint32_t part;
	bool any;

	if (qp->rc.state != SL_ROCE_RTS)
		return false;
	rc_begin(qp);
	/* Timers run also where nothing is left to be sent. */
	if (qp->rc.requester.next < qp->rc.requester.end && !sl_congestion_allows(qp, now))
		return false;
	any = sl_roce_rc_queue_next(&qp->rc, now, sl_out_headers(qp->endpoint), &request);
	if (qp->rc.state == SL_ROCE_ERROR)
		sl_qp_failed(qp, 0);
	if (!any)
		return false;
	part = (uint32_t)request.id;
	qp->counters.resent += request.again;
	sl_congestion_charge(qp, now, &request.fragment);
	commit(qp, &qp->sends.slot[request.id >> 32], part + request.fragment.offset,
	       &request.fragment, &to);
	return true;
}

/* ---- UC ---- */

static bool uc_begin(struct sl_qp *qp, const struct sl_send *send)
{
	const struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = send->work.kind,
		.immediate = send->work.immediate,
		.solicited = send->work.solicited,
		.mig = qp->options.mig,
		.pkey = qp->pkey,
		.pmtu = qp->pmtu,
		.qpn = qp->peer_qpn,
		.psn = qp->psn,
		.imm = send->work.imm,
		.rkey = send->work.rkey,
		.va = send->work.va,
		.bytes = send->bytes,
	};

	return sl_roce_requester_begin(&qp->sending, &message) == SL_ROCE_OK;
}

/* Sent is complete: nobody answers. */
static void sent(struct sl_qp *qp)
{
	qp->sends.begun++;
	qp->sends.completed = qp->sends.begun;
}

static bool uc_send(struct sl_qp *qp, uint64_t now)
{
	const struct sl_packet_to to = to_peer(qp);
	struct sl_send_queue *ring = &qp->sends;
	const struct sl_send *send = &ring->slot[ring->begun % ring->depth];
	struct sl_roce_fragment fragment;

	if (qp->state != SL_ROCE_RTS || ring->begun == ring->posted)
		return false;
	if (!sl_congestion_allows(qp, now) || (qp->sending.done && !uc_begin(qp, send)))
		return false;
	sl_roce_requester_next(&qp->sending, sl_out_headers(qp->endpoint), &fragment);
	sl_congestion_charge(qp, now, &fragment);
	commit(qp, send, fragment.offset, &fragment, &to);
	qp->psn = qp->sending.psn;
	if (qp->sending.done)
		sent(qp);
	return true;
}

/* ---- UD ---- */

static bool ud_send(struct sl_qp *qp)
{
	struct sl_send_queue *ring = &qp->sends;
	const struct sl_send *send = &ring->slot[ring->begun % ring->depth];
	const struct sl_work *work = &send->work;
	const struct sl_roce_ud_message message = {
		.immediate = work->immediate,
		.solicited = work->solicited,
		.mig = qp->options.mig,
		.pkey = qp->pkey,
		.pmtu = qp->pmtu,
		.qpn = work->to.qpn,
		.qkey = work->to.qkey,
		.source_qpn = qp->qpn,
		.psn = qp->psn,
		.imm = work->imm,
		.bytes = send->bytes,
	};
	struct sl_roce_fragment fragment;
	union sl_net_address address;
	struct sl_roce_path path;
	struct sl_packet_to to = {&path, &address, 0, false};

	if (qp->state != SL_ROCE_RTS || ring->begun == ring->posted)
		return false;
	sl_endpoint_path(qp->endpoint, work->to.address,
			 work->to.port ? work->to.port : SL_ROCE_UDP_PORT, &path);
	to.bytes = sl_net_address(path.dest, path.dest_port, &address);
	if (sl_roce_ud_encode(&message, sl_out_headers(qp->endpoint), &fragment))
		return false;
	commit(qp, send, 0, &fragment, &to);
	qp->psn = sl_roce_psn_add(qp->psn, 1);
	sent(qp);
	return true;
}

/* ---- all of them ---- */

static bool send_one(struct sl_qp *qp, uint64_t now)
{
	if (!sl_out_room(qp->endpoint))
		return false;
	switch (qp->options.transport) {
	case SL_ROCE_RC:
		return sl_reply_send(qp, now) || rc_send(qp, now);
	case SL_ROCE_UC:
		return uc_send(qp, now);
	default:
		return ud_send(qp);
	}
}

static unsigned take_turn(struct sl_qp *qp, uint64_t now, unsigned budget)
{
	unsigned sent = 0, most = budget < SL_TURN ? budget : SL_TURN;

	while (sent < most && send_one(qp, now))
		sent++;
	qp->counters.sent += sent;
	return sent;
}

/* Ends when the budget is spent, or when all queue pairs in a row had nothing. */
unsigned sl_send_packets(struct sl_endpoint *endpoint, uint64_t now, unsigned budget)
{
	unsigned sent = 0;

	for (uint32_t idle = 0; sent < budget && idle < endpoint->numbers.used;) {
		struct sl_qp *qp = endpoint->turn ? endpoint->turn : endpoint->qps;
		unsigned n = take_turn(qp, now, budget - sent);

		endpoint->turn = qp->next;
		idle = n ? 0 : idle + 1;
		sent += n;
	}
	if (!sent && sl_fault_holds(endpoint))
		sl_fault_release(endpoint);
	sl_out_flush(endpoint);
	return sent;
}

uint64_t sl_send_wake(const struct sl_endpoint *endpoint)
{
	uint64_t wake = UINT64_MAX;

	for (const struct sl_qp *qp = endpoint->qps; qp; qp = qp->next) {
		uint64_t at = qp->rc.state == SL_ROCE_RTS ? sl_roce_rc_wake(&qp->rc.requester)
							  : UINT64_MAX;

		if (qp->paced_until && qp->paced_until < at)
			at = qp->paced_until;
		wake = at < wake ? at : wake;
	}
	return wake;
}
