/* private.h - the receiver inside, for the files of this folder and its tests.
 *
 * Threads:   each member's owner is named with it: the control thread, the dispatcher, the settler,
 *            link and worker threads. What any thread may read for a status is atomic. */
#ifndef SL_RECEIVER_PRIVATE_H
#define SL_RECEIVER_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/env.h>
#include <sluice/outcome.h>
#include <sluice/status.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/queue.h"
#include "base/thread.h"
#include "core/ledger.h"
#include "core/watch.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "feedback/sender.h"
#include "receiver/assemble/assembler.h"
#include "receiver/calibration.h"
#include "receiver/chain.h"
#include "receiver/feed.h"
#include "receiver/handover.h"
#include "receiver/pool.h"
#include "receiver/receiver.h"
#include "receiver/sink_pace.h"

/* One module's source: what it last said, and how far it was seen to come. */
struct sl_source {
	_Atomic uint64_t next;
	_Atomic uint32_t state; /* enum sl_source_state; released after next */
	/* The dispatcher knows where it ended: `end`, and has not heard of another. */
	_Atomic uint32_t settled;
	uint64_t end;
	uint64_t first_frame;	  /* of a source that returns */
	_Atomic uint64_t returns; /* how often another one took over */
	bool dropped;		  /* its queue takes nothing more; pollers then: */
	struct sl_grace left;
	uint64_t first_sequence;
	uint16_t transfer;
	_Atomic bool accepted;
	bool open_loop;	       /* it takes no credits */
	_Atomic bool can_wait; /* it takes credits, or is told to come again */
	bool cut; /* it goes on and is not listened to: what was whole by then counts */
	_Atomic uint64_t offered;     /* the sequence after the last that it offered; 0: unknown */
	_Atomic uint64_t final_frame; /* the number of that last frame */
	_Atomic uint64_t first;	      /* sequence with which this run begins */
	struct sl_offer offer;
	struct sl_plan plan;
	/* The dispatcher's. Proven: 1 + the highest sequence whose record arrived. */
	_Atomic uint64_t proven;
	_Atomic uint64_t last_frame; /* that one's number */
	struct sl_watch drain;	     /* once it has ended */
	bool cleared; /* nothing was left of it when one that went with it was taken again */
	/* Under way when the source vanished; 0 packets: none. */
	_Atomic uint64_t unfinished_sequence, unfinished_packets;
};

struct sl_pending_span { /* accepted by all sinks, not yet safe: consecutive sequences, of a kind */
	uint64_t first, count;
	uint32_t module;
	bool sample; /* of the rejected */
};

struct sl_gauge { /* how full something is: now, and at most so far */
	_Atomic uint64_t now, most;
};

struct sl_totals { /* of all frames; the settler's (base/sequence.h) */
	_Atomic uint32_t sequence;
	/* Settled so far; partial: kept by policy although modules are missing; prescaled: of the
	 * kept, as a sample of the rejected; late: their verdict came after unit.deadline_us; bytes
	 * of whole modules in frames that went on; times of the first and the last. */
	_Atomic uint64_t frames, kept, broken, partial, prescaled, late, bytes, first_ns, last_ns;
	/* Marked dark; dark by the options of the detector; with the number of the one before. */
	_Atomic uint64_t dark, dark_expected, repeated;
	_Atomic uint64_t next; /* 1 + the sequence of the last one */
	uint64_t number;       /* of the last one, plus 1 */
};

/* What an add-on counts, as its own thread last copied it: figures() must not run beside put() or
 * work(). */
struct sl_figures {
	char where[SL_STATUS_PATH];
	uint64_t taken_ns;
	uint64_t durable; /* as the sink's durable() says */
	uint32_t figures, left_out, failures_left_out;
	uint32_t texts, texts_left_out, unused;
	struct sl_status_figure figure[32];
	struct sl_status_text text[4];
};
enum { SL_FIGURES_WORDS = sizeof(struct sl_figures) / 8, SL_FIGURES_NS = 250 * 1000 * 1000 };
_Static_assert(sizeof(struct sl_figures) % 8 == 0, "it is copied word by word");

