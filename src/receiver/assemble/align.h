/* align.h - which trigger a module-frame belongs to: a key that modules of one frame share.
 *
 * Model:     the detector's frame number, or its timestamp, less the module's offset. Counters of
 *            `wrap_bits` bits are continued beyond them, next to a key that is near (reference), so
 *            that keys of a run only grow; they are compared by their difference, as serial numbers
 *            are. Two module-frames are of one trigger when their keys differ by `window` at most.
 * Threads:   pure functions. */
#ifndef SL_RECEIVER_ASSEMBLE_ALIGN_H
#define SL_RECEIVER_ASSEMBLE_ALIGN_H

#include <stdint.h>

#include <sluice/record.h>

enum { SL_ALIGN_MODULES = 64 };
enum sl_align_by { SL_ALIGN_SEQUENCE, SL_ALIGN_FRAME, SL_ALIGN_TIMESTAMP };

struct sl_align {
	enum sl_align_by by;
	uint64_t window;    /* of timestamps; 0 for frame numbers */
	uint32_t wrap_bits; /* 1..64 */
	int64_t offset[SL_ALIGN_MODULES];
};

/* The key of a raw frame number or timestamp of module, near to reference. */
uint64_t sl_align_key(const struct sl_align *align, uint32_t module, uint64_t raw,
		      uint64_t reference);

static inline uint64_t sl_align_raw(const struct sl_align *align, const struct sl_record *record)
{
	return align->by == SL_ALIGN_TIMESTAMP ? record->timestamp : record->frame;
}

/* a - b, as serial numbers. */
static inline int64_t sl_align_after(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

#endif
