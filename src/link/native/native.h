/* native.h - detectors that send UDP packets of a format of their own: what the links `sls` and
 * `nanet` share.
 *
 * Model:     a module sends from one or more interfaces, each to a UDP port of its own here, and
 *            each carries its part of the module's block, cut into packets of equal length. Every
 *            packet says in its header which frame and which packet of its port it is; so its place
 *            in the ring is known, whatever came before it. Sources know nothing of plans, records
 *            and credits, and nothing goes back to them (core/link.h, one way): the record is
 *            written here, out of what the headers say.
 *            Packets of a port come in order, as a rule: the kernel gets the places of those that
 *            should come next, and its copy is the only one. A guess that was wrong is put right.
 * Files:     native.c opening, closing, offers and plans; shape.c which bytes of a block a packet
 *            has; place.c which packet it is, whether it may go there, and what is in; pack.c
 *            pixels that are packed in packets; stray.c ports that get the packets of others;
 *            sample.c packets for the flight recorder; receive.h packets in; send.c packets out;
 *            reorder.c those that others overtake. A wire format is one file: sls.c, nanet.c.
 * Threads:   as core/link.h says. All ports of a module belong to one poller.
 * Ownership: a link begins its state with a struct sl_native and sets `format` when it opens. */
#ifndef SL_LINK_NATIVE_NATIVE_H
#define SL_LINK_NATIVE_NATIVE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/link.h"
#include "core/look.h"
#include "link/native/place.h"
#include "link/native/shape.h"
#include "link/predict.h"
#include "net/net.h"

enum {
	SL_NATIVE_MODULES = 64,
	SL_NATIVE_HEADER = 48,	    /* longest */
	SL_NATIVE_SEGMENTS = 64,    /* packets in one send or one datagram, at most */
	SL_NATIVE_IOVS = 1000,	    /* within IOV_MAX */
	SL_NATIVE_SEND_MAX = 65000, /* bytes of one segmented send; the headers fit beside it */
	SL_NATIVE_SENDERS = 64,
};

struct sl_native;

/* What a header says. */
struct sl_native_header {
	uint64_t number;    /* of the frame or of its first event, modulo 2^number_bits */
	uint32_t packet;    /* of its port and frame; where the number does not say it */
	uint32_t place;	    /* the part of the detector that it comes from, as the format has it */
	uint64_t timestamp; /* ns */
	uint16_t cell;
	uint16_t module, port; /* whose it is: sending */
};

struct sl_native_format {
	uint32_t header_bytes, number_bits;
	uint64_t first; /* number that such detectors begin with */

	/* By the options, and the lines of a block: which ports and packets there are. Logs. */
	int (*shape)(const struct sl_native *native, uint16_t module, uint32_t lines,
		     uint32_t line_bytes, struct sl_native_shape *shape);

	/* The place that headers of this module and port name. */
	uint32_t (*place)(const struct sl_native *native, const struct sl_native_shape *shape,
			  uint16_t module, uint32_t port);
	/* The place in words, "row 3, column 1"; which of the module's ports it is, "lower half,
	 * left", or "" where there is one; and which options decide it, behind a message. */
	void (*place_text)(uint32_t place, char *text, size_t bytes);
	const char *(*port_text)(const struct sl_native_shape *shape, uint32_t port);
	const char *place_advice;

	/* Pure functions. read() is given header_bytes; false: it is not of this format. */
	bool (*read)(const struct sl_native *native, const uint8_t *bytes,
		     struct sl_native_header *header);
	void (*write)(const struct sl_native *native, const struct sl_native_header *header,
		      uint8_t *bytes);
};

/* sl_native_port.stray: a packet of another place came. */
#define SL_NATIVE_STRAY (UINT64_C(1) << 32)

struct sl_native_port { /* receiving */
	int fd;
	uint32_t index; /* of its module's */
	uint32_t place; /* that headers must name */
	uint64_t next;	/* packet of its stream that should come next */
	struct sl_predict_stream stream;
	union sl_net_address peer; /* the last sender that was known */
	uint32_t full;		   /* receive-queue drops, as the kernel counts them */
	/* SL_NATIVE_STRAY and the place of the first packet that named another one; 0: none did.
	 * Written by the link thread, told once by the control thread. */
	_Atomic uint64_t stray;
	bool stray_told;
};

struct sl_native_queue { /* receiving: a module */
	_Atomic uint32_t active;
	uint32_t ports;
	unsigned poller;
	struct sl_native_port port[SL_NATIVE_PORTS];
	struct sl_look look;
	struct sl_native_placer placer;
};

