/* descriptor.h - one block as the list of writes that its plan asks for.
 *
 * Model:     pure: plan, sequence and source in, descriptors out, one per message. What an FPGA
 *            would compute: begin divides, each further descriptor is additions. A block's pixels
 *            may be a rectangle of a larger frame at the source, and another pitch at the
 *            receiver; the plan's lines and the source's are then the same (stacked frames are
 *            lines one after another).
 * Ownership: descriptors point into source, pixels and record; all must stay until the link has
 *            reaped them.
 * Cost:      a few additions per descriptor; no allocation. Builds freestanding. */
#ifndef SL_FRONTEND_DESCRIPTOR_H
#define SL_FRONTEND_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/record.h>

#include "core/plan.h"
#include "core/write.h"

struct sl_descriptors { /* an iterator over one block */
	const struct sl_plan *plan;
	struct sl_from_cursor cursor;
	uint64_t sequence, block, position; /* address and position of the block */
	uint64_t place;			    /* of the next message, in the block */
	uint32_t offset;		    /* of it, as it travels */
	uint32_t left;			    /* of the line, where messages end with lines */
	uint32_t step;			    /* longest message */
	uint32_t line, line_packets, psn;
	bool cuts;
};

/* How many writes a block takes under this plan. */
uint32_t sl_descriptor_count(const struct sl_plan *plan);

/* source: as many bytes as a block of the plan has. */
void sl_descriptors_begin(struct sl_descriptors *descriptors, const struct sl_plan *plan,
			  uint64_t sequence, const struct sl_from *source);

/* The next one; false when there was no more. The last one carries the immediate. */
bool sl_descriptors_next(struct sl_descriptors *descriptors, struct sl_write *write);

/* All of them into `write` (sl_descriptor_count() entries). */
void sl_descriptor_fill(const struct sl_plan *plan, uint64_t sequence, const struct sl_from *source,
			struct sl_write *write);

#endif
