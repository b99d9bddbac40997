/* unpack.c - packed blocks back into elements. */
#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "codec/shuffle.h"
#include "codec/unpack.h"

enum { GROUP = SL_SHUFFLE_GROUP, LEAST_ELEMENTS = 128, ELEMENT_MOST = 64 };

/* The most bytes that one packed byte can become, and the least packed bytes of a block with its
 * length. Zstandard: a run of 128 KiB in a block of 4 bytes; a frame of 9. */
enum { LZ4_RATIO = 255, LZ4_LEAST = 5, ZSTD_RATIO = 1 << 15, ZSTD_LEAST = 13 };

static uint32_t big32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void sl_unpacker_init(struct sl_unpacker *unpacker, enum sl_vectors vectors)
{
	*unpacker = (struct sl_unpacker){.shuffle = sl_shuffle_choose(vectors)};
}

void sl_unpacker_fini(struct sl_unpacker *unpacker)
{
	free(unpacker->block);
	ZSTD_freeDCtx(unpacker->zstd);
	*unpacker = (struct sl_unpacker){0};
}

/* Memory for blocks of this image. */
static int provide(struct sl_unpacker *unpacker, enum sl_codec codec, size_t block)
{
	if (codec == SL_CODEC_BSZSTD && !unpacker->zstd) {
		unpacker->zstd = ZSTD_createDCtx();
		if (!unpacker->zstd)
			return -ENOMEM;
	}
	if (codec != SL_CODEC_LZ4 && block > unpacker->block_bytes) {
		uint8_t *more = realloc(unpacker->block, block);

		if (!more)
			return -ENOMEM;
		unpacker->block = more;
		unpacker->block_bytes = block;
	}
	return 0;
}

/* The elements of a block that bitshuffle takes by default. */
static uint64_t usual_block(uint32_t element)
{
	uint64_t elements = SL_PACK_SHUFFLED_BYTES / element / GROUP * GROUP;

	return elements < LEAST_ELEMENTS ? LEAST_ELEMENTS : elements;
}

/* Whether so few packed bytes can become that many: memory is allocated on the header's word. */
static bool possible(enum sl_codec codec, const struct sl_packed *packed, size_t in_bytes)
{
	bool zstd = codec == SL_CODEC_BSZSTD;
	uint64_t blocks = packed->block ? packed->bytes / packed->block : 0;

	return packed->bytes / (zstd ? ZSTD_RATIO : LZ4_RATIO) <= in_bytes &&
	       blocks <= in_bytes / (zstd ? ZSTD_LEAST : LZ4_LEAST);
}

int sl_packed_look(enum sl_codec codec, const uint8_t *in, size_t in_bytes, uint32_t element,
		   struct sl_packed *packed)
{
	struct sl_packed p = {.bytes = in_bytes, .block = in_bytes};

	if (codec == SL_CODEC_LZ4)
		element = 1;
	if (codec > SL_CODEC_BSZSTD || !element || element > ELEMENT_MOST)
		return -EBADMSG;
	if (codec != SL_CODEC_NONE) {
		if (in_bytes < SL_PACKED_HEADER)
			return -EBADMSG;
		p.bytes = (uint64_t)big32(in) << 32 | big32(in + 4);
		p.block = big32(in + 8);
		if (!p.block)
			p.block = usual_block(element) * element;
		if (p.block >= p.bytes) /* the whole image may be less than one block */
			p.block = p.bytes;
		else if (codec != SL_CODEC_LZ4 && p.block % (GROUP * element))
			return -EBADMSG;
		if (p.block > INT32_MAX || !possible(codec, &p, in_bytes))
			return -EBADMSG;
	}
	if (p.bytes % element)
		return -EBADMSG;
	*packed = p;
	return 0;
}

/* Packed bytes that must become exactly `bytes`. */
static bool unpack_block(const struct sl_unpacker *unpacker, enum sl_codec codec, const uint8_t *in,
			 size_t packed, uint8_t *out, size_t bytes)
{
	if (codec == SL_CODEC_BSZSTD)
		return ZSTD_decompressDCtx(unpacker->zstd, out, bytes, in, packed) == bytes;
	if (codec == SL_CODEC_LZ4 && packed == bytes) { /* kept as it is */
		memcpy(out, in, bytes);
		return true;
	}
	return packed <= INT32_MAX && LZ4_decompress_safe((const char *)in, (char *)out,
							  (int)packed, (int)bytes) == (int)bytes;
}

/* The block at *at, unpacked and unshuffled. */
static int unpack_next(const struct sl_unpacker *unpacker, enum sl_codec codec, const uint8_t **at,
		       const uint8_t *end, uint32_t element, uint8_t *out, size_t bytes)
{
	bool shuffled = codec != SL_CODEC_LZ4;
	uint32_t packed;

	if (end - *at < SL_PACKED_LENGTH)
		return -EBADMSG;
	packed = big32(*at);
	*at += SL_PACKED_LENGTH;
	if (packed > (uint64_t)(end - *at) ||
	    !unpack_block(unpacker, codec, *at, packed, shuffled ? unpacker->block : out, bytes))
		return -EBADMSG;
	*at += packed;
	if (shuffled)
		unpacker->shuffle->unshuffle(unpacker->block, bytes / element, element, out);
	return 0;
}

int sl_unpack(struct sl_unpacker *unpacker, enum sl_codec codec, const uint8_t *in, size_t in_bytes,
	      uint32_t element, uint8_t *out, size_t out_bytes)
{
	size_t group = codec == SL_CODEC_LZ4 ? 1 : GROUP * element;
	const uint8_t *at = in, *end = in + in_bytes;
	struct sl_packed packed;
	uint64_t left = out_bytes;
	int err = sl_packed_look(codec, in, in_bytes, element, &packed);

	if (!err && packed.bytes != out_bytes)
		err = -EBADMSG;
	if (!err && codec != SL_CODEC_NONE) {
		at += SL_PACKED_HEADER;
		err = provide(unpacker, codec, packed.block);
		while (!err && left >= group) {
			size_t now = (left < packed.block ? left : packed.block) / group * group;

			err = unpack_next(unpacker, codec, &at, end, element, out, now);
			out += now;
			left -= now;
		}
	}
	if (!err && (uint64_t)(end - at) < left)
		err = -EBADMSG;
	if (!err && left)
		memcpy(out, at, left);
	return err;
}

int sl_unpack_shuffled(const struct sl_unpacker *unpacker, const uint8_t *in, size_t bytes,
		       uint32_t element, uint64_t block_elements, uint8_t *out)
{
	uint64_t left, block;

	if (!element || element > ELEMENT_MOST || bytes % element || block_elements % GROUP)
		return -EBADMSG;
	left = bytes / element;
	block = block_elements ? block_elements : usual_block(element);
	while (left >= GROUP) {
		uint64_t elements = (left < block ? left : block) / GROUP * GROUP;

		unpacker->shuffle->unshuffle(in, elements, element, out);
		in += elements * element;
		out += elements * element;
		left -= elements;
	}
	memcpy(out, in, left * element);
	return 0;
}
