/* row.c - a frame in a few words. */
#include <string.h>

#include "sink/row.h"

static bool is_judged_good(const struct sl_frame *frame)
{
	return sl_frame_goes_on(frame) && !(frame->flags & SL_FRAME_DARK) &&
	       sl_frame_is_kept(frame);
}

/* A sink gets what it leaves out itself without results, and what another sink leaves out with
 * them. */
bool sl_row_kept(const struct sl_frame *frame)
{
	if (!is_judged_good(frame))
		return false;
	for (uint32_t i = 0; i < sl_frame_all_views(frame); i++)
		if (frame->view[i].outcome == SL_UNWRITTEN &&
		    (frame->view[i].cause != SL_CAUSE_SLOW || !frame->results))
			return false;
	return true;
}

bool sl_row_left_out(const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < sl_frame_all_views(frame) && !frame->results; i++)
		if (frame->view[i].cause == SL_CAUSE_SLOW)
			return true;
	return false;
}

struct sl_verdict sl_row_verdict(const struct sl_frame *frame)
{
	struct sl_verdict verdict = frame->items ? frame->verdict[0] : (struct sl_verdict){0};
	uint32_t kept = 0;

	if (frame->items <= 1)
		return verdict;
	for (uint32_t i = frame->items; i-- > 0;)
		if (frame->verdict[i].keep) {
			verdict.reason = frame->verdict[i].reason;
			kept++;
		}
	verdict.score = (float)kept;
	return verdict;
}

/* The assembler has decided about modules that are not whole; the rest follows from the verdict. */
void sl_row_outcomes(const struct sl_frame *frame, uint32_t modules, uint8_t *outcome,
		     uint8_t *cause)
{
	bool goes_on = sl_frame_goes_on(frame), dark = frame->flags & SL_FRAME_DARK;
	bool kept = sl_row_kept(frame);

	memset(outcome, 0, modules);
	memset(cause, 0, modules);
	for (uint32_t i = 0; i < sl_frame_all_views(frame); i++) {
		const struct sl_view *view = &frame->view[i];

		if (view->module >= modules)
			continue;
		outcome[view->module] = view->outcome;
		cause[view->module] = view->cause;
		if (view->outcome != SL_NO_OUTCOME || !goes_on ||
		    sl_frame_misses(frame, view->module))
			continue;
		outcome[view->module] = !kept			       ? SL_VETOED
					: sl_frame_is_prescaled(frame) ? SL_PRESCALED
								       : SL_STORED;
		if (!kept)
			cause[view->module] = dark ? SL_CAUSE_DARK : SL_CAUSE_STAGE;
	}
}
