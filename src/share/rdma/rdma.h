/* rdma.h - how a share and its followers on other hosts reach each other's memory: by a UDP socket
 * (src/endpoint), or by an RDMA NIC (src/net/verbs).
 *
 * Model:     an open transport has an address, memory of this program that the other side reaches
 *            by a key (exposed), memory that READs land in and WRITEs come from (local), and queue
 *            pairs. Work completes in the order of its queue pair. A NIC answers READs by itself;
 *            a socket only inside of poll(). A NIC may bring completions of a queue pair that
 *            was closed: the caller gives the work of each queue pair ids of its own.
 * Threads:   one at a time for a transport and all that belongs to it.
 * Ownership: the side that opened a transport closes it, after its queue pairs and its memory.
 * Errors:    0 or -errno; opening says in `why` what is wrong. How work ended is an enum sl_status
 *            of endpoint/qp.h, of a NIC, too. */
#ifndef SL_SHARE_RDMA_H
#define SL_SHARE_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "endpoint/endpoint.h"
#include "net/net.h"

enum {
	SL_SHARE_READS = 16,	       /* in flight on a queue pair, where a NIC has no fewer */
	SL_SHARE_NIC_PORT = 4791,      /* where every NIC sends to */
	SL_SHARE_READ_BYTES = 1 << 30, /* longest READ */
	SL_SHARE_DONE = 32,	       /* completions at a time */
};

struct sl_share_queue; /* a queue pair; each transport has its own kind */

struct sl_share_local { /* memory of this program that work names; handle: the transport's */
	void *at, *handle;
	uint64_t bytes;
	uint32_t key;
};

struct sl_share_queue_options {
	bool reliable;	 /* RC, or UC */
	uint32_t access; /* what the other side may do: 0, SL_ROCE_REMOTE_READ or _WRITE */
	uint32_t sends;	 /* depth */
};

struct sl_share_path {
	uint8_t peer[SL_NET_GID_BYTES];
	uint16_t port;
	uint32_t qpn, receive_psn, send_psn, pmtu;
	uint32_t reads; /* in flight, either way */
};

struct sl_share_work {
	uint64_t id;
	bool read; /* from the other side into `at`; or else a WRITE from there */
	const struct sl_share_local *local; /* `at` is inside of it; NULL on a socket */
	void *at;
	uint32_t bytes, rkey;
	uint64_t va;
};

struct sl_share_done {
	uint64_t id;
	unsigned status; /* enum sl_status */
};

struct sl_share_rdma {
	const struct sl_share_rdma_ops *ops;
	bool is_nic;	/* sends to SL_SHARE_NIC_PORT alone; its work names local memory */
	bool failed;	/* the NIC failed or was removed: no work completes any longer */
	uint32_t pmtu;	/* the most that it carries */
	uint32_t reads; /* in flight on a queue pair */
	uint32_t read_bytes;
};

struct sl_share_rdma_ops {
	void (*close)(struct sl_share_rdma *rdma);
	uint16_t (*port)(const struct sl_share_rdma *rdma); /* UDP */

	/* iova: what the other side calls its first byte. access: as of queue pairs. */
	int (*expose)(struct sl_share_rdma *rdma, void *at, uint64_t bytes, uint64_t iova,
		      uint32_t access, uint32_t *key);
	void (*hide)(struct sl_share_rdma *rdma, uint32_t key);
	int (*open_local)(struct sl_share_rdma *rdma, void *at, uint64_t bytes,
			  struct sl_share_local *local);
	void (*close_local)(struct sl_share_rdma *rdma, struct sl_share_local *local);

	int (*open_queue)(struct sl_share_rdma *rdma, const struct sl_share_queue_options *options,
			  struct sl_share_queue **queue);
	void (*close_queue)(struct sl_share_queue *queue); /* NULL is fine */
	uint32_t (*number)(const struct sl_share_queue *queue);
	int (*connect)(struct sl_share_queue *queue, const struct sl_share_path *path);
	/* -errno: the queue pair has failed, or is full. */
	int (*post)(struct sl_share_queue *queue, const struct sl_share_work *work);

	/* Handle what has arrived; *n: completions, at most SL_SHARE_DONE. Whether there was
	 * anything. */
	bool (*poll)(struct sl_share_rdma *rdma, uint64_t now, struct sl_share_done *done,
		     unsigned *n);
	/* Before a sleep on fd(): the next completion makes it readable; a NIC that has failed is
	 * found out here. true: poll once more. */
	bool (*arm)(struct sl_share_rdma *rdma);
	int (*fd)(const struct sl_share_rdma *rdma);
	short (*events)(const struct sl_share_rdma *rdma);
	uint64_t (*wake)(const struct sl_share_rdma *rdma); /* poll then, whatever happens */
};

/* An address of one interface. port 0: any free one. peers: connections with three queue pairs each
 * that it has room for. Lines that would be logged go to `why`. */
int sl_share_rdma_open_udp(const uint8_t address[SL_NET_GID_BYTES], uint16_t port, uint32_t peers,
			   struct sl_share_rdma **rdma, char *why, size_t why_bytes);
/* The NIC of that name, which must have this address. sends: depth of each queue pair. */
int sl_share_rdma_open_nic(const char *device, const uint8_t address[SL_NET_GID_BYTES],
			   uint32_t peers, uint32_t sends, struct sl_share_rdma **rdma, char *why,
			   size_t why_bytes);

/* For tests. */
extern struct sl_endpoint_fault
	sl_share_remote_fault; /* of endpoints that are opened from now on */
struct sl_endpoint *sl_share_rdma_endpoint(struct sl_share_rdma *rdma); /* of a socket */

/* udp.c: the first error that this thread would log goes to `why` instead; NULL: nowhere. */
struct sl_share_hush {
	char *why;
	size_t bytes;
	struct sl_log_target target;
	const struct sl_log_target *before;
};
void sl_share_hush(struct sl_share_hush *hush, char *why, size_t bytes);
void sl_share_unhush(struct sl_share_hush *hush);

#endif
