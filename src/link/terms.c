/* terms.c - what a ring and its options mean for plans. */
#include "link/terms.h"

void sl_terms_init(struct sl_plan_terms *terms, const struct sl_link_env *env, uint16_t module)
{
	const struct sl_ring *ring = env->ring;

	*terms = (struct sl_plan_terms){
		.service = env->service,
		.operation = env->operation,
		.message = env->message,
		.pmtu = env->pmtu,
		.crc = env->crc,
		.modules = ring->modules,
		.slots = ring->slots,
		.stride = ring->slot_stride,
		.block_at = sl_ring_block_at(ring, 0, module),
		.pixel_bytes = ring->pixel_bytes,
		.block_bytes = ring->block_bytes,
		.lines = ring->lines.count,
		.line_bytes = ring->lines.bytes,
		.line_pitch = ring->lines.pitch,
		.record_at = ring->record_at,
	};
}
