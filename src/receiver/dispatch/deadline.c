/* deadline.c - when a batch must go. */
#include "receiver/dispatch/deadline.h"

/* Of what was measured, so that one slow batch does not make all that follow small. */
static const double weight = 0.25;

uint64_t sl_deadline_of(const struct sl_deadline *d, const struct sl_frame *frame, bool same_clock)
{
	uint64_t from = frame->hop_ns[same_clock ? SL_HOP_EMIT : SL_HOP_EVENT];

	return d->ns && from ? from + d->ns : 0;
}

void sl_deadline_join(const struct sl_deadline *d, struct sl_batch *batch,
		      const struct sl_frame *frame, bool same_clock)
{
	uint64_t due = sl_deadline_of(d, frame, same_clock);

	if (batch->frames == 1 || !batch->deadline_ns || (due && due < batch->deadline_ns))
		batch->deadline_ns = due;
}

bool sl_deadline_presses(const struct sl_deadline *d, const struct sl_batch *batch,
			 uint64_t frames_before, uint64_t now)
{
	double needed = d->ns_per_frame * (double)(frames_before + batch->frames + 1);

	/* What is late already gains nothing by small batches, which cost most when there is too
	 * much to do. */
	return d->ns && batch->frames && now < batch->deadline_ns &&
	       (double)now + needed >= (double)batch->deadline_ns;
}

void sl_deadline_learn(struct sl_deadline *d, uint32_t frames, uint64_t ns)
{
	double now;

	if (!frames)
		return;
	now = (double)ns / frames;
	d->ns_per_frame = d->ns_per_frame > 0 ? d->ns_per_frame + weight * (now - d->ns_per_frame)
					      : now;
}

bool sl_deadline_missed(const struct sl_deadline *d, const struct sl_frame *frame, bool same_clock)
{
	uint64_t due = sl_deadline_of(d, frame, same_clock);

	return due && frame->hop_ns[SL_HOP_PROCESSED] > due;
}
