/* link.h - how bytes travel from a front end into a ring. Each transport is one `struct sl_link`.
 *
 * Model:     one-sided writes. The receiving side owns a ring, accepts offers and answers with
 *            plans; its poll() places payloads (or learns that hardware did) and raises events in
 *            the ring's cells. The sending side connects with a plan and posts explicit descriptors
 *            (address, key, PSN, data); it never sends beyond the credit it was granted.
 *            Credits are stream positions in bytes (plan.h): the receiver grants min(end of the
 *            open slots, what it has seen + window), so one number guards both the slots and the
 *            socket buffer, and a lost packet leaks nothing.
 * Order:     receiving: open, accept per transfer, then poll/wait on the link's thread until close;
 *            serve, accept, reported and drop may run on the control thread meanwhile.
 *            In place of another receiver: open with what that one kept, take over per transfer,
 *            resume, then as above.
 *            sending: open, offer per transfer, connect per transfer, then post/reap/wait on one
 *            thread, close.
 *            One way: where sources know nothing of plans and nothing goes back to them, each side
 *            plays the other's part, too: the receiver calls offer before accept, the sender accept
 *            before connect; both make the same of the same options. There are no credits.
 * Threads:   poll, wait, post and reap are data-path calls: no allocation, lock or log.
 * Errors:    0, a count, or -errno. -EAGAIN is back-pressure. Packets that do not fit are counted
 *            by cause, never logged. */
#ifndef SL_CORE_LINK_H
#define SL_CORE_LINK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/option.h>
#include <sluice/status.h>

#include "core/plan.h"
#include "core/ring.h"
#include "core/write.h"

/* How the link knows that a module-frame is whole, and that nobody writes what is being read
 * (stored with the run). */
enum sl_proof {
	SL_PROOF_PACKET_COUNT,
	SL_PROOF_MESSAGE,
	SL_PROOF_RELIABLE, /* the connection delivers all of it or fails */
	SL_PROOF_CHECKSUM, /* nothing but the record's own word about its pixels */
};
enum sl_guard { SL_GUARD_ENFORCED = 1 << 0, SL_GUARD_CREDITED = 1 << 1, SL_GUARD_BOUNDED = 1 << 2 };

const char *sl_proof_name(enum sl_proof proof);
void sl_guard_name(uint32_t guards, char *text, size_t bytes); /* "enforced, credited" */

struct sl_link_counters {
	_Atomic uint64_t packets, bytes; /* placed */
	_Atomic uint64_t dropped[SL_DROPS];
	/* Congestion. Receiving: packets that a switch marked, notifications sent. Sending:
	 * notifications received; each slows its transfer down. */
	_Atomic uint64_t marked, notified, slowed;
	/* Receiving: what the kernel gave the smallest of its sockets, in bytes as it counts them;
	 * 0: it needs none. */
	_Atomic uint64_t receive_buffer;
};

/* What a front end does to a packet on purpose (fault injection); SL_PACKET_FAULT_NONE is the
 * honest one.
 */
enum sl_packet_fault {
	SL_PACKET_FAULT_NONE,
	SL_PACKET_FAULT_DROP,
	SL_PACKET_FAULT_DUPLICATE,
	SL_PACKET_FAULT_CORRUPT, /* sent with a wrong ICRC */
	SL_PACKET_FAULT_REORDER, /* sent after `hold` packets more of its transfer */
};

/* How a thread that sleeps in wait() is woken when slots were opened. */
struct sl_wake {
	int fd;			 /* wait() returns when it becomes readable, and drains it */
	_Atomic uint32_t asleep; /* set while it sleeps, so that others know to write fd */
};

enum { SL_LINK_TRANSFERS = 64, SL_LINK_NOTE_BYTES = 256 };

struct sl_link_env {
	/* receiving side: ring is not NULL */
	struct sl_ring *ring;
	unsigned pollers;     /* threads that call poll() and wait(), at most the link's own */
	struct sl_wake *wake; /* [pollers] */
	struct sl_link_counters *counters; /* NULL, when sending: not wanted */
	/* To plan: one bit of each set in plan.h. The sending side is told the service that it
	 * will be asked for, since hardware makes its queues before there is a plan. */
	uint16_t service, operation, message;
	uint16_t pmtu;
	uint16_t crc;
	/* Where the link goes on writing down what a receiver after this one must know, per
	 * transfer; it outlives the process. NULL: nobody will come. */
	void *notes; /* [SL_LINK_TRANSFERS][SL_LINK_NOTE_BYTES] */
	/* The link's own descriptor from an earlier receiver, which it then owns; NULL: there was
	 * none. */
	const int *handover_fd;
	/* sending side: may be NULL */
	enum sl_packet_fault (*fault)(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet);
	void *fault_arg;
	uint32_t hold; /* 0: fault holds nothing back */
};

