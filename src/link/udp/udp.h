/* udp.h - what the files of the udp link share.
 *
 * Model:     receiving: one socket on listen:4791 for whoever may come, and one per source that
 *            sends from a port it has named; queue pair numbers are consecutive from a random
 *            base. Sending: one socket per transfer, so that each queue has its own source port.
 *            What comes back to a source (credits as 8-byte RDMA writes, acknowledgements,
 *            congestion notifications) comes to that socket, or to reply_port, which all transfers
 *            share, where the receiver is an RDMA NIC. UC: packets as the plan numbers them,
 *            nothing is sent again. RC: a queue pair at each end; data one way, credits the other,
 *            each acknowledged.
 * Files:     udp.c options, open, close; accept.c queues of the receiver; receive.c packets from
 *            sockets; pieces.c packets that come with all their headers; judge.c whether a packet
 *            is accepted; sample.c packets for the flight recorder; return.c what the receiver
 *            sends back; handover.c receivers that take each other's place; offer.c transfers of a
 *            source; send.c and send_rc.c packets out; reorder.c those that others overtake;
 *            answer.c what comes back to a source.
 * Others:    a link that takes its packets from elsewhere than from sockets (link/packet/packet.c,
 *            xdp.c) begins its state with a struct sl_udp, sets `backend` before sl_udp_open(), and
 *            hands each packet to sl_udp_receive_pieces(). All else is this link's, and what is
 *            sent leaves from sockets. */
#ifndef SL_LINK_UDP_UDP_H
#define SL_LINK_UDP_UDP_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/link.h"
#include "core/look.h"
#include "link/credit.h"
#include "link/place.h"
#include "link/predict.h"
#include "net/net.h"
#include "roce/cnp.h"
#include "roce/icrc.h"
#include "roce/psn.h"
#include "roce/rate.h"
#include "roce/rc_queue.h"
#include "roce/requester.h"
#include "roce/responder.h"

enum {
	SL_UDP_TRANSFERS = 64,
	SL_UDP_BATCH = 64,	  /* packets per system call */
	SL_UDP_PACKET_MAX = 4352, /* 4096 and the longest headers, rounded up */
	SL_UDP_GRANTS = 2,	  /* RC: credits not yet acknowledged, at most */
	SL_UDP_REPLIES = 4,	  /* RC: acknowledgements that wait for the end of a batch */
	SL_UDP_RC_WINDOW = 1024,  /* PSNs not yet acknowledged */
	SL_UDP_ACK_EVERY = 32,
	SL_UDP_SEGMENTS = 64, /* packets in one send or one datagram, at most */
	/* Of a payload that is sent; with headers and trailers of all segments within IOV_MAX. */
	SL_UDP_PIECES = 8,
	SL_UDP_SEND_MAX = 65000, /* bytes of one segmented send; the headers fit beside it */
};

enum sl_udp_icrc { SL_UDP_ICRC_CHECK, SL_UDP_ICRC_IGNORE };

struct sl_udp_path { /* one direction between two ends */
	struct sl_roce_path path;
	union sl_net_address to;
	socklen_t to_bytes;
};

/* What a receiver after this one must know of a queue, in memory that outlives the process. It may
 * end between any two stores: each number stands alone, and what belongs together is written to
 * the copy that nobody believes yet. */
struct sl_udp_note {
	/* Packets of the stream that were taken from the socket, or may have been: below this
	 * nothing more will be found there. UC. */
	_Atomic uint64_t taken;
	_Atomic uint64_t granted; /* position */
	_Atomic uint32_t turn;	  /* which copy holds */
	struct sl_udp_note_rc {
		uint64_t taken;
		uint32_t expected_psn, msn;
		/* The message in progress. */
		uint32_t open, kind, rkey, length, offset;
		uint64_t va;
		/* Credits on their way: the oldest one's PSN, and how many. */
		uint32_t credit_psn, credits;
	} rc[2];
};
_Static_assert(sizeof(struct sl_udp_note) <= SL_LINK_NOTE_BYTES, "a note fits");

