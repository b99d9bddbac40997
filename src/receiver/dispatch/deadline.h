/* deadline.h - batches that are closed in time: a verdict that comes late is worth nothing.
 *
 * Model:     a frame's answer is due `unit.deadline_us` after the source began to send it (after
 *            its last event, where clocks are not shared). What the unit takes per frame is
 *            measured batch by batch, with all the batches that it works on; a batch is closed as
 *            soon as one more frame would make its first one late, so that under load batches are
 *            as large as time allows and no larger.
 *            A batch that is late already is filled like any other.
 * Threads:   the dispatcher's; the settler counts late verdicts by sl_deadline_missed().
 * Cost:      an addition and a comparison per frame. */
#ifndef SL_RECEIVER_DISPATCH_DEADLINE_H
#define SL_RECEIVER_DISPATCH_DEADLINE_H

#include <stdbool.h>

#include <sluice/frame.h>

struct sl_deadline {
	uint64_t ns;	     /* 0: there is none */
	double ns_per_frame; /* of the unit, as measured lately; 0: not yet */
};

/* When the frame's answer is due; 0: whenever. same_clock: EMIT is of this host's clock. */
uint64_t sl_deadline_of(const struct sl_deadline *deadline, const struct sl_frame *frame,
			bool same_clock);

/* A frame joins the batch. */
void sl_deadline_join(const struct sl_deadline *deadline, struct sl_batch *batch,
		      const struct sl_frame *frame, bool same_clock);

/* The batch should go now: with one more frame the unit would be done too late. frames_before: in
 * batches that the unit has already, and does first. */
bool sl_deadline_presses(const struct sl_deadline *deadline, const struct sl_batch *batch,
			 uint64_t frames_before, uint64_t now);

/* The unit had so many frames for so long. */
void sl_deadline_learn(struct sl_deadline *deadline, uint32_t frames, uint64_t ns);

/* Its answer came after the deadline. */
bool sl_deadline_missed(const struct sl_deadline *deadline, const struct sl_frame *frame,
			bool same_clock);

#endif
