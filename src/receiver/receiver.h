/* receiver.h - the receiving side of an experiment: ring, link, assembler, unit, sinks, and their
 * threads.
 *
 * Model:     link --cells--> dispatcher --batches--> workers --batches--> dispatcher --> settler
 *            (places)        (assembles)             (stages)                     (sinks, ledger)
 *
 *            Every sequence becomes a frame and reaches the settler in order, whole or not; there,
 *            and only there, outcomes are written. Frames come from a pool: when sinks are slow the
 *            pool runs dry, slots stay closed, credits stop, and the source waits. Nothing is
 *            dropped for want of room.
 * Order:     open, accept per module, start, count/gone as the source reports, until done; finish;
 *            close.
 * Threads:   all calls on the control thread; counters may be read at any time.
 * Ownership: borrows the experiment. */
#ifndef SL_RECEIVER_RECEIVER_H
#define SL_RECEIVER_RECEIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/env.h>
#include <sluice/outcome.h>

#include "base/bell.h"
#include "base/histogram.h"
#include "base/queue.h"
#include "base/thread.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "feedback/sender.h"
#include "receiver/assemble/assembler.h"
#include "receiver/calibration.h"
#include "receiver/chain.h"
#include "receiver/handover.h"
#include "receiver/pool.h"

/* Between hops. Wire and total need a clock that source and receiver share. */
enum sl_latency {
	SL_LATENCY_WIRE,     /* source began to send -> last event */
	SL_LATENCY_ASSEMBLE, /* -> frame given out */
	SL_LATENCY_PROCESS,  /* -> unit gave it back */
	SL_LATENCY_SINK,     /* -> last sink returned */
	SL_LATENCY_TOTAL,    /* source began to send -> last sink returned */
	SL_LATENCY_DECISION, /* source began to send -> unit gave it back; with a deadline */
	SL_LATENCIES,
};
const char *sl_latency_name(enum sl_latency latency);

enum sl_source_state {
	SL_SOURCE_RUNNING,
	SL_SOURCE_DONE,	 /* and said how much it sent */
	SL_SOURCE_ENDED, /* and did not: what was seen of it counts */
	SL_SOURCE_GONE,
	SL_SOURCE_RETURNING, /* another one wants to go on in its place */
};

/* What the front end of one module last said. */
struct sl_source_status {
	_Atomic uint64_t next;
	_Atomic uint32_t state; /* enum sl_source_state; released after next */
	/* The dispatcher knows where it ended: `end`, and has not heard of another. */
	_Atomic uint32_t settled;
	uint64_t end;
	uint64_t first_frame; /* of who returns */
	uint32_t returns;     /* how often another one took over */
	bool dropped;	      /* its queue takes nothing more; pollers then: */
	struct sl_grace left;
	uint64_t first_sequence;
	uint16_t transfer;
	bool accepted;
	bool open_loop;	  /* it takes no credits */
	bool cut;	  /* it goes on, and nobody listens: what was whole by then counts */
	uint64_t offered; /* frames; 0: unknown */
	uint64_t first;	  /* sequence with which this run begins */
	struct sl_offer offer;
	struct sl_plan plan;
	/* The dispatcher's. Proven: 1 + the highest sequence whose record arrived. */
	uint64_t proven;
	uint64_t last_frame; /* that one's number */
	uint64_t reached;    /* when last looked at */
	uint64_t quiet_since_ns, quiet_idle;
	bool cleared; /* nothing was left of it when one that went with it was taken again */
	/* Under way when the source vanished; 0 packets: none. Read after the pipeline is done. */
	uint64_t unfinished_sequence, unfinished_packets;
};

struct sl_pending_span { /* accepted by all sinks, not yet safe: consecutive sequences, of a kind */
	uint64_t first, count;
	uint32_t module;
	bool sample; /* of the rejected */
};

struct sl_gauge { /* how full something is: now, and at most so far */
	_Atomic uint64_t now, most;
};

struct sl_receiver {
	struct sl_experiment *experiment;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	struct sl_calibrated calibrated;
	struct sl_env env;
	struct sl_feedback_senders feedback;
	char guard[64];
	bool detector_open, link_open, unit_open, started;
	bool outcomes_failed;
	_Atomic bool same_clock; /* source and receiver share a host */
	unsigned sinks_open;

	struct sl_placement placement;
	int ring_node;	 /* where its memory lies; -1: there is one node, or it cannot be told */
	bool outlives;	 /* memory and sockets may outlive the process */
	bool taken_over; /* and another process had them before */
	const struct sl_handover *handover_from; /* while it begins; NULL: of nobody */
	struct sl_region notes;			 /* for who comes after */

	uint32_t plans; /* that were made or taken over so far */
	struct sl_region region;
	struct sl_ring ring;
	struct sl_assembler assembler;
	struct sl_link_counters counters;
	unsigned pollers; /* threads of the link */
	struct sl_wake wake[SL_POLLERS];
	_Atomic uint64_t link_idle[SL_POLLERS]; /* how often it found nothing to take */
	_Atomic uint64_t limit;			/* no slot is opened from this sequence on */
	_Atomic uint32_t stop_link, stop_workers, dispatched, settled;
	_Atomic uint32_t abandon; /* a start that failed half-way: end without an account */

	struct sl_chain_build build;
	struct sl_pool pool;
	struct sl_pool dropped; /* ring.overrun drop_oldest: frames that carry outcomes only */
	void *fill;		/* ring.incomplete keep: the pixels of a missing module */
	/* Slots of the fullest module; frames from the assembler to the settler; from there on. */
	struct sl_gauge slots_used, at_unit, at_sinks;
	unsigned workers;
	struct sl_batch *batches; /* [n_batches] */
	uint32_t n_batches;
	struct sl_queue to_settle;
	struct sl_bell events;	 /* dispatcher: cells, finished batches, frames that came back */
	struct sl_bell todo;	 /* workers */
	struct sl_bell settling; /* settler */

