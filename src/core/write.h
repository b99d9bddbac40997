/* write.h - what a front end posts: where bytes go, and where they are taken from.
 *
 * Model:     a write is one message. Its bytes are gathered from at most two pieces of memory, or,
 *            where that is not enough (an ROI out of a larger frame, several frames in a block),
 *            from memory: rectangles one after another, then the record.
 * Ownership: writes point to a struct sl_from, and both into the pixels; all must stay until the
 *            link has reaped them.
 * Cost:      builds freestanding. A cursor goes forward without dividing. */
#ifndef SL_CORE_WRITE_H
#define SL_CORE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/record.h>

struct sl_part {
	const void *data;
	uint32_t bytes;
};

/* Where a block lies in memory: `lines` lines of each of the frames, then the record. */
struct sl_from {
	const void *const *frame; /* [frames]: the first byte of the first line */
	uint64_t pitch;		  /* bytes from one line to the next; 0: line_bytes */
	uint32_t frames, lines, line_bytes;
	const void *record; /* SL_RECORD_BYTES; NULL: the block has none */
};

struct sl_from_cursor { /* a place in it */
	const struct sl_from *from;
	uint32_t frame, line, byte; /* behind the last frame, byte counts the record's */
};

/* To byte `offset` of the block. */
void sl_from_seek(const struct sl_from *from, uint32_t offset, struct sl_from_cursor *cursor);

/* The next piece that is in one place, at most `most` bytes of it; 0 bytes at the end. */
struct sl_part sl_from_next(struct sl_from_cursor *cursor, uint32_t most);

enum sl_write_flags {
	SL_WRITE_IMM = 1 << 0,
	SL_WRITE_SEND = 1 << 1, /* the receiver places it: va and rkey mean nothing */
};

struct sl_write {	       /* a message of its own, complete or not with an immediate */
	uint64_t va, position; /* position: of its end in the stream; may be sent once granted */
	uint64_t sequence;
	uint32_t rkey, psn, imm, bytes, flags;
	uint32_t at; /* from: of its first byte in the block */
	/* NULL: it is in part[], gathered in order. */
	const struct sl_from *from;
	struct sl_part part[2];
	/* What the source says of the block, for links whose own headers tell it; may be NULL. */
	const struct sl_record *record;
};

/* Bytes offset..offset+bytes of the write, as pieces: how many. More than `most` when they do not
 * suffice: then none is valid. */
unsigned sl_write_gather(const struct sl_write *write, uint32_t offset, uint32_t bytes,
			 struct sl_part *part, unsigned most);

/* The same, copied to one place. */
void sl_write_copy(const struct sl_write *write, uint32_t offset, uint32_t bytes, void *to);

#endif
