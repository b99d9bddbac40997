/* rc_response.c - the RC requester receives: acknowledgements, and the data of READs.
 *
 * A READ is acknowledged by its data only. So a response for a later PSN acknowledges everything
 * before it up to the first READ whose data is not there; when there is one, its responses were
 * lost, and that is as good as a NAK. */
#include "roce/message.h"
#include "roce/psn.h"
#include "roce/rc_requester.h"
#include "roce/rc_state.h"

static void advance(struct sl_roce_rc_requester *r, uint64_t upto, uint64_t now)
{
	if (upto <= r->oldest)
		return;
	r->oldest = upto;
	while (r->completed < r->posted && sl_roce_rc_end(sl_roce_rc_work(r, r->completed)) <= upto)
		r->completed++;
	if (r->next < r->oldest)
		r->next = r->oldest;
	if (r->sending < r->completed)
		r->sending = r->completed;
	r->retries_left = r->retries;
	r->rnr_left = r->rnr_retries;
	r->rnr_until = 0;
	r->went_back = false;
	sl_roce_rc_arm(r, now);
}

/* Everything before `upto` has arrived there. false: but not all of it here. */
static bool acknowledge(struct sl_roce_rc_requester *r, uint64_t upto, uint64_t now)
{
	uint64_t limit = upto;

	for (uint64_t i = r->completed; i < r->posted; i++) {
		const struct sl_roce_work *work = sl_roce_rc_work(r, i);

		if (work->first >= upto)
			break;
		if (work->kind == SL_ROCE_KIND_READ) {
			limit = work->first > r->oldest ? work->first : r->oldest;
			break;
		}
	}
	advance(r, limit, now);
	return limit >= upto;
}

/* The peer tells of each loss once, but the network may repeat it. */
static void told_lost(struct sl_roce_rc_requester *r, uint64_t now)
{
	if (!r->went_back && !r->rnr_until)
		sl_roce_rc_lost(r, now, true);
}

static void not_ready(struct sl_roce_rc_requester *r, uint64_t psn, unsigned code, uint64_t now)
{
	if (r->rnr_until)
		return;
	if (r->rnr_retries != SL_ROCE_RNR_FOREVER) {
		if (r->rnr_left == 0) {
			sl_roce_rc_fail_at(r, psn, SL_ROCE_RNR_EXCEEDED);
			return;
		}
		r->rnr_left--;
	}
	sl_roce_rc_go_back(r);
	r->deadline = 0;
	r->retries_left = r->retries; /* the packet arrived: the path is good */
	r->rnr_until = now + sl_roce_rnr_ns(code);
	r->went_back = false;
}

static enum sl_roce_drop refused(struct sl_roce_rc_requester *r, uint64_t psn, uint8_t syndrome,
				 uint64_t now)
{
	switch (syndrome & (SL_ROCE_SYNDROME_TYPE | SL_ROCE_SYNDROME_VALUE)) {
	case SL_ROCE_NAK_SEQUENCE:
		told_lost(r, now);
		break;
	case SL_ROCE_NAK_INVALID:
		sl_roce_rc_fail_at(r, psn, SL_ROCE_REMOTE_INVALID);
		break;
	case SL_ROCE_NAK_ACCESS:
		sl_roce_rc_fail_at(r, psn, SL_ROCE_REMOTE_ACCESS);
		break;
	case SL_ROCE_NAK_OPERATION:
		sl_roce_rc_fail_at(r, psn, SL_ROCE_REMOTE_OPERATION);
		break;
	default:
		return SL_ROCE_DROP_BROKEN;
	}
	return SL_ROCE_ACCEPTED;
}

static enum sl_roce_drop acknowledged(struct sl_roce_rc_requester *r, uint64_t psn,
				      uint8_t syndrome, uint64_t now)
{
	switch (syndrome & SL_ROCE_SYNDROME_TYPE) {
	case SL_ROCE_ACK:
		if (!acknowledge(r, psn + 1, now))
			told_lost(r, now);
		return SL_ROCE_ACCEPTED;
	case SL_ROCE_RNR_NAK:
		acknowledge(r, psn, now);
		not_ready(r, psn, syndrome & SL_ROCE_SYNDROME_VALUE, now);
		return SL_ROCE_ACCEPTED;
	case SL_ROCE_NAK:
		acknowledge(r, psn, now);
		return refused(r, psn, syndrome, now);
	default:
		return SL_ROCE_DROP_BROKEN;
	}
}

/* The READ that this PSN belongs to; NULL when it belongs to something else. */
static const struct sl_roce_work *find_read(const struct sl_roce_rc_requester *r, uint64_t psn)
{
	for (uint64_t i = r->completed; i < r->posted; i++) {
		const struct sl_roce_work *work = sl_roce_rc_work(r, i);

		if (psn < sl_roce_rc_end(work))
			return work->kind == SL_ROCE_KIND_READ ? work : NULL;
	}
	return NULL;
}

static enum sl_roce_drop receive_data(struct sl_roce_rc_requester *r, uint64_t psn,
				      const struct sl_roce_packet *packet, uint64_t now,
				      struct sl_roce_read *read)
{
	const struct sl_roce_work *work = find_read(r, psn);
	bool ends = sl_roce_opcode(packet->opcode)->position & SL_ROCE_LAST;
	uint32_t offset, left;

	if (!work)
		return SL_ROCE_DROP_BROKEN;
	if (!acknowledge(r, psn, now)) {
		told_lost(r, now);
		return SL_ROCE_DROP_AHEAD;
	}
	offset = (uint32_t)(psn - work->first) * r->pmtu;
	left = work->bytes - offset;
	if (ends != (left <= r->pmtu) || packet->payload_bytes != (ends ? left : r->pmtu)) {
		sl_roce_rc_fail_at(r, psn, SL_ROCE_BAD_RESPONSE);
		return SL_ROCE_DROP_LENGTH;
	}
	*read = (struct sl_roce_read){work->id, offset, packet->payload_bytes};
	advance(r, psn + 1, now);
	return SL_ROCE_ACCEPTED;
}

enum sl_roce_drop sl_roce_rc_requester_receive(struct sl_roce_rc_requester *r,
					       const struct sl_roce_path *path,
					       const struct sl_roce_packet *packet, uint64_t now,
					       struct sl_roce_read *read)
{
	const struct sl_roce_owner owner = {SL_ROCE_RC, r->pkey, r->qpn, r->peer, r->local};
	enum sl_roce_drop drop = sl_roce_check_owner(&owner, path, packet);
	int32_t ahead = sl_roce_psn_diff(packet->psn, sl_roce_rc_wire(r, r->oldest));
	uint64_t psn;

	*read = (struct sl_roce_read){0, 0, 0};
	if (drop)
		return drop;
	if (sl_roce_opcode(packet->opcode)->kind != SL_ROCE_KIND_RESPONSE ||
	    packet->has & SL_ROCE_HAS_ATOMIC_ACK)
		return SL_ROCE_DROP_TRANSPORT;
	if (r->failed)
		return SL_ROCE_DROP_STATE;
	if (ahead < 0)
		return SL_ROCE_DROP_DUPLICATE;
	psn = r->oldest + (uint32_t)ahead;
	if (psn >= r->sent)
		return SL_ROCE_DROP_AHEAD;
	if (packet->opcode == SL_ROCE_OPCODE(SL_ROCE_RC, SL_ROCE_ACKNOWLEDGE))
		return acknowledged(r, psn, packet->aeth.syndrome, now);
	return receive_data(r, psn, packet, now, read);
}
