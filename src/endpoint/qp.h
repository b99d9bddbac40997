/* qp.h - queue pairs of an endpoint: states, attributes, work and completions, as verbs has them.
 *
 * Model:     UC, RC and UD. RESET -> INIT -> RTR -> RTS, and from any to RESET or ERROR. Receives
 *            are posted from INIT on, requests of the peer are executed from RTR on, work is sent
 *            from RTS on. In ERROR everything posted, now and later, completes as flushed; RESET
 *            forgets it. An RC queue pair enters ERROR by itself when it fails.
 *            Work is a list of pieces of the caller's memory: gathered for SEND and WRITE,
 *            scattered into for READ and receives.
 * Threads, ownership, time: endpoint.h. */
#ifndef SL_ENDPOINT_QP_H
#define SL_ENDPOINT_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/rc_queue.h"
#include "roce/ud.h"

struct sl_endpoint;
struct sl_qp;

enum { SL_QP_PIECES = 2 };

/* How work ended; numbered as verbs numbers it. */
enum sl_status {
	SL_STATUS_SUCCESS = 0,
	SL_STATUS_LOCAL_LENGTH = 1, /* a receive was too small for what came */
	SL_STATUS_FLUSHED = SL_ROCE_FLUSHED,
	SL_STATUS_BAD_RESPONSE = SL_ROCE_BAD_RESPONSE,
	SL_STATUS_REMOTE_INVALID = SL_ROCE_REMOTE_INVALID,
	SL_STATUS_REMOTE_ACCESS = SL_ROCE_REMOTE_ACCESS,
	SL_STATUS_REMOTE_OPERATION = SL_ROCE_REMOTE_OPERATION,
	SL_STATUS_RETRY_EXCEEDED = SL_ROCE_RETRY_EXCEEDED,
	SL_STATUS_RNR_EXCEEDED = SL_ROCE_RNR_EXCEEDED,
};

const char *sl_status_name(unsigned status); /* "retries exceeded", ... */

struct sl_qp_options {
	uint8_t transport;   /* SL_ROCE_RC, SL_ROCE_UC or SL_ROCE_UD */
	uint32_t domain;     /* protection domain: see sl_endpoint_memory */
	uint32_t access;     /* set of enum sl_roce_access: what the peer may do here */
	uint32_t qpn;	     /* 0: one that nobody can guess */
	uint32_t sends;	     /* depth of the send queue; 0: 64 */
	uint32_t receives;   /* depth of the receive queue; 0: 64 */
	uint32_t peer_reads; /* READs that may wait here for their answer; 0: 16 */
	bool mig;	     /* MigReq on all packets, as mlx5 sends it */
};

struct sl_qp_attributes {
	/* Read on the way to RTR. For UD: pmtu, pkey and qkey only. */
	uint8_t peer[SL_ROCE_GID_BYTES];
	uint16_t peer_port; /* where packets go to */
	uint32_t peer_qpn;
	uint32_t pmtu;
	uint16_t pkey;
	uint32_t qkey;	       /* UD: what datagrams for this queue must carry */
	uint32_t receive_psn;  /* the peer's first */
	uint8_t min_rnr_timer; /* RC: code that an RNR NAK carries: see sl_roce_rnr_ns() */
	/* How to slow down when the path is congested: see rate.h. */
	uint64_t line_rate;  /* bytes per second; 0: not known */
	uint32_t rate_scale; /* for paths that are slow to tell; 0: 1 */

	/* Read on the way to RTS; all but send_psn are RC's. */
	uint32_t send_psn;
	uint8_t timeout;     /* code: see sl_roce_timeout_ns(); 0: never */
	uint8_t retries;     /* 0..7; more: for ever */
	uint8_t rnr_retries; /* 0..6; 7: for ever */
	uint32_t window;     /* most packets not yet acknowledged; 0: sl_endpoint_window() */
	uint32_t ack_every;  /* ask for an ACK after so many; 0: a quarter of the window */
	uint32_t reads;	     /* most READs in flight; 0: none may be posted */
};

/* What suits most peers: port 4791, PMTU 1024, default P_Key, timer code 12, time-out code 14, 7
 * retries of either kind, window and ack_every 0, 16 reads. The rest is zero. */