/* When a thread last came round its loop (sl_status_progress); alone on its cache line. */
struct sl_turn {
	_Alignas(64) _Atomic uint64_t at_ns;
};
enum {
	SL_TURN_DISPATCHER = SL_POLLERS,
	SL_TURN_SETTLER,
	SL_TURN_WORKERS,
	SL_TURN_SINKS = SL_TURN_WORKERS + 64,
	SL_TURNS = SL_TURN_SINKS + SL_EXPERIMENT_SINKS
};
_Static_assert((int)SL_TURNS <= (int)SL_STATUS_PROGRESS, "status has a place for each thread");

/* Written once in a tick of the kernel, so that it costs next to nothing. */
static inline void sl_turn_note(struct sl_turn *turn)
{
	uint64_t now = sl_clock_coarse_ns();

	if (atomic_load_explicit(&turn->at_ns, memory_order_relaxed) != now)
		atomic_store_explicit(&turn->at_ns, now, memory_order_relaxed);
}

/* How often a poller found nothing to take; alone on its cache line. */
struct sl_link_idle {
	_Alignas(64) _Atomic uint64_t polls;
};

struct sl_figures_board {
	_Atomic uint32_t sequence;
	_Atomic uint64_t word[SL_FIGURES_WORDS];
	uint64_t taken_ns; /* its own thread's */
};

struct sl_sink_thread { /* of a sink that asks for one (sink_threads.c) */
	struct sl_receiver *receiver;
	unsigned sink;
	bool wanted;
	bool drops;		/* on_slow: drop */
	struct sl_queue frames; /* struct sl_flow_frame, from the settler */
	struct sl_bell bell;	/* also: a worker has prepared a frame */
	_Atomic uint32_t stop;
	struct sl_thread thread;

	/* Frame number n of this sink is in slot n % slots: the sink's thread takes it from the
	 * queue, a worker begins it, the sink's thread puts it. `taken` and `begun` are guarded by
	 * `lock`; only the sink's thread changes `taken` and knows `done`. */
	unsigned workers, slots;
	struct sl_thread worker[SL_SINK_WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t work;
	uint64_t taken, begun, done;
	bool end; /* guarded by lock: no more frames come */
	struct sl_sink_job {
		struct sl_flow_frame *flow;
		_Atomic bool ready; /* released by a worker, acquired by the sink's thread */
	} job[2 * SL_SINK_WORKERS + 1];

	/* When the put() that is under way began, 0: none is; puts that took longer than stall_ns,
	 * and the longest one. */
	_Atomic uint64_t putting_since_ns, stalls, longest_ns;
	uint64_t stall_ns, tell_ns; /* tests shorten them before the thread starts */
	struct sl_sink_pace pace;
	uint64_t idle_ns; /* when idle() was last called */
	uint64_t told_ns; /* the settler's: of the stall that was logged last */
};

/* A put() that takes longer is counted as a stall; one that takes this long is logged while it
 * lasts. */
#define SL_STALL_NS	 UINT64_C(1000000000)
#define SL_STALL_TELL_NS (5 * SL_STALL_NS)

/* Copies of frames without results: of those that were dropped in a row, one for each number; of
 * those that a slow sink is not given. The sinks' threads get them. */
enum { SL_STAND_INS = 64, SL_STAND_INS_PRESCALE = 1024 };

/* Frames that sinks' threads still have, and that another frame of the same sequence is settled in
 * place of. In the order of their sequences; the settler's. */
struct sl_lent {
	struct sl_queue frames;
	struct sl_flow_frame *oldest;
};

/* Two parts. The first stays from run to run of a session (again.c): what is slow to make and the
 * same for every run. The second begins with zeros for each run. */
/* Of the disks that sinks write to (forecast.c). */
struct sl_forecast {
	uint32_t n;
	dev_t device[SL_STATUS_DISKS];
	struct sl_status_disk disk[SL_STATUS_DISKS];
	uint64_t required_bytes[SL_STATUS_DISKS]; /* of one frame, of required sinks alone */
};

struct sl_receiver {
	struct sl_experiment *experiment;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	struct sl_calibrated calibrated;
	struct sl_env env; /* stages and the unit keep its address */
	char name[SL_EXPERIMENT_NAME];
	bool detector_open, unit_open;
	bool resting; /* between two runs: there is no second part */