struct sl_link {
	const char *name, *doc;
	const char *wire; /* links of the same word understand each other */
	size_t state_bytes;
	const struct sl_option *options;
	uint16_t services, operations, messages; /* sets: what it has */
	uint16_t message;			 /* the one that is best for it */
	enum sl_proof (*proof)(uint16_t service, uint16_t message);
	uint32_t guards;
	unsigned pollers;	    /* most threads that may poll it; 0: one */
	enum sl_region_kind places; /* the kind of region its ring must live in */
	bool oneway;		    /* there is no way back to its sources, see Order */
	bool bare; /* knows the number of a block without its record and immediate (plan.h) */
	uint32_t packet_faults; /* a bit for each enum sl_packet_fault that it can do */

	/* Why it cannot be used on this host and what to do about it; NULL: it can. May itself be
	 * NULL: it always can. */
	const char *(*unavailable)(void);

	int (*open)(void *state, const struct sl_link_env *env);
	void (*close)(void *state);

	/* Create the queue for this offer and fill in the answer. */
	int (*accept)(void *state, const struct sl_offer *offer, struct sl_plan *plan);

	/* Before the start: the source's queue pair, where the offer could not name it
	 * (credit_qpn 0). NULL: offers must. */
	int (*meet)(void *state, uint16_t transfer, uint32_t qpn);

	/* Up to budget packets of each queue: place, raise events, return credits. How many were
	 * handled. Each queue belongs to one poller, whose number is also its index in
	 * ring->poller. */
	int (*poll)(void *state, unsigned poller, unsigned budget);

	/* Sleep until poll (or, sending, post) may have something to do, or timeout_us have passed.
	 */
	int (*wait)(void *state, unsigned poller, uint32_t timeout_us);

	/* Control thread: connections and other slow things. NULL when there are none. */
	int (*serve)(void *state);

	/* Control thread: the source says that everything below position has been sent. Heals
	 * credits after a burst of loss. */
	void (*reported)(void *state, uint16_t transfer, uint64_t position);

	/* Nothing more is accepted on this transfer. */
	void (*drop)(void *state, uint16_t transfer);

	/* ---- receivers that are replaced while their sources go on ---- */

	/* Why that cannot be with this link; NULL: it can, and has the three calls. */
	const char *no_handover;

	/* The descriptor that must outlive this process, of a transfer, or of the link itself for
	 * SL_LINK_TRANSFERS; -1: it has none. It stays the link's. */
	int (*keep)(void *state, uint16_t transfer);

	/* Instead of accept, with what the receiver before answered; fd as it was kept. The link
	 * owns it when this succeeds. -EINVAL, logged: the plan does not fit this link any more. */
	int (*handover_accept)(void *state, const struct sl_offer *offer,
			       const struct sl_plan *plan, int fd);

	/* After the last take over: per transfer the first sequence of which nothing was taken
	 * before. May take a second, to see where a source is that nothing holds back. */
	void (*resume)(void *state, uint64_t *first);

	/* Bind what must be bound, and say where packets will come from. Fills source, credit_* and
	 * capabilities. */
	int (*offer)(void *state, struct sl_offer *offer);
	int (*connect)(void *state, const struct sl_plan *plan);

	/* How many of the n writes were taken, in order; 0 when credit or the queue has no room
	 * now. With n = 0 it only goes on with what it has. -EPIPE: the peer is gone. A reliable
	 * connection that failed says why: -ETIMEDOUT no answer, -ENOBUFS the receiver was not
	 * ready too often, -EACCES key or range refused, -EPROTO, -EREMOTEIO. */
	int (*post)(void *state, uint16_t transfer, const struct sl_write *write, size_t n);

	/* Sources of writes that end at or below the returned position may be reused: they were
	 * copied, or acknowledged. */
	uint64_t (*reap)(void *state, uint16_t transfer);

	/* Nothing more will be posted: what was held back goes out. NULL: it holds nothing back. */
	int (*flush)(void *state, uint16_t transfer);
};

#endif
