/* rc_requester.h - a send queue over a reliable connection.
 *
 * Model:     post work (SEND, WRITE, READ), take packets for as long as there are any, give it the
 *            responses and the time, collect completions in the order of posting. Packets come as
 *            from requester.h: headers, and which bytes of which work follow them; the bytes stay
 *            in the caller's memory and may be asked for again until the work is complete.
 *
 *              posted works  [ complete | sent, not yet acknowledged | to be sent ]
 *              PSNs                     ^ oldest          ^ next     (^ sent: how far it ever got)
 *
 *            Every packet of a SEND or WRITE takes one PSN, a READ as many as it has responses. At
 *            most `window` PSNs are out at a time; one work may exceed it only as a READ alone.
 *            After a loss (NAK, a response that skips one, silence) sending goes on from the
 *            oldest PSN, in the middle of a work if need be. Credits in ACKs are ignored.
 * AckReq:    is set on the last packet of a work, every ack_every PSNs, and where the window ends.
 *            The end of a `quiet` work asks only when no packet may follow it at that moment:
 *            nothing is posted behind it, or what is must wait. So the last packet that can be
 *            taken always asks, and no run of quiet works is left to the time-out; who posts works
 *            first and takes their packets afterwards gets one ACK for many. Until an ACK was
 *            asked for, every packet starts the time-out anew: slow pacing is not silence.
 * Time:      nanoseconds of any clock that does not go backwards, passed in.
 * Failure:   the work at fault completes with its status, all others are flushed; nothing more is
 *            sent or received, and what is posted later is flushed too.
 * Threads:   one at a time per requester.
 * Ownership: the works array is the caller's; a slot is free again when its completion was taken.
 * Cost:      per packet some 40 bytes written; per response and per step back a walk over the works
 *            in flight. */
#ifndef SL_ROCE_RC_REQUESTER_H
#define SL_ROCE_RC_REQUESTER_H

#include "roce/rc.h"

/* Numbered as verbs numbers them. */
enum sl_roce_status {
	SL_ROCE_SUCCESS = 0,
	SL_ROCE_FLUSHED = 5,
	SL_ROCE_BAD_RESPONSE = 7,
	SL_ROCE_REMOTE_INVALID = 9,
	SL_ROCE_REMOTE_ACCESS = 10,
	SL_ROCE_REMOTE_OPERATION = 11,
	SL_ROCE_RETRY_EXCEEDED = 12,
	SL_ROCE_RNR_EXCEEDED = 13,
};

enum {
	SL_ROCE_RNR_FOREVER = 7,     /* rnr_retries */
	SL_ROCE_RETRY_FOREVER = 255, /* retries */
};

/* READs are bounded so that their PSNs stay comparable. */
#define SL_ROCE_READ_PACKETS_MAX (UINT32_C(1) << 22)

struct sl_roce_work {
	/* Set by the caller. */
	uint64_t id;	/* comes back with packets and completion */
	uint8_t kind;	/* SL_ROCE_KIND_SEND, _WRITE or _READ */
	bool immediate; /* SEND, WRITE: the last packet carries imm */
	bool solicited;
	bool quiet; /* its end alone asks for no ACK: it completes with a later work */
	uint32_t imm;
	uint32_t rkey; /* WRITE, READ */
	uint64_t va;   /* WRITE, READ: at the peer */
	uint32_t bytes;

	/* The requester's. */
	uint8_t status;
	uint32_t packets; /* how many PSNs it takes */
	uint64_t first;	  /* its first PSN, not wrapped */
};

struct sl_roce_rc_requester {
	/* Set by the caller before sl_roce_rc_requester_init(). */
	uint16_t pkey;
	uint32_t qpn, peer_qpn;
	uint8_t peer[SL_ROCE_GID_BYTES], local[SL_ROCE_GID_BYTES];
	uint32_t pmtu;
	uint32_t psn;	     /* of the first packet ever */
	uint32_t window;     /* most PSNs not yet acknowledged; 1..2^22 */
	uint32_t ack_every;  /* ask for an ACK after so many PSNs; 1..window */
	uint32_t reads;	     /* most READs in flight (max_rd_atomic); 0: none may be posted */
	uint64_t timeout_ns; /* silence before a retry; 0: for ever */
	uint8_t retries;     /* after losses, without progress in between */
	uint8_t rnr_retries; /* after RNR NAKs, likewise; SL_ROCE_RNR_FOREVER */
	bool mig;
	struct sl_roce_work *works;
	uint32_t capacity; /* of works */

	/* Its own: counts of works since the start ... */
	uint64_t posted, sending, completed, taken;
	/* ... and of PSNs. */
	uint64_t oldest, next, sent, end;
	uint64_t asked;	    /* after the last packet that asked for an ACK */
	uint64_t deadline;  /* of the oldest packet; 0: nothing is out */
	uint64_t rnr_until; /* 0: no RNR NAK to wait for */
	uint8_t retries_left, rnr_left;
	bool went_back; /* and no progress since: further gaps are known */
	bool failed;
};

struct sl_roce_request { /* one packet to send */
	uint64_t id;
	struct sl_roce_fragment fragment; /* of the work; bytes is 0 for a READ request */
	bool again;			  /* was sent before */
};

struct sl_roce_read { /* what a response brought: payload for the work `id` */
	uint64_t id;
	uint32_t offset, bytes;
};

struct sl_roce_completion {
	uint64_t id;
	uint8_t status, kind;
	uint32_t bytes;
};

/* SL_ROCE_EINVAL: no such PMTU, numbers out of their range, no works. Clears its own state. */
int sl_roce_rc_requester_init(struct sl_roce_rc_requester *requester);

/* Copy a work into the queue. SL_ROCE_EINVAL: of another kind, too long, or a READ where none may
 * be; SL_ROCE_EFULL: no free slot, take completions first. */
int sl_roce_rc_post(struct sl_roce_rc_requester *requester, const struct sl_roce_work *work);

/* The next packet: headers into SL_ROCE_HEADERS_MAX bytes. false: nothing may be sent now; wait
 * for a response, for sl_roce_rc_wake(), or for work. */
bool sl_roce_rc_next(struct sl_roce_rc_requester *requester, uint64_t now, void *headers,
		     struct sl_roce_request *request);

/* One parsed response whose ICRC is good. When read->bytes is not 0, packet->payload belongs there.
 * Requests are not for this half: SL_ROCE_DROP_TRANSPORT. */
enum sl_roce_drop sl_roce_rc_requester_receive(struct sl_roce_rc_requester *requester,
					       const struct sl_roce_path *path,
					       const struct sl_roce_packet *packet, uint64_t now,
					       struct sl_roce_read *read);

/* When sl_roce_rc_tick() has something to do; UINT64_MAX: never, as things stand. */
uint64_t sl_roce_rc_wake(const struct sl_roce_rc_requester *requester);

/* Let the timers act. */
void sl_roce_rc_tick(struct sl_roce_rc_requester *requester, uint64_t now);

/* The next completion in order of posting; false: none yet. */
bool sl_roce_rc_complete(struct sl_roce_rc_requester *requester,
			 struct sl_roce_completion *completion);

/* Flush everything, as a queue does that enters the error state. */
void sl_roce_rc_requester_fail(struct sl_roce_rc_requester *requester);

#endif
