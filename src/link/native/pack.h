/* pack.h - pixels that are packed in packets and whole bytes in the block: an Eiger's of 4 and of
 * 12 bits.
 *
 * Model:     4 bits: a byte has two pixels, and each has a byte in the block. 12 bits: three bytes
 *            have two pixels, and each has two bytes in the block, the lower one first:
 *
 *              byte 0   bits 7-0 of the first pixel
 *              byte 1   bits 11-8 of the first in its lower half, bits 3-0 of the second above
 *              byte 2   bits 11-4 of the second
 *
 *            Lines begin with a pair of pixels. Packets of 4096 or 1024 bytes do not: the three
 *            bytes of a pair may be in two packets. Each byte is put into the block on its own
 *            there, so that packets may come in any order.
 * Threads:   all packets of a block are unpacked by one thread: half a byte is put beside what is
 *            there.
 * Ownership: plain data, pure functions.
 * Cost:      about 8 pixels (4 bits) or 4 pixels (12 bits) in ten operations. */
#ifndef SL_LINK_NATIVE_PACK_H
#define SL_LINK_NATIVE_PACK_H

#include "link/native/shape.h"

/* All pixels of a packet, into the block. */
void sl_native_unpack(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
		      const uint8_t *payload, uint8_t *block);

struct sl_native_span {	     /* the part of a packet that is of one line */
	uint64_t at;	     /* in the block: the first of its pairs of pixels */
	uint32_t bytes;	     /* of the block, up to the end of its last pair */
	uint32_t skip;	     /* bytes of the first pair, as it is packed, that it does not have */
	uint32_t wire_bytes; /* packed */
	uint32_t done;	     /* of the packet, with this one; 0: begin with the first */
};

/* The next span of a packet; false: there is none. */
bool sl_native_next_span(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
			 struct sl_native_span *span);

/* `bytes` packed bytes out of pairs of pixels, without the first `skip`. */
void sl_native_pack(const struct sl_native_shape *shape, const uint8_t *pixels, uint32_t skip,
		    uint32_t bytes, uint8_t *to);

#endif
