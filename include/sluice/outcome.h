/* outcome.h - what became of every module-frame, and the ledger that counts it.
 *
 * Model:     one outcome per (transfer, sequence, module), written once, with a cause. `sent` comes
 *            from the source alone: its counts, and its records. The ledger closes when, for every
 *            module, the outcomes add up to what the source says it sent, or left out, and no
 *            source is still talking. A source that vanished counts as far as it spoke; that it
 *            did is kept apart (source_died) and fails the run all the same. Frames that sinks
 *            accepted are pending until their files are safe; then they are stored.
 * Threads:   one writer (the pipeline's settling thread); totals may be read from any thread while
 *            it runs.
 * Cost:      a few relaxed adds per module-frame; memory does not grow with the run. */
#ifndef SLUICE_OUTCOME_H
#define SLUICE_OUTCOME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum sl_outcome {
	SL_NO_OUTCOME,
	SL_STORED,     /* all sinks that wanted it have it, and it is safe */
	SL_PRESCALED,  /* rejected, kept as a sample of the rejected */
	SL_VETOED,     /* rejected by a stage, or a dark frame */
	SL_INCOMPLETE, /* damaged, or a partner missing */
	SL_OVERRUN,    /* there was no room for it, or not long enough */
	SL_UNPROVEN,   /* arrived, but nothing proves that it is whole */
	SL_REFUSED,    /* policy, or a unit that could not process it */
	SL_UNWRITTEN,  /* a sink failed */
	SL_LOST,       /* nothing of it arrived; if the source left it out, it counts that */
	SL_OUTCOMES,
};

enum sl_cause {
	SL_CAUSE_NONE,
	SL_CAUSE_DARK,	      /* vetoed: a pedestal sample */
	SL_CAUSE_STAGE,	      /* vetoed: a stage said no */
	SL_CAUSE_DAMAGED,     /* incomplete: some of its packets are missing */
	SL_CAUSE_PARTNER,     /* incomplete: whole itself, another module of the frame is not */
	SL_CAUSE_RECORD,      /* incomplete: all bytes there, the record contradicts them */
	SL_CAUSE_CHECKSUM,    /* incomplete: the record's CRC32C does not match the pixels */
	SL_CAUSE_NO_SLOT,     /* overrun: the source was ahead of the open slots */
	SL_CAUSE_NO_ARRIVAL,  /* lost: no packet of it came */
	SL_CAUSE_SINK,	      /* unwritten: a sink refused it or its file did not close */
	SL_CAUSE_UNIT,	      /* refused: the unit could not process it */
	SL_CAUSE_LATE,	      /* incomplete: whole, but its frame was given out without it */
	SL_CAUSE_OLDEST,      /* overrun: whole, and given back unprocessed to make room */
	SL_CAUSE_OVERWRITTEN, /* overrun: the source wrote there again before it was read */
	SL_CAUSES,
};

const char *sl_outcome_name(enum sl_outcome outcome); /* "stored", ... */
const char *sl_cause_name(enum sl_cause cause);	      /* "damaged", ... */

struct sl_tally {		  /* one module's column of the ledger */
	_Atomic uint64_t sent;	  /* as the source reported */
	_Atomic uint64_t skipped; /* sequences that it says it left out: they are among the lost */
	_Atomic uint64_t pending; /* accepted by sinks whose files are still open */
	_Atomic uint64_t samples; /* of these: samples of the rejected, to become prescaled */
	_Atomic uint64_t outcome[SL_OUTCOMES];
	_Atomic uint64_t cause[SL_CAUSES];
	_Atomic uint64_t next; /* sequences below it have an outcome or are pending */
	uint64_t first;	       /* sequences below it are not of this run */
};

struct sl_ledger {
	uint32_t modules;
	struct sl_tally *tally;	       /* [modules] */
	_Atomic uint32_t source_alive; /* sources that have not yet said that they are done */
	_Atomic uint32_t source_died;  /* sources that vanished without saying so */
	_Atomic uint64_t misuse; /* outcomes written twice or out of order: always a bug, keeps the
				    ledger open */
};

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

uint64_t sl_ledger_total(const struct sl_ledger *ledger, enum sl_outcome outcome);
uint64_t sl_ledger_sent(const struct sl_ledger *ledger);

/* Every module: sum of outcomes == sent + skipped, nothing pending, no misuse, and no source still
 * talking. */
bool sl_ledger_closed(const struct sl_ledger *ledger);

#endif
