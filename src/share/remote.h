/* remote.h - a share and its followers on other hosts: the share's side.
 *
 * Model:     a TCP listener beside the Unix socket, and a UDP socket or an RDMA NIC (rdma/rdma.h)
 *            with the same address. The share's memory is registered for READ alone. The share's
 *            thread takes connections, lets followers in that know the secret, gives each three
 *            queue pairs (remote_wire.h), answers their READs, unless a NIC does, and WRITEs
 *            `published` into their line when elements have arrived and they have asked for it.
 *            The writer only kicks the thread, at most once every 50 us, and only while some
 *            follower has asked.
 * Threads:   the transport belongs to the share's thread; the writer asks it with `moved` to give
 *            up the memory of the generation before. Once that thread has ended (`unserved`), the
 *            writer does it.
 * Order:     docs/reference/share-rdma.md, "Never torn". */
#ifndef SL_SHARE_REMOTE_H
#define SL_SHARE_REMOTE_H

#include "base/idle.h"
#include "share/private.h"
#include "share/rdma/rdma.h"
#include "share/remote_wire.h"

enum {
	SL_SHARE_STRANGERS = 16,   /* connections that are not welcome yet, at a time */
	SL_SHARE_GREET_MS = 5000,  /* to become welcome */
	SL_SHARE_LINGER_MS = 1000, /* for followers to read the last elements */
	SL_SHARE_SECRET = 256,
	SL_SHARE_MOST_ARRIVALS = 1024,
};
/* Longest look for what comes next, before a thread sleeps: about a round trip, and less than it
 * takes to wake the other side's thread and be woken by it. */
#define SL_SHARE_SPIN_NS UINT64_C(50000)

enum sl_share_phase { SL_SHARE_GREETS, SL_SHARE_PROVES, SL_SHARE_WELCOME, SL_SHARE_LEAVES };

struct sl_share_far { /* what a peer on another host has besides */
	enum sl_share_phase phase;
	uint64_t since_ns;
	struct sl_share_remote_hello hello;
	struct sl_proof_terms terms;
	struct sl_share_queue *queue[SL_SHARE_QUEUES]; /* NULL: not connected */
	uint64_t connects;			       /* how often they were made */
	struct sl_share_remote_end end;		       /* the follower's */
	bool finished;
	bool writes; /* a WRITE of `line` waits to be sent */
	uint64_t left;
	struct sl_share_local local;		       /* `line` */
	_Alignas(64) struct sl_share_remote_line line; /* as it was told last */
};

struct sl_share_remote {
	int listener;
	struct sl_share_rdma *rdma;
	char secret[SL_SHARE_SECRET]; /* "": none */
	uint32_t region_key, second_key;
	uint64_t second_bytes;
	uint32_t strangers;
	uint64_t greet_ns;	  /* how long they may take to become welcome */
	bool pauses;		  /* it accepts no connection for a while */
	uint64_t look_ns;	  /* when to look for elements that came without a kick; 0: not */
	struct sl_idle idle;	  /* the thread's */
	bool moved;		  /* under the share's lock: other memory is to be registered */
	pthread_cond_t settled;	  /* that was done, or a follower is finished */
	_Atomic uint32_t waiting; /* followers that want to be written to */
};

/* ---- opening and closing: other threads, without the share's thread ---- */

int sl_share_remote_open(struct sl_share *share, const struct sl_share_options *options, char *why,
			 size_t why_bytes);
void sl_share_remote_close(struct sl_share *share);

/* The share has ended: wait until its followers have read what they want, but not long. */
void sl_share_remote_linger(struct sl_share *share);
/* Under the lock, when `memory` is another: until no follower can reach the one before. */
void sl_share_remote_move(struct sl_share *share);

/* ---- the share's thread, under the lock ---- */

void sl_share_remote_accept(struct sl_share *share);
/* A frame that is whole. 1: it means the same as on one host; 0, or -errno: drop the peer. */
int sl_share_remote_handle(struct sl_share *share, struct sl_share_peer *peer);
void sl_share_remote_drop(struct sl_share *share, struct sl_share_peer *peer);
/* Before anything else of a turn: memory that has moved. */
void sl_share_remote_settle(struct sl_share *share);
/* After it: tell of arrivals. kicked: the writer has asked for it. */
void sl_share_remote_turn(struct sl_share *share, bool kicked, uint64_t now);
/* When to turn again though nothing happens; UINT64_MAX: never. */
uint64_t sl_share_remote_wake(const struct sl_share *share);

/* ---- without the lock ---- */

/* Answer what has arrived, for as long as more comes soon. true: look again without sleeping. */
bool sl_share_remote_poll(struct sl_share *share);

/* ---- both sides ---- */

/* Keep a TCP connection from lasting longer than the host behind it. */
void sl_share_remote_keep(int socket);
/* The largest PMTU that the path of a connection takes. */
uint32_t sl_share_remote_pmtu(int socket);
/* Queue pairs that are not connected, and what the other side must know of them. access: of the
 * follower's or share's memory, by the other side. */
int sl_share_remote_queues(struct sl_share_rdma *rdma, uint32_t sends,
			   const uint32_t access[SL_SHARE_QUEUES],
			   struct sl_share_queue *queue[SL_SHARE_QUEUES],
			   struct sl_share_remote_end *end);
int sl_share_remote_connect(struct sl_share_rdma *rdma,
			    struct sl_share_queue *const queue[SL_SHARE_QUEUES],
			    const uint8_t peer[SL_NET_GID_BYTES],
			    const struct sl_share_remote_end *ours,
			    const struct sl_share_remote_end *theirs);
void sl_share_remote_disconnect(struct sl_share_rdma *rdma,
				struct sl_share_queue *queue[SL_SHARE_QUEUES]);
/* The address of this or the other side of a connection. */
int sl_share_remote_address(int socket, bool other, uint8_t address[SL_NET_GID_BYTES]);

#endif
