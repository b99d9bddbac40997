/* ledger.h - the sums of all outcomes, by module.
 *
 * Model:     `sent` comes from the source alone: its counts, and its records. The ledger closes
 *            when, for every module, the outcomes add up to what the source says it sent, or left
 *            out, and no source is still talking. A source that vanished counts as far as it
 *            spoke; that it vanished is kept apart (source_died) and fails the run all the same.
 *            Frames that sinks accepted are pending until their files are safe; then they are
 *            stored.
 * Threads:   one writer of outcomes (the settling thread); `sent` and `skipped` are the control
 *            thread's and the dispatcher's. sl_ledger_status() on any thread: a module's column is
 *            consistent in itself (base/sequence.h).
 * Cost:      a few stores per module-frame; memory does not grow with the run. */
#ifndef SL_CORE_LEDGER_H
#define SL_CORE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/outcome.h>
#include <sluice/status.h>

struct sl_tally { /* one module's column of the ledger */
	_Atomic uint32_t
		sequence;	  /* odd while the settling thread changes what follows `skipped` */
	_Atomic uint64_t sent;	  /* as the source reported */
	_Atomic uint64_t skipped; /* sequences that it says it left out: they are among the lost */
	_Atomic uint64_t pending; /* accepted by sinks whose files are still open */
	_Atomic uint64_t samples; /* of these: samples of the rejected, to become prescaled */
	_Atomic uint64_t outcome[SL_OUTCOMES];
	_Atomic uint64_t cause[SL_CAUSES];
	_Atomic uint64_t next;	/* sequences below it have an outcome or are pending */
	_Atomic uint64_t first; /* sequences below it are not of this run */
};

struct sl_ledger {
	uint32_t modules;
	struct sl_tally *tally;	       /* [modules] */
	_Atomic uint32_t source_alive; /* sources that have not yet said that they are done */
	_Atomic uint32_t source_died;  /* sources that vanished without saying so */
	_Atomic uint64_t misuse; /* outcomes written twice or out of order: always a bug, keeps the
				    ledger open */
};

/* The module-frame was wanted, and is not where it should be. */
static inline bool sl_outcome_is_loss(enum sl_outcome outcome)
{
	return outcome != SL_STORED && outcome != SL_PRESCALED && outcome != SL_VETOED &&
	       outcome != SL_UNMATCHED;
}

int sl_ledger_init(struct sl_ledger *ledger, uint32_t modules);
void sl_ledger_fini(struct sl_ledger *ledger);

/* Before the first outcome: module's sequences below this one are not of this run, and do not count
 * as sent. */
void sl_ledger_begin(struct sl_ledger *ledger, uint32_t module, uint64_t sequence);

/* Give sequence its outcome. Sequences of a module come in order, each once; anything else counts
 * as misuse. */
void sl_ledger_settle(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
		      enum sl_outcome outcome, enum sl_cause cause);

/* The same, for a frame that every sink accepted: its outcome follows with sl_ledger_resolve(). A
 * sample of the rejected is then prescaled, not stored. */
void sl_ledger_settle_pending(struct sl_ledger *ledger, uint32_t module, uint64_t sequence,
			      bool sample);

/* `count` pending module-frames got their outcome: SL_STORED, or SL_UNWRITTEN with SL_CAUSE_SINK.
 */
void sl_ledger_resolve(struct sl_ledger *ledger, uint32_t module, uint64_t count,
		       enum sl_outcome outcome, enum sl_cause cause);

/* What the source says it sent so far, from sequence 0 on; never goes back. */
void sl_ledger_report(struct sl_ledger *ledger, uint32_t module, uint64_t sent);

/* How many sequences it has left out so far. */
void sl_ledger_skip(struct sl_ledger *ledger, uint32_t module, uint64_t skipped);

/* Sequences below it have an outcome, or will have that of a sink. Any thread. */
uint64_t sl_ledger_next(const struct sl_ledger *ledger, uint32_t module);

/* The ledger's part of a status: modules, columns, sources alive and gone, misuse. */
void sl_ledger_status(const struct sl_ledger *ledger, struct sl_status *status);

#endif