	struct sl_ledger ledger;
	bool overrun; /* the run ends because a source found no room (ring.overrun stop) */
	struct sl_source_status source[SL_ASSEMBLER_MODULES];
	struct sl_histogram latency[SL_LATENCIES];
	/* Settled so far; partial: kept by policy although modules are missing; prescaled: of the
	 * kept, as a sample of the rejected; bytes of whole modules in frames that went on. */
	_Atomic uint64_t frames, kept, broken, partial, prescaled, bytes;
	_Atomic uint64_t late;	    /* frames whose verdict came after unit.deadline_us */
	_Atomic uint64_t busy_ns;   /* of all workers together */
	uint64_t first_ns, last_ns; /* settler's: of the first and last frame */

	FILE *outcomes; /* a line per module-frame, where asked for */
	struct sl_pending_span *pending;
	size_t pending_spans, pending_room;
	size_t pending_last[SL_ASSEMBLER_MODULES]; /* 1 + the module's newest run; 0: none */
	int sink_error[SL_EXPERIMENT_SINKS];

	struct sl_thread link_thread[SL_POLLERS], dispatch_thread, settle_thread;
	struct sl_thread worker_thread[64];
	struct sl_worker_arg {
		struct sl_receiver *receiver;
		unsigned index;
	} worker_arg[64], link_arg[SL_POLLERS];
};

int sl_receiver_open(struct sl_experiment *experiment, const char *outcomes_path,
		     struct sl_receiver **receiver);

/* In a run, for a module whose source has ended: -EAGAIN until everything that the one before sent
 * is accounted for. */
int sl_receiver_accept(struct sl_receiver *receiver, const struct sl_offer *offer, bool same_host,
		       struct sl_plan *plan, char *why, size_t why_bytes);
void sl_receiver_cancel_plan(struct sl_receiver *receiver, uint16_t transfer);

/* Who offered a module in a run has left before it was accepted. */
void sl_receiver_cancel_offer(struct sl_receiver *receiver, uint32_t module);

/* The queue pair of a source whose offer could not name it. */
int sl_receiver_meet(struct sl_receiver *receiver, uint16_t transfer, uint32_t qpn);

/* Before START is told to the front ends: credits must be on their way. */
int sl_receiver_start(struct sl_receiver *receiver);
void sl_receiver_log(const struct sl_receiver *receiver); /* log where it runs, what it was given */
void sl_receiver_serve(struct sl_receiver *receiver);	  /* now and then: the link's slow things */

/* -EPROTO, with the reason in `why`: a count that cannot be true. Nothing is changed then. */
int sl_receiver_count(struct sl_receiver *receiver, uint32_t module, uint64_t next, uint64_t sent,
		      uint64_t position, bool final, char *why, size_t why_bytes);
void sl_receiver_source_lost(struct sl_receiver *receiver, uint32_t module);

/* For sources that cannot count. No slot is opened from this sequence on, but for those that are
 * open already: a source that is not told so is held back there. */
void sl_receiver_limit(struct sl_receiver *receiver, uint64_t sequence);

/* The source has ended. Once its lane is quiet, what was seen of it is what it sent. */
void sl_receiver_end(struct sl_receiver *receiver, uint32_t module);

/* The same of one that goes on sending and cannot be held back: it is listened to no more, and what
 * came whole is what it sent. */
void sl_receiver_cut(struct sl_receiver *receiver, uint32_t module);

/* How far a source has come that does not say so itself. */
struct sl_receiver_progress {
	uint64_t reached; /* 1 + the highest sequence of which anything arrived */
	uint32_t packets; /* of that sequence */
	uint64_t opened;  /* sequences below it have or had a slot */
	uint64_t idle;	  /* how often the link looked and found nothing */
};
void sl_receiver_progress(const struct sl_receiver *receiver, uint32_t module,
			  struct sl_receiver_progress *progress);

/* How often the link looked and found nothing: the poller that did so least. */
uint64_t sl_receiver_idle(const struct sl_receiver *receiver);

/* Module-frames that found no room. */
uint64_t sl_receiver_turned_away(const struct sl_receiver *receiver);

bool sl_receiver_done(const struct sl_receiver *receiver); /* every frame has been settled */

/* Stop threads, close sinks, resolve what was pending. 0, or the first sink's error. */
int sl_receiver_finish(struct sl_receiver *receiver);
void sl_receiver_close(struct sl_receiver *receiver);

/* threads.c: wait until all have ended. */
void sl_receiver_join(struct sl_receiver *receiver);
/* handover.c: memory for the ring. */
int sl_receiver_open_memory(struct sl_receiver *receiver, uint64_t bytes);

/* dispatch.c and settle.c: thread bodies. */
void *sl_dispatcher_main(void *receiver);

/* ends.c, on the dispatcher's thread: look which modules have ended, and which go on with another
 * source. */
void sl_ends_check(struct sl_receiver *receiver);

/* rejoin.c: a module whose source has ended, and another comes: before link->accept(), after it. */
int sl_rejoin_begin(struct sl_receiver *receiver, uint32_t module, uint64_t first_frame, char *why,
		    size_t why_bytes);
void sl_rejoin_end(struct sl_receiver *receiver, uint32_t module);
void sl_rejoin_drop(struct sl_receiver *receiver, uint32_t module); /* its queue */
void *sl_settler_main(void *receiver);
void sl_settle_pending(struct sl_receiver *receiver, enum sl_outcome outcome, enum sl_cause cause);

#endif
