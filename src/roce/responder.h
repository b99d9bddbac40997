/* responder.h - packets arrive at a queue: what to do with each.
 *
 * Model:     one responder per queue. It judges a packet and says where its payload belongs and
 *            what it completes; it writes no memory but its own state. This one is UC, which
 *            answers nothing; RC is in rc_responder.h. A FIRST or ONLY with any PSN begins a
 *            message and moves the expected PSN behind it, giving up a message in progress; a
 *            MIDDLE or LAST that does not continue the message in progress is dropped, with all
 *            that follow, until the next FIRST or ONLY. So no loss can wedge a queue. A dropped
 *            packet never moves the expected PSN; one that belongs to this queue but cannot be
 *            executed ends the message in progress.
 * Threads:   one at a time per responder.
 * Ownership: the caller finds the queue by packet->qpn and has checked the ICRC. Keys are the
 *            caller's; they are looked up for every packet, so that revoking one works at once.
 * Cost:      one key lookup per packet of a WRITE. */
#ifndef SL_ROCE_RESPONDER_H
#define SL_ROCE_RESPONDER_H

#include "roce/opcode.h"
#include "roce/roce.h"

enum sl_roce_access {
	SL_ROCE_REMOTE_WRITE = 1 << 0,
	SL_ROCE_REMOTE_READ = 1 << 1,
	SL_ROCE_REMOTE_ATOMIC = 1 << 2,
};

struct sl_roce_key { /* memory that peers may reach */
	uint32_t rkey;
	uint32_t access; /* set of enum sl_roce_access */
	uint32_t domain; /* protection domain: only queues of the same one may use it */
	uint64_t base, bytes;
};

/* NULL when there is no such key. */
typedef const struct sl_roce_key *sl_roce_key_lookup(void *arg, uint32_t rkey);

/* Why a packet was dropped; 0: it was not. */
enum sl_roce_drop {
	SL_ROCE_ACCEPTED,
	SL_ROCE_DROP_QUEUE,	/* for another queue */
	SL_ROCE_DROP_TRANSPORT, /* an opcode that this kind of queue does not serve */
	SL_ROCE_DROP_PKEY,
	SL_ROCE_DROP_PEER,	/* not from and to the connected addresses */
	SL_ROCE_DROP_BROKEN,	/* continues no message: its beginning or middle was lost */
	SL_ROCE_DROP_LENGTH,	/* payload and announced length contradict each other or the PMTU */
	SL_ROCE_DROP_ACCESS,	/* queue or key do not permit it */
	SL_ROCE_DROP_KEY,	/* no such key, or of another domain */
	SL_ROCE_DROP_RANGE,	/* outside the key's memory */
	SL_ROCE_DROP_RECEIVE,	/* no receive is posted, or it is too small */
	SL_ROCE_DROP_STATE,	/* the queue does not receive, or no longer */
	SL_ROCE_DROP_AHEAD,	/* RC: packets before it are missing */
	SL_ROCE_DROP_DUPLICATE, /* RC: done before */
	SL_ROCE_DROP_READS,	/* RC: more READs at a time than the queue serves */
	SL_ROCE_DROP_QKEY,	/* UD: not the key of this queue */
	SL_ROCE_DROPS,
};

const char *sl_roce_drop_name(enum sl_roce_drop drop); /* "broken", ... */

#define SL_ROCE_RECEIVES_UNLIMITED UINT32_MAX

struct sl_roce_responder {
	/* Set by the caller before sl_roce_responder_init(); the receives also later. */
	uint8_t transport; /* SL_ROCE_UC */
	uint16_t pkey;
	uint32_t qpn, pmtu;
	uint32_t access; /* what peers may do here, besides SEND */
	uint32_t domain;
	uint8_t peer[SL_ROCE_GID_BYTES], local[SL_ROCE_GID_BYTES];
	uint32_t expected_psn;
	uint32_t receives;	/* posted, for SEND and for immediates */
	uint32_t receive_bytes; /* room in the one that is next */

	/* The message in progress. */
	bool open;
	uint8_t kind;
	uint32_t rkey;
	uint64_t va;
	uint32_t length; /* WRITE: as announced */
	uint32_t offset; /* received so far */
};

enum sl_roce_place {
	SL_ROCE_PLACE_NOWHERE, /* no payload */
	SL_ROCE_PLACE_MEMORY,  /* at va */
	SL_ROCE_PLACE_RECEIVE, /* at offset in the next posted receive */
};

struct sl_roce_action {
	enum sl_roce_place place;
	const struct sl_roce_key *key; /* MEMORY: the key that covers it */
	uint64_t va;		       /* MEMORY: va..va+bytes lies inside the key */
	uint32_t offset;	       /* of this payload in its message */
	uint32_t bytes;		       /* of this packet's payload (packet->payload) */
	uint32_t message_bytes;	       /* WRITE: as announced; SEND: so far. Whole when `last` */
	int32_t gap;	/* PSN minus the expected one: 0 in order, above 0 packets were missed */
	bool first;	/* begins a message */
	bool last;	/* the message is whole */
	bool gave_up;	/* a message in progress was cut off by this one */
	bool complete;	/* the receiver is told: SEND, or WRITE with immediate */
	bool immediate; /* imm is valid */
	bool solicited;
	bool receive; /* a posted receive was used up; taken off `receives` */
	uint32_t imm;
};

/* SL_ROCE_EINVAL: not UC, no such PMTU, numbers wider than 24 bits. Clears the message state. */
int sl_roce_responder_init(struct sl_roce_responder *responder);

/* Judge one parsed packet whose ICRC is good. path says where it came from; NULL when the caller
 * has compared the addresses. *action is set only for SL_ROCE_ACCEPTED. */
enum sl_roce_drop sl_roce_responder_receive(struct sl_roce_responder *responder,
					    const struct sl_roce_path *path,
					    const struct sl_roce_packet *packet,
					    sl_roce_key_lookup *lookup, void *lookup_arg,
					    struct sl_roce_action *action);

/* Low 15 bits equal and not zero, and at least one side a full member. */
bool sl_roce_pkey_match(uint16_t a, uint16_t b);

/* va..va+bytes lies within the key, whatever overflows. */
bool sl_roce_key_covers(const struct sl_roce_key *key, uint64_t va, uint64_t bytes);

#endif
