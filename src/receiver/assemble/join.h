/* join.h - frames of several detectors become events.
 *
 * Model:     each detector has an assembler, whose frames are parts of events. One detector defines
 *            events: each of its parts is one. A part of another detector belongs to the event with
 *            its key: the sequence, frame number or timestamp, on the scale of the detector that
 *            defines events. Keys of a detector grow, so the order of parts decides, as in the
 *            assembler: a part that is behind an event's key belongs to no later event, and a part
 *            that is ahead of it says that the event has none of that detector.
 *            A detector with `divider` n has a part for each n-th trigger. An event between two of
 *            these does not wait for it and misses nothing.
 *            What a part that may still come costs is its policy: `require` waits for it as long as
 *            a late module is waited for, and without it the event is incomplete; `wait` waits for
 *            wait_ns, `optional` not at all, and the event goes on without it. That time passes
 *            only as far as the link has looked, and not while the ring of that detector is full.
 *            A part without a key (nothing of it arrived, and keys are times) and one that belongs
 *            to no event are given out as frames of their own, which never go on: unmatched, or
 *            late when the event of its key went on without waiting for it.
 * Threads:   one, the dispatcher's.
 * Ownership: fills the caller's frame and its parts, as an assembler does. Assemblers stay the
 *            caller's; nothing else may call sl_assembler_next() on them.
 * Cost:      per event and detector one record read and compared, and the assembler's own cost. */
#ifndef SL_RECEIVER_ASSEMBLE_JOIN_H
#define SL_RECEIVER_ASSEMBLE_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "receiver/assemble/align.h"
#include "receiver/assemble/assembler.h"

enum {
	SL_JOIN_DETECTORS = 8,
	/* Events that a detector's part was not waited for: so many of the newest are remembered,
	 * to tell a part that is late from one that has no event. */
	SL_JOIN_GONE = 64,
};

enum sl_join_missing { SL_JOIN_REQUIRE, SL_JOIN_WAIT, SL_JOIN_OPTIONAL };

struct sl_join_options { /* of one detector */
	/* What it has in common with the detector that defines events. */
	enum sl_align_by by;
	/* Key = (number - offset) * divider, of sequences and frame numbers: triggers. Of times:
	 * time - offset - drift * (time since its first part). */
	int64_t offset;
	uint64_t divider;   /* 0: 1 */
	double drift;	    /* by how much its clock is faster: 1e-6 is 1 us in a second */
	uint64_t window;    /* of times: two that differ by no more are equal */
	uint32_t wrap_bits; /* of its counter, 1..64; 0: 64 */
	enum sl_join_missing missing;
	uint64_t wait_ns; /* SL_JOIN_WAIT */
};

/* What a part is known by. */
struct sl_join_moment {
	bool numbered, timed;
	uint64_t sequence, number, time;
};

struct sl_join_detector {
	struct sl_assembler *assembler;
	struct sl_join_options options;
	/* The last raw number or time, to which the next one is near, and the first one. */
	bool counted;
	uint64_t raw_last, raw_first;
	/* Of an event that has a part of it: the trigger. Dividers count from there. */
	bool matched;
	uint64_t matched_trigger;
	/* 1 + how much had come of it when it was waited for in vain; 0: never. */
	uint64_t silent_at;
	/* Keys of events that went on before its part was known, the newest SL_JOIN_GONE. */
	uint64_t gone[SL_JOIN_GONE], gones;
	/* The last sequence and frame number that a record said. */
	bool numbered;
	uint64_t sequence_known, number_known;
};

struct sl_join {
	struct sl_join_detector detector[SL_JOIN_DETECTORS];
	uint32_t detectors, definer;
	bool keep;	   /* events with parts or modules missing go on (ring.incomplete: keep) */
	bool patient;	   /* the caller's: no time-out, for a source has yet to begin */
	uint64_t next;	   /* frames given out, events or not: the next one's sequence */
	uint64_t since_ns; /* since when the next event waits; 0: it does not */
	uint64_t left_ns;  /* since when parts wait for the detector that defines events */
	bool any;	   /* there was an event: */
	struct sl_join_moment last;
};

/* The assembler's options say which modules are whose (first_module). */
void sl_join_init(struct sl_join *join, uint32_t definer, bool keep);
int sl_join_add(struct sl_join *join, struct sl_assembler *assembler,
		const struct sl_join_options *options); /* -ENOSPC */

/* 1: *frame is the next event, or a part that belongs to none; part[d] is what detector d has in
 * it, with views that are frame->view from its first module on. 0: not yet; -ENODATA: that was the
 * last. */
int sl_join_next(struct sl_join *join, uint64_t now_ns, struct sl_frame *frame,
		 struct sl_frame *part);

#endif
