/* rc_queue.c - the states of a reliable queue pair. */
#include "roce/rc_queue.h"

#include <string.h>

/* One half has failed: the other one does too. */
static void settle(struct sl_roce_rc_queue *queue)
{
	if (!queue->responder.failed && !queue->requester.failed)
		return;
	queue->state = SL_ROCE_ERROR;
	queue->responder.failed = true;
	queue->responder.queue.open = false;
	if (!queue->requester.failed)
		sl_roce_rc_requester_fail(&queue->requester);
}

static void forget(struct sl_roce_rc_requester *r)
{
	r->posted = r->sending = r->completed = r->taken = 0;
	r->oldest = r->next = r->sent = r->end = r->asked = 0;
	r->deadline = r->rnr_until = 0;
	r->failed = false;
}

static int ready_to_receive(struct sl_roce_rc_queue *queue)
{
	forget(&queue->requester);
	return sl_roce_rc_responder_init(&queue->responder);
}

static int ready_to_send(struct sl_roce_rc_queue *queue)
{
	const struct sl_roce_rc_responder *responder = &queue->responder;
	struct sl_roce_rc_requester *requester = &queue->requester;

	requester->pkey = responder->queue.pkey;
	requester->qpn = responder->queue.qpn;
	requester->peer_qpn = responder->peer_qpn;
	requester->pmtu = responder->queue.pmtu;
	requester->mig = responder->mig;
	memcpy(requester->peer, responder->queue.peer, sizeof(requester->peer));
	memcpy(requester->local, responder->queue.local, sizeof(requester->local));
	return sl_roce_rc_requester_init(requester);
}

int sl_roce_rc_queue_modify(struct sl_roce_rc_queue *queue, enum sl_roce_state to)
{
	int rc = SL_ROCE_OK;

	if (to == SL_ROCE_ERROR) {
		queue->responder.failed = true;
		settle(queue);
		return SL_ROCE_OK;
	}
	if (to == SL_ROCE_RESET) {
		forget(&queue->requester);
		queue->responder.failed = false;
	} else if ((unsigned)to != queue->state + 1u || to > SL_ROCE_RTS) {
		return SL_ROCE_EINVAL;
	}
	if (to == SL_ROCE_RTR)
		rc = ready_to_receive(queue);
	else if (to == SL_ROCE_RTS)
		rc = ready_to_send(queue);
	if (rc)
		return rc;
	queue->state = (uint8_t)to;
	return SL_ROCE_OK;
}

int sl_roce_rc_queue_post(struct sl_roce_rc_queue *queue, const struct sl_roce_work *work)
{
	/* One that failed before it was ever ready to send has no works to flush. */
	if (queue->state < SL_ROCE_RTS || !sl_roce_pmtu_valid(queue->requester.pmtu))
		return SL_ROCE_EINVAL;
	return sl_roce_rc_post(&queue->requester, work);
}

bool sl_roce_rc_queue_next(struct sl_roce_rc_queue *queue, uint64_t now, void *headers,
			   struct sl_roce_request *request)
{
	bool any = queue->state == SL_ROCE_RTS &&
		   sl_roce_rc_next(&queue->requester, now, headers, request);

	settle(queue);
	return any;
}

bool sl_roce_rc_queue_complete(struct sl_roce_rc_queue *queue,
			       struct sl_roce_completion *completion)
{
	return sl_roce_rc_complete(&queue->requester, completion);
}

static bool is_response(uint8_t opcode)
{
	const struct sl_roce_opcode *row = sl_roce_opcode(opcode);

	return row && row->kind == SL_ROCE_KIND_RESPONSE;
}

enum sl_roce_drop sl_roce_rc_queue_receive(struct sl_roce_rc_queue *queue,
					   const struct sl_roce_path *path,
					   const struct sl_roce_packet *packet, uint64_t now,
					   sl_roce_key_lookup *lookup, void *lookup_arg,
					   struct sl_roce_outcome *outcome)
{
	bool response = is_response(packet->opcode);
	enum sl_roce_drop drop;

	memset(outcome, 0, sizeof(*outcome));
	outcome->request = !response;
	if (queue->state != SL_ROCE_RTS && !(queue->state == SL_ROCE_RTR && !response))
		return SL_ROCE_DROP_STATE;
	if (response)
		drop = sl_roce_rc_requester_receive(&queue->requester, path, packet, now,
						    &outcome->read);
	else
		drop = sl_roce_rc_responder_receive(&queue->responder, path, packet, lookup,
						    lookup_arg, &outcome->action, &outcome->reply);
	settle(queue);
	return drop;
}
