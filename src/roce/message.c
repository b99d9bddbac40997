/* message.c - the questions about a packet that do not depend on the transport. The order of the
 * checks is the order of enum sl_roce_drop: whose packet is it, do its lengths add up, may it. */
#include "roce/message.h"
#include "roce/psn.h"

#include <string.h>

static bool same_gid(const uint8_t *a, const uint8_t *b)
{
	uint8_t differs = 0;

	for (int i = 0; i < SL_ROCE_GID_BYTES; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

struct sl_roce_owner sl_roce_responder_owner(const struct sl_roce_responder *responder)
{
	return (struct sl_roce_owner){responder->transport, responder->pkey, responder->qpn,
				      responder->peer, responder->local};
}

/* Packets that are none of this queue's business leave its state alone. */
enum sl_roce_drop sl_roce_check_owner(const struct sl_roce_owner *owner,
				      const struct sl_roce_path *path,
				      const struct sl_roce_packet *packet)
{
	if (packet->qpn != owner->qpn)
		return SL_ROCE_DROP_QUEUE;
	if (sl_roce_opcode_transport(packet->opcode) != owner->transport ||
	    !sl_roce_opcode(packet->opcode))
		return SL_ROCE_DROP_TRANSPORT;
	if (!sl_roce_pkey_match(packet->pkey, owner->pkey))
		return SL_ROCE_DROP_PKEY;
	if (path && !(same_gid(path->source, owner->peer) && same_gid(path->dest, owner->local)))
		return SL_ROCE_DROP_PEER;
	return SL_ROCE_ACCEPTED;
}

/* The message as it would be with this packet: a new one, or one step further. */
static void advance(const struct sl_roce_responder *responder, const struct sl_roce_opcode *opcode,
		    const struct sl_roce_packet *packet, struct sl_roce_responder *next)
{
	*next = *responder;
	next->open = !(opcode->position & SL_ROCE_LAST);
	next->expected_psn = sl_roce_psn_add(packet->psn, 1);
	if (opcode->position & SL_ROCE_FIRST) {
		next->kind = opcode->kind;
		next->rkey = packet->reth.rkey;
		next->va = packet->reth.va;
		next->length = packet->reth.length;
		next->offset = 0;
	}
	next->offset += packet->payload_bytes;
}

/* FIRST and MIDDLE announce that more follows, LAST and ONLY that nothing does. The offset cannot
 * wrap: with a packet it is at most the PMTU above what was below the limit. */
static enum sl_roce_drop check_length(const struct sl_roce_responder *next,
				      const struct sl_roce_opcode *opcode,
				      const struct sl_roce_packet *packet)
{
	bool last = opcode->position & SL_ROCE_LAST;

	if (!sl_roce_payload_fits(opcode, packet->payload_bytes, next->pmtu))
		return SL_ROCE_DROP_LENGTH;
	if (next->kind == SL_ROCE_KIND_SEND)
		return next->offset <= SL_ROCE_MESSAGE_MAX ? SL_ROCE_ACCEPTED : SL_ROCE_DROP_LENGTH;
	if (next->length > SL_ROCE_MESSAGE_MAX)
		return SL_ROCE_DROP_LENGTH;
	if (last ? next->offset != next->length : next->offset >= next->length)
		return SL_ROCE_DROP_LENGTH;
	return SL_ROCE_ACCEPTED;
}

enum sl_roce_drop sl_roce_check_key(uint32_t domain, uint32_t access, uint32_t rkey, uint64_t va,
				    uint32_t bytes, sl_roce_key_lookup *lookup, void *lookup_arg,
				    const struct sl_roce_key **found)
{
	const struct sl_roce_key *key;

	if (bytes == 0)
		return SL_ROCE_ACCEPTED;
	key = lookup(lookup_arg, rkey);
	if (!key || key->domain != domain)
		return SL_ROCE_DROP_KEY;
	if ((key->access & access) != access)
		return SL_ROCE_DROP_ACCESS;
	if (!sl_roce_key_covers(key, va, bytes))
		return SL_ROCE_DROP_RANGE;
	*found = key;
	return SL_ROCE_ACCEPTED;
}

/* The whole range of a WRITE is checked with every packet of it. */
static enum sl_roce_drop check_memory(const struct sl_roce_responder *next,
				      sl_roce_key_lookup *lookup, void *lookup_arg,
				      const struct sl_roce_key **found)
{
	if (!(next->access & SL_ROCE_REMOTE_WRITE))
		return SL_ROCE_DROP_ACCESS;
	return sl_roce_check_key(next->domain, SL_ROCE_REMOTE_WRITE, next->rkey, next->va,
				 next->length, lookup, lookup_arg, found);
}

static enum sl_roce_drop check_receive(const struct sl_roce_responder *next,
				       const struct sl_roce_opcode *opcode)
{
	if (!opcode->receive)
		return SL_ROCE_ACCEPTED;
	if (next->receives == 0)
		return SL_ROCE_DROP_RECEIVE;
	if (next->kind == SL_ROCE_KIND_SEND && next->offset > next->receive_bytes)
		return SL_ROCE_DROP_RECEIVE;
	return SL_ROCE_ACCEPTED;
}

enum sl_roce_drop sl_roce_check_message(const struct sl_roce_responder *responder,
					const struct sl_roce_opcode *opcode,
					const struct sl_roce_packet *packet,
					sl_roce_key_lookup *lookup, void *lookup_arg,
					struct sl_roce_responder *next,
					const struct sl_roce_key **key)
{
	enum sl_roce_drop drop;

	advance(responder, opcode, packet, next);
	drop = check_length(next, opcode, packet);
	if (!drop && next->kind == SL_ROCE_KIND_WRITE)
		drop = check_memory(next, lookup, lookup_arg, key);
	if (!drop)
		drop = check_receive(next, opcode);
	return drop;
}

void sl_roce_describe(const struct sl_roce_responder *responder, struct sl_roce_responder *next,
		      const struct sl_roce_opcode *opcode, const struct sl_roce_packet *packet,
		      const struct sl_roce_key *key, struct sl_roce_action *action)
{
	bool write = next->kind == SL_ROCE_KIND_WRITE;

	memset(action, 0, sizeof(*action));
	action->offset = next->offset - packet->payload_bytes;
	action->bytes = packet->payload_bytes;
	action->message_bytes = write ? next->length : next->offset;
	if (packet->payload_bytes && write) {
		action->place = SL_ROCE_PLACE_MEMORY;
		action->key = key;
		action->va = next->va + action->offset;
	} else if (packet->payload_bytes) {
		action->place = SL_ROCE_PLACE_RECEIVE;
	}
	action->gap = sl_roce_psn_diff(packet->psn, responder->expected_psn);
	action->first = opcode->position & SL_ROCE_FIRST;
	action->last = opcode->position & SL_ROCE_LAST;
	action->gave_up = responder->open && action->first;
	action->complete = opcode->complete;
	action->receive = opcode->complete && opcode->receive;
	action->immediate = packet->has & SL_ROCE_HAS_IMM;
	action->imm = packet->imm;
	action->solicited = opcode->complete && packet->se;
	if (action->receive && next->receives != SL_ROCE_RECEIVES_UNLIMITED)
		next->receives--;
}
