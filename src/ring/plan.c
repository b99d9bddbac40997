/* plan.c - where a byte of a module-frame goes: the one function that both ends share. */
#include <sluice/plan.h>

uint64_t sl_plan_address(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	return plan->base + sequence % plan->slots * plan->stride + plan->block_at + offset;
}

uint32_t sl_plan_psn(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	uint64_t packet = (sequence - plan->first_sequence) * plan->packets + offset / plan->pmtu;

	return (uint32_t)((plan->first_psn + packet) & 0xffffff);
}

uint64_t sl_plan_position(const struct sl_plan *plan, uint64_t sequence, uint64_t offset)
{
	return (sequence - plan->first_sequence) * plan->block_bytes + offset;
}
