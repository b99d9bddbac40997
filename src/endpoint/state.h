/* state.h - what the files of this folder share. Only for them.
 *
 * A packet's way in:  receive.c (socket, ICRC, which queue) -> the state machine of src/roce ->
 *                     memory.c or work.c (where payload belongs), reply.c (what is answered).
 * A packet's way out: reply.c and send.c (what is next) -> out.c (seal, gather, batch, socket);
 *                     fault.c stands between when a test wants it. */
#ifndef SL_ENDPOINT_STATE_H
#define SL_ENDPOINT_STATE_H

#include "endpoint/endpoint.h"
#include "endpoint/table.h"
#include "net/net.h"
#include "roce/cnp.h"
#include "roce/icrc.h"
#include "roce/rate.h"

enum {
	SL_PACKET_BYTES =
		4224,	       /* the longest packet, 4143 bytes, and room for its end to be seen */
	SL_RECEIVE_BATCH = 16, /* datagrams per system call; each may be several packets */
	SL_DATAGRAM_BYTES = 65536,
	SL_OUT_BATCH = 48, /* of the longest packets: a single one and 3 messages of 15 */
	SL_OUT_PIECES = 2 + SL_QP_PIECES, /* headers, payload, trailer */
	/* Packets of one length that the kernel cuts from one message: its limits. */
	SL_TOGETHER_PACKETS = 64,
	SL_TOGETHER_BYTES = 65000,
	SL_TURN = 16, /* packets that a queue pair may send before the next one has its turn */
};

struct sl_memory { /* a registration */
	struct sl_roce_key key;
	uint8_t *at;
};

/* ---- a queue pair ---- */

struct sl_send { /* posted work */
	struct sl_work work;
	uint32_t bytes;
	uint8_t status;
};

struct sl_posted_receive { /* a posted receive and, later, its completion */
	struct sl_piece piece[SL_QP_PIECES];
	uint32_t bytes;
	struct sl_completion done;
};

/* Counts since the start; a slot is a count modulo the depth. */
struct sl_send_queue {
	struct sl_send *slot;
	uint32_t depth;
	uint64_t posted;    /* taken <= completed <= begun <= posted */
	uint64_t begun;	    /* given to the state machine, UC and UD: sent */
	uint64_t completed; /* may be reaped */
	uint64_t taken;	    /* was reaped */
	uint32_t offset;    /* RC: how much of the READ that is next has been asked for */
};

struct sl_receive_queue {
	struct sl_posted_receive *slot;
	uint32_t depth;
	uint64_t posted, completed, taken;
};

struct sl_reply_queue { /* RC: what waits to be answered, in order */
	struct sl_roce_reply *slot;
	uint32_t depth;
	uint64_t put, taken;
};

struct sl_qp {
	struct sl_endpoint *endpoint;
	struct sl_qp *next, **link; /* in the endpoint's list */
	struct sl_qp_options options;
	uint32_t qpn;
	uint8_t state; /* UC and UD; RC has its own */
	struct sl_roce_rc_queue rc;
	struct sl_roce_responder uc;
	struct sl_roce_requester sending; /* UC: the message at `begun` */
	struct sl_roce_ud_receiver ud;
	uint32_t psn; /* UC, UD: of the next packet */
	uint32_t pmtu, peer_qpn;
	uint16_t pkey;
	uint32_t part; /* RC: bytes of a READ that are asked for at once */
	struct sl_roce_work *works;
	struct sl_send_queue sends;
	struct sl_receive_queue receives;
	struct sl_reply_queue replies;
	struct sl_roce_path path; /* to the peer */
	union sl_net_address to;
	socklen_t to_bytes;
	uint16_t next_id;  /* IPv4 identification that the next packet probably has */
	uint8_t zero_ids;  /* packets with 0 since one that no kernel cuts from a message */
	uint8_t other_ids; /* refused in a row since, only because of their identification */
	struct sl_roce_cnp cnp;
	struct sl_roce_rate rate;
	uint64_t paced_until; /* 0: not held back by congestion */
	struct sl_qp_counters counters;
};

/* ---- the endpoint ---- */

struct sl_out { /* a packet to be sent */
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	uint8_t trailer[SL_ROCE_TRAILER_MAX + 1];
	struct iovec piece[SL_OUT_PIECES];
	unsigned pieces;
	union sl_net_address to;
	socklen_t to_bytes;
	uint16_t number; /* in its message; 0: a message begins with it */
	uint8_t *copy;	 /* SL_PACKET_BYTES, for packets that outlive the memory they came from */
};

struct sl_endpoint {
	struct sl_endpoint_options options;
	int fd;
	uint16_t port;
	bool v4;
	uint64_t buffer_bytes; /* of the socket, as the kernel counts */
	struct sl_memory *memories;
	struct sl_table keys, numbers;	      /* of memories, of queue pairs */
	struct sl_qp *qps, *turn, *reap_turn; /* all; NULL turns: from the first */
	struct sl_endpoint_counters counters;
	bool kicked; /* work was posted since the last poll */

	struct mmsghdr in[SL_RECEIVE_BATCH];
	struct iovec in_piece[SL_RECEIVE_BATCH];
	union sl_net_address in_from[SL_RECEIVE_BATCH];
	_Alignas(struct cmsghdr) uint8_t in_control[SL_RECEIVE_BATCH][SL_NET_CONTROL_BYTES];
	uint8_t *in_bytes;

