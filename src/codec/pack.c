/* pack.c - images into blocks, blocks into packed bytes. */
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/crc.h"
#include "codec/lz4_rows.h"
#include "codec/pack.h"
#include "codec/shuffle.h"

/* Zstandard's fastest level that still uses its entropy coder on everything. */
enum { ZSTD_LEVEL = 1 };

static void put_big32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

int sl_packer_init(struct sl_packer *packer, enum sl_vectors vectors)
{
	uint8_t out[ZSTD_COMPRESSBOUND(SL_PACK_SHUFFLED_BYTES)];

	*packer = (struct sl_packer){.shuffle = sl_shuffle_choose(vectors)};
	packer->lz4 = malloc((size_t)LZ4_sizeofState());
	packer->table = malloc(sizeof(*packer->table));
	packer->around = aligned_alloc(64, SL_PACK_SHUFFLED_BYTES + 2 * SL_LZ4_ROWS_SLACK);
	packer->packed = malloc(SL_LZ4_ROWS_BOUND + SL_LZ4_ROWS_SLACK);
	packer->zstd = ZSTD_createCCtx();
	if (!packer->lz4 || !packer->table || !packer->around || !packer->packed || !packer->zstd)
		goto fail;
	sl_lz4_table_init(packer->table);
	/* Zstandard allocates its tables with the first block: do it now. */
	memset(packer->around, 0, SL_PACK_SHUFFLED_BYTES + 2 * SL_LZ4_ROWS_SLACK);
	packer->block = packer->around + SL_LZ4_ROWS_SLACK;
	if (ZSTD_isError(ZSTD_compressCCtx(packer->zstd, out, sizeof(out), packer->block,
					   SL_PACK_SHUFFLED_BYTES, ZSTD_LEVEL)))
		goto fail;
	return 0;
fail:
	sl_packer_fini(packer);
	return -ENOMEM;
}

void sl_packer_fini(struct sl_packer *packer)
{
	free(packer->lz4);
	free(packer->table);
	free(packer->around);
	free(packer->packed);
	ZSTD_freeCCtx(packer->zstd);
	*packer = (struct sl_packer){0};
}

static bool valid(enum sl_codec codec, uint64_t bytes, uint32_t element)
{
	return codec <= SL_CODEC_BSZSTD && bytes <= INT64_MAX / 2 &&
	       (element == 1 || element == 2 || element == 4 || element == 8) &&
	       bytes % element == 0;
}

size_t sl_pack_bound(enum sl_codec codec, uint64_t bytes, uint32_t element)
{
	uint64_t block = codec == SL_CODEC_LZ4 ? SL_PACK_LZ4_BYTES : SL_PACK_SHUFFLED_BYTES;
	uint64_t blocks = bytes / block + 1, most;

	if (!valid(codec, bytes, element))
		return 0;
	if (codec == SL_CODEC_NONE)
		return bytes;
	most = codec == SL_CODEC_LZ4	 ? block
	       : codec == SL_CODEC_BSLZ4 ? (uint64_t)LZ4_COMPRESSBOUND(SL_PACK_SHUFFLED_BYTES)
					 : ZSTD_COMPRESSBOUND(SL_PACK_SHUFFLED_BYTES);
	/* The last block may be short: count what packing adds to each, and the bytes once. */
	return SL_PACKED_HEADER + bytes + blocks * (SL_PACKED_LENGTH + most - block);
}

/* Bytes of the packed block, without its length; 0: they do not fit. */
static size_t pack_lz4(struct sl_packer *packer, const uint8_t *in, size_t bytes, uint8_t *out,
		       size_t out_bytes)
{
	int most = out_bytes < INT_MAX ? (int)out_bytes : INT_MAX;
	int packed = LZ4_compress_fast_extState(packer->lz4, (const char *)in, (char *)out,
						(int)bytes, most, 1);

	return packed > 0 ? (size_t)packed : 0;
}

/* The shuffled block. Where room may be short, it is packed elsewhere first. */
static size_t pack_rows(struct sl_packer *packer, size_t bytes, size_t row, uint64_t used,
			uint8_t *out, size_t out_bytes)
{
	bool direct = out_bytes >= SL_LZ4_ROWS_BOUND + SL_LZ4_ROWS_SLACK;
	size_t packed = sl_lz4_rows(packer->table, packer->block, (uint32_t)bytes, used,
				    (uint32_t)row, direct ? out : packer->packed);

	if (packed > out_bytes)
		return 0;
	if (!direct)
		memcpy(out, packer->packed, packed);
	return packed;
}

