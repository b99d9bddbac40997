/* responder.c - UC: judge packets one by one. The order of the checks is the order of enum
 * sl_roce_drop: whose packet is it, does it continue a message, do its lengths add up, may it. */
#include "roce/responder.h"

#include "roce/psn.h"

#include <string.h>

const char *sl_roce_drop_name(enum sl_roce_drop drop)
{
	static const char *const names[SL_ROCE_DROPS] = {
		[SL_ROCE_ACCEPTED] = "accepted",    [SL_ROCE_DROP_QUEUE] = "queue",
		[SL_ROCE_DROP_PKEY] = "pkey",	    [SL_ROCE_DROP_TRANSPORT] = "transport",
		[SL_ROCE_DROP_PEER] = "peer",	    [SL_ROCE_DROP_BROKEN] = "broken",
		[SL_ROCE_DROP_LENGTH] = "length",   [SL_ROCE_DROP_ACCESS] = "access",
		[SL_ROCE_DROP_KEY] = "key",	    [SL_ROCE_DROP_RANGE] = "range",
		[SL_ROCE_DROP_RECEIVE] = "receive",
	};

	return (unsigned)drop < SL_ROCE_DROPS ? names[drop] : "unknown";
}

bool sl_roce_pkey_match(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) != 0 && ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000) != 0;
}

bool sl_roce_key_covers(const struct sl_roce_key *key, uint64_t va, uint64_t bytes)
{
	return va >= key->base && bytes <= key->bytes && va - key->base <= key->bytes - bytes;
}

int sl_roce_responder_init(struct sl_roce_responder *responder)
{
	if (responder->transport != SL_ROCE_UC || !sl_roce_pmtu_valid(responder->pmtu))
		return SL_ROCE_EINVAL;
	if (responder->qpn > SL_ROCE_QPN_MASK || responder->expected_psn > SL_ROCE_PSN_MASK)
		return SL_ROCE_EINVAL;
	responder->open = false;
	responder->kind = 0;
	responder->rkey = 0;
	responder->va = 0;
	responder->length = 0;
	responder->offset = 0;
	return SL_ROCE_OK;
}

static bool same_gid(const uint8_t *a, const uint8_t *b)
{
	uint8_t differs = 0;

	for (int i = 0; i < SL_ROCE_GID_BYTES; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

/* Packets that are none of this queue's business leave its state alone. */
static enum sl_roce_drop check_owner(const struct sl_roce_responder *responder,
				     const struct sl_roce_path *path,
				     const struct sl_roce_packet *packet)
{
	if (packet->qpn != responder->qpn)
		return SL_ROCE_DROP_QUEUE;
	if (sl_roce_opcode_transport(packet->opcode) != responder->transport ||
	    !sl_roce_opcode(packet->opcode))
		return SL_ROCE_DROP_TRANSPORT;
	if (!sl_roce_pkey_match(packet->pkey, responder->pkey))
		return SL_ROCE_DROP_PKEY;
	if (path &&
	    !(same_gid(path->source, responder->peer) && same_gid(path->dest, responder->local)))
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

/* The whole announced range on every packet: a key that shrank or went in between stops the rest.
 * An empty WRITE touches nothing, so its key is not looked at. */
static enum sl_roce_drop check_memory(const struct sl_roce_responder *next,
				      sl_roce_key_lookup *lookup, void *lookup_arg,
				      const struct sl_roce_key **found)
{
	const struct sl_roce_key *key;

	if (!(next->access & SL_ROCE_REMOTE_WRITE))
		return SL_ROCE_DROP_ACCESS;
	if (next->length == 0)
		return SL_ROCE_ACCEPTED;
	key = lookup(lookup_arg, next->rkey);
	if (!key || key->domain != next->domain)
		return SL_ROCE_DROP_KEY;
	if (!(key->access & SL_ROCE_REMOTE_WRITE))
		return SL_ROCE_DROP_ACCESS;
	if (!sl_roce_key_covers(key, next->va, next->length))
		return SL_ROCE_DROP_RANGE;
	*found = key;
	return SL_ROCE_ACCEPTED;
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

static bool continues(const struct sl_roce_responder *responder,
		      const struct sl_roce_opcode *opcode, const struct sl_roce_packet *packet)
{
	return responder->open && opcode->kind == responder->kind &&
	       packet->psn == responder->expected_psn;
}

static enum sl_roce_drop
check_message(const struct sl_roce_responder *responder, const struct sl_roce_opcode *opcode,
	      const struct sl_roce_packet *packet, sl_roce_key_lookup *lookup, void *lookup_arg,
	      struct sl_roce_responder *next, const struct sl_roce_key **key)
{
	enum sl_roce_drop drop;

	if (!(opcode->position & SL_ROCE_FIRST) && !continues(responder, opcode, packet))
		return SL_ROCE_DROP_BROKEN;
	advance(responder, opcode, packet, next);
	drop = check_length(next, opcode, packet);
	if (!drop && next->kind == SL_ROCE_KIND_WRITE)
		drop = check_memory(next, lookup, lookup_arg, key);
	if (!drop)
		drop = check_receive(next, opcode);
	return drop;
}

static void describe(const struct sl_roce_responder *responder,
		     const struct sl_roce_responder *next, const struct sl_roce_opcode *opcode,
		     const struct sl_roce_packet *packet, const struct sl_roce_key *key,
		     struct sl_roce_action *action)
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
}

enum sl_roce_drop sl_roce_responder_receive(struct sl_roce_responder *responder,
					    const struct sl_roce_path *path,
					    const struct sl_roce_packet *packet,
					    sl_roce_key_lookup *lookup, void *lookup_arg,
					    struct sl_roce_action *action)
{
	const struct sl_roce_opcode *opcode;
	const struct sl_roce_key *key = NULL;
	struct sl_roce_responder next;
	enum sl_roce_drop drop = check_owner(responder, path, packet);

	if (drop)
		return drop;
	opcode = sl_roce_opcode(packet->opcode);
	drop = check_message(responder, opcode, packet, lookup, lookup_arg, &next, &key);
	if (drop) {
		responder->open = false;
		return drop;
	}
	describe(responder, &next, opcode, packet, key, action);
	if (action->receive && next.receives != SL_ROCE_RECEIVES_UNLIMITED)
		next.receives--;
	*responder = next;
	return SL_ROCE_ACCEPTED;
}