	struct sl_placement placement;
	bool outlives;	 /* memory and sockets may outlive the process */
	bool taken_over; /* and another process had them before */
	const struct sl_handover
		*handover_from; /* while it begins; NULL: there was no receiver before */
	struct sl_region notes; /* for the receiver after this one */

	unsigned feeds;					    /* detectors */
	struct sl_env_detector other[SL_EXPERIMENT_OTHERS]; /* for env */
	uint32_t modules;				    /* of all of them */
	struct sl_feed_memory memory[SL_FEEDS];
	unsigned pollers; /* threads of the link */
	struct sl_wake wake[SL_POLLERS];
	struct sl_flight_tap *flight; /* [pollers]; NULL: no packet is sampled */

	struct sl_chain_build build;
	struct sl_pool pool;
	uint32_t drop_frames; /* of the pool, for each sink that drops frames (on_slow) */
	uint32_t drop_sinks;
	struct sl_pool dropped; /* ring.overrun drop_oldest: frames that carry outcomes only */
	unsigned workers;
	struct sl_batch *batches; /* [n_batches] */
	uint32_t n_batches;
	struct sl_queue to_settle;
	/* Pollers ring the first for every module-frame, workers read the second for every item:
	 * each on a cache line of its own. */
	_Alignas(64) struct sl_bell events; /* dispatcher: cells, batches, frames that came back */
	_Alignas(64) struct sl_bell todo;   /* workers */
	_Alignas(64) struct sl_bell settling;		  /* settler */
	_Alignas(64) struct sl_feedback_senders feedback; /* at the address that env names */
	_Atomic bool same_clock; /* source and receiver share a host; likewise */

	/* ---- of one run: zeros at its beginning; `guard` is the first member ---- */
	char guard[64];
	bool started;
	_Atomic bool outcomes_failed;
	_Atomic uint32_t state; /* enum sl_state */
	unsigned sinks_open;
	struct sl_forecast forecast;
	uint32_t plans; /* that were made or taken over so far */
	struct sl_feed feed[SL_FEEDS];
	struct sl_feed *of[SL_ASSEMBLER_MODULES]; /* the feed of each module */
	struct sl_join join;			  /* of the feeds, where there are several */
	bool all_enforced; /* no link lets a source write where it was not granted */
	_Alignas(64) struct sl_link_counters counters;
	struct sl_link_idle link_idle[SL_POLLERS];
	_Alignas(64) _Atomic bool pause; /* wanted, from this sequence on; 0: from the next: */
	_Atomic uint64_t pause_at;
	/* The pause_at of which the dispatcher made the pause_limit of feeds. */
	_Atomic uint64_t pause_seen;
	/* Read by every turn of pollers and workers, written once. */
	_Alignas(64) _Atomic uint32_t stop_link, stop_workers, dispatched, settled;
	_Atomic uint32_t abandon; /* a start that failed half-way: end without an account */

	/* Written for every frame: slots of the fullest module; frames from the assembler to the
	 * settler; from there on. */
	_Alignas(64) struct sl_gauge slots_used, at_unit, at_sinks;