struct sl_udp_queue { /* receiving */
	_Atomic uint32_t active;
	struct sl_udp_note *note; /* NULL: nobody will come after us */
	struct sl_plan plan;
	/* Where the source sends from one port: a socket of its own. */
	int fd;	       /* -1: none, its packets come to the shared one */
	uint32_t full; /* packets for which the kernel had no room in it, as counted so far */
	bool opened;
	struct sl_roce_path in;
	struct sl_predict_stream stream;
	struct sl_look look; /* of its own socket */
	uint16_t next_id;    /* IPv4 identification that the next packet should have */
	/* Whose it is. Where packets choose their thread themselves (backend->follow), the owner
	 * hands it to who asked for it; all that the pollers know of a queue goes with it. */
	_Atomic unsigned poller;
	_Atomic unsigned wanted; /* 1 + who asks for it; 0: nobody */
	struct sl_udp_path back;
	struct sl_roce_key key;
	struct sl_placer placer;
	struct sl_credit credit;
	struct sl_roce_cnp cnp;
	_Atomic uint32_t
		failed; /* RC: 1 + enum sl_drop for which the connection ended; said: UINT32_MAX */
	_Atomic uint64_t reported; /* the source's last word on how much it has sent */
	uint64_t heard, heard_ns;  /* a word not acted upon yet, and since when: the poller's */

	/* UC */
	struct sl_roce_responder uc;
	uint32_t credit_psn;
	/* RC */
	struct sl_roce_rc_queue rc;
	struct sl_roce_work work[SL_UDP_GRANTS];
	uint64_t grant[SL_UDP_GRANTS]; /* may have to be sent again */
	uint64_t grants;
	struct sl_roce_reply reply[SL_UDP_REPLIES];
	unsigned replies;
};

struct sl_udp_reordered; /* a packet that is held back: reorder.c */

struct sl_udp_source { /* sending */
	int fd;
	struct sl_offer offer;
	struct sl_plan plan;
	struct sl_udp_path out;
	struct sl_roce_path back; /* of what comes back */
	struct sl_roce_key key;	  /* of the credit word */
	uint64_t granted;
	uint64_t sent; /* position */
	struct sl_roce_rate rate;
	uint64_t paced_until; /* 0: not held back by congestion */
	uint16_t answer_port; /* where credits and acknowledgements come from; 0: none came yet */

	/* Held back on purpose: a queue of env.hold + 1; how many entered and left it, and the
	 * packets that were to be sent. */
	struct sl_udp_reordered *held;
	uint64_t holds, released, passed;

	/* UC: the write that was begun and not finished, for want of credit or room in the socket;
	 * and who judges the credits. */
	struct sl_roce_requester cursor;
	struct sl_roce_responder uc;
	/* RC: writes stay until they are acknowledged. */
	struct sl_roce_rc_queue rc;
	struct sl_roce_work *work; /* [capacity] */
	struct sl_write *write;	   /* [capacity], by id */
	uint64_t posted;	   /* the next id */
	uint64_t acknowledged;	   /* position */
	int error;		   /* why the connection failed */
};

struct sl_udp_guess { /* a packet that is expected */
	struct sl_place place;
	uint8_t *data; /* its place, or scratch where it may not be placed */
	uint32_t header_bytes, trailer_bytes;
	uint8_t header[SL_ROCE_HEADERS_MAX];
	uint8_t trailer[SL_ROCE_TRAILER_MAX + 1];
};

struct sl_udp_buffers { /* one batch of packets */
	uint8_t packet[SL_UDP_BATCH][SL_UDP_PACKET_MAX];
	union sl_net_address peer[SL_UDP_BATCH];
	_Alignas(8) uint8_t control[SL_UDP_BATCH][SL_NET_CONTROL_BYTES];
	uint8_t header[SL_UDP_BATCH][SL_ROCE_HEADERS_MAX];
	uint8_t trailer[SL_UDP_BATCH][SL_ROCE_TRAILER_MAX + 1];
	struct iovec iov[SL_UDP_BATCH * (2 + SL_UDP_PIECES)];
	struct mmsghdr message[SL_UDP_BATCH];
	/* Receiving flows. What is never needed is never touched, and costs no memory. */
	struct sl_udp_guess guess[SL_PREDICT_BATCH];
	uint8_t scratch[SL_PREDICT_BATCH][SL_ROCE_PMTU_MAX];
	struct sl_predict_batch predict;
};

struct sl_udp_batch { /* packets of one source on their way to one system call */
	struct sl_udp *udp;
	struct sl_udp_source *source;
	uint64_t now_ns;
	unsigned n, iovs;
	unsigned sends;		/* messages: several packets of one length, cut by the kernel */
	unsigned together;	/* packets in the last of them */
	uint32_t segment_bytes; /* of each */
	bool ended;		/* by a shorter one */
};

