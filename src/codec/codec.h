/* codec.h - how an image is packed, and the bytes of a packed image.
 *
 * Model:     a packed image is a chunk as HDF5's filters write it, so that a sink may give the
 *            same bytes to H5Dwrite_chunk() or to a stream:
 *
 *              u64 bytes when unpacked, u32 bytes of a block when unpacked, both big-endian
 *              per block: u32 bytes that follow (big-endian), and these
 *
 *            | codec  | HDF5 filter              | block      | bytes of a block              |
 *            | lz4    | 32004                    | 64 KiB     | LZ4, or as they are: see below|
 *            | bslz4  | 32008, compression 2     | 8 KiB      | bitshuffle, then LZ4          |
 *            | bszstd | 32008, compression 3     | 8 KiB      | bitshuffle, then one Zstandard|
 *            |        |                          |            | frame                         |
 *
 *            bitshuffle writes the lowest bits of all elements of a block, then the next bits, and
 *            so on, so that bits which are alike lie together (shuffle.h). With it a block has a
 *            multiple of 8 elements; the last block is shorter, and up to 7 elements remain, which
 *            follow as they are. Plain LZ4 keeps a block as it is where packing would not make it
 *            smaller: its length then equals that of the unpacked block.
 *
 *            Sources: github.com/kiyo-masui/bitshuffle 526440a (README.rst, src/bshuf_h5filter.c),
 *            github.com/HDFGroup/hdf5_plugins (LZ4), lz4_Block_format.md of github.com/lz4/lz4. */
#ifndef SL_CODEC_CODEC_H
#define SL_CODEC_CODEC_H

#include <stdint.h>

enum sl_codec { SL_CODEC_NONE, SL_CODEC_LZ4, SL_CODEC_BSLZ4, SL_CODEC_BSZSTD };

enum {
	SL_PACKED_HEADER = 12,	       /* bytes before the first block */
	SL_PACKED_LENGTH = 4,	       /* bytes before each block */
	SL_PACK_SHUFFLED_BYTES = 8192, /* of a block when unpacked: bslz4, bszstd */
	SL_PACK_LZ4_BYTES = 65536,     /* likewise: lz4 */
};

#endif
