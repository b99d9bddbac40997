/* rc_requester.c - the send queue: posting, packets, timers, completions. What responses do to it
 * is in rc_response.c. */
#include "roce/rc_requester.h"
#include "roce/psn.h"
#include "roce/rc_state.h"

int sl_roce_rc_requester_init(struct sl_roce_rc_requester *r)
{
	const uint32_t most = SL_ROCE_READ_PACKETS_MAX;

	if (!sl_roce_pmtu_valid(r->pmtu) || !r->works || r->capacity == 0)
		return SL_ROCE_EINVAL;
	if (r->qpn > SL_ROCE_QPN_MASK || r->peer_qpn > SL_ROCE_QPN_MASK ||
	    r->psn > SL_ROCE_PSN_MASK)
		return SL_ROCE_EINVAL;
	if (r->window == 0 || r->window > most || r->ack_every == 0 || r->ack_every > r->window)
		return SL_ROCE_EINVAL;
	if (r->rnr_retries > SL_ROCE_RNR_FOREVER)
		return SL_ROCE_EINVAL;
	r->posted = r->sending = r->completed = r->taken = 0;
	r->oldest = r->next = r->sent = r->end = r->asked = 0;
	r->deadline = r->rnr_until = 0;
	r->retries_left = r->retries;
	r->rnr_left = r->rnr_retries;
	r->went_back = r->failed = false;
	return SL_ROCE_OK;
}

static bool postable(const struct sl_roce_rc_requester *r, const struct sl_roce_work *work)
{
	if (work->bytes > SL_ROCE_MESSAGE_MAX)
		return false;
	if (work->kind != SL_ROCE_KIND_READ)
		return work->kind == SL_ROCE_KIND_SEND || work->kind == SL_ROCE_KIND_WRITE;
	return r->reads > 0 && !work->immediate &&
	       sl_roce_packets(work->bytes, r->pmtu) <= SL_ROCE_READ_PACKETS_MAX;
}

int sl_roce_rc_post(struct sl_roce_rc_requester *r, const struct sl_roce_work *work)
{
	struct sl_roce_work *slot = sl_roce_rc_work(r, r->posted);

	if (!postable(r, work))
		return SL_ROCE_EINVAL;
	if (r->posted - r->taken == r->capacity)
		return SL_ROCE_EFULL;
	*slot = *work;
	slot->status = r->failed ? SL_ROCE_FLUSHED : SL_ROCE_SUCCESS;
	slot->packets = sl_roce_packets(work->bytes, r->pmtu);
	slot->first = r->end;
	r->end += slot->packets;
	r->posted++;
	if (r->failed)
		r->completed = r->posted;
	return SL_ROCE_OK;
}

void sl_roce_rc_arm(struct sl_roce_rc_requester *r, uint64_t now)
{
	r->deadline = r->timeout_ns && r->oldest < r->sent ? now + r->timeout_ns : 0;
}

void sl_roce_rc_go_back(struct sl_roce_rc_requester *r)
{
	r->next = r->asked = r->oldest;
	r->sending = r->completed;
}

void sl_roce_rc_fail_at(struct sl_roce_rc_requester *r, uint64_t at, enum sl_roce_status status)
{
	for (; r->completed < r->posted; r->completed++) {
		struct sl_roce_work *work = sl_roce_rc_work(r, r->completed);
		bool guilty = at >= work->first && at - work->first < work->packets;

		work->status = (uint8_t)(guilty ? status : SL_ROCE_FLUSHED);
	}
	r->sending = r->posted;
	r->deadline = r->rnr_until = 0;
	r->failed = true;
}

void sl_roce_rc_requester_fail(struct sl_roce_rc_requester *r)
{
	sl_roce_rc_fail_at(r, UINT64_MAX, SL_ROCE_FLUSHED);
}

void sl_roce_rc_lost(struct sl_roce_rc_requester *r, uint64_t now, bool told)
{
	if (r->retries_left == 0) {
		sl_roce_rc_fail_at(r, r->oldest, SL_ROCE_RETRY_EXCEEDED);
		return;
	}
	if (r->retries != SL_ROCE_RETRY_FOREVER)
		r->retries_left--;
	sl_roce_rc_go_back(r);
	sl_roce_rc_arm(r, now);
	r->went_back = told;
}

