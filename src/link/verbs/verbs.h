/* verbs.h - what the files of the verbs link share.
 *
 * Model:     the NIC does what src/roce does for udp. Receiving: the ring is registered with every
 *            NIC that was asked for; each transfer is one queue pair; the NIC places, and the
 *            completion that brings an immediate is the event. Sending: a queue pair per transfer,
 *            blocks copied into registered memory so that sources may be reused, credits written
 *            by the receiver into a registered word. Both ends connect by hand from the plan.
 * Guard:     a source writes only what it was granted, and a queue pair keeps its order: a block
 *            whose event was raised is not written again before its slot is open again. A write
 *            that comes after its slot was given up lands in a block that nobody reads. A source
 *            without credits writes into a landing of its own, never into the ring.
 * Files:     verbs.c options, open, close; connect.c both ends of a plan; receive.c
 *            events in, credits out; send.c blocks out. */
#ifndef SL_LINK_VERBS_VERBS_H
#define SL_LINK_VERBS_VERBS_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/link.h"
#include "core/look.h"
#include "core/region.h"
#include "link/credit.h"
#include "net/verbs/verbs.h"

enum {
	SL_VERBS_DEVICES = 8,
	SL_VERBS_TRANSFERS = 64,
	SL_VERBS_MARGIN = 16, /* receives beyond one per slot */
	SL_VERBS_GRANTS = 4,  /* credits on their way, per transfer */
	SL_VERBS_SENDS = 128, /* work requests of a source, per transfer */
	SL_VERBS_STAGED = 4,  /* blocks of a source that may be on their way */
	SL_VERBS_BATCH = 32,  /* completions at a time */
};

enum sl_verbs_patience { SL_VERBS_EVENT, SL_VERBS_SPIN }; /* option poll */

/* Who a completion is for, in its id. The number is the generation of the queue when receiving,
 * since completions of one that was dropped may still come; that of the request when sending. */
enum sl_verbs_work { SL_VERBS_WORK_RECEIVE, SL_VERBS_WORK_GRANT, SL_VERBS_WORK_WRITE };

static inline uint64_t sl_verbs_id(enum sl_verbs_work work, uint32_t index, uint32_t number)
{
	return (uint64_t)work << 48 | (uint64_t)index << 32 | number;
}

static inline enum sl_verbs_work sl_verbs_id_work(uint64_t id)
{
	return (enum sl_verbs_work)(id >> 48);
}

static inline uint32_t sl_verbs_id_index(uint64_t id)
{
	return (uint32_t)(id >> 32) & 0xffff;
}

struct sl_verbs_in {		 /* a transfer, receiving */
	_Atomic uint32_t active; /* the first: all behind it is cleared between transfers */
	struct sl_verbs_queue *queue;
	unsigned nic;
	uint32_t generation;
	struct sl_plan plan;
	uint32_t event_bytes; /* of the message that brings the immediate */
	uint64_t next;	      /* 1 + the newest sequence: extends 32-bit immediates */
	/* Send: sequences whose memory was posted, and that were used. */
	uint64_t posted, used;
	struct sl_region landing; /* open loop: where the source writes instead of the ring */
	struct sl_verbs_memory landing_memory;
	struct sl_credit credit;
	uint32_t grants; /* on their way */
	bool failed;	 /* the queue takes nothing more */
	_Atomic uint64_t reported;
	uint64_t heard, heard_ns; /* sequences it says it sent, not yet acted upon; since when */
};

struct sl_verbs_staged { /* a work request: what its completion gives back */
	uint64_t head, position;
};

struct sl_verbs_out { /* a transfer, sending */
	struct sl_verbs_queue *queue;
	unsigned nic;
	struct sl_offer offer;
	struct sl_plan plan;
	struct sl_region memory; /* a page with the credit word, then the staged blocks */
	struct sl_verbs_memory word, staging;
	_Atomic uint64_t *credit; /* the peer's NIC writes it */
	uint64_t granted;
	/* Staged bytes, free-running: those from tail to head are the NIC's. */
	uint8_t *stage;
	uint64_t stage_bytes, head, tail;
	struct sl_verbs_staged work[SL_VERBS_SENDS];
	uint32_t posted, completed; /* work requests, free-running */
	uint64_t done;		    /* position up to which all is out (UC) or there (RC) */
	int error;		    /* why the connection failed */
};

struct sl_verbs_link {
	/* options */
	char listen[256], source[256], nic_names[128];
	uint32_t poll, traffic_class, timeout, retry, rnr_retry, min_rnr_timer;
	/* state */
	struct sl_link_env env;
	struct sl_verbs_nic *nic[SL_VERBS_DEVICES];
	struct sl_verbs_memory ring[SL_VERBS_DEVICES]; /* receiving: the ring, as each calls it */
	unsigned nics, turn;
	uint64_t opened_seen; /* slots when credits were last looked at */
	struct sl_look look;
	uint32_t ins, outs;
	struct sl_verbs_in *in;	  /* [SL_VERBS_TRANSFERS] */
	struct sl_verbs_out *out; /* [SL_VERBS_TRANSFERS] */
};

/* connect.c */
int sl_verbs_link_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan);
int sl_verbs_link_offer(void *state, struct sl_offer *offer);
int sl_verbs_link_connect(void *state, const struct sl_plan *plan);
void sl_verbs_in_close(struct sl_verbs_in *in);
void sl_verbs_out_close(struct sl_verbs_out *out);

/* receive.c */
int sl_verbs_link_poll(void *state, unsigned poller, unsigned budget);
int sl_verbs_wait_receive(struct sl_verbs_link *link, uint32_t timeout_us);

/* send.c */
int sl_verbs_link_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n);
uint64_t sl_verbs_link_reap(void *state, uint16_t transfer);
int sl_verbs_wait_send(void *state, uint32_t timeout_us);

#endif
