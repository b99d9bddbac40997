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
 *            then is silent for silence_ms is gone, and so is one of which nothing came for
 *            first_ms after the start.
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
#include "core/control.h"

enum { SL_FEROCE_SEATS = 64 };

struct sl_feroce_options {
	uint32_t modules;
	uint16_t port; /* where we hear */
	uint64_t block_bytes;
	bool bare; /* blocks come without a record */
	uint64_t frames;
	struct sl_darks darks;
	uint32_t first_ms;   /* from the start to its first packet; 0: any time */
	uint32_t silence_ms; /* afterwards; 0: a front end may be silent for ever */
	uint32_t devices;
	uint32_t device[SL_FEROCE_SEATS]; /* to be asked: IPv4, host order */
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
	struct sl_progress seen;
	uint64_t failed_ns; /* when its connection was seen to have failed; 0: it has not */
	struct sl_watch watch;
};

struct sl_feroce_host {
	struct sl_feroce_options options;
	const struct sl_control_ops *ops;
	void *arg;
	sl_feroce_send *send;
	void *send_arg;
	bool started, stopping;
	bool safe;		       /* what front ends sent is safe: they may be let go */
	unsigned told;		       /* how often that somebody cannot be served */
	uint64_t malformed, misplaced; /* messages: not understood; not expected, or not ours */
	struct sl_feroce_seat seat[SL_FEROCE_SEATS];
};

void sl_feroce_host_init(struct sl_feroce_host *host, const struct sl_feroce_options *options,
			 const struct sl_control_ops *ops, void *arg, sl_feroce_send *send,
			 void *send_arg);

/* A datagram from that address. */
void sl_feroce_host_hear(struct sl_feroce_host *host, uint32_t ip, const void *data, size_t bytes);

/* From time to time: asks, notices ends and silence. */
void sl_feroce_host_tick(struct sl_feroce_host *host, uint64_t now_ns);

uint32_t sl_feroce_host_planned(const struct sl_feroce_host *host); /* modules that are connected */

void sl_feroce_host_start(struct sl_feroce_host *host);
/* Open no more slots: a front end that has filled those that are open, or rests, is let go. */
void sl_feroce_host_stop(struct sl_feroce_host *host);
void sl_feroce_host_abandon(struct sl_feroce_host *host); /* front ends that still run are lost */
/* What front ends sent is safe: those that have ended are told so with CLOSE, up to three times. */
void sl_feroce_host_bye(struct sl_feroce_host *host);
bool sl_feroce_host_leaving(const struct sl_feroce_host *host); /* a CLOSE has no answer yet */
/* The last CLOSE, to every front end that has not answered one. */
void sl_feroce_host_dismiss(struct sl_feroce_host *host);

/* host.c, for watch.c. */
uint32_t sl_feroce_host_module(const struct sl_feroce_host *host,
			       const struct sl_feroce_seat *seat);
void sl_feroce_host_say(struct sl_feroce_host *host, const struct sl_feroce_seat *seat,
			enum sl_feroce_request request, enum sl_feroce_answer ack);
int sl_feroce_host_plan(struct sl_feroce_host *host, struct sl_feroce_seat *seat, char *why,
			size_t why_bytes);
void sl_feroce_host_end(struct sl_feroce_host *host, struct sl_feroce_seat *seat);
void sl_feroce_host_turn_away(struct sl_feroce_host *host, uint32_t ip, const char *why);

#endif
