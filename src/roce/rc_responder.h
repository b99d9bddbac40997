/* rc_responder.h - packets arrive at a reliable queue: what to do with each, and what to answer.
 *
 * Model:     as responder.h, but strictly in order. Per packet: its PSN is the expected one, and
 *            it is executed, or the queue fails; it is behind, and is answered again but not
 *            executed again (a READ is read again, from the memory as it is now); it is ahead, and
 *            one NAK names the expected PSN, then silence until that packet arrives.
 *            A SEND or immediate without a posted receive is answered by an RNR NAK and must come
 *            again. ACKs are given where the peer asks for them (AckReq), cumulative, without
 *            credits (0x1f).
 * READs:     are outstanding from their request until the last packet of their reply was taken, or
 *            the reply was given up; sl_roce_rc_responder_answered() says so. A peer counts them
 *            until that packet arrives, which is later: one that keeps to `reads` never exceeds it
 *            here. Asking again for what was answered before does not count.
 * Failure:   what cannot be right fails the queue: after the NAK (invalid request: order of
 *            opcodes, lengths, operations that the queue does not serve, too many READs; remote
 *            access: key, range, protection) nothing is received any more, and `failed` says so.
 *            ATOMICs, FLUSH and SEND with invalidate are operations that it does not serve.
 * Threads:   one at a time per responder.
 * Ownership: as responder.h. The caller places and completes what the action says and then sends
 *            the reply, so that what is acknowledged is in memory. A caller that has no room for
 *            one more waiting reply does not hand the packet in: to the peer it was lost.
 * Cost:      one key lookup per packet of a WRITE and per READ; nothing is kept per READ. */
#ifndef SL_ROCE_RC_RESPONDER_H
#define SL_ROCE_RC_RESPONDER_H

#include "roce/rc.h"

struct sl_roce_rc_responder {
	/* Set by the caller before sl_roce_rc_responder_init(). */
	struct sl_roce_responder queue; /* as for UC; its transport is SL_ROCE_RC */
	uint32_t peer_qpn;
	uint8_t rnr_timer; /* code in an RNR NAK: see sl_roce_rnr_ns() */
	bool mig;	   /* MigReq on replies */
	uint32_t reads;	   /* most READs outstanding (max_dest_rd_atomic); 0: any number */

	/* Its own. */
	uint32_t msn;
	uint32_t reads_out;
	bool silent; /* a NAK was sent and its packet has not come yet */
	bool failed;
};

/* SL_ROCE_EINVAL: not RC, no such PMTU, numbers too wide. Clears its own state. */
int sl_roce_rc_responder_init(struct sl_roce_rc_responder *responder);

/* Judge one parsed packet whose ICRC is good. *action is set only for SL_ROCE_ACCEPTED, *reply
 * always: reply->pending says whether there is something to send. Responses are not for this half:
 * SL_ROCE_DROP_TRANSPORT. path as for sl_roce_responder_receive(). */
enum sl_roce_drop sl_roce_rc_responder_receive(struct sl_roce_rc_responder *responder,
					       const struct sl_roce_path *path,
					       const struct sl_roce_packet *packet,
					       sl_roce_key_lookup *lookup, void *lookup_arg,
					       struct sl_roce_action *action,
					       struct sl_roce_reply *reply);

/* The request that was accepted last cannot be executed after all, since the caller's own rules
 * forbid its place: a NAK (remote access error) instead of its reply, and the queue has failed. */
void sl_roce_rc_responder_refuse(struct sl_roce_rc_responder *responder,
				 const struct sl_roce_packet *packet, struct sl_roce_reply *reply);

/* Ask the peer to come again with this request, because the caller cannot take it now: an RNR NAK.
 * False, and nothing is to be sent, when it is not the request that is expected next; hand it in
 * as usual. */
bool sl_roce_rc_responder_defer(struct sl_roce_rc_responder *responder,
				const struct sl_roce_path *path,
				const struct sl_roce_packet *packet, struct sl_roce_reply *reply);

/* A READ's reply was sent to its end, or was given up. Any other reply may be passed too. */
void sl_roce_rc_responder_answered(struct sl_roce_rc_responder *responder,
				   struct sl_roce_reply *reply);

#endif
