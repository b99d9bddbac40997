/* descriptor.h - one module-frame as the list of writes that its plan asks for.
 *
 * Model:     pure: plan, sequence, pixels and record in, descriptors out. What an FPGA would
 *            compute, one per message.
 * Ownership: descriptors point into pixels and record; both must stay until the link has reaped
 *            them.
 * Cost:      a few additions per descriptor; no allocation. */
#ifndef SL_FRONTEND_DESCRIPTOR_H
#define SL_FRONTEND_DESCRIPTOR_H

#include <stddef.h>

#include <sluice/link.h>
#include <sluice/plan.h>
#include <sluice/record.h>

/* How many writes a block takes under this plan. */
uint32_t sl_descriptor_count(const struct sl_plan *plan);

/* Fill `write` (sl_descriptor_count() entries). The last one carries the immediate. */
void sl_descriptor_fill(const struct sl_plan *plan, uint64_t sequence, const void *pixels,
			const struct sl_record *record, struct sl_write *write);

#endif
