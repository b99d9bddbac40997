/* transfer.h - one data transfer process: which frames it takes, and which bytes of them.
 *
 * Model:     a front end runs any number of transfers beside each other, each with its own plan.
 *            A transfer keeps frames f with f % every == phase (frames counted from 0, from the
 *            start), of each a rectangle, and makes one block, one event and one outcome of
 *            `stack` of them:
 *
 *              kept     = (f - phase) / every     counts the frames it takes
 *              sequence = kept / stack
 *              index    = kept % stack            the frame's place in the block
 *              block    = stack rectangles of `lines` lines, one after another, then the record
 *
 *            Round-robin over N receivers is every = N and phase = 0 .. N-1. The pixels may go to
 *            one receiver and the records to another (part).
 * Ownership: plain data; pure functions.
 * Cost:      builds freestanding; some divisions per frame, none per packet. */
#ifndef SL_FRONTEND_TRANSFER_H
#define SL_FRONTEND_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/plan.h"
#include "core/write.h"

enum sl_part_of { SL_PART_PIXELS = 1 << 0, SL_PART_RECORD = 1 << 1 };

struct sl_rectangle {	/* of a module's frame in the source's memory, in bytes */
	uint64_t first; /* byte of the frame where it begins */
	uint64_t pitch; /* bytes from one line to the next; 0: line_bytes */
	uint32_t lines, line_bytes;
};

struct sl_transfer {
	uint32_t every, phase; /* 1 and 0: every frame */
	uint32_t stack;	       /* frames per block, at least 1 */
	uint32_t part;	       /* enum sl_part_of: a set, not empty */
	struct sl_rectangle rectangle;
};

/* The rectangle of rows x columns pixels at (row, column) in a frame of frame_columns. */
struct sl_rectangle sl_rectangle_of(uint32_t row, uint32_t column, uint32_t rows, uint32_t columns,
				    uint32_t frame_columns, uint32_t pixel_bytes);

/* The byte of the frame behind the last one of the rectangle. */
uint64_t sl_rectangle_end(const struct sl_rectangle *rectangle);

/* Whether it can be done: no zeros, phase below every, lines that do not overlap, a block of less
 * than 2^31 bytes. */
bool sl_transfer_valid(const struct sl_transfer *transfer);

/* Is frame f of the run in it? Then *sequence is its block and *index its place therein. */
bool sl_transfer_takes(const struct sl_transfer *transfer, uint64_t frame, uint64_t *sequence,
		       uint32_t *index);

/* The other way round: frame `index` of block `sequence`. */
uint64_t sl_transfer_frame(const struct sl_transfer *transfer, uint64_t sequence, uint32_t index);

/* How many blocks are whole after so many frames of the run, and how many frames the run needs for
 * so many blocks. */
uint64_t sl_transfer_sequences(const struct sl_transfer *transfer, uint64_t frames);
uint64_t sl_transfer_frames(const struct sl_transfer *transfer, uint64_t sequences);

/* Bytes of a block: pixels, record. */
uint64_t sl_transfer_pixel_bytes(const struct sl_transfer *transfer);
uint64_t sl_transfer_block_bytes(const struct sl_transfer *transfer);

/* What an offer says of it: block_bytes, bare, lines and line_bytes. */
void sl_transfer_describe(const struct sl_transfer *transfer, struct sl_offer *offer);

/* Whether a plan is one for its blocks. */
bool sl_transfer_fits(const struct sl_transfer *transfer, const struct sl_plan *plan);

/* The same, and that all else in it is what a plan can say: plans are outside input to a source. */
bool sl_transfer_agrees(const struct sl_transfer *transfer, const struct sl_plan *plan);

/* The bytes of a block: line[i] becomes the rectangle's first byte in frame i, whose first byte is
 * frame[i] (both [stack]; may be the same memory). Not for records alone: pass NULL twice. */
void sl_transfer_source(const struct sl_transfer *transfer, const void *const *frame,
			const void **line, const void *record, struct sl_from *source);

#endif