	struct sl_ledger ledger;
	bool all_began;		   /* the dispatcher's: every source has, or has ended */
	_Atomic uint64_t awaited;  /* a bit for each module that the others are held for */
	uint64_t awaited_since_ns; /* the control thread's; 0: not told, or told already */
	_Atomic bool overrun; /* the run ends because a source found no room (ring.overrun stop) */
	_Atomic uint64_t expected; /* frames */
	struct sl_source source[SL_ASSEMBLER_MODULES];
	struct sl_histogram latency[SL_LATENCIES];
	struct sl_totals totals;
	_Atomic uint64_t busy_ns; /* of all workers together */
	struct sl_figures_board unit_figures, sink_figures[SL_EXPERIMENT_SINKS];

	struct sl_status at_end; /* for sinks, when they close */
	FILE *outcomes;		 /* a line per module-frame, where asked for */
	char *outcomes_path;	 /* while that is open */
	uint64_t outcomes_bytes; /* written to it */
	FILE *spilled; /* spans that memory has no room for, struct sl_pending_span each */
	struct sl_pending_span *pending;
	size_t pending_spans, pending_room;
	size_t pending_last[SL_ASSEMBLER_MODULES];   /* 1 + the module's newest run; 0: none */
	uint32_t sink_wants[SL_EXPERIMENT_SINKS];    /* enum sl_wants */
	_Atomic int sink_error[SL_EXPERIMENT_SINKS]; /* the first of each */
	bool sink_optional[SL_EXPERIMENT_SINKS];     /* it is not required */
	_Atomic bool safe; /* required sinks are closed, and what they accepted is safe */

	struct sl_sink_thread sink_thread[SL_EXPERIMENT_SINKS];
	bool sink_threads; /* there is one */
	uint32_t prompt;   /* a bit for each sink that is given frames by the dispatcher */
	struct sl_dispatcher *dispatcher;
	/* The settler's: frames at sinks, in sequence order, and the one before these. */
	struct sl_queue in_flight;
	struct sl_flow_frame *oldest;
	struct sl_pool stand_ins;
	struct sl_lent lent, lent_stand_ins;
	struct sl_flow_frame **lingering; /* settled, and still at sinks that drop frames */
	uint32_t lingerings;

	/* sink_pace.c, the settler's: the first changes of a factor; 1 + the sink that ends the
	 * run. */
	struct sl_status_change change[SL_STATUS_CHANGES];
	_Atomic uint32_t changes, too_slow;

