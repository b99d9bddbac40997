/* peer_backend.h - what a peer of the interop tests does its work with.
 *
 * Model:     the vocabulary of verbs, small: one device, memory regions, queue pairs, completions
 *            of all of them in one line. Two programs: peer-verbs is linked with peer_verbs.c
 *            (libibverbs, whatever device there is), peer-user with peer_user.c (Sluice's endpoint
 *            over a UDP socket). peer.c speaks with the driver and knows neither.
 * Threads:   one.
 * Ownership: memory is peer.c's; what a `handle` points to is the backend's.
 * Errors:    0 or -errno. */
#ifndef INTEROP_PEER_BACKEND_H
#define INTEROP_PEER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peer_transport { PEER_RC, PEER_UC, PEER_UD };
enum peer_access { PEER_REMOTE_WRITE = 1, PEER_REMOTE_READ = 2 };
enum peer_kind { PEER_SEND, PEER_SEND_IMM, PEER_WRITE, PEER_WRITE_IMM, PEER_READ, PEER_KINDS };

struct peer_region {
	uint8_t *memory;
	size_t bytes;
	unsigned access; /* set of enum peer_access */
	uint32_t rkey;	 /* by the backend */
	void *handle;
};

struct peer_qp {
	enum peer_transport transport;
	unsigned access;   /* set of enum peer_access */
	unsigned depth;	   /* of either queue */
	uint32_t qkey;	   /* UD: what datagrams must carry */
	uint32_t qpn;	   /* by the backend */
	uint32_t peer_qpn; /* from here on: set before peer_qp_connect() */
	char peer[64];	   /* its address; UD has neither */
	uint32_t pmtu, psn, peer_psn, reads;
	uint8_t timeout, retries, rnr_retries, rnr_timer;
	void *handle;
};

struct peer_work {
	uint64_t id;
	enum peer_kind kind;
	struct peer_region *region;
	size_t offset;
	uint32_t bytes, imm;
	uint64_t va; /* at the peer */
	uint32_t rkey;
	char to[64]; /* UD: address and queue of the receiver */
	uint32_t to_qpn, to_qkey;
};

struct peer_done {
	uint64_t id;
	uint32_t qpn;
	int status;	  /* as ibv_wc_status numbers it */
	const char *what; /* send, write, read, recv, recv_write; only when the status is 0 */
	uint32_t bytes, imm;
	bool has_imm;
};

/* Make the device with this address ready. */
int peer_open(const char *address);
void peer_close(void);

int peer_region_add(struct peer_region *region);
void peer_region_remove(struct peer_region *region);

int peer_qp_create(struct peer_qp *qp);
int peer_qp_connect(struct peer_qp *qp);
void peer_qp_destroy(struct peer_qp *qp);
const char *peer_qp_state(struct peer_qp *qp); /* reset, init, rtr, rts, error, other */

int peer_receive(struct peer_qp *qp, const struct peer_work *work); /* id, region, offset, bytes */
int peer_post(struct peer_qp *qp, const struct peer_work *work);

/* The next completion, if there is one. */
bool peer_poll(struct peer_done *done);

/* Let things happen until there is something to read on fd, or for so long. */
void peer_wait(int fd, int timeout_ms);

/* What the backend counted, as "name=value ..." on one line; "" when it counts nothing. */
void peer_counters(char *text, size_t bytes);

#endif