/* How packets come in, where they do not come through sockets, and so with all their headers. */
struct sl_udp_backend {
	/* Bytes of blocks that may be under way without any being lost for want of room. */
	uint64_t (*window)(const struct sl_udp *udp, const struct sl_plan *plan);
	/* A queue's packets come to the thread that the interface chose: the queue follows them.
	 * Else they come to thread `transfer % pollers`. */
	bool follow;
};

struct sl_udp {
	/* options */
	char listen[64], source[64];
	uint32_t port, reply_port, traffic_class;
	bool segment, checksum, credits;
	uint32_t icrc; /* enum sl_udp_icrc */
	uint64_t receive_buffer, window;
	uint32_t congestion_us;
	uint32_t timeout, retry, rnr_retry, min_rnr_timer;
	/* state */
	const struct sl_udp_backend *backend; /* NULL: sockets */
	struct sl_link_env env;
	struct sl_udp_buffers *buffers; /* [pollers] */
	uint8_t local[SL_ROCE_GID_BYTES];
	int fd; /* receiving: data; sending: replies, where they have a port of their own; else -1
		 */
	int in_fd[SL_POLLERS]; /* receiving: becomes readable when there are packets; -1: never */
	uint64_t buffer_bytes;
	uint64_t opened_seen[SL_POLLERS]; /* slots when credits were last looked at */
	uint32_t qpn_base, sources;
	_Atomic uint32_t queues; /* that were ever open: pollers look at no more */
	unsigned polls;
	bool shared;		    /* some source has no flow of its own */
	struct sl_look look;	    /* of the shared socket */
	struct sl_udp_queue *queue; /* [SL_UDP_TRANSFERS] */
	struct sl_udp_source *send; /* [SL_UDP_TRANSFERS] */
	uint32_t full; /* packets for which the kernel had no room in the shared socket */
};

/* Options of every link that begins its state with a struct sl_udp. */
#define SL_UDP_OPTIONS_ENDS                                                                       \
	SL_STRING(struct sl_udp, listen, "127.0.0.1",                                             \
		  "IPv4 or IPv6 address the receiver takes data on"),                             \
		SL_U32(struct sl_udp, port, 4791, 1, 65535, "", "UDP port; RoCEv2 has 4791"),     \
		SL_STRING(struct sl_udp, source, "127.0.0.1",                                     \
			  "IPv4 or IPv6 address the front end sends from"),                       \
		SL_U32(struct sl_udp, reply_port, 0, 0, 65535, "",                                \
		       "front end: where credits and acknowledgements come back to; 0: the port " \
		       "it sends from. RDMA NICs answer to 4791"),                                \
		SL_U32(struct sl_udp, traffic_class, 2, 0, 255, "",                               \
		       "of what is sent: DSCP and ECN bits; 2 lets switches mark instead of "     \
		       "drop"),                                                                   \
		SL_U32(struct sl_udp, congestion_us, 55, 55, 500000, "us",                        \
		       "front end: how soon it hears of congestion, so how slowly it reacts; "    \
		       "raise it where switches queue for longer"),                               \
		SL_BOOL(struct sl_udp, segment, true,                                             \
			"front end: the kernel cuts packets from larger sends, where it can"),    \
		SL_BOOL(struct sl_udp, checksum, true,                                            \
			"front end: fill the UDP checksum; false: leave it 0, as FPGAs and RDMA " \
			"NICs do, and send packet by packet"),                                    \
		SL_BOOL(struct sl_udp, credits, true,                                             \
			"front end: send only what was granted; false: open loop, as devices do " \
			"that have no way back"),                                                 \
		SL_CHOICE(struct sl_udp, icrc, check, "check|ignore",                             \
			  "receiver: what is done about the ICRC of data; ignore: to measure "    \
			  "what checking costs, for nothing else")

/* And all that it can do to a packet on purpose. */
#define SL_UDP_PACKET_FAULTS                                            \
	(1u << SL_PACKET_FAULT_DROP | 1u << SL_PACKET_FAULT_DUPLICATE | \
	 1u << SL_PACKET_FAULT_CORRUPT | 1u << SL_PACKET_FAULT_REORDER)

