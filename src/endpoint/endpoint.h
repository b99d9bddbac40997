/* endpoint.h - a complete RoCEv2 endpoint on one ordinary UDP socket: no privilege, no RDMA device.
 *
 * Model:     open an endpoint on an address; register memory that peers may reach; make queue pairs
 *            (qp.h), connect them, post work. Nothing happens by itself: sl_endpoint_poll() takes
 *            packets off the socket, executes and answers them, runs the timers and sends what may
 *            be sent; sl_endpoint_reap() hands out what has completed. A loop:
 *
 *              while (running) {
 *                      if (!sl_endpoint_poll(endpoint, sl_clock_ns(), 64))
 *                              sl_endpoint_wait(endpoint, sl_clock_ns(), limit_ns);
 *                      while (sl_endpoint_reap(endpoint, NULL, &done, 1))
 *                              ...
 *              }
 *
 *            Peers reach memory through a key, and only what the key, its protection domain and the
 *            queue pair permit; every packet is looked up anew. Completions wait in the slots of
 *            the work they belong to, so none can be lost and no queue of them can overflow.
 * Wire:      all packets leave from the port that the endpoint is bound to; peers tolerate that.
 *            Packets of one length that leave an RC queue pair together are one message that the
 *            kernel or the NIC cuts (UDP_SEGMENT), where the path takes such messages; what the
 *            kernel has put together on the way in (UDP_GRO) is taken apart here.
 *            Over IPv4 a socket does not show the identification that the ICRC covers: a connected
 *            peer that always sends 0, or counts up from it, is soon held to that, others are
 *            checked to 2^-16.
 * Time:      nanoseconds of a clock that does not go backwards, passed in.
 * Threads:   one at a time per endpoint and all that belongs to it. Another thread may write to
 *            registered memory while a peer reads it: each packet is a copy of its own.
 * Ownership: registered memory, and the pieces of posted work, are the caller's and must stay until
 *            deregistered or completed.
 * Cost:      open and create allocate; after that nothing does, and the data path neither locks nor
 *            logs. Packets travel in batches of recvmmsg and sendmmsg; payload is copied once out
 *            of the receive buffer and not at all when sent, answers to READs excepted. A poll
 *            looks at every queue pair. Receiving takes 1 MiB of memory.
 * Errors:    0 or more, or -errno. Opening logs what is wrong; what peers do is counted. */
#ifndef SL_ENDPOINT_ENDPOINT_H
#define SL_ENDPOINT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint/fault.h"
#include "endpoint/qp.h"
#include "roce/responder.h"

struct sl_endpoint;

struct sl_endpoint_options {
	uint8_t address[SL_ROCE_GID_BYTES]; /* of one interface: see sl_net_parse() */
	uint16_t port;			/* to bind; 0: any free one, for peers that can be told */
	uint8_t traffic_class;		/* of all packets: DSCP << 2 | ECN */
	uint32_t keys;			/* most registrations; 0: 64 */
	uint32_t qps;			/* most queue pairs; 0: 64 */
	uint64_t receive_buffer;	/* of the socket in bytes; 0: as much as this host allows */
	struct sl_endpoint_fault fault; /* for tests: what happens to packets on their way out */
};

/* Logs what is wrong, and what to do about it (a port that is taken, above all). */
int sl_endpoint_open(const struct sl_endpoint_options *options, struct sl_endpoint **endpoint);
void sl_endpoint_close(struct sl_endpoint *endpoint); /* with all its queue pairs; NULL is fine */

uint16_t sl_endpoint_port(const struct sl_endpoint *endpoint);
const uint8_t *sl_endpoint_address(const struct sl_endpoint *endpoint);

/* How many packets of this PMTU the receive buffer surely holds. A peer that is told to keep no
 * more than that in flight cannot overrun it; a window of 0 (qp.h) means this. */
uint32_t sl_endpoint_window(const struct sl_endpoint *endpoint, uint32_t pmtu);

/* ---- memory that peers may reach ---- */

struct sl_endpoint_memory {
	void *at;
	uint64_t bytes;
	uint64_t iova;	 /* what peers call its first byte; ignored unless has_iova */
	bool has_iova;	 /* false: its address */
	uint32_t access; /* set of enum sl_roce_access: REMOTE_WRITE, REMOTE_READ */
	uint32_t domain; /* only queue pairs of the same protection domain may use it */
};

/* A key that nobody can guess. -ENOSPC: no free one; -EINVAL: no memory, or its end overflows. */
int sl_endpoint_register(struct sl_endpoint *endpoint, const struct sl_endpoint_memory *memory,
			 uint32_t *rkey);

/* From now on no packet can touch it, whatever is under way. -ENOENT: no such key. */
int sl_endpoint_deregister(struct sl_endpoint *endpoint, uint32_t rkey);

/* ---- progress ---- */

/* Handle about `budget` packets that have arrived, then send up to about as many. Returns how many
 * there were; 0: nothing to do now. */
int sl_endpoint_poll(struct sl_endpoint *endpoint, uint64_t now, unsigned budget);

/* Sleep until a packet arrives, a timer is due, a full socket has room again, or timeout_ns have
 * passed (UINT64_MAX: no limit). 0, or -EINTR. */
int sl_endpoint_wait(struct sl_endpoint *endpoint, uint64_t now, uint64_t timeout_ns);

/* For a caller with a poll(2) of its own: wait for these events on that descriptor, and no longer
 * than until sl_endpoint_wake(); UINT64_MAX: no timer is running. */
int sl_endpoint_fd(const struct sl_endpoint *endpoint);
short sl_endpoint_events(const struct sl_endpoint *endpoint);
uint64_t sl_endpoint_wake(const struct sl_endpoint *endpoint);

/* Take up to `most` completions, of one queue pair or (NULL) of any. Those of one send queue, and
 * those of one receive queue, come in the order of posting. */
unsigned sl_endpoint_reap(struct sl_endpoint *endpoint, struct sl_qp *qp,
			  struct sl_completion *completions, unsigned most);

/* ---- what happened ---- */

/* Why a packet was not executed: the causes of enum sl_roce_drop, and those before them. */
enum sl_endpoint_drop {
	SL_ENDPOINT_DROP_MALFORMED = SL_ROCE_DROPS, /* not a packet: sl_roce_parse() */
	SL_ENDPOINT_DROP_ICRC,
	SL_ENDPOINT_DROP_BUSY, /* too many replies wait to be sent; the peer asks again */
	SL_ENDPOINT_DROPS,
};

const char *sl_endpoint_drop_name(unsigned drop); /* "icrc", "key", ... */

struct sl_endpoint_counters {
	uint64_t received, received_bytes; /* datagrams and their payload */
	uint64_t sent, sent_bytes;
	uint64_t dropped[SL_ENDPOINT_DROPS]; /* [SL_ROCE_ACCEPTED]: executed */
	uint64_t congested;		     /* arrived with the mark of a full switch (CE) */
	uint64_t cnps_sent, cnps_received;
	uint64_t unsent; /* refused by the kernel for good */
	int send_error;	 /* the last reason, as -errno: -EMSGSIZE is a PMTU too large */
};

void sl_endpoint_count(const struct sl_endpoint *endpoint, struct sl_endpoint_counters *counters);

#endif