struct sl_native_guess { /* a packet that is expected */
	uint64_t packet; /* of the port's stream */
	bool placed;	 /* its payload goes to the ring, and not to scratch */
	uint8_t header[SL_NATIVE_HEADER];
};

struct sl_native_buffers { /* of one poller */
	struct sl_native_guess guess[SL_PREDICT_BATCH];
	uint8_t scratch[SL_PREDICT_BATCH][SL_NATIVE_PAYLOAD];
	struct sl_predict_batch predict;
};

struct sl_native_reordered; /* a packet that is held back: reorder.c */

struct sl_native_source { /* sending: a module */
	struct sl_plan plan;
	struct sl_native_shape shape;
	uint64_t first, step; /* number of sequence 0, and from one to the next */
	int fd[SL_NATIVE_PORTS];
	uint32_t place[SL_NATIVE_PORTS]; /* that its headers name */
	union sl_net_address to[SL_NATIVE_PORTS];
	socklen_t to_bytes;
	uint64_t sent; /* position */
	/* Held back on purpose: a queue of env.hold + 1; how many entered and left it, and the
	 * packets that were to be sent. */
	struct sl_native_reordered *held;
	uint64_t holds, released, passed;
};

struct sl_native_batch { /* packets of one port on their way to one system call */
	struct sl_native *native;
	struct sl_native_source *source;
	uint32_t port;
	unsigned most, packets, iovs;
	struct iovec iov[SL_NATIVE_IOVS + SL_NATIVE_PIECES + 1];
	uint8_t header[SL_NATIVE_SEGMENTS][SL_NATIVE_HEADER];
	struct mmsghdr message[SL_NATIVE_SEGMENTS];
	_Alignas(8) uint8_t control[SL_NET_CONTROL_BYTES];
	uint8_t together[SL_NATIVE_SEGMENTS][SL_NATIVE_PAYLOAD];
	uint8_t unpacked[2 * SL_NATIVE_PAYLOAD + 8]; /* pixels on their way into a packet */
};

struct sl_native {
	/* options */
	char listen[64], listen2[64], source[64], senders[512], first_frame[32];
	uint32_t port;
	uint64_t receive_buffer;
	bool segment, checksum;
	/* state */
	const struct sl_native_format *format; /* NULL: not open */
	struct sl_link_env env;
	uint8_t local[2][SL_NET_GID_BYTES]; /* of odd ports: the second */
	uint8_t from[SL_NET_GID_BYTES];	    /* sending */
	uint8_t sender[SL_NATIVE_SENDERS][SL_NET_GID_BYTES];
	unsigned n_senders;	     /* 0: anyone */
	bool automatic;		     /* the first number that comes is the first */
	uint64_t base;		     /* of numbers */
	uint32_t place_mask;	     /* 0: headers' places are not looked at; else all bits */
	_Atomic uint64_t first_plus; /* 1 + the number that all modules begin with; 0: not known */
	uint32_t queues;
	struct sl_native_queue *queue;	   /* [SL_NATIVE_MODULES] */
	struct sl_native_source *out;	   /* [SL_NATIVE_MODULES] */
	struct sl_native_buffers *buffers; /* [pollers] */
	struct sl_native_batch *batch;	   /* sending */
};

/* Options of every link that begins its state with a struct sl_native; `first` is the text of the
 * default of first_frame, `at` the first port. */
#define SL_NATIVE_OPTIONS(at, first)                                                              \
	SL_STRING(struct sl_native, listen, "127.0.0.1",                                          \
		  "receiver: IPv4 or IPv6 address that detectors send to"),                       \
		SL_STRING(struct sl_native, listen2, "",                                          \
			  "receiver: the same for every second port of a module, where it has "   \
			  "one; empty: as listen"),                                               \
		SL_U32(struct sl_native, port, at, 1, 65535, "",                                  \
		       "UDP port of module 0; its other ports, then those of module 1 and so "    \
		       "on, follow"),                                                             \
		SL_STRING(struct sl_native, senders, "",                                          \
			  "receiver: addresses that detectors send from, with commas between; "   \
			  "empty: anyone is believed"),                                           \
		SL_STRING(struct sl_native, source, "127.0.0.1",                                  \
			  "front end: IPv4 or IPv6 address that it sends from"),                  \
		SL_STRING(struct sl_native, first_frame, first,                                   \
			  "number that the run begins with; auto: the first one that comes"),     \
		SL_U64(struct sl_native, receive_buffer, 0, 0, 1073741823, "bytes",               \
		       "receiver: buffer of each socket; 0: as much as this host allows"),        \
		SL_BOOL(struct sl_native, segment, true,                                          \
			"front end: the kernel cuts packets from larger sends, where it can"),    \
		SL_BOOL(struct sl_native, checksum, true,                                         \
			"front end: fill the UDP checksum; false: leave it 0, as FPGAs may, and " \
			"send packet by packet")