	struct sl_turn turn[SL_TURNS]; /* link threads, SL_TURN_DISPATCHER, ... */
	struct sl_thread link_thread[SL_POLLERS], dispatch_thread, settle_thread;
	struct sl_thread worker_thread[64];
	struct sl_worker_arg {
		struct sl_receiver *receiver;
		unsigned index;
	} worker_arg[64], link_arg[SL_POLLERS];
};

/* receiver.c: the steps of an opening that each run takes, in this order. */
int sl_receiver_open_ring(struct sl_receiver *receiver);
int sl_receiver_keep_links(struct sl_receiver *receiver); /* their options, before the first */
int sl_receiver_open_link(struct sl_receiver *receiver);
int sl_receiver_open_unit(struct sl_receiver *receiver);
int sl_receiver_open_outputs(struct sl_receiver *receiver, const char *outcomes_path);
void sl_receiver_close_unit(struct sl_receiver *receiver);
void sl_receiver_close_run(struct sl_receiver *receiver); /* the second part, and its threads */
void sl_receiver_begin_run(
	struct sl_receiver *receiver); /* second part: zeros, and what is not 0 */

/* sink_threads.c. The settler's: sinks (a bit each) with threads that want frames of this kind; a
 * frame to the threads of these sinks. */
uint32_t sl_sink_threads_for(const struct sl_receiver *receiver, uint32_t want);
void sl_sink_submit(struct sl_receiver *receiver, uint32_t sinks, struct sl_flow_frame *flow);
int sl_sink_threads_open(struct sl_receiver *receiver);
int sl_sink_threads_start(struct sl_receiver *receiver);
void sl_sink_threads_join(struct sl_receiver *receiver);
void sl_sink_threads_close(struct sl_receiver *receiver);
/* The settler's, now and then: log a sink that has been busy with one frame for long. */
void sl_sink_threads_watch(struct sl_receiver *receiver, uint64_t now_ns);
bool sl_sink_put(struct sl_receiver *receiver, unsigned sink, struct sl_frame *frame);

/* sink_pace.c. The settler's: one of these sinks (a bit each) would leave a frame out, and data can
 * still wait in the ring. */
bool sl_sink_pace_may_wait(const struct sl_receiver *receiver, uint32_t sinks);
/* The settler's: of these sinks (a bit each), those that are not given this kept frame; and
 * now and then, whether the run has to end because of one, and a message. */
uint32_t sl_sink_pace_decide(struct sl_receiver *receiver, uint32_t sinks, uint64_t sequence);
/* The settler's: likewise for a frame of any kind, by on_slow: drop. */
uint32_t sl_sink_pace_drop(struct sl_receiver *receiver, uint32_t sinks,
			   const struct sl_flow_frame *flow);
void sl_sink_pace_watch(struct sl_receiver *receiver, uint64_t now_ns);
/* What sinks do when they are slow, by their options. */
enum sl_on_slow sl_sink_pace_on_slow(const struct sl_receiver *receiver, unsigned sink);
/* Before the pool is made: frames that it has for sinks that drop frames, and for no other. */
uint32_t sl_sink_pace_drop_frames(struct sl_receiver *receiver);
/* The dispatcher's: for this time data waited for a frame of the pool, of which the unit had
 * at_unit. */
void sl_sink_pace_wait(struct sl_receiver *receiver, uint64_t ns, uint32_t at_unit);
void sl_sink_pace_status(const struct sl_receiver *receiver,
			 struct sl_status *status); /* any thread */

/* sources.c: how often the link looked and found nothing: the poller that did so least. */
uint64_t sl_receiver_idle(const struct sl_receiver *receiver);

/* threads.c: wait until all but the link threads have ended; then for those. Link threads answer
 * sources that repeat what was acknowledged, until the receiver closes. */
/* open_ring.c: its own detector's experiment, or that of another one. */
struct sl_experiment *sl_receiver_experiment(const struct sl_receiver *receiver, unsigned feed);
/* open_ring.c: the feed whose link this link thread polls. */
const struct sl_feed *sl_receiver_polled(const struct sl_receiver *receiver, unsigned poller);

/* accept.c: as receiver.h has them, of one detector and its own modules and transfers. */
int sl_feed_accept(struct sl_feed *feed, const struct sl_offer *offer, bool same_host,
		   struct sl_plan *plan, char *why, size_t why_bytes);
void sl_feed_cancel_plan(struct sl_feed *feed, uint16_t transfer);
int sl_feed_set_queue(struct sl_feed *feed, uint16_t transfer, uint32_t qpn);

void sl_receiver_join(struct sl_receiver *receiver);
void sl_receiver_join_link(struct sl_receiver *receiver);
/* handover.c: memory for the ring. */
int sl_receiver_open_memory(struct sl_receiver *receiver, uint64_t bytes);

/* dispatch.c. One look at everything that the dispatcher does; returns how much there was to do.
 * It goes on until the last frame has been handed on, or the run is abandoned; then end() tells the
 * settler. Open and close on the control thread. */
struct sl_dispatcher;
int sl_dispatcher_open(struct sl_receiver *receiver, struct sl_dispatcher **dispatcher);
bool sl_dispatcher_goes_on(const struct sl_dispatcher *dispatcher);
int sl_dispatcher_turn(struct sl_dispatcher *dispatcher);
void sl_dispatcher_end(struct sl_dispatcher *dispatcher);
void sl_dispatcher_close(struct sl_dispatcher *dispatcher); /* NULL: nothing */
/* Any thread: there may be something to do. */
void sl_dispatcher_wake(struct sl_receiver *receiver);

/* slots.c: open what is free; of the module that got most, how many. */
unsigned sl_slots_open(struct sl_receiver *receiver);

/* drop.c. The ring has hardly any room left; this frame is dropped, and its outcomes say so; and
 * whether b comes right after a and the row that follows it, and is alike. */
bool sl_drop_is_due(const struct sl_receiver *receiver);
void sl_drop(struct sl_frame *frame);
bool sl_drop_continues(const struct sl_flow_frame *a, const struct sl_frame *b);

/* decide.c. Kind and outcomes of a frame if the sinks do their part; calling it again changes
 * nothing. The dispatcher's: prompt sinks get the frame, and of a row that was dropped those frames
 * that they have not had yet. And the frame that comes `by` frames later in such a row. */
void sl_decide(struct sl_flow_frame *flow);
void sl_prompt_put(struct sl_receiver *receiver, struct sl_flow_frame *flow);
void sl_flow_step(struct sl_frame *frame, uint64_t by);

/* Thread bodies; settle.c has another. Packets of each queue in one poll, and how long a link
 * thread sleeps at most. */
enum { SL_POLL_BUDGET = 256, SL_LINK_WAIT_US = 2000 };
void *sl_dispatcher_main(void *receiver);
void *sl_together_main(void *link_arg); /* together.c */

/* ends.c, on the dispatcher's thread: look which modules have ended, and which go on with another
 * source. */
void sl_ends_check(struct sl_receiver *receiver);
/* begins.c, on the dispatcher's thread: whether the others wait for a module that has yet to
 * begin. */
void sl_begins_check(struct sl_receiver *receiver);
/* On the control thread: say so, once. */
void sl_begins_tell(struct sl_receiver *receiver, uint64_t now_ns);

/* rejoin.c: a module whose source has ended, and another comes: before link->accept(), after it. */
int sl_rejoin_begin(struct sl_receiver *receiver, uint32_t module, uint64_t first_frame, char *why,
		    size_t why_bytes);
void sl_rejoin_end(struct sl_receiver *receiver, uint32_t module);
void sl_rejoin_drop(struct sl_receiver *receiver, uint32_t module); /* its queue */
void *sl_settler_main(void *receiver);

/* outcomes.c: the outcome log, where one was asked for. The settler's. */
void sl_outcomes_log(struct sl_receiver *receiver, uint64_t sequence, uint32_t module,
		     enum sl_outcome outcome, enum sl_cause cause);
/* Accepted by sinks, and not yet safe. */
void sl_outcomes_pend(struct sl_receiver *receiver, uint64_t sequence, uint32_t module,
		      bool sample);
/* What was pending has this outcome, in the ledger and in the log. */
void sl_settle_pending(struct sl_receiver *receiver, enum sl_outcome outcome, enum sl_cause cause);
void sl_outcomes_end(struct sl_receiver *receiver); /* whole, and still under its name? */
void sl_outcomes_close(struct sl_receiver *receiver);

/* figures.c: copy what an add-on counts, on its own thread or while it has none. The calls with a
 * time do so if the last copy is old. */
/* The unit or a stage counts something. */
bool sl_figures_of_unit(const struct sl_receiver *receiver);
void sl_figures_take_unit(struct sl_receiver *receiver);
void sl_figures_take_sinks(struct sl_receiver *receiver);
void sl_figures_renew_unit(struct sl_receiver *receiver, uint64_t now_ns);
void sl_figures_renew_prompt(struct sl_receiver *receiver, uint64_t now_ns); /* the dispatcher's */
void sl_figures_renew_sinks(struct sl_receiver *receiver, uint64_t now_ns);  /* the settler's */
void sl_figures_renew_sink(struct sl_receiver *receiver, unsigned sink, uint64_t now_ns);
/* The add-ons of a status. Any thread. */
void sl_figures_status(const struct sl_receiver *receiver, struct sl_status *status);

/* ---- forecast.c ---- */
/* After the sinks are open. -ENOSPC, logged: not even one frame has room. */
int sl_forecast_make(struct sl_receiver *receiver);
void sl_forecast_status(const struct sl_receiver *receiver, struct sl_status *status);

#endif
