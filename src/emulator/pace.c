/* pace.c - due times, lateness, and a rate that is not exceeded. */
#include "emulator/pace.h"

void sl_pace_begin(struct sl_pace *pace, double rate_Hz, uint64_t now_ns)
{
	*pace = (struct sl_pace){.rate_Hz = rate_Hz, .start_ns = now_ns};
}

uint64_t sl_pace_due(const struct sl_pace *pace, uint64_t frame)
{
	/* From the start each time: rounding does not add up. */
	return pace->rate_Hz > 0 ? pace->start_ns + (uint64_t)((double)frame * 1e9 / pace->rate_Hz)
				 : 0;
}

void sl_pace_note(struct sl_pace *pace, uint64_t frame, uint64_t now_ns)
{
	uint64_t due = sl_pace_due(pace, frame);

	if (pace->rate_Hz > 0)
		sl_histogram_add(&pace->late, now_ns > due ? now_ns - due : 0);
}

void sl_limit_spend(struct sl_limit *limit, uint64_t bytes, uint64_t now_ns)
{
	uint64_t earliest = now_ns > SL_LIMIT_SAVED_NS ? now_ns - SL_LIMIT_SAVED_NS : 0;
	uint64_t from = limit->next_ns > earliest ? limit->next_ns : earliest;

	if (limit->ns_per_byte > 0)
		limit->next_ns = from + (uint64_t)((double)bytes * limit->ns_per_byte);
}
