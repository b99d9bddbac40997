/* pack.h - packing images: LZ4, bitshuffle with LZ4, bitshuffle with Zstandard.
 *
 * Model:     sl_pack() makes one packed image (codec.h) of one image. Blocks are packed one after
 *            another; no image depends on an earlier one.
 * Threads:   a packer belongs to one thread at a time; threads that pack side by side have one
 *            each.
 * Ownership: `in` is only read; `out` is the caller's and has out_bytes. A packer owns its memory
 *            until sl_packer_fini().
 * Errors:    -EINVAL: an element size other than 1, 2, 4 and 8, or not a whole number of elements;
 *            -ENOSPC: `out` is too small, and what it holds is of no use.
 * Cost:      a packer's memory is allocated by sl_packer_init(). sl_pack() does not allocate,
 *            except bszstd of images below 8 KiB. A core packs 1.8 GB/s (raw ADU) to 5 GB/s (few
 *            photons) by bslz4, 0.4 to 2 GB/s by bszstd; `sluice bench codec` measures it. */
#ifndef SL_CODEC_PACK_H
#define SL_CODEC_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vector/choose.h"
#include "codec/codec.h"

struct ZSTD_CCtx_s;
struct sl_lz4_table;
struct sl_shuffle;

struct sl_packer {
	const struct sl_shuffle *shuffle;
	struct sl_lz4_table *table; /* of bslz4 */
	void *lz4;		    /* the state of liblz4, for lz4 */
	uint8_t *around, *block;    /* a shuffled block, and the memory that it lies in */
	uint8_t *packed;	    /* a packed block */
	struct ZSTD_CCtx_s *zstd;
	bool sum;     /* the caller's to set: sum up the image while its blocks are in the cache */
	uint32_t crc; /* CRC32C of the image that was packed last, with `sum` */
};

/* vectors: the best instruction set that the packer may use; SL_VECTORS_AUTO: this CPU's best. The
 * packed bytes are the same with all of them. -ENOMEM: nothing is left allocated. */
int sl_packer_init(struct sl_packer *packer, enum sl_vectors vectors);
void sl_packer_fini(struct sl_packer *packer);

/* The most bytes that an image of `bytes` can take when packed; 0: sl_pack() would refuse it. */
size_t sl_pack_bound(enum sl_codec codec, uint64_t bytes, uint32_t element);

/* Pack an image of `bytes`, of elements with `element` bytes each. Returns the packed bytes. */
int64_t sl_pack(struct sl_packer *packer, enum sl_codec codec, const void *in, uint64_t bytes,
		uint32_t element, void *out, size_t out_bytes);

#endif
