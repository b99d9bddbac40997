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
 *            then rest and again for the next run, or close.
 * Threads:   all calls on the control thread, but for sl_receiver_status(): any thread, between
 *            open and close.
 * Ownership: borrows the experiment. */
#ifndef SL_RECEIVER_RECEIVER_H
#define SL_RECEIVER_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/status.h>

struct sl_control_env;
struct sl_control_ops;
struct sl_experiment;
struct sl_flight_tap;
struct sl_offer;
struct sl_plan;
struct sl_progress;
struct sl_receiver;

int sl_receiver_open(struct sl_experiment *experiment, const char *outcomes_path,
		     struct sl_receiver **receiver);

/* Whether detector, ring and stages fit together, without sockets, files or memory for a ring: what
 * reads files is not looked at. -EINVAL, logged. */
int sl_receiver_check(struct sl_experiment *experiment);

/* In a run, for a module whose source has ended: -EAGAIN until everything that the one before sent
 * is accounted for. */
int sl_receiver_accept(struct sl_receiver *receiver, const struct sl_offer *offer, bool same_host,
		       struct sl_plan *plan, char *why, size_t why_bytes);
void sl_receiver_cancel_plan(struct sl_receiver *receiver, uint16_t transfer);

/* The source that offered a module during the run has left before it was accepted. */
void sl_receiver_cancel_offer(struct sl_receiver *receiver, uint32_t module);

/* What a module's source was told; false: it has no plan. Not while the module may be planned
 * anew. */
bool sl_receiver_plan(const struct sl_receiver *receiver, uint32_t module, struct sl_plan *plan);

/* Packets that the link threads sample, a tap for each of them; NULL: the experiment wants none.
 * Until the receiver closes. */
struct sl_flight_tap *sl_receiver_taps(const struct sl_receiver *receiver, unsigned *taps);

/* Before a sink may ask, after open and after again. NULL: there are none. */
struct sl_env_metadata;
void sl_receiver_set_metadata(struct sl_receiver *receiver, const struct sl_env_metadata *metadata);

/* Before START is told to the front ends: credits must be on their way. */
int sl_receiver_start(struct sl_receiver *receiver);
void sl_receiver_log(const struct sl_receiver *receiver); /* log where it runs, what it was given */
void sl_receiver_serve(struct sl_receiver *receiver);	  /* now and then: the link's slow things */

/* -EPROTO, with the reason in `why`: a count that cannot be true. Nothing is changed then. */
int sl_receiver_count(struct sl_receiver *receiver, uint32_t module, uint64_t next, uint64_t sent,
		      uint64_t position, bool final, char *why, size_t why_bytes);
void sl_receiver_source_lost(struct sl_receiver *receiver, uint32_t module);
/* Every source that has not ended is lost. */
void sl_receiver_abandon(struct sl_receiver *receiver);

/* For sources that cannot count, of the detector that defines events. No slot is opened from this
 * sequence on, but for those that are open already: a source that is not told so is held back
 * there. */
void sl_receiver_limit(struct sl_receiver *receiver, uint64_t sequence);

/* Open no slot from the next frame on, until it is called again with false: sources that wait for
 * slots are held, and status.drained says when all that was sent is settled. */
void sl_receiver_pause(struct sl_receiver *receiver, bool pause);
/* The same from this sequence on, or from the next frame on where that is later. In a pause: slots
 * are opened up to there. Before start, too. */
void sl_receiver_pause_at(struct sl_receiver *receiver, uint64_t sequence);
/* Paused, every slot that was opened was filled, and what was in them has its outcome. next: the
 * sequence with which sources go on. Any thread. */
bool sl_receiver_is_drained(const struct sl_receiver *receiver, uint64_t *next);

/* The first module whose source takes no credits and is not told to come again; -1: there is none.
 * Any thread. */
int sl_receiver_cannot_wait(const struct sl_receiver *receiver);

/* The source has ended. Once its lane is quiet, what was seen of it is what it sent. */
void sl_receiver_end(struct sl_receiver *receiver, uint32_t module);

/* The same of one that goes on sending and cannot be held back: it is listened to no more, and what
 * came whole is what it sent. */
void sl_receiver_cut(struct sl_receiver *receiver, uint32_t module);

/* How far a source has come, as seen from here. */
void sl_receiver_progress(const struct sl_receiver *receiver, uint32_t module,
			  struct sl_progress *progress);

/* The calls above as a control driver makes them; its `arg` is the receiver. */
extern const struct sl_control_ops sl_receiver_control_ops;

/* All of env but for its file and modules. */
void sl_receiver_control_env(struct sl_receiver *receiver, unsigned detector,
			     struct sl_control_env *env);

/* After start: until every module has slots for what may come. -ETIMEDOUT, logged. */
int sl_receiver_wait_open(const struct sl_receiver *receiver);

/* ring.overrun: stop, and a module-frame found no room: the run has to end. */
bool sl_receiver_overrun(struct sl_receiver *receiver);

/* A sink with on_slow: stop could not keep pace, which is logged: the run has to end. Any
 * thread. */
bool sl_receiver_too_slow(const struct sl_receiver *receiver);

/* A snapshot; any thread. The receiver knows neither the experiment's file nor when or why the run
 * began and ended: those members are the caller's, and 0 here. No data thread waits for it. */
void sl_receiver_status(const struct sl_receiver *receiver, struct sl_status *status);

bool sl_receiver_done(const struct sl_receiver *receiver); /* every frame has been settled */

/* All sources sent what they had offered: no receiver will need their plans again. */
bool sl_receiver_is_exhausted(const struct sl_receiver *receiver);

/* Stop threads, close sinks, resolve what was pending. 0, or the first sink's error. */
int sl_receiver_finish(struct sl_receiver *receiver);

/* Between two runs of the same experiment. rest(), after finish(): close the link and what belongs
 * to one run; memory, detector, stages and unit stay. again(): as a receiver that was just opened.
 * After an error: close. Not for a receiver of a keeper. */
void sl_receiver_rest(struct sl_receiver *receiver);
int sl_receiver_again(struct sl_receiver *receiver, const char *outcomes_path);
void sl_receiver_close(struct sl_receiver *receiver);

#endif
