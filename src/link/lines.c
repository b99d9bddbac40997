/* lines.c - whether a source's lines fit the ring, and what the plan says of them. */
#include "link/lines.h"

bool sl_lines_fit(const struct sl_link_env *env, const struct sl_offer *offer)
{
	const struct sl_ring *ring = env->ring;
	bool matter = ring->lines.pitch || env->message == SL_MESSAGE_LINE;

	if (offer->lines && (uint64_t)offer->lines * offer->line_bytes != ring->pixel_bytes)
		return false;
	if (!matter)
		return true;
	/* A message is one piece of memory, and so is what a receive is posted for. */
	if (!offer->lines || env->message == SL_MESSAGE_MODULE ||
	    env->operation == SL_OPERATION_SEND)
		return false;
	return !ring->lines.pitch ||
	       (offer->lines == ring->lines.count && offer->line_bytes == ring->lines.bytes);
}

void sl_lines_plan(const struct sl_ring *ring, const struct sl_offer *offer, struct sl_plan *plan)
{
	plan->lines = offer->lines;
	plan->line_bytes = offer->lines ? offer->line_bytes : 0;
	plan->line_pitch = ring->lines.pitch;
	plan->record_at = ring->lines.pitch ? ring->record_at : 0;
	plan->packets = sl_plan_packets(plan);
}
