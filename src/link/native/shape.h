/* shape.h - which bytes of a block a packet has.
 *
 * Model:     a block is lines of pixels. Its ports divide it: `across` of them side by side, in
 *            `down` rows, numbered line by line. The part of a port is cut into packets of
 *            `payload` bytes, in the order of its pixels; a packet has one or more pieces of
 *            memory, since a port's lines need not follow each other.
 *            A port may send its last line first: its lines are turned over. Pixels may be packed
 *            in packets, and wider in the block: then pack.h has the bytes, and there are no
 *            pieces. A detector that reads out the middle of its modules alone numbers packets as
 *            if it sent all of it: a port's first packet may be another one than 0.
 * Ownership: plain data, pure functions.
 * Cost:      three divisions and a step per piece. */
#ifndef SL_LINK_NATIVE_SHAPE_H
#define SL_LINK_NATIVE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SL_NATIVE_PORTS = 4,
	SL_NATIVE_PIECES = 32,	  /* of a packet */
	SL_NATIVE_PAYLOAD = 8960, /* what fits a jumbo frame */
};

struct sl_native_shape {
	uint32_t across, down, ports;
	uint32_t packets, payload;  /* of a port and block; bytes of each */
	uint32_t lines, line_bytes; /* of a port, as they lie in the block */
	/* Bits of a pixel in packets, where it is packed: 4, one byte in the block, or 12, two
	 * bytes; 0: packets have the bytes of the block. wire_line: bytes of a line in packets. */
	uint32_t packed, wire_line;
	bool high_first;  /* packed 4: the upper half of a byte is the first of its two pixels */
	uint32_t flipped; /* bit p: port p sends its last line first */
	bool bottom_up;	  /* the first row of ports has the last lines of the block */
	uint32_t unread;  /* lines of the module above the block, which are not read out */
	uint32_t first_packet[SL_NATIVE_PORTS]; /* number of the first one in headers */
	uint32_t pieces;			/* of a packet, at most */
	uint64_t pitch;				/* from line to line of the block */
	bool together;				/* a port's lines follow each other without a gap */
	uint32_t items;				/* events of a block */
	/* How packets are numbered: numbers of a block, and of a packet. 0: the header names the
	 * packet. */
	uint64_t block_numbers, packet_numbers;
};

struct sl_native_piece {
	uint64_t at; /* in the block */
	uint32_t bytes;
};

/* across, down, payload, packed, flipped and unread are set; lines x line_bytes is the block, pitch
 * 0: no gaps. NULL, or why it cannot be. */
const char *sl_native_shape_fill(struct sl_native_shape *shape, uint32_t lines, uint32_t line_bytes,
				 uint64_t pitch);

/* Where a line of a port begins in the block. line: as the port counts. */
static inline uint64_t sl_native_line_at(const struct sl_native_shape *shape, uint32_t port,
					 uint64_t line)
{
	uint64_t row = shape->flipped >> port & 1 ? shape->lines - 1 - line : line;

	uint64_t part = port / shape->across;

	if (shape->bottom_up)
		part = shape->down - 1 - part;
	return (part * shape->lines + row) * shape->pitch +
	       (uint64_t)(port % shape->across) * shape->line_bytes;
}

/* The pieces of a port's packet: how many. Not of packed pixels. */
unsigned sl_native_pieces(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
			  struct sl_native_piece piece[SL_NATIVE_PIECES]);

#endif
