/* host.h - the receiver's end of FEROCE connections: requests in, answers out, no sockets.
 *
 * Model:     each module that comes from a FEROCE front end has a seat. A front end that asks
 *            (OPEN) gets the next free one; front ends that wait to be asked are named in
 *            `device` and asked in that order. Either becomes an offer, and the plan's queue, PSN,
 *            key and address are what the front end is told:
 *
 *              FREE --OPEN/answer--> OPEN --start--> RUNNING (--stop--> STOPPING) --> OVER
 *
 *            A front end says nothing while it sends, so how far it has come is what was seen of
 *            it. It is over when all frames of the run are there, when it closes, or, after a stop,
 *            when it has filled the slots that were open or rests. A front end that has begun and
 *            then is silent for silence_ms is gone.
 *            Answers can be lost, so requests come again and get the same answer; but after its
 *            first data an OPEN is not answered: it would be a front end that starts over at the
 *            first PSN, and what it then sent would look like packets that had been received. An
 *            OPEN that cannot be served is not answered either: the published core takes NO_QP
 *            for a yes and loses a queue number over the other refusals, and asks again anyhow.
 * Threads:   one, the control thread; callbacks run there.
 * Ownership: the caller's memory; borrows options, ops and what they point to.
 * Errors:    what strangers send is counted and does nothing. */
#ifndef SL_CONTROL_FEROCE_HOST_H
#define SL_CONTROL_FEROCE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "control/feroce/wire.h"
#include "core/plan.h"

enum { SL_FEROCE_SEATS = 64 };

struct sl_feroce_seen {	  /* of one module */
	uint64_t reached; /* 1 + the highest sequence of which anything arrived */
	uint32_t packets; /* of that sequence */
	uint64_t opened;  /* sequences below it have or had a slot to go to */
	uint64_t idle;	  /* how often the link looked and found nothing */
};

struct sl_feroce_options {
	uint32_t modules;
	uint16_t port; /* where we hear */
	uint64_t block_bytes;
	bool bare; /* blocks come without a record */
	uint64_t frames;
	struct sl_darks darks;
	uint32_t silence_ms; /* 0: a front end may be silent for ever */
	uint32_t devices;
	uint32_t device[SL_FEROCE_SEATS]; /* to be asked: IPv4, host order */
};

struct sl_feroce_ops {
	/* Answer an offer; on error say why in `why`. */
	int (*accept)(void *arg, const struct sl_offer *offer, struct sl_plan *plan, char *why,
		      size_t why_bytes);
	/* The queue pair of a front end that was asked: known only now. */
	int (*meet)(void *arg, uint16_t transfer, uint32_t qpn);
	void (*seen)(void *arg, uint32_t module, struct sl_feroce_seen *seen);
	/* All `next` frames of it are there. */
	int (*count)(void *arg, uint32_t module, uint64_t next, char *why, size_t why_bytes);
	void (*end)(void *arg, uint32_t module); /* it ended: what was seen of it counts */
	void (*cancel_plan)(void *arg, uint16_t transfer); /* the front end left before the start */
	void (*source_lost)(void *arg, uint32_t module);   /* it vanished */
};

/* What goes to a front end at that address and port. */
typedef void sl_feroce_send(void *arg, uint32_t ip, uint16_t port,
			    const struct sl_feroce_message *message);

enum sl_feroce_phase {
	SL_FEROCE_SEAT_FREE,
	SL_FEROCE_SEAT_ASKED, /* we sent an OPEN */
	SL_FEROCE_SEAT_OPEN,
	SL_FEROCE_SEAT_RUNNING,
	SL_FEROCE_SEAT_STOPPING,
	SL_FEROCE_SEAT_OVER,
};

struct sl_feroce_seat {
	enum sl_feroce_phase phase;
	bool asked;	   /* we opened it, not the front end */
	bool held;	   /* its answer waits for the start */
	bool closed;	   /* the front end knows that it is over */
	bool told;	   /* that nothing comes of it */
	unsigned tries;	   /* CLOSE requests sent */
	uint64_t asked_ns; /* when we last sent a request */
	uint32_t ip;
	uint16_t port;		      /* where the front end hears */
	struct sl_feroce_queue queue; /* the front end's */
	struct sl_plan plan;
	struct sl_feroce_seen seen;
	uint64_t quiet_ns, quiet_idle; /* since when nothing came */
};

struct sl_feroce_host {
	struct sl_feroce_options options;
	const struct sl_feroce_ops *ops;
	void *arg;
	sl_feroce_send *send;
	void *send_arg;
	bool started;
	unsigned told;		       /* how often that somebody cannot be served */
	uint64_t malformed, misplaced; /* messages: not understood; not expected, or not ours */
	struct sl_feroce_seat seat[SL_FEROCE_SEATS];
};

void sl_feroce_host_init(struct sl_feroce_host *host, const struct sl_feroce_options *options,
			 const struct sl_feroce_ops *ops, void *arg, sl_feroce_send *send,
			 void *send_arg);

/* A datagram from that address. */
void sl_feroce_host_hear(struct sl_feroce_host *host, uint32_t ip, const void *data, size_t bytes);

/* From time to time: asks, notices ends and silence. */
void sl_feroce_host_tick(struct sl_feroce_host *host, uint64_t now_ns);

uint32_t sl_feroce_host_planned(const struct sl_feroce_host *host); /* modules that are connected */

void sl_feroce_host_start(struct sl_feroce_host *host);
/* No slots will be opened from now on: who fills them or rests is let go. */
void sl_feroce_host_stop(struct sl_feroce_host *host);
void sl_feroce_host_abandon(struct sl_feroce_host *host); /* who still runs is gone */
void sl_feroce_host_bye(struct sl_feroce_host *host);	  /* once more, to who may not know */

/* host.c, for watch.c. */
uint32_t sl_feroce_host_module(const struct sl_feroce_host *host,
			       const struct sl_feroce_seat *seat);
void sl_feroce_host_say(struct sl_feroce_host *host, const struct sl_feroce_seat *seat,
			enum sl_feroce_request request, enum sl_feroce_answer ack);
int sl_feroce_host_plan(struct sl_feroce_host *host, struct sl_feroce_seat *seat, char *why,
			size_t why_bytes);
void sl_feroce_host_turn_away(struct sl_feroce_host *host, uint32_t ip, const char *why);

#endif
