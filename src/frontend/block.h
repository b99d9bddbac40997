/* block.h - one block of a transfer: the memory that it is, and the front end's word on it.
 *
 * Model:     whole frames in, the rectangles of `stack` of them out, where they lie, and behind
 *            them a sealed record. The emulator and firmware both send what this makes.
 * Ownership: the caller's memory throughout; pixels, block and line pointers must stay until
 *            the block is out.
 * Cost:      builds freestanding. Reads pixels only for their checksum, where the plan wants it. */
#ifndef SL_FRONTEND_BLOCK_H
#define SL_FRONTEND_BLOCK_H

#include <stdint.h>

#include <sluice/record.h>

#include "core/plan.h"
#include "core/write.h"
#include "frontend/transfer.h"
#include "roce/icrc.h"

struct sl_frame_stamp {	    /* what the detector knows of a frame besides its pixels */
	uint64_t number;    /* its own count */
	uint64_t timestamp; /* ns */
	uint64_t emit_ns;
	uint32_t items; /* events in it; 1 for an image */
	uint16_t flags; /* SL_RECORD_DARK */
	uint16_t cell;	/* that held it */
};

struct sl_block {
	struct sl_from source;
	struct sl_record record; /* sealed; not sent where the transfer leaves it out */
};

/* Block `sequence` of the transfer: frame[i] is the first byte of its frame i, and line ([stack],
 * may be the same memory) belongs to the block afterwards. The stamp is that of its first frame.
 * For records alone pass NULL twice. */
void sl_block_make(struct sl_block *block, const struct sl_transfer *transfer,
		   const struct sl_plan *plan, uint64_t sequence,
		   const struct sl_frame_stamp *stamp, const void *const *frame, const void **line,
		   sl_roce_crc32 *crc32c);

#endif
