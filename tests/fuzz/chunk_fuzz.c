/* chunk_fuzz.c - any bytes as a chunk that bitshuffle, LZ4, Zstandard or LZF packed: the size that
 * the header claims holds, and nothing beyond it is touched. The first byte gives the bytes of a
 * pixel, the second the length of an LZF chunk. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/pack.h"
#include "codec/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

static void unpack(enum sl_codec codec, const uint8_t *data, size_t size, uint32_t element)
{
	struct sl_unpacker unpacker;
	struct sl_packed packed;
	uint8_t *out;

	if (sl_packed_look(codec, data, size, element, &packed) || packed.bytes > MOST)
		return;
	/* As large as was said, so that a sanitizer sees every byte too many. */
	out = malloc(packed.bytes ? packed.bytes : 1);
	if (!out)
		abort();
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	sl_unpack(&unpacker, codec, data, size, element, out, packed.bytes);
	sl_unpacker_fini(&unpacker);
	free(out);
}

/* The same bytes as an image: packed and unpacked they are what they were. */
static void round_trip(enum sl_codec codec, const uint8_t *data, size_t size, uint32_t element)
{
	size_t bytes = size / element * element, room = sl_pack_bound(codec, bytes, element);
	uint8_t *packed = malloc(room + 1), *out = malloc(bytes + 1);
	struct sl_unpacker unpacker;
	struct sl_packer packer;
	int64_t packed_bytes;

	if (!packed || !out || sl_packer_init(&packer, SL_VECTORS_AUTO))
		abort();
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	packed_bytes = sl_pack(&packer, codec, data, bytes, element, packed, room);
	if (packed_bytes < 0 ||
	    sl_unpack(&unpacker, codec, packed, (size_t)packed_bytes, element, out, bytes) ||
	    memcmp(out, data, bytes) != 0)
		abort();
	sl_unpacker_fini(&unpacker);
	sl_packer_fini(&packer);
	free(packed);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_unpacker unpacker;
	size_t length;
	uint8_t *out;

	if (size < 2)
		return 0;
	length = data[1] * 3u;
	out = malloc(length > size ? length : size);
	if (!out)
		abort();
	for (enum sl_codec codec = SL_CODEC_NONE; codec <= SL_CODEC_BSZSTD; codec++)
		unpack(codec, data + 2, size - 2, data[0] % 9);
	round_trip(SL_CODEC_BSLZ4, data + 2, size - 2, 1u << data[0] % 4);
	sl_unpack_lzf(data + 2, size - 2, out, length);
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	sl_unpack_shuffled(&unpacker, data + 2, size - 2, data[0] % 9, data[1] & 0xf8, out);
	sl_unpacker_fini(&unpacker);
	free(out);
	return 0;
}
