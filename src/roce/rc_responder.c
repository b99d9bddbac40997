/* rc_responder.c - RC: execute in order, answer, fail on what cannot be right. */
#include "roce/rc_responder.h"
#include "roce/message.h"
#include "roce/psn.h"

#include <string.h>

int sl_roce_rc_responder_init(struct sl_roce_rc_responder *responder)
{
	struct sl_roce_responder *queue = &responder->queue;

	if (queue->transport != SL_ROCE_RC || !sl_roce_pmtu_valid(queue->pmtu))
		return SL_ROCE_EINVAL;
	if (queue->qpn > SL_ROCE_QPN_MASK || queue->expected_psn > SL_ROCE_PSN_MASK ||
	    responder->peer_qpn > SL_ROCE_QPN_MASK || responder->rnr_timer > SL_ROCE_SYNDROME_VALUE)
		return SL_ROCE_EINVAL;
	queue->open = false;
	queue->kind = 0;
	queue->rkey = 0;
	queue->va = 0;
	queue->length = 0;
	queue->offset = 0;
	responder->msn = 0;
	responder->reads_out = 0;
	responder->silent = false;
	responder->failed = false;
	return SL_ROCE_OK;
}

static void acknowledge(const struct sl_roce_rc_responder *responder, uint32_t psn,
			uint8_t syndrome, struct sl_roce_reply *reply)
{
	reply->pending = true;
	reply->syndrome = syndrome;
	reply->mig = responder->mig;
	reply->pkey = responder->queue.pkey;
	reply->qpn = responder->peer_qpn;
	reply->psn = psn;
	reply->msn = responder->msn;
	reply->pmtu = responder->queue.pmtu;
}

static void answer_read(const struct sl_roce_rc_responder *responder,
			const struct sl_roce_packet *packet, const struct sl_roce_key *key,
			struct sl_roce_reply *reply)
{
	acknowledge(responder, packet->psn, SL_ROCE_ACK_UNLIMITED, reply);
	reply->read = true;
	reply->key = key;
	reply->rkey = packet->reth.rkey;
	reply->va = packet->reth.va;
	reply->bytes = packet->reth.length;
}

/* Which NAK a packet at its turn deserves. What the queue never permits is an invalid request; what
 * a key does not permit is an access error. */
static uint8_t nak_for(const struct sl_roce_responder *queue, uint32_t access,
		       enum sl_roce_drop drop)
{
	switch (drop) {
	case SL_ROCE_DROP_KEY:
	case SL_ROCE_DROP_RANGE:
		return SL_ROCE_NAK_ACCESS;
	case SL_ROCE_DROP_ACCESS:
		return queue->access & access ? SL_ROCE_NAK_ACCESS : SL_ROCE_NAK_INVALID;
	default:
		return SL_ROCE_NAK_INVALID;
	}
}

static enum sl_roce_drop fail(struct sl_roce_rc_responder *responder,
			      const struct sl_roce_packet *packet, uint32_t access,
			      enum sl_roce_drop drop, struct sl_roce_reply *reply)
{
	acknowledge(responder, packet->psn, nak_for(&responder->queue, access, drop), reply);
	responder->queue.open = false;
	responder->failed = true;
	return drop;
}

static enum sl_roce_drop check_read(const struct sl_roce_responder *queue,
				    const struct sl_roce_packet *packet, sl_roce_key_lookup *lookup,
				    void *lookup_arg, const struct sl_roce_key **key)
{
	if (packet->payload_bytes || packet->reth.length > SL_ROCE_MESSAGE_MAX)
		return SL_ROCE_DROP_LENGTH;
	if (!(queue->access & SL_ROCE_REMOTE_READ))
		return SL_ROCE_DROP_ACCESS;
	return sl_roce_check_key(queue->domain, SL_ROCE_REMOTE_READ, packet->reth.rkey,
				 packet->reth.va, packet->reth.length, lookup, lookup_arg, key);
}