void sl_qp_attributes_init(struct sl_qp_attributes *attributes);

/* -ENOSPC: the endpoint has no room for one more; -EEXIST: that number is taken. */
int sl_qp_create(struct sl_endpoint *endpoint, const struct sl_qp_options *options,
		 struct sl_qp **qp);
void sl_qp_destroy(struct sl_qp *qp); /* its work and completions vanish; NULL is fine */

/* To the next state, or to RESET or ERROR, for which attributes may be NULL. -EINVAL: no such step,
 * or wrong attributes; the state stays. */
int sl_qp_modify(struct sl_qp *qp, enum sl_roce_state to,
		 const struct sl_qp_attributes *attributes);

/* From RESET, INIT or RTR to RTS in one go. */
int sl_qp_connect(struct sl_qp *qp, const struct sl_qp_attributes *attributes);

enum sl_roce_state sl_qp_state(const struct sl_qp *qp);
uint32_t sl_qp_number(const struct sl_qp *qp);

struct sl_piece {
	void *at; /* only read for SEND and WRITE */
	uint32_t bytes;
};

struct sl_work {
	uint64_t id;	/* comes back with the completion */
	uint8_t kind;	/* SL_ROCE_KIND_SEND, _WRITE; on RC also _READ; on UD only SEND */
	bool immediate; /* SEND, WRITE: carries imm */
	bool solicited;
	bool quiet; /* complete only if it fails; on RC, one ACK for several */
	uint32_t imm;
	struct sl_piece piece[SL_QP_PIECES];
	uint32_t rkey; /* WRITE, READ: at the peer */
	uint64_t va;
	struct { /* UD */
		uint8_t address[SL_ROCE_GID_BYTES];
		uint16_t port; /* 0: 4791 */
		uint32_t qpn, qkey;
	} to;
};

/* Copies the work, not its pieces. -EAGAIN: no free slot, reap first; -EINVAL: not for this kind of
 * queue, longer than it can send, or a state before RTS. */
int sl_qp_send(struct sl_qp *qp, const struct sl_work *work);

/* A receive for SEND or for an immediate. On UD it begins with SL_ROCE_UD_HEADER_BYTES about the
 * sender (ud.h). -EAGAIN: no free slot; -EINVAL: in RESET. */
int sl_qp_receive(struct sl_qp *qp, uint64_t id, const struct sl_piece pieces[SL_QP_PIECES]);

/* How many of each are posted and not yet reaped. */
uint32_t sl_qp_sends(const struct sl_qp *qp);
uint32_t sl_qp_receives(const struct sl_qp *qp);

enum sl_completion_kind {
	SL_COMPLETION_SEND, /* work that was posted */
	SL_COMPLETION_WRITE,
	SL_COMPLETION_READ,
	SL_COMPLETION_RECEIVE,	     /* a SEND came into a receive */
	SL_COMPLETION_RECEIVE_WRITE, /* a WRITE with immediate took a receive; nothing lies in it */
};

struct sl_completion {
	uint64_t id;
	struct sl_qp *qp;
	uint8_t status; /* enum sl_status; unless 0, only id, qp and kind mean something */
	uint8_t kind;	/* enum sl_completion_kind */
	bool immediate, solicited;
	uint32_t imm;	/* in host order */
	uint32_t bytes; /* of the message; UD: with the header */
	struct {	/* UD: who sent it */
		uint8_t address[SL_ROCE_GID_BYTES];
		uint16_t port;
		uint32_t qpn;
	} from;
};

struct sl_qp_counters {
	uint64_t received, sent; /* packets */
	uint64_t resent;
	uint64_t acks_sent, naks_sent, rnr_naks_sent;
	uint64_t acks_received, naks_received, rnr_naks_received;
	uint64_t cnps_sent, cnps_received;
	uint64_t dropped; /* why is counted by the endpoint */
	uint64_t rate;	  /* bytes per second that congestion allows now; 0: not limited */
};

void sl_qp_count(const struct sl_qp *qp, struct sl_qp_counters *counters);

#endif
