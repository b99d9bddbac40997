/* align.c - frame numbers and timestamps as keys that only grow. */
#include "receiver/assemble/align.h"

uint64_t sl_align_key(const struct sl_align *align, uint32_t module, uint64_t raw,
		      uint64_t reference)
{
	uint64_t key = raw - (uint64_t)align->offset[module];
	unsigned unused = 64 - align->wrap_bits;

	if (!unused)
		return key;
	/* The nearest number with these low bits: the difference, with its sign extended. */
	return reference + (uint64_t)((int64_t)((key - reference) << unused) >> unused);
}