/* A READ may be asked for again from anywhere within it, but not beyond what was asked before. */
static enum sl_roce_drop duplicate(const struct sl_roce_rc_responder *responder, uint32_t behind,
				   const struct sl_roce_opcode *opcode,
				   const struct sl_roce_packet *packet, sl_roce_key_lookup *lookup,
				   void *lookup_arg, struct sl_roce_reply *reply)
{
	const struct sl_roce_responder *queue = &responder->queue;
	const struct sl_roce_key *key = NULL;

	if (opcode->kind == SL_ROCE_KIND_SEND || opcode->kind == SL_ROCE_KIND_WRITE)
		acknowledge(responder, sl_roce_psn_add(queue->expected_psn, SL_ROCE_PSN_MASK),
			    SL_ROCE_ACK_UNLIMITED, reply);
	else if (opcode->kind == SL_ROCE_KIND_READ &&
		 !check_read(queue, packet, lookup, lookup_arg, &key) &&
		 sl_roce_packets(packet->reth.length, queue->pmtu) <= behind)
		answer_read(responder, packet, key, reply);
	return SL_ROCE_DROP_DUPLICATE;
}

static enum sl_roce_drop ahead(struct sl_roce_rc_responder *responder, struct sl_roce_reply *reply)
{
	if (!responder->silent)
		acknowledge(responder, responder->queue.expected_psn, SL_ROCE_NAK_SEQUENCE, reply);
	responder->silent = true;
	return SL_ROCE_DROP_AHEAD;
}

static enum sl_roce_drop not_ready(struct sl_roce_rc_responder *responder,
				   const struct sl_roce_packet *packet, struct sl_roce_reply *reply)
{
	acknowledge(responder, packet->psn, SL_ROCE_RNR_NAK | responder->rnr_timer, reply);
	responder->silent = true;
	return SL_ROCE_DROP_RECEIVE;
}

static enum sl_roce_drop execute(struct sl_roce_rc_responder *responder,
				 const struct sl_roce_opcode *opcode,
				 const struct sl_roce_packet *packet, sl_roce_key_lookup *lookup,
				 void *lookup_arg, struct sl_roce_action *action,
				 struct sl_roce_reply *reply)
{
	struct sl_roce_responder *queue = &responder->queue, next;
	const struct sl_roce_key *key = NULL;
	enum sl_roce_drop drop;

	if (!(opcode->position & SL_ROCE_FIRST) && opcode->kind != queue->kind)
		return fail(responder, packet, 0, SL_ROCE_DROP_BROKEN, reply);
	drop = sl_roce_check_message(queue, opcode, packet, lookup, lookup_arg, &next, &key);
	if (drop == SL_ROCE_DROP_RECEIVE && queue->receives == 0)
		return not_ready(responder, packet, reply);
	if (drop)
		return fail(responder, packet, SL_ROCE_REMOTE_WRITE, drop, reply);
	sl_roce_describe(queue, &next, opcode, packet, key, action);
	*queue = next;
	if (action->last)
		responder->msn = sl_roce_psn_add(responder->msn, 1);
	if (packet->ackreq)
		acknowledge(responder, packet->psn, SL_ROCE_ACK_UNLIMITED, reply);
	return SL_ROCE_ACCEPTED;
}

static enum sl_roce_drop execute_read(struct sl_roce_rc_responder *responder,
				      const struct sl_roce_packet *packet,
				      sl_roce_key_lookup *lookup, void *lookup_arg,
				      struct sl_roce_action *action, struct sl_roce_reply *reply)
{
	struct sl_roce_responder *queue = &responder->queue;
	const struct sl_roce_key *key = NULL;
	enum sl_roce_drop drop;

