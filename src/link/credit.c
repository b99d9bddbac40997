/* credit.c - one number that guards both the slots and the receive buffer. */
#include "link/credit.h"

enum { REPEAT_NS = 20 * 1000 * 1000 }; /* a lost grant costs this much, not the run */

/* A source that still has this much does not wait for more: half the window, and room for what it
 * sends in one piece. */
static bool enough(const struct sl_credit *credit, const struct sl_plan *plan, uint64_t seen)
{
	uint64_t piece = sl_plan_message_bytes(plan);
	uint64_t left = credit->granted > seen ? credit->granted - seen : 0;

	return left >= credit->window / 2 && left >= piece;
}

bool sl_credit_due(struct sl_credit *credit, const struct sl_plan *plan, const struct sl_ring *ring,
		   uint64_t seen, bool idle, uint64_t now_ns, uint64_t *grant)
{
	uint64_t opened = sl_ring_opened(ring, plan->module);
	uint64_t slots = opened <= plan->first_sequence ? 0 : sl_plan_position(plan, opened, 0);
	uint64_t buffer = credit->window > UINT64_MAX - seen ? UINT64_MAX : seen + credit->window;
	uint64_t now = slots < buffer ? slots : buffer;
	bool grown = now > credit->granted;
	bool due = grown && (now - credit->granted >= credit->window / 4 ||
			     (idle && !enough(credit, plan, seen)));

	/* Whether it has grown or not: who seems to have enough may have lost what it was given
	 * (invariant DELAYED). */
	if (!due && (!idle || now_ns - credit->sent_ns < REPEAT_NS))
		return false;
	if (grown)
		credit->granted = now;
	credit->sent_ns = now_ns;
	*grant = credit->granted;
	return true;
}
