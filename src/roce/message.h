/* message.h - what the responders of all transports ask about a packet: is it ours, do its lengths
 * add up, may it touch that memory, is there a receive for it. Only for this folder.
 *
 * Model:     a responder copies itself one packet further (`next`), asks, and keeps the copy only
 *            when the answer is yes. When a packet may begin or continue a message is the
 *            transport's own rule: see responder.c and rc_responder.c. */
#ifndef SL_ROCE_MESSAGE_H
#define SL_ROCE_MESSAGE_H

#include "roce/responder.h"

struct sl_roce_owner { /* what makes a packet ours */
	uint8_t transport;
	uint16_t pkey;
	uint32_t qpn;
	const uint8_t *peer, *local; /* GIDs */
};

/* Also SL_ROCE_DROP_TRANSPORT for opcodes that do not exist. path may be NULL. */
enum sl_roce_drop sl_roce_check_owner(const struct sl_roce_owner *owner,
				      const struct sl_roce_path *path,
				      const struct sl_roce_packet *packet);

struct sl_roce_owner sl_roce_responder_owner(const struct sl_roce_responder *responder);

/* May a queue of this domain do that to va..va+bytes? *found is left alone when bytes is 0: then
 * no key is needed. */
enum sl_roce_drop sl_roce_check_key(uint32_t domain, uint32_t access, uint32_t rkey, uint64_t va,
				    uint32_t bytes, sl_roce_key_lookup *lookup, void *lookup_arg,
				    const struct sl_roce_key **found);

/* A SEND or WRITE packet that begins or continues a message: *next is the responder after it. */
enum sl_roce_drop sl_roce_check_message(const struct sl_roce_responder *responder,
					const struct sl_roce_opcode *opcode,
					const struct sl_roce_packet *packet,
					sl_roce_key_lookup *lookup, void *lookup_arg,
					struct sl_roce_responder *next,
					const struct sl_roce_key **key);

/* What such a packet does, and taking its receive off next->receives. */
void sl_roce_describe(const struct sl_roce_responder *responder, struct sl_roce_responder *next,
		      const struct sl_roce_opcode *opcode, const struct sl_roce_packet *packet,
		      const struct sl_roce_key *key, struct sl_roce_action *action);

#endif
