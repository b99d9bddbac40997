/* emulator.h - the detector side of an experiment: renders frames and sends them as the plans
 * say.
 *
 * Model:     data threads, the senders, divide the modules of this front end among them. A sender
 *            sends its modules interleaved, paced by frame rate and credit; all have one time base,
 *            so that the modules of a frame leave at the same moment. A sender shares nothing
 *            with another but the word that says which frames are begun: its link state (sockets),
 *            faults, pace and idle state are its own. Frame numbers go on over re-plans; sequences
 *            begin at 0 with each plan; the first dark_frames of each plan are dark, as a user
 *            would take them at the start of a run.
 * Order:     open; then per plan: plan_begin, offer and connect per module, start, (counts),
 *            stop or finished, plan_end; close.
 * Threads:   all calls on the control thread; counts may be read while it sends. */
#ifndef SL_EMULATOR_EMULATOR_H
#define SL_EMULATOR_EMULATOR_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/detector.h>

#include "base/thread.h"
#include "core/link.h"
#include "emulator/pace.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "feedback/listener.h"
#include "frontend/block.h"
#include "frontend/fault.h"
#include "frontend/transfer.h"

enum { SL_EMULATOR_DEPTH = 4 }; /* frames of a module that may be on their way */

struct sl_emulator_frame { /* stays as it is until the link has no more need of it */
	struct sl_block block;
	const void **frame;	/* [stack]: where its pixels lie */
	struct sl_write *write; /* [writes of a block] */
	uint8_t *buffer;	/* for frames that the detector does not keep */
	uint8_t *spoilt;	/* with faults: for a copy */
	uint64_t sequence;
	uint64_t position; /* where it ends in the stream; 0: it was never used */
	uint64_t skipped;  /* sequences before it that were */
};

struct sl_emulator_generator { /* gives whole frames, of which the transfer takes its part */
	const struct sl_detector *detector;
	void *state;
	struct sl_geometry geometry;
	uint32_t first_module; /* is module 0 here */
};

/* In sl_emulator.begun. */
enum { SL_EMULATOR_STOPPED = 1, SL_EMULATOR_RESTARTS = 2, SL_EMULATOR_FLAGS = 2 };

struct sl_emulator_module { /* one sender's */
	alignas(64) struct sl_plan plan;
	struct sl_emulator_frame frame[SL_EMULATOR_DEPTH];
	uint32_t writes, done; /* of the frame being sent */
	uint64_t begun;	       /* frames of this plan that were prepared or skipped */
	uint64_t skipped;
	bool gaps;	     /* each of those leaves one in the sequences */
	uint64_t end;	     /* of the last frame that was prepared, in the stream */
	uint64_t delayed_to; /* the frame that all else waits for before it goes on */
	struct sl_limit limit;
	/* Written in this order: read position first, next last. */
	_Atomic uint64_t next, sent, position;
};

struct sl_emulator;

struct sl_emulator_sender { /* a thread, and all that no other thread touches while it runs */
	alignas(64) struct sl_emulator *emulator;
	unsigned index;
	uint32_t first_module, end_module; /* that it sends */
	void *link_state;		   /* opened anew for each plan */
	bool link_open;
	struct sl_faults *faults; /* NULL: none are asked for */
	struct sl_pace pace;
	struct sl_idle idle;
	/* For any thread: since when nothing could be sent, for want of credit or of room in the
	 * link (0: it can), and how long that was before. */
	_Atomic uint64_t held_since_ns, held_ns;
	struct sl_thread thread;
};

struct sl_emulator {
	struct sl_experiment *experiment;
	struct sl_geometry geometry; /* of what is sent */
	struct sl_emulator_generator camera;
	struct sl_transfer transfer;
	struct sl_darks darks;
	FILE *fault_log;
	struct sl_emulator_counts *counts;     /* NULL: they are not asked for */
	struct sl_feedback_listener *feedback; /* NULL: nobody listens for them */
	bool detector_open;
	bool planned;			       /* between plan_begin and plan_end */
	const struct sl_link_sending *sending; /* of the experiment's link */
	void *link_options; /* the link's state as configured: each plan starts from it */

	uint64_t frame;	      /* begun so far, over all plans; counted when a plan ends */
	uint64_t bright_left; /* frames still to send, darks not counted; UINT64_MAX: without end */
	uint64_t first_frame, to_send; /* of this plan */
	uint64_t number_base;	       /* of frame 0, where the link's detectors count otherwise */
	bool restart;		       /* it is to go away, and has not yet */
	uint64_t restart_at; /* before this frame of the plan; UINT64_MAX: not in this one */
	bool joined; /* the detector was running before: its frame numbers say what is dark */

	struct sl_emulator_module *module; /* [modules] */
	uint32_t first_module, end_module; /* those that this front end has */
	unsigned senders;
	struct sl_emulator_sender *sender; /* [senders] */
	_Atomic uint32_t stop;		   /* 1: after this frame, 2: at once */
	_Atomic uint32_t finished;	   /* senders that have ended */
	_Atomic int error;
	_Atomic uint64_t faults[SL_FAULT_KINDS]; /* that were written down, over all plans */
	struct sl_link_counters counters;
	struct sl_pace
		pace; /* the time base of all senders; late: of all, when the plan has ended */
	struct sl_placement placement;
	/* Frames of this plan that some sender has begun, << SL_EMULATOR_FLAGS, and two flags. Stop
	 * was asked for: all senders end behind the same frame. A sender has come to the restart
	 * before that: all of them restart. Written once per frame. */
	alignas(64) _Atomic uint64_t begun;
};

/* For modules first..last of the experiment; UINT32_MAX: to the end. */
int sl_emulator_open(struct sl_experiment *experiment, uint32_t first, uint32_t last,
		     struct sl_emulator **emulator);
void sl_emulator_close(struct sl_emulator *emulator);

/* The detector runs already: in its first plan this front end takes part from this frame on. */
int sl_emulator_join(struct sl_emulator *emulator, uint64_t first_frame);

/* After a plan that ended with -ERESTART: where it comes back. -ENODATA: no frames are left. */
int sl_emulator_rejoin(struct sl_emulator *emulator);

/* Another run of the same session: frames, darks and faults begin as at first. */
void sl_emulator_again(struct sl_emulator *emulator);

/* Open the link afresh. */
int sl_emulator_plan_begin(struct sl_emulator *emulator);
int sl_emulator_offer(struct sl_emulator *emulator, uint32_t module, struct sl_offer *offer);
int sl_emulator_connect(struct sl_emulator *emulator, const struct sl_plan *plan);

/* Over a link that goes one way: both parts of the above are ours. */
int sl_emulator_assume(struct sl_emulator *emulator, uint32_t module);
int sl_emulator_start(struct sl_emulator *emulator);

/* Ask the senders to end: after the current frame, or at once when no receiver is left. */
void sl_emulator_stop(struct sl_emulator *emulator, bool at_once);
bool sl_emulator_finished(const struct sl_emulator *emulator);

/* Join the senders and close the link. -errno when sending failed: logged with what to do. */
int sl_emulator_plan_end(struct sl_emulator *emulator);

/* How long nothing could be sent in this plan and those before, summed over the senders; held: one
 * is held back now. Any thread. */
uint64_t sl_emulator_held_ns(const struct sl_emulator *emulator, bool *held);

/* Write down the faults done, and what was sent, since the last call. */
void sl_emulator_log_faults(struct sl_emulator *emulator);

#endif
