/* unpack.h - unpacking images: what pack.h makes, and what other programs write with the HDF5
 * filters 32008 (bitshuffle alone, with LZ4, with Zstandard), 32004 (LZ4) and 32000 (LZF).
 *
 * Model:     codec.h describes a packed image. sl_packed_look() says how many bytes it has when
 *            unpacked, sl_unpack() unpacks it.
 * Threads:   an unpacker belongs to one thread at a time. Functions without one have no state.
 * Ownership: input and output are the caller's. An unpacker owns its memory until
 *            sl_unpacker_fini().
 * Errors:    -EBADMSG for bytes that no packer wrote; nothing is read or written out of bounds.
 *            -ENOMEM: no memory for a block.
 * Cost:      sl_unpack() allocates when an image has a larger block than all before, and with the
 *            first image of bszstd. `sluice bench codec` measures the speed. */
#ifndef SL_CODEC_UNPACK_H
#define SL_CODEC_UNPACK_H

#include <stddef.h>

#include "base/vector/choose.h"
#include "codec/codec.h"

struct ZSTD_DCtx_s;
struct sl_shuffle;

struct sl_unpacker {
	const struct sl_shuffle *shuffle;
	uint8_t *block;
	size_t block_bytes;
	struct ZSTD_DCtx_s *zstd;
};

/* vectors: as for sl_packer_init(). */
void sl_unpacker_init(struct sl_unpacker *unpacker, enum sl_vectors vectors);
void sl_unpacker_fini(struct sl_unpacker *unpacker);

/* What a packed image says of itself: bytes when unpacked, and bytes of its largest block. */
struct sl_packed {
	uint64_t bytes, block;
};
int sl_packed_look(enum sl_codec codec, const uint8_t *in, size_t in_bytes, uint32_t element,
		   struct sl_packed *packed);

/* Elements of up to 64 bytes. out_bytes: those that sl_packed_look() gave; else -EBADMSG. */
int sl_unpack(struct sl_unpacker *unpacker, enum sl_codec codec, const uint8_t *in, size_t in_bytes,
	      uint32_t element, uint8_t *out, size_t out_bytes);

/* Undo bitshuffle alone, block_elements at a time; 0: bitshuffle's own choice. */
int sl_unpack_shuffled(const struct sl_unpacker *unpacker, const uint8_t *in, size_t bytes,
		       uint32_t element, uint64_t block_elements, uint8_t *out);

/* Undo LZF (filter 32000, which is part of h5py). A byte below 32 is one less than the
 * number of literals that follow. Any other byte, with the next (two, when its upper 3 bits are all
 * set), is a length and how far back the bytes to repeat are. Source: the description of the format
 * in github.com/nemequ/liblzf. -EBADMSG: it does not become exactly out_bytes. */
int sl_unpack_lzf(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

#endif