	struct sl_out out_packet[SL_OUT_BATCH];
	unsigned out_first, out_count;		  /* first..count wait to be sent */
	bool segments;				  /* the kernel can cut a message into packets */
	bool together_ended;			  /* no packet may join the last message */
	uint32_t together_bytes;		  /* of each packet of the last message */
	const struct sl_roce_path *together_path; /* of its queue pair; only compared */
	struct mmsghdr out[SL_OUT_BATCH];
	struct iovec out_piece[SL_OUT_BATCH * SL_OUT_PIECES];
	_Alignas(struct cmsghdr) uint8_t out_control[SL_OUT_BATCH][SL_NET_CONTROL_BYTES];
	uint8_t *out_bytes;
	struct sl_holder *holder; /* fault.c; NULL without a hook */
};

/* endpoint.c */
bool sl_endpoint_same_family(const struct sl_endpoint *endpoint, const uint8_t *gid);
void sl_endpoint_path(const struct sl_endpoint *endpoint, const uint8_t *gid, uint16_t port,
		      struct sl_roce_path *path);

/* memory.c */
int sl_memories_init(struct sl_endpoint *endpoint);
void sl_memories_fini(struct sl_endpoint *endpoint);
const struct sl_roce_key *sl_memory_lookup(void *endpoint, uint32_t rkey);
uint8_t *sl_memory_at(const struct sl_roce_key *key, uint64_t va);

/* work.c */
int sl_works_init(struct sl_qp *qp);
void sl_works_fini(struct sl_qp *qp);
void sl_works_forget(struct sl_qp *qp);
void sl_works_offer(struct sl_qp *qp);	 /* tell the state machine about the next receive */
void sl_works_flush(struct sl_qp *qp);	 /* complete all, as a queue in ERROR does */
void sl_works_collect(struct sl_qp *qp); /* RC: completions of the state machine */
struct sl_posted_receive *sl_works_next_receive(struct sl_qp *qp); /* NULL: none */
void sl_works_received(struct sl_qp *qp, const struct sl_completion *done);
unsigned sl_works_reap(struct sl_qp *qp, struct sl_completion *completions, unsigned most);
void sl_pieces_scatter(const struct sl_piece *pieces, uint32_t offset, const void *from,
		       uint32_t bytes);
unsigned sl_pieces_gather(const struct sl_piece *pieces, uint32_t offset, uint32_t bytes,
			  struct sl_roce_piece *out);

/* qp.c */
void sl_qp_failed(struct sl_qp *qp, unsigned status); /* status of the receive at fault, or 0 */

/* congestion.c */
int sl_congestion_init(struct sl_qp *qp, const struct sl_qp_attributes *attributes);
void sl_congestion_marked(struct sl_qp *qp, uint64_t now); /* a packet of the peer was */
unsigned sl_congestion_notified(struct sl_qp *qp, const struct sl_roce_path *path,
				const struct sl_roce_packet *packet, uint64_t now);
bool sl_congestion_allows(struct sl_qp *qp, uint64_t now);
void sl_congestion_charge(struct sl_qp *qp, uint64_t now, const struct sl_roce_fragment *fragment);

/* receive.c */
int sl_receive_queue_init(struct sl_endpoint *endpoint);
void sl_receive_queue_fini(struct sl_endpoint *endpoint);
unsigned sl_endpoint_receive_packets(struct sl_endpoint *endpoint, uint64_t now, unsigned budget);
void sl_endpoint_datagram(struct sl_endpoint *endpoint, const union sl_net_address *from,
			  uint8_t traffic_class, const uint8_t *bytes, size_t count, uint64_t now);

/* reply.c */
bool sl_reply_room(const struct sl_qp *qp);
void sl_reply_put(struct sl_qp *qp, const struct sl_roce_reply *reply);
bool sl_reply_send(struct sl_qp *qp, uint64_t now); /* one packet; false: nothing waits */

/* send.c */
unsigned sl_send_packets(struct sl_endpoint *endpoint, uint64_t now, unsigned budget);
uint64_t sl_send_wake(const struct sl_endpoint *endpoint);

/* out.c: room, headers into sl_out_headers(), commit; flush hands everything to the kernel. */
struct sl_packet_to { /* where a packet goes */
	const struct sl_roce_path *path;
	const union sl_net_address *address;
	socklen_t bytes;
	/* It may be cut from a message of several. Only where what is lost is sent again: a path
	 * that turns out not to take such messages loses the first one. */
	bool joins;
};
int sl_out_init(struct sl_endpoint *endpoint);
void sl_out_fini(struct sl_endpoint *endpoint);
bool sl_out_room(struct sl_endpoint *endpoint);
uint8_t *sl_out_headers(struct sl_endpoint *endpoint);
/* copied: other threads may change the payload. All packets that were committed before are then
 * read before this one. */
void sl_out_commit(struct sl_endpoint *endpoint, const struct sl_packet_to *to,
		   uint32_t header_bytes, const struct sl_roce_piece *pieces, unsigned count,
		   bool copied);
void sl_out_add(struct sl_endpoint *endpoint, const void *packet, size_t bytes,
		const union sl_net_address *to, socklen_t to_bytes);
size_t sl_out_linear(struct sl_endpoint *endpoint, unsigned index); /* its bytes */
void sl_out_flush(struct sl_endpoint *endpoint);

/* fault.c */
enum { SL_FAULT_EXTRA = 6 }; /* packets that one may become, with those that were held */
int sl_fault_init(struct sl_endpoint *endpoint);
void sl_fault_fini(struct sl_endpoint *endpoint);
void sl_fault_apply(struct sl_endpoint *endpoint); /* to the packet behind the last */
bool sl_fault_holds(const struct sl_endpoint *endpoint);
void sl_fault_release(struct sl_endpoint *endpoint);

#endif