#define SL_UDP_OPTIONS_FLOW                                                                      \
	SL_U64(struct sl_udp, window, 0, 0, 4294967296.0, "bytes",                               \
	       "most in flight over all modules; 0: what the receive buffers surely hold, "      \
	       "at most 2 MiB"),                                                                 \
		SL_U32(struct sl_udp, timeout, 14, 1, 31, "",                                    \
		       "rc: silence before packets are sent again, 4.096 us times two to this"), \
		SL_U32(struct sl_udp, retry, 60, 0, 255, "",                                     \
		       "rc: attempts before giving up, 4 s by default; 255: no end"),            \
		SL_U32(struct sl_udp, rnr_retry, 7, 0, 7, "",                                    \
		       "rc: attempts after 'receiver not ready'; 7: no end"),                    \
		SL_U32(struct sl_udp, min_rnr_timer, 12, 0, 31, "",                              \
		       "rc: how long 'receiver not ready' asks the front end to wait; 12: 0.64 " \
		       "ms")

/* A queue's only key, as the responder looks for it: arg is that key. */
const struct sl_roce_key *sl_udp_key_of(void *arg, uint32_t rkey);

void sl_udp_path_set(struct sl_udp_path *path, const uint8_t source[SL_ROCE_GID_BYTES],
		     uint16_t source_port, const uint8_t dest[SL_ROCE_GID_BYTES],
		     uint16_t dest_port);

/* One packet, at once. False when the socket has no room. */
bool sl_udp_send_one(int fd, const struct sl_udp_path *path, uint8_t *header, size_t header_bytes,
		     const void *payload, size_t bytes);

/* Whether the ICRC is good; path->source and its port are those of the sender, and ip_id is what
 * its IPv4 identification may be. */
bool sl_udp_icrc_good(const struct sl_roce_path *path, const uint8_t *data, size_t bytes,
		      enum sl_ip_id ip_id);

int sl_udp_open(void *state, const struct sl_link_env *env);
void sl_udp_close(void *state);
enum sl_proof sl_udp_proof(uint16_t service, uint16_t message);

/* Addresses and credits. */
void sl_udp_facts(const void *state, struct sl_link_facts *facts);

/* ---- receiving ---- */

/* As large as asked for, as far as the host allows; what we got decides the window. */
uint64_t sl_udp_enlarge_buffer(const struct sl_udp *udp, int fd);
int sl_udp_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan);
int sl_udp_set_queue(void *state, uint16_t transfer, uint32_t qpn);
int sl_udp_poll(void *state, unsigned poller, unsigned budget);

/* For links whose packets come from elsewhere: everything that came for this poller's queues by
 * then has been taken; 0: not known. */
void sl_udp_looked(struct sl_udp *udp, unsigned poller, uint64_t looked_ns);
void sl_udp_reported(void *state, uint16_t transfer, uint64_t position);
void sl_udp_drop(void *state, uint16_t transfer);
bool sl_udp_has_failed(const void *state, uint16_t transfer);
int sl_udp_serve(void *state);
int sl_udp_wait(void *state, unsigned poller, uint32_t timeout_us);

/* A whole packet: check, find its queue, judge. */
void sl_udp_receive(struct sl_udp *udp, unsigned poller, const uint8_t *data, size_t bytes,
		    const struct sl_roce_path *path, bool marked, uint64_t now_ns);

/* A whole packet whose path was read from its headers, its UDP payload in `count` pieces: the same,
 * and what lies in several pieces is put together in its place. */
void sl_udp_receive_pieces(struct sl_udp *udp, unsigned poller, const struct sl_roce_piece *piece,
			   unsigned count, const struct sl_roce_path *path, bool marked,
			   uint64_t now_ns);

/* Where queues follow their packets, before each of them: false when its queue is another
 * thread's, which was asked for it. Come again with the same packet. */
bool sl_udp_claim(struct sl_udp *udp, unsigned poller, const uint8_t *head, size_t bytes,
		  const struct sl_roce_path *path);

/* How long the packet is that begins with these headers, as its plan has it; 0: nobody knows. */
size_t sl_udp_packet_bytes(struct sl_udp *udp, unsigned poller, const uint8_t *head, size_t bytes);

/* The queue of this number, if it is open. */
struct sl_udp_queue *sl_udp_queue_of(struct sl_udp *udp, uint32_t qpn);

void sl_udp_count(struct sl_udp *udp, enum sl_drop why);

/* A packet whose ICRC is good, for this queue: place it or count why not. */
void sl_udp_judge(struct sl_udp *udp, struct sl_udp_queue *queue, const struct sl_roce_path *path,
		  const struct sl_roce_packet *packet, uint64_t now_ns);

/* A reliable connection ended, for something that the source sent. */
void sl_udp_failed(struct sl_udp_queue *queue, enum sl_drop why);

