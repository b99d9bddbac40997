/* rc_queue.h - a reliable queue pair: both halves and the state that verbs gives them.
 *
 * Model:     RESET -> INIT -> RTR -> RTS, and from any to RESET or ERROR. Requests are executed
 *            from RTR on, work is posted and sent in RTS. When one half fails, the queue enters
 *            ERROR and takes the other with it: nothing is received or sent, posted work is
 *            flushed, and so is work posted later; receives that are still posted are the caller's
 *            to flush. RESET forgets all work without completing it.
 * Attributes: are the fields of the halves. Before RTR: responder.queue, peer_qpn, rnr_timer, mig.
 *            Before RTS: requester.psn, window, ack_every, reads, timeout_ns, retries, rnr_retries,
 *            works, capacity; what both halves share is copied from the responder.
 * Threads:   one at a time per queue. */
#ifndef SL_ROCE_RC_QUEUE_H
#define SL_ROCE_RC_QUEUE_H

#include "roce/rc_requester.h"
#include "roce/rc_responder.h"

enum sl_roce_state {
	SL_ROCE_RESET,
	SL_ROCE_INIT,
	SL_ROCE_RTR, /* ready to receive */
	SL_ROCE_RTS, /* and to send */
	SL_ROCE_ERROR,
	SL_ROCE_STATES,
};

struct sl_roce_rc_queue { /* all zero is RESET */
	uint8_t state;
	struct sl_roce_rc_responder responder;
	struct sl_roce_rc_requester requester;
};

struct sl_roce_outcome {	      /* of a packet */
	bool request;		      /* it was for the responder, otherwise for the requester */
	struct sl_roce_action action; /* request, when accepted */
	struct sl_roce_reply reply;   /* request, when pending; also when it was dropped */
	struct sl_roce_read read;     /* response, when its bytes are not 0 */
};

/* SL_ROCE_EINVAL: there is no such transition, or the attributes that it needs are wrong; the state
 * stays. */
int sl_roce_rc_queue_modify(struct sl_roce_rc_queue *queue, enum sl_roce_state to);

/* As sl_roce_rc_post(). SL_ROCE_EINVAL also in a state before RTS. */
int sl_roce_rc_queue_post(struct sl_roce_rc_queue *queue, const struct sl_roce_work *work);

/* As sl_roce_rc_next(), timers included. */
bool sl_roce_rc_queue_next(struct sl_roce_rc_queue *queue, uint64_t now, void *headers,
			   struct sl_roce_request *request);

/* A packet for this queue, request or response. *outcome is always set. */
enum sl_roce_drop sl_roce_rc_queue_receive(struct sl_roce_rc_queue *queue,
					   const struct sl_roce_path *path,
					   const struct sl_roce_packet *packet, uint64_t now,
					   sl_roce_key_lookup *lookup, void *lookup_arg,
					   struct sl_roce_outcome *outcome);

/* As sl_roce_rc_complete(). */
bool sl_roce_rc_queue_complete(struct sl_roce_rc_queue *queue,
			       struct sl_roce_completion *completion);

#endif
