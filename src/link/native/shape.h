/* shape.h - which bytes of a block a packet has.
 *
 * Model:     a block is lines of pixels. Its ports divide it: `across` of them side by side, in
 *            `down` rows, numbered line by line. The part of a port is cut into packets of
 *            `payload` bytes, in the order of its pixels; a packet has one or more pieces of
 *            memory, since a port's lines need not follow each other.
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
	uint32_t lines, line_bytes; /* of a port */
	uint32_t pieces;	    /* of a packet, at most */
	uint64_t pitch;		    /* from line to line of the block */
	bool together;		    /* a port's lines follow each other without a gap */
	uint32_t items;		    /* events of a block */
	/* How packets are numbered: numbers of a block, and of a packet. 0: the header names the
	 * packet. */
	uint64_t block_numbers, packet_numbers;
};

struct sl_native_piece {
	uint64_t at; /* in the block */
	uint32_t bytes;
};

/* across, down and payload are set; lines x line_bytes is the block, pitch 0: no gaps. NULL, or why
 * it cannot be. */
const char *sl_native_shape_fill(struct sl_native_shape *shape, uint32_t lines, uint32_t line_bytes,
				 uint64_t pitch);

/* The pieces of a port's packet: how many. */
unsigned sl_native_pieces(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
			  struct sl_native_piece piece[SL_NATIVE_PIECES]);

#endif