/* What it can do to a packet on purpose: there is no checksum that could be wrong. */
#define SL_NATIVE_PACKET_FAULTS                                         \
	(1u << SL_PACKET_FAULT_DROP | 1u << SL_PACKET_FAULT_DUPLICATE | \
	 1u << SL_PACKET_FAULT_REORDER)

int sl_native_open(struct sl_native *native, const struct sl_native_format *format,
		   const struct sl_link_env *env);
void sl_native_close(void *state);
enum sl_proof sl_native_proof(uint16_t service, uint16_t message);

/* Addresses and buffers; credits as in sl_link_facts(). */
void sl_native_facts(const struct sl_native *native, struct sl_link_facts *facts);

/* Either side: offer() for a source, accept() for a receiver (core/link.h, one way). */
int sl_native_offer(void *state, struct sl_offer *offer);
int sl_native_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan);

int sl_native_wait(void *state, unsigned poller, uint32_t timeout_us);
int sl_native_serve(void *state);
void sl_native_reported(void *state, uint16_t transfer, uint64_t position);
void sl_native_drop(void *state, uint16_t transfer);

int sl_native_connect(void *state, const struct sl_plan *plan);
int sl_native_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n);
uint64_t sl_native_reap(void *state, uint16_t transfer);
int sl_native_flush(void *state, uint16_t transfer);
int sl_native_rest(void *state, uint32_t timeout_us);

/* The UDP port of a module's port. */
static inline uint16_t sl_native_port_of(const struct sl_native *native,
					 const struct sl_native_shape *shape, uint32_t module,
					 uint32_t port)
{
	return (uint16_t)(native->port + module * shape->ports + port);
}

/* A datagram that is due for the flight recorder; its first bytes, as many as a header has, lie at
 * head. */
void sl_native_sample(const struct sl_native *native, const struct sl_native_queue *queue,
		      const struct sl_native_port *port, struct sl_flight_tap *tap,
		      const struct msghdr *header, const uint8_t *head, size_t bytes,
		      uint64_t now_ns);

/* Control thread: warn once of each port that gets packets of another place. */
void sl_native_tell_strays(struct sl_native *native);

/* Packets out, for reorder.c. append: `payload` in pieces that stay until the batch is sent. */
int sl_native_append(struct sl_native_batch *batch, const uint8_t *header,
		     const struct sl_part *part, unsigned parts);
int sl_native_send(struct sl_native_batch *batch);

int sl_native_reorder_open(const struct sl_native *native, struct sl_native_source *source);
void sl_native_reorder(struct sl_native_batch *batch, const uint8_t *header,
		       const struct sl_part *part, unsigned parts);
int sl_native_pass(struct sl_native_batch *batch); /* one more was to be sent */
int sl_native_release_all(struct sl_native *native, struct sl_native_source *source);

extern const struct sl_link_sending sl_native_sending;

/* What the links of this family have in common. In a table of receiving operations, poll() is the
 * link's own: sl_native_receive() with its format (receive.h). */
#define SL_NATIVE_RECEIVING                                                           \
	.offer = sl_native_offer, .accept = sl_native_accept, .wait = sl_native_wait, \
	.serve = sl_native_serve, .reported = sl_native_reported, .drop = sl_native_drop

#define SL_NATIVE_LINK                                                                         \
	.services = SL_SERVICE_UC, .operations = SL_OPERATION_WRITE,                           \
	.messages = SL_MESSAGE_MODULE, .message = SL_MESSAGE_MODULE, .proof = sl_native_proof, \
	.guards = SL_GUARD_ENFORCED, .pollers = SL_POLLERS, .places = SL_REGION_HOST,          \
	.oneway = true, .packet_faults = SL_NATIVE_PACKET_FAULTS, .close = sl_native_close,    \
	.sending = &sl_native_sending,                                                         \
	.no_handover = "nothing binds its sources to a receiver: start another one"

#endif
