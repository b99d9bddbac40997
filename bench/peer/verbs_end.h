/* verbs_end.h - one end of a connection over libibverbs.
 *
 * Model:     a receiver and a sender, two processes with a shared struct meeting, each with a queue
 *            pair on whichever device has its address (BENCH_RECEIVER, BENCH_SENDER: the same one
 *            unless told otherwise). What fails ends the process with a word on why.
 * Calls:     open_end, meet(1), connect_queue, meet(2); then work is posted to end->qp, and take or
 *            await give completions. */
#ifndef SL_BENCH_PEER_VERBS_END_H
#define SL_BENCH_PEER_VERBS_END_H

#include <infiniband/verbs.h>

#include "bench/peer/peer.h"

struct meeting { /* between the two processes: what each must know of the other */
	_Atomic uint32_t ready[2];
	uint32_t qpn[2], rkey;
	uint64_t va;
	_Atomic uint64_t blocks; /* that the receiver has seen */
	_Atomic uint64_t sent;	 /* 1 + lines; 0: still sending */
	_Atomic uint32_t stop;
	_Alignas(64) _Atomic uint64_t stamp_ns;
};

struct end {
	unsigned side; /* 0 receiver, 1 sender */
	bool reliable;
	size_t bytes;		  /* of a line: what the path MTU must allow */
	uint32_t sends, receives; /* that its queue pair holds */
	uint8_t *memory;	  /* registered, for the peer to write */
	struct meeting *meeting;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_cq *cq; /* of both directions */
	struct ibv_comp_channel *channel;
	struct ibv_pd *domain;
	struct ibv_context *device;
	int gid_index;
	unsigned spins; /* looks at a completion queue before it sleeps */
};

void open_end(struct end *end, uint64_t memory_bytes);
void connect_queue(struct end *end);

/* Says how far this side is, and waits for the other: 1 it has a queue, 2 that is connected. */
void meet(struct end *end, uint32_t step);

/* Completions that there are, at most so many. */
unsigned take(struct end *end, struct ibv_wc *wc, unsigned most);

/* Spins, then sleeps: the kernel's half of Soft-RoCE wants the core. 0: nothing in `ms`. */
unsigned await(struct end *end, struct ibv_wc *wc, unsigned most, int ms);

void require(bool good, const char *what);

#endif