static size_t pack_zstd(struct sl_packer *packer, const uint8_t *in, size_t bytes, uint8_t *out,
			size_t out_bytes)
{
	size_t packed = ZSTD_compressCCtx(packer->zstd, out, out_bytes, in, bytes, ZSTD_LEVEL);

	return ZSTD_isError(packed) ? 0 : packed;
}

/* Plain LZ4: a block that does not get smaller stays as it is. */
static size_t pack_plain(struct sl_packer *packer, const uint8_t *in, size_t bytes, uint8_t *out,
			 size_t out_bytes)
{
	size_t most = out_bytes < bytes - 1 ? out_bytes : bytes - 1;
	size_t packed = most ? pack_lz4(packer, in, bytes, out, most) : 0;

	if (packed)
		return packed;
	if (out_bytes < bytes)
		return 0;
	memcpy(out, in, bytes);
	return bytes;
}

static size_t pack_block(struct sl_packer *packer, enum sl_codec codec, const uint8_t *in,
			 size_t bytes, uint32_t element, uint8_t *out, size_t out_bytes)
{
	uint64_t used;

	if (codec == SL_CODEC_LZ4)
		return pack_plain(packer, in, bytes, out, out_bytes);
	used = packer->shuffle->shuffle(in, bytes / element, element, packer->block);
	/* The next block comes to the cache while this one is packed; a prefetch never faults. */
	for (size_t i = 0; i < SL_PACK_SHUFFLED_BYTES; i += 64)
		__builtin_prefetch(in + bytes + i, 0, 2);
	return codec == SL_CODEC_BSLZ4
		       ? pack_rows(packer, bytes, bytes / element / 8, used, out, out_bytes)
		       : pack_zstd(packer, packer->block, bytes, out, out_bytes);
}

/* All blocks of an image, and the elements that no block has. */
static int64_t pack_blocks(struct sl_packer *packer, enum sl_codec codec, const uint8_t *in,
			   uint64_t bytes, uint32_t element, uint8_t *out, size_t out_bytes)
{
	size_t block = codec == SL_CODEC_LZ4 ? SL_PACK_LZ4_BYTES : SL_PACK_SHUFFLED_BYTES;
	size_t group = codec == SL_CODEC_LZ4 ? 1 : SL_SHUFFLE_GROUP * element;
	uint8_t *at = out, *end = out + out_bytes;

	while (bytes >= group) {
		size_t now = bytes < block ? bytes / group * group : block, packed;

		if (end - at < SL_PACKED_LENGTH)
			return -ENOSPC;
		packed = pack_block(packer, codec, in, now, element, at + SL_PACKED_LENGTH,
				    (size_t)(end - at) - SL_PACKED_LENGTH);
		if (!packed)
			return -ENOSPC;
		if (packer->sum)
			packer->crc = sl_crc32c(packer->crc, in, now);
		put_big32(at, (uint32_t)packed);
		at += SL_PACKED_LENGTH + packed;
		in += now;
		bytes -= now;
	}
	if ((uint64_t)(end - at) < bytes)
		return -ENOSPC;
	if (bytes && packer->sum)
		packer->crc = sl_crc32c(packer->crc, in, bytes);
	if (bytes)
		memcpy(at, in, bytes);
	return at + bytes - out;
}

int64_t sl_pack(struct sl_packer *packer, enum sl_codec codec, const void *in, uint64_t bytes,
		uint32_t element, void *out, size_t out_bytes)
{
	uint8_t *head = out;
	int64_t packed;

	if (!valid(codec, bytes, element))
		return -EINVAL;
	if (out_bytes < (codec == SL_CODEC_NONE ? bytes : SL_PACKED_HEADER))
		return -ENOSPC;
	packer->crc = 0;
	if (codec == SL_CODEC_NONE) {
		if (packer->sum)
			packer->crc = sl_crc32c(0, in, bytes);
		if (bytes)
			memcpy(out, in, bytes);
		return (int64_t)bytes;
	}
	put_big32(head, (uint32_t)(bytes >> 32));
	put_big32(head + 4, (uint32_t)bytes);
	put_big32(head + 8, codec == SL_CODEC_LZ4 ? SL_PACK_LZ4_BYTES : SL_PACK_SHUFFLED_BYTES);
	packed = pack_blocks(packer, codec, in, bytes, element, head + SL_PACKED_HEADER,
			     out_bytes - SL_PACKED_HEADER);
	return packed < 0 ? packed : packed + SL_PACKED_HEADER;
}
