/* drop.c - ring.overrun drop_oldest: when the oldest frame is dropped, and what is said of it. */
#include "receiver/private.h"

/* Soon there will be no room for what comes. */
bool sl_drop_is_due(const struct sl_receiver *r)
{
	for (uint32_t m = 0; m < r->modules; m++) {
		uint32_t quarter = r->of[m]->ring.slots / 4, least = quarter > 2 ? quarter : 2;

		if (sl_feed_end(r->of, m) == UINT64_MAX &&
		    sl_feed_opened(r->of, m) < sl_feed_reached(r->of, m) + least)
			return true;
	}
	return false;
}

void sl_drop(struct sl_frame *frame)
{
	frame->flags &= ~(uint32_t)(SL_FRAME_COMPLETE | SL_FRAME_PARTIAL);
	frame->timestamp = 0; /* of a row of them it would not be known either */
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		/* What would not have gone on anyway has its own cause (invariant NAMED). */
		if (sl_frame_misses(frame, v) || frame->view[v].outcome != SL_NO_OUTCOME)
			continue;
		frame->view[v].outcome = SL_OVERRUN;
		frame->view[v].cause = SL_CAUSE_OLDEST;
	}
}

/* True when b comes right after a and what follows it, and is alike. */
bool sl_drop_continues(const struct sl_flow_frame *a, const struct sl_frame *b)
{
	uint64_t step = a->more + 1;

	if (b->sequence != a->frame.sequence + step || b->number != a->frame.number + step ||
	    b->missing != a->frame.missing || b->flags != a->frame.flags)
		return false;
	for (uint32_t v = 0; v < sl_frame_all_views(b); v++) {
		const struct sl_view *x = &a->frame.view[v], *y = &b->view[v];

		if (x->outcome != y->outcome || x->cause != y->cause ||
		    (x->outcome != SL_NO_OUTCOME && y->sequence != x->sequence + step))
			return false;
	}
	return true;
}
