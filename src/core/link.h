/* link.h - how bytes travel from a front end into a ring. Each transport is one `struct sl_link`.
 *
 * Model:     one-sided writes. The receiving side owns a ring, accepts offers and answers with
 *            plans; its poll() places payloads (or learns that hardware did) and raises events in
 *            the ring's cells. The sending side connects with a plan and posts explicit descriptors
 *            (address, key, PSN, data); it never sends beyond the credit it was granted.
 *            Credits are stream positions in bytes (plan.h): the receiver grants min(end of the
 *            open slots, what it has seen + window), so one number guards both the slots and the
 *            socket buffer, and a lost packet leaks nothing.
 *            A link has three tables of operations: receiving, sending and handover. One state is
 *            opened for one side: receiving if the environment has a ring, sending otherwise.
 * Order:     receiving: open, accept per transfer, then poll/wait on the link's thread until close;
 *            serve, accept, reported and drop may run on the control thread meanwhile.
 *            Handover, in place of another receiver: open with what that one kept,
 *            handover->accept per transfer, resume, then as above.
 *            sending: open, offer per transfer, connect per transfer, then post/reap/wait on one
 *            thread, close. A front end with several threads opens a state for each of them.
 *            One way: where sources know nothing of plans and nothing goes back to them, each side
 *            plays the other's part, too: the receiver calls receiving->offer before accept, the
 *            sender sending->accept before connect; both make the same of the same options. There
 *            are no credits.
 * Threads:   poll, wait, post and reap are data-path calls: no allocation, lock or log. Load the
 *            pointer to the table once, before the loop that calls them.
 * Errors:    0, a count, or -errno. -EAGAIN is back-pressure. Packets that do not fit are counted
 *            by cause, never logged. */
#ifndef SL_CORE_LINK_H
#define SL_CORE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/option.h>

#include "core/link_env.h"
#include "core/plan.h"
#include "core/ring.h"
#include "core/write.h"

/* How the link knows that a module-frame is whole, and that no source writes what is being read
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

/* What the pipeline must know of a link as it is configured. */
struct sl_link_facts {
	/* Numeric addresses of the receiver and of the front end, with commas between them. "": the
	 * link has none, or finds one. */
	const char *listen, *source;
	bool credits; /* sources wait for credits, as far as these options say */
	/* Sending: most states that one front end may have open at once, each for a thread of its
	 * own; 0: one. A port that all transfers share, for example, has one owner. */
	unsigned senders;
	/* Data come through socket buffers, of this size each; 0: as much as the host allows. */
	bool sockets;
	uint64_t receive_buffer;
	/* One way: bytes of pixels in a packet; the detector whose headers are expected, and those
	 * whose headers the link knows, "a|b". NULL: headers do not tell. */
	uint32_t payload;
	const char *detector, *detectors;
};

struct sl_link_receiving {
	/* One way: what a source would offer. NULL: sources offer for themselves. */
	int (*offer)(void *state, struct sl_offer *offer);

	/* Create the queue for this offer and fill in the answer. */
	int (*accept)(void *state, const struct sl_offer *offer, struct sl_plan *plan);

	/* Before the start: the source's queue pair, where the offer could not name it
	 * (credit_qpn 0). NULL: offers must. */
	int (*set_queue)(void *state, uint16_t transfer, uint32_t qpn);

	/* Up to budget packets of each queue: place, raise events, return credits. Returns how
	 * many were handled. Each queue belongs to one poller, whose number is also its index in
	 * ring->poller. */
	int (*poll)(void *state, unsigned poller, unsigned budget);

	/* Sleep until poll() may have something to do, or timeout_us have passed. */
	int (*wait)(void *state, unsigned poller, uint32_t timeout_us);

	/* Control thread: connections and other slow things. NULL: the link has none. */
	int (*serve)(void *state);

	/* Control thread: the source says that everything below position has been sent. Heals
	 * credits after a burst of loss. */
	void (*reported)(void *state, uint16_t transfer, uint64_t position);

	/* Nothing more is accepted on this transfer. */
	void (*drop)(void *state, uint16_t transfer);

	/* Control thread: its reliable connection has failed, and nothing more will come. NULL: the
	 * link does not know of any. */
	bool (*failed)(const void *state, uint16_t transfer);
};

struct sl_link_sending {
	/* Bind what must be bound, and say where packets will come from. Fills source, credit_* and
	 * capabilities. */
	int (*offer)(void *state, struct sl_offer *offer);

	/* One way: what the receiver would answer. NULL: receivers answer themselves. */
	int (*accept)(void *state, const struct sl_offer *offer, struct sl_plan *plan);

	int (*connect)(void *state, const struct sl_plan *plan);

	/* How many of the n writes were taken, in order; 0 when credit or the queue has no room
	 * now. With n = 0 the link only goes on with what it has. -EPIPE: the peer is gone. A
	 * reliable connection that failed says why: -ETIMEDOUT no answer, -ENOBUFS the receiver was
	 * not ready too often, -EACCES key or range refused, -EPROTO, -EREMOTEIO. */
	int (*post)(void *state, uint16_t transfer, const struct sl_write *write, size_t n);

	/* Sources of writes that end at or below the returned position may be reused: they were
	 * copied, or acknowledged. */
	uint64_t (*reap)(void *state, uint16_t transfer);

	/* Posting has ended: send what was held back. NULL: the link holds nothing back. */
	int (*flush)(void *state, uint16_t transfer);

	/* Sleep until post() may have something to do, or timeout_us have passed. */
	int (*wait)(void *state, uint32_t timeout_us);
};

/* A receiver is replaced by another one while its sources go on. */
struct sl_link_handover {
	/* The descriptor that must outlive this process, of a transfer, or of the link itself for
	 * SL_LINK_TRANSFERS; -1: there is none. It stays the link's. */
	int (*keep)(void *state, uint16_t transfer);

	/* Instead of receiving->accept, with the plan of the receiver before; fd as it was kept.
	 * The link owns fd when this succeeds. -EINVAL, logged: the plan does not fit this link any
	 * more. */
	int (*accept)(void *state, const struct sl_offer *offer, const struct sl_plan *plan,
		      int fd);

	/* After the last accept: per transfer the first sequence of which nothing was taken before.
	 * May take a second, to see where a source is that nothing holds back. */
	void (*resume)(void *state, uint64_t *first);
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
	bool oneway;		    /* nothing goes back to its sources, see Order */
	bool bare; /* knows the number of a block without its record and immediate (plan.h) */
	uint32_t packet_faults; /* a bit for each enum sl_packet_fault that it can do */

	/* Why the link cannot be used on this host and what to do about it; NULL: it can. The
	 * member may itself be NULL: it always can. */
	const char *(*unavailable)(void);

	/* By its options, whether it is open or not; the texts are the link's. NULL: as
	 * sl_link_facts() begins. */
	void (*facts)(const void *state, struct sl_link_facts *facts);

	int (*open)(void *state, const struct sl_link_env *env);
	void (*close)(void *state);

	const struct sl_link_receiving *receiving;
	const struct sl_link_sending *sending;
	const struct sl_link_handover *handover; /* NULL: no_handover says why */
	const char *no_handover;
};

enum { SL_LINK_SENDERS = 64 };

/* No addresses, credits, no sockets, no payload, one sender; then what the link says. */
void sl_link_facts(const struct sl_link *link, const void *state, struct sl_link_facts *facts);

#endif
