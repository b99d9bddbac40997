/* responder.c - UC: judge packets one by one. What it shares with RC is in message.c. */
#include "roce/responder.h"
#include "roce/message.h"
#include "roce/psn.h"

const char *sl_roce_drop_name(enum sl_roce_drop drop)
{
	static const char *const names[SL_ROCE_DROPS] = {
		[SL_ROCE_ACCEPTED] = "accepted",    [SL_ROCE_DROP_QUEUE] = "queue",
		[SL_ROCE_DROP_PKEY] = "pkey",	    [SL_ROCE_DROP_TRANSPORT] = "transport",
		[SL_ROCE_DROP_PEER] = "peer",	    [SL_ROCE_DROP_BROKEN] = "broken",
		[SL_ROCE_DROP_LENGTH] = "length",   [SL_ROCE_DROP_ACCESS] = "access",
		[SL_ROCE_DROP_KEY] = "key",	    [SL_ROCE_DROP_RANGE] = "range",
		[SL_ROCE_DROP_RECEIVE] = "receive", [SL_ROCE_DROP_STATE] = "state",
		[SL_ROCE_DROP_AHEAD] = "ahead",	    [SL_ROCE_DROP_DUPLICATE] = "duplicate",
		[SL_ROCE_DROP_READS] = "reads",	    [SL_ROCE_DROP_QKEY] = "qkey",
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

static bool continues(const struct sl_roce_responder *responder,
		      const struct sl_roce_opcode *opcode, const struct sl_roce_packet *packet)
{
	return responder->open && opcode->kind == responder->kind &&
	       packet->psn == responder->expected_psn;
}

enum sl_roce_drop sl_roce_responder_receive(struct sl_roce_responder *responder,
					    const struct sl_roce_path *path,
					    const struct sl_roce_packet *packet,
					    sl_roce_key_lookup *lookup, void *lookup_arg,
					    struct sl_roce_action *action)
{
	const struct sl_roce_owner owner = sl_roce_responder_owner(responder);
	const struct sl_roce_opcode *opcode;
	const struct sl_roce_key *key = NULL;
	struct sl_roce_responder next;
	enum sl_roce_drop drop = sl_roce_check_owner(&owner, path, packet);

	if (drop)
		return drop;
	opcode = sl_roce_opcode(packet->opcode);
	if (!(opcode->position & SL_ROCE_FIRST) && !continues(responder, opcode, packet))
		drop = SL_ROCE_DROP_BROKEN;
	else
		drop = sl_roce_check_message(responder, opcode, packet, lookup, lookup_arg, &next,
					     &key);
	if (drop) {
		responder->open = false;
		return drop;
	}
	sl_roce_describe(responder, &next, opcode, packet, key, action);
	*responder = next;
	return SL_ROCE_ACCEPTED;
}
