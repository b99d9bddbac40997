/* outcome.h - what became of every module-frame: one outcome with one cause for each.
 *
 * Model:     one outcome per (transfer, sequence, module), written once. status.h has their sums by
 *            module: the ledger. */
#ifndef SLUICE_OUTCOME_H
#define SLUICE_OUTCOME_H

#ifdef __cplusplus
extern "C" {
#endif

enum sl_outcome {
	SL_NO_OUTCOME,
	SL_STORED,     /* all sinks that wanted it have it, and it is safe */
	SL_PRESCALED,  /* rejected, kept as a sample of the rejected */
	SL_VETOED,     /* rejected by a stage, or a dark frame */
	SL_INCOMPLETE, /* damaged, or a partner missing */
	SL_OVERRUN,    /* there was no room for it, or not long enough */
	SL_UNPROVEN,   /* arrived, but nothing proves that it is whole */
	SL_REFUSED,    /* policy, or a unit that could not process it */
	SL_UNWRITTEN,  /* kept, but a sink failed or left it out */
	SL_LOST,       /* nothing of it arrived; if the source left it out, it counts that */
	SL_UNMATCHED,  /* whole, and of no event of the detector that defines events */
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
	SL_CAUSE_SLOW,	      /* unwritten: left out by on_slow: prescale of a sink */
	SL_CAUSE_NO_EVENT,    /* unmatched: no event has its key */
	SL_CAUSES,
};

const char *sl_outcome_name(enum sl_outcome outcome); /* "stored", ... */
const char *sl_cause_name(enum sl_cause cause);	      /* "damaged", ... */

#ifdef __cplusplus
}
#endif

#endif