void sl_roce_rc_tick(struct sl_roce_rc_requester *r, uint64_t now)
{
	if (r->rnr_until) {
		if (now < r->rnr_until)
			return;
		r->rnr_until = 0;
		sl_roce_rc_arm(r, now);
	} else if (r->deadline && now >= r->deadline) {
		sl_roce_rc_lost(r, now, false);
	}
}

uint64_t sl_roce_rc_wake(const struct sl_roce_rc_requester *r)
{
	if (r->rnr_until)
		return r->rnr_until;
	return r->deadline ? r->deadline : UINT64_MAX;
}

/* Works in flight before the one being sent that are READs. */
static uint32_t reads_out(const struct sl_roce_rc_requester *r)
{
	uint32_t count = 0;

	for (uint64_t i = r->completed; i < r->sending; i++)
		count += sl_roce_rc_work(r, i)->kind == SL_ROCE_KIND_READ;
	return count;
}

/* The work that the next packet belongs to; NULL when nothing may be sent. */
static const struct sl_roce_work *next_work(struct sl_roce_rc_requester *r, uint32_t *psns)
{
	const struct sl_roce_work *work;

	while (r->sending < r->posted && r->next >= sl_roce_rc_end(sl_roce_rc_work(r, r->sending)))
		r->sending++;
	if (r->sending == r->posted)
		return NULL;
	work = sl_roce_rc_work(r, r->sending);
	*psns = 1;
	if (work->kind == SL_ROCE_KIND_READ) {
		*psns = (uint32_t)(sl_roce_rc_end(work) - r->next);
		if (reads_out(r) >= r->reads)
			return NULL;
	}
	if (r->next != r->oldest && r->next - r->oldest + *psns > r->window)
		return NULL;
	return work;
}

/* Of the packet before r->next, which is of this work. */
static bool wants_ack(struct sl_roce_rc_requester *r, const struct sl_roce_work *work)
{
	uint32_t psns;

	if (r->next % r->ack_every == 0 || r->next - r->oldest >= r->window)
		return true;
	if (r->next != sl_roce_rc_end(work))
		return false;
	return !work->quiet || !next_work(r, &psns);
}

static void encode(const struct sl_roce_rc_requester *r, const struct sl_roce_work *work,
		   uint64_t psn, bool ackreq, void *headers, struct sl_roce_fragment *fragment)
{
	const struct sl_roce_message message = {
		.transport = SL_ROCE_RC,
		.kind = work->kind,
		.immediate = work->immediate,
		.solicited = work->solicited,
		.mig = r->mig,
		.pkey = r->pkey,
		.pmtu = r->pmtu,
		.qpn = r->peer_qpn,
		.imm = work->imm,
		.rkey = work->rkey,
		.va = work->va,
		.bytes = work->bytes,
	};
	uint32_t offset = (uint32_t)(psn - work->first) * r->pmtu;

	sl_roce_fragment_at(&message, offset, sl_roce_rc_wire(r, psn), ackreq, headers, fragment);
}

/* The clock runs from the first packet that asks for an ACK. */
static void start_clock(struct sl_roce_rc_requester *r, bool ackreq, uint64_t now)
{
	if (!r->deadline || r->asked <= r->oldest)
		sl_roce_rc_arm(r, now);
	if (ackreq)
		r->asked = r->next;
}

bool sl_roce_rc_next(struct sl_roce_rc_requester *r, uint64_t now, void *headers,
		     struct sl_roce_request *request)
{
	const struct sl_roce_work *work;
	uint64_t psn;
	uint32_t psns;
	bool ackreq;

	sl_roce_rc_tick(r, now);
	if (r->failed || r->rnr_until)
		return false;
	work = next_work(r, &psns);
	if (!work)
		return false;
	psn = r->next;
	request->again = psn < r->sent;
	r->next += psns;
	if (r->next > r->sent)
		r->sent = r->next;
	ackreq = wants_ack(r, work);
	encode(r, work, psn, ackreq, headers, &request->fragment);
	request->id = work->id;
	start_clock(r, ackreq || work->kind == SL_ROCE_KIND_READ, now);
	return true;
}

bool sl_roce_rc_complete(struct sl_roce_rc_requester *r, struct sl_roce_completion *completion)
{
	const struct sl_roce_work *work;

	if (r->taken == r->completed)
		return false;
	work = sl_roce_rc_work(r, r->taken++);
	*completion = (struct sl_roce_completion){work->id, work->status, work->kind, work->bytes};
	return true;
}
