/* decide.c - what a frame is, and what becomes of it if the sinks do their part; and the sinks that
 * hear of it at once.
 *
 * Where one thread does it all (threads.together), sinks that are prompt (sluice/sink.h) are given
 * each frame on that thread, in order, before the settler has it: an answer to a front end leaves
 * without another thread between. Their answer to put() counts as that of a check. */
#include "receiver/private.h"

static uint32_t want_of(const struct sl_frame *frame)
{
	if (!sl_frame_goes_on(frame))
		return SL_WANT_BROKEN;
	/* Dark frames are calibration, not data: rejected even where no stage looks at them. */
	if (frame->flags & SL_FRAME_DARK)
		return SL_WANT_REJECTED;
	return sl_frame_is_kept(frame) ? SL_WANT_KEPT : SL_WANT_REJECTED;
}

/* What each view's outcome will be if the sinks do their part. The assembler has decided about
 * those that are missing. */
static void decide(struct sl_frame *frame, uint32_t want)
{
	enum sl_outcome outcome = want != SL_WANT_KEPT		 ? SL_VETOED
				  : sl_frame_is_prescaled(frame) ? SL_PRESCALED
								 : SL_STORED;
	enum sl_cause cause = want == SL_WANT_KEPT	     ? SL_CAUSE_NONE
			      : frame->flags & SL_FRAME_DARK ? SL_CAUSE_DARK
							     : SL_CAUSE_STAGE;

	if (want == SL_WANT_BROKEN)
		return; /* the assembler decided */
	for (uint32_t i = 0; frame->flags & SL_FRAME_DARK && i < frame->items; i++) {
		frame->verdict[i].keep = 0;
		frame->verdict[i].reason = SL_REASON_DARK;
	}
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		if (sl_frame_misses(frame, v))
			continue;
		frame->view[v].outcome = (uint8_t)outcome;
		frame->view[v].cause = (uint8_t)cause;
	}
}

void sl_decide(struct sl_flow_frame *flow)
{
	flow->want = want_of(&flow->frame);
	decide(&flow->frame, flow->want);
}

void sl_flow_step(struct sl_frame *frame, uint64_t by)
{
	frame->sequence += by;
	frame->number += by;
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++)
		frame->view[v].sequence += by;
}

static void put_one(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (r->prompt >> i & 1 && r->sink_wants[i] & flow->want &&
		    !sl_sink_put(r, i, &flow->frame) && !r->sink_optional[i])
			flow->prompt_refused = true;
}

/* More may join a row while it is at the head of the line. */
void sl_prompt_put(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	if (flow->prompted > flow->more)
		return;
	sl_decide(flow);
	for (; flow->prompted <= flow->more; flow->prompted++) {
		sl_flow_step(&flow->frame, flow->prompted);
		put_one(r, flow);
		sl_flow_step(&flow->frame, -flow->prompted);
	}
}