	if (responder->reads && responder->reads_out >= responder->reads)
		return fail(responder, packet, SL_ROCE_REMOTE_READ, SL_ROCE_DROP_READS, reply);
	drop = check_read(queue, packet, lookup, lookup_arg, &key);
	if (drop)
		return fail(responder, packet, SL_ROCE_REMOTE_READ, drop, reply);
	queue->expected_psn =
		sl_roce_psn_add(packet->psn, sl_roce_packets(packet->reth.length, queue->pmtu));
	responder->msn = sl_roce_psn_add(responder->msn, 1);
	answer_read(responder, packet, key, reply);
	reply->counted = true;
	responder->reads_out++;
	memset(action, 0, sizeof(*action));
	action->first = true;
	action->last = true;
	action->message_bytes = packet->reth.length;
	return SL_ROCE_ACCEPTED;
}

void sl_roce_rc_responder_answered(struct sl_roce_rc_responder *responder,
				   struct sl_roce_reply *reply)
{
	if (reply->counted && responder->reads_out)
		responder->reads_out--;
	reply->counted = false;
}

static bool served(const struct sl_roce_opcode *opcode)
{
	return (opcode->kind == SL_ROCE_KIND_SEND || opcode->kind == SL_ROCE_KIND_WRITE ||
		opcode->kind == SL_ROCE_KIND_READ) &&
	       !(opcode->headers & SL_ROCE_HAS_IETH);
}

enum sl_roce_drop sl_roce_rc_responder_receive(struct sl_roce_rc_responder *responder,
					       const struct sl_roce_path *path,
					       const struct sl_roce_packet *packet,
					       sl_roce_key_lookup *lookup, void *lookup_arg,
					       struct sl_roce_action *action,
					       struct sl_roce_reply *reply)
{
	const struct sl_roce_owner owner = sl_roce_responder_owner(&responder->queue);
	const struct sl_roce_opcode *opcode;
	enum sl_roce_drop drop = sl_roce_check_owner(&owner, path, packet);
	int32_t gap = sl_roce_psn_diff(packet->psn, responder->queue.expected_psn);

	memset(reply, 0, sizeof(*reply));
	if (drop)
		return drop;
	opcode = sl_roce_opcode(packet->opcode);
	if (opcode->kind == SL_ROCE_KIND_RESPONSE)
		return SL_ROCE_DROP_TRANSPORT;
	if (responder->failed)
		return SL_ROCE_DROP_STATE;
	if (gap < 0)
		return duplicate(responder, (uint32_t)-gap, opcode, packet, lookup, lookup_arg,
				 reply);
	if (gap > 0)
		return ahead(responder, reply);
	responder->silent = false;
	if (!served(opcode))
		return fail(responder, packet, 0, SL_ROCE_DROP_TRANSPORT, reply);
	if (responder->queue.open == !!(opcode->position & SL_ROCE_FIRST))
		return fail(responder, packet, 0, SL_ROCE_DROP_BROKEN, reply);
	if (opcode->kind == SL_ROCE_KIND_READ)
		return execute_read(responder, packet, lookup, lookup_arg, action, reply);
	return execute(responder, opcode, packet, lookup, lookup_arg, action, reply);
}

void sl_roce_rc_responder_refuse(struct sl_roce_rc_responder *responder,
				 const struct sl_roce_packet *packet, struct sl_roce_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	/* It was counted as a message that completed, and is none. */
	if (sl_roce_opcode(packet->opcode)->position & SL_ROCE_LAST)
		responder->msn = sl_roce_psn_add(responder->msn, SL_ROCE_PSN_MASK);
	fail(responder, packet, SL_ROCE_REMOTE_WRITE, SL_ROCE_DROP_RANGE, reply);
}

bool sl_roce_rc_responder_defer(struct sl_roce_rc_responder *responder,
				const struct sl_roce_path *path,
				const struct sl_roce_packet *packet, struct sl_roce_reply *reply)
{
	const struct sl_roce_owner owner = sl_roce_responder_owner(&responder->queue);

	memset(reply, 0, sizeof(*reply));
	if (sl_roce_check_owner(&owner, path, packet) || responder->failed ||
	    packet->psn != responder->queue.expected_psn ||
	    sl_roce_opcode(packet->opcode)->kind == SL_ROCE_KIND_RESPONSE)
		return false;
	not_ready(responder, packet, reply);
	return true;
}
