/* bitshuffle.h - chunks packed by bitshuffle, LZ4 or LZF, as HDF5's filters 32008, 32004 and 32000
 * leave them.
 *
 * Model:     bitshuffle takes blocks of elements and writes all their lowest bits, then all the
 *            next, and so on, so that bits which are alike lie together. LZ4 packs each block for
 *            itself. A packed chunk is
 *
 *              u64 bytes when unpacked, u32 bytes of a block when unpacked, both big-endian
 *              per block: u32 bytes that follow (big-endian), and these
 *
 *            With bitshuffle a block has a multiple of 8 elements; the last is shorter, and up to 7
 *            elements remain, which follow as they are. Source: the documentation of both formats,
 *            github.com/kiyo-masui/bitshuffle and github.com/HDFGroup/hdf5_plugins (LZ4).
 * Threads:   no state.
 * Errors:    -EBADMSG for bytes that no packer wrote; nothing is read or written out of bounds.
 * Cost:      about 1 GB/s unpacked. No allocation: `scratch` holds a block. */
#ifndef SL_HDF5_BITSHUFFLE_H
#define SL_HDF5_BITSHUFFLE_H

#include <stddef.h>
#include <stdint.h>

enum { SL_PACKED_HEADER = 12, SL_PACKED_RATIO = 255 /* the most that LZ4 does */ };

/* What a packed chunk says of itself. `block`: bytes of the scratch that it needs. */
struct sl_packed {
	uint64_t bytes, block;
};
int sl_packed_look(const uint8_t *in, size_t in_bytes, uint32_t element, struct sl_packed *packed);

/* Undo bitshuffle and LZ4; `out` has packed.bytes, `scratch` packed.block. */
int sl_bitshuffle_lz4(const uint8_t *in, size_t in_bytes, uint32_t element, uint8_t *out,
		      uint8_t *scratch);

/* Undo LZ4 alone (filter 32004): element 1, and no scratch. */
int sl_lz4_blocks(const uint8_t *in, size_t in_bytes, uint8_t *out);

/* Undo bitshuffle alone, block_elements (0: bitshuffle's own choice) at a time. */
int sl_bitshuffle_plain(const uint8_t *in, size_t bytes, uint32_t element, uint64_t block_elements,
			uint8_t *out);

/* Undo LZF (filter 32000, which h5py brings along): a byte below 32 is followed by so many and one
 * more as they are; any other, with the one that follows (two, when its upper 3 bits are all set),
 * is a length and how far back the bytes are to be had. Source: the description of its format in
 * github.com/nemequ/liblzf. It must become exactly out_bytes. */
int sl_lzf(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

#endif