/* Keep a reply until the batch is through; it may say all that an earlier one said. */
void sl_udp_reply(struct sl_udp *udp, struct sl_udp_queue *queue,
		  const struct sl_roce_reply *reply);

/* The tap of a link thread; NULL: no packet is sampled. */
static inline struct sl_flight_tap *sl_udp_tap(const struct sl_udp *udp, unsigned poller)
{
	return udp->env.flight ? &udp->env.flight[poller] : NULL;
}

/* A datagram that is due for the flight recorder, of which `here` bytes lie at head. */
void sl_udp_sample(struct sl_udp *udp, struct sl_flight_tap *tap, const struct sl_roce_path *path,
		   uint8_t tos, const void *head, size_t here, size_t bytes, uint64_t now_ns);

/* Control thread: count packets for which the kernel had no room in this socket (fd -1: none) since
 * the last look. waiting: in bytes, the most of several sockets; NULL: a new socket, and what was
 * thrown away before is not counted. */
void sl_udp_look_at_memory(struct sl_udp *udp, int fd, uint32_t *full, uint32_t *waiting);

/* A packet that a switch marked came for this queue, from its peer. */
void sl_udp_notify(struct sl_udp *udp, struct sl_udp_queue *queue, uint64_t now_ns);

/* RC: the next credit; it leaves with sl_udp_return_all(). */
void sl_udp_grant_rc(struct sl_udp_queue *queue, uint64_t grant);

/* Replies, credits, and what of them was lost. */
void sl_udp_return_all(struct sl_udp *udp, unsigned poller, bool idle, uint64_t now_ns);

/* ---- receivers that take each other's place ---- */

/* A queue is new: write down where it begins. */
void sl_udp_note_begin(struct sl_udp *udp, struct sl_udp_queue *queue);

/* Before packets are taken from its socket, so many at most. */
void sl_udp_note_reading(struct sl_udp_queue *queue, uint64_t packets);

/* After packets were taken, before anything is sent back that the source relies on. */
void sl_udp_note(struct sl_udp_queue *queue);

/* The queue goes on where the note says. */
void sl_udp_note_restore(struct sl_udp_queue *queue);

int sl_udp_handover_fd(void *state, uint16_t transfer);
int sl_udp_handover_accept(void *state, const struct sl_offer *offer, const struct sl_plan *plan,
			   int fd);
void sl_udp_resume(void *state, uint64_t *first);

/* ---- sending ---- */
extern const struct sl_link_sending sl_udp_sending;

int sl_udp_offer(void *state, struct sl_offer *offer);
int sl_udp_connect(void *state, const struct sl_plan *plan);
void sl_udp_source_close(struct sl_udp_source *source);
int sl_udp_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n);
uint64_t sl_udp_reap(void *state, uint16_t transfer);

/* Take what came back for this transfer, and what came to the port that all share. */
void sl_udp_take_answers(struct sl_udp *udp, struct sl_udp_source *source, uint64_t now_ns);

/* May so many bytes leave now, as far as congestion goes? */
bool sl_udp_may_send(struct sl_udp_source *source, uint32_t bytes, uint64_t now_ns);

/* Gather, seal and queue one packet of a write; a full batch is sent. Faults are done to packets
 * that go out for the first time: what is sent again gets through. */
int sl_udp_append(struct sl_udp_batch *batch, const struct sl_write *write,
		  const struct sl_roce_fragment *fragment, const uint8_t *header, bool again);
int sl_udp_flush(struct sl_udp_batch *batch);

/* The same without a fault, but for the checksum. */
int sl_udp_put(struct sl_udp_batch *batch, const struct sl_write *write,
	       const struct sl_roce_fragment *fragment, const uint8_t *header, bool corrupt);

struct sl_udp_source *sl_udp_source_of(struct sl_udp *udp, uint16_t transfer);

/* Room for what will be held back; keep a packet instead of sending it; a packet has had its turn,
 * so others may be due; all of them are. */
int sl_udp_reorder_open(const struct sl_udp *udp, struct sl_udp_source *source);
void sl_udp_reorder(struct sl_udp_batch *batch, const struct sl_write *write,
		    const struct sl_roce_fragment *fragment, const uint8_t *header);
int sl_udp_pass(struct sl_udp_batch *batch);
int sl_udp_release_all(void *state, uint16_t transfer);

int sl_udp_post_rc(struct sl_udp_batch *batch, const struct sl_write *write, size_t n);

#endif
