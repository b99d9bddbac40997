/* verbs.h - what the project needs of libibverbs, in its own words: one NIC by address, memory
 * it may touch, queue pairs connected by hand, and their completions.
 *
 * Model:     the library is loaded at run time, so that one program runs with and without
 *            rdma-core. A NIC here is one RoCE v2 address (GID) of one port, with a protection
 *            domain and a completion queue of its own; two addresses are two NICs, even when
 *            they share a card. Queue pairs go RESET - INIT - RTR - RTS by hand from what both
 *            ends were told; there is no rdma_cm.
 * Threads:   poll, post and arm on one thread per NIC; the rest on the control thread. Reset
 *            may run while another thread polls.
 * Ownership: what was opened is closed by who opened it: queues and memory before their NIC.
 * Errors:    0, a count, or -errno. Calls of the control thread log what is wrong and what to do;
 *            poll, post and arm do not allocate or log. The vendor's library behind them may take
 *            a spinlock of its own, which nobody else wants.
 * Cost:      posting and polling are as cheap as the vendor's library makes them. */
#ifndef SL_NET_VERBS_VERBS_H
#define SL_NET_VERBS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/region.h"

enum { SL_VERBS_GID_BYTES = 16, SL_VERBS_NAME_BYTES = 64, SL_VERBS_PORT = 4791 };

/* Why there are no verbs on this host and what to install; NULL: there are. */
const char *sl_verbs_unavailable(void);

/* ---- NICs ---- */

struct sl_verbs_info { /* one address of one port */
	char name[SL_VERBS_NAME_BYTES];
	uint8_t gid[SL_VERBS_GID_BYTES]; /* an IPv6 address, or ::ffff:a.b.c.d; all 0: none usable
					  */
	uint32_t gid_index;
	uint8_t port;
	bool active; /* the port has a link */
	uint16_t pmtu;
	uint32_t max_message_bytes, max_work, max_completions;
	uint32_t max_reads; /* READs in flight of one queue, either way */
};

/* Every RoCE v2 address of every NIC, and NICs without any. How many were told. */
int sl_verbs_survey(void (*found)(void *arg, const struct sl_verbs_info *info), void *arg);

struct sl_verbs_nic;

/* The NIC that has this address; gid NULL: the first address there is, IPv4 before IPv6. names:
 * only of these NICs, separated by commas; "": of any. Room for that many completions. */
int sl_verbs_open(const char *names, const uint8_t *gid, uint32_t completions,
		  struct sl_verbs_nic **nic);
void sl_verbs_close(struct sl_verbs_nic *nic);
const struct sl_verbs_info *sl_verbs_info(const struct sl_verbs_nic *nic);

/* Control thread: what the NIC says besides completions. It logs a port that goes down or
 * comes back; the count is that of requests that a queue refused for their key or range. */
unsigned sl_verbs_serve(struct sl_verbs_nic *nic);
/* The NIC failed or was removed: no request completes any longer. Known after sl_verbs_serve(). */
bool sl_verbs_has_failed(const struct sl_verbs_nic *nic);

/* ---- memory ---- */

/* What the other side may do: to memory, or by a queue pair. */
enum sl_verbs_access { SL_VERBS_LOCAL, SL_VERBS_REMOTE_WRITE, SL_VERBS_REMOTE_READ };

struct sl_verbs_memory {
	void *handle; /* NULL: not registered */
	uint64_t at;  /* what posts and peers call its first byte */
	uint32_t lkey, rkey;
};

/* Let the NIC reach the first `bytes` of a region: host memory of any page size, shared
 * (memfd), or a device's, by its dma-buf. It will be called `at`, which must lie as the region
 * does within its page. */
int sl_verbs_register(struct sl_verbs_nic *nic, const struct sl_region *region, uint64_t offset,
		      uint64_t bytes, uint64_t at, enum sl_verbs_access access,
		      struct sl_verbs_memory *memory);
void sl_verbs_unregister(struct sl_verbs_memory *memory);

/* ---- queue pairs ---- */

struct sl_verbs_queue;

struct sl_verbs_path { /* where a queue leads, and how patient it is; the last four: reliable only
			*/
	uint8_t peer[SL_VERBS_GID_BYTES];
	uint32_t peer_qpn, receive_psn, send_psn;
	uint16_t pmtu;
	uint8_t traffic_class, timeout, retry, rnr_retry, min_rnr_timer;
	uint8_t reads; /* READs in flight, either way; reliable only; 0: 1 */
};

/* A reliable (RC) or unreliable (UC) queue in INIT: it has a number and takes receives. */
int sl_verbs_queue_open(struct sl_verbs_nic *nic, bool reliable, uint32_t sends, uint32_t receives,
			enum sl_verbs_access access, struct sl_verbs_queue **queue);
int sl_verbs_queue_connect(struct sl_verbs_queue *queue, const struct sl_verbs_path *path);
uint32_t sl_verbs_queue_number(const struct sl_verbs_queue *queue);

/* From now on it takes nothing, and what was posted is forgotten. */
void sl_verbs_queue_reset(struct sl_verbs_queue *queue);
void sl_verbs_queue_close(struct sl_verbs_queue *queue);

/* ---- data path ---- */

enum sl_verbs_send_flags {
	SL_VERBS_IMMEDIATE = 1 << 0,
	SL_VERBS_SEND = 1 << 1,	  /* the receiver's posted memory instead of remote and rkey */
	SL_VERBS_SIGNAL = 1 << 2, /* a completion also when it went well */
	SL_VERBS_INLINE = 1 << 3, /* local is an address here, copied at once; 8 bytes at most */
	SL_VERBS_READ = 1 << 4,	  /* from remote and rkey into local memory */
};

struct sl_verbs_send {
	uint64_t id, local, remote;
	uint32_t bytes, lkey, rkey, immediate, flags;
};

/* -ENOMEM: the queue is full. */
int sl_verbs_post_send(struct sl_verbs_queue *queue, const struct sl_verbs_send *send);

/* bytes 0: for the event of a write, which needs no memory. */
int sl_verbs_post_receive(struct sl_verbs_queue *queue, uint64_t id, uint64_t local, uint32_t bytes,
			  uint32_t lkey);

struct sl_verbs_completion {
	uint64_t id;
	/* 0; -ECANCELED: discarded because the queue had failed; otherwise why: -ETIMEDOUT no
	 * answer, -ENOBUFS the peer was not ready too often, -EACCES key or range, -EMSGSIZE longer
	 * than the receive, -EPROTO, -EREMOTEIO, -EIO. */
	int status;
	uint32_t bytes, immediate; /* of receives */
	bool received, has_immediate;
};

/* Everything that a completion tells of has been written when this returns. */
int sl_verbs_poll(struct sl_verbs_nic *nic, struct sl_verbs_completion *completion, unsigned room);

/* Make sl_verbs_fd() readable at the next completion. Those already there do not count: poll once
 * more after arming. */
int sl_verbs_arm(struct sl_verbs_nic *nic);
int sl_verbs_fd(const struct sl_verbs_nic *nic);
void sl_verbs_drain(struct sl_verbs_nic *nic); /* what made it readable */

#endif
