/* chunk_fuzz.c - any bytes as a chunk that bitshuffle, LZ4 or LZF packed: what they say of their
 * size holds, and nothing beyond it is touched. The first byte says how many a pixel has, the
 * second how long an LZF chunk is. */
#include <stdint.h>
#include <stdlib.h>

#include "hdf5/bitshuffle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

static void unpack(const uint8_t *data, size_t size, uint32_t element)
{
	struct sl_packed packed;
	uint8_t *out, *scratch;

	if (sl_packed_look(data, size, element, &packed) || packed.bytes > MOST)
		return;
	/* As large as was said, so that a sanitizer sees every byte too many. */
	out = malloc(packed.bytes ? packed.bytes : 1);
	scratch = malloc(packed.block ? packed.block : 1);
	if (!out || !scratch)
		abort();
	sl_bitshuffle_lz4(data, size, element, out, scratch);
	if (element == 1)
		sl_lz4_blocks(data, size, out);
	free(scratch);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length;
	uint8_t *out;

	if (size < 2)
		return 0;
	length = data[1] * 3u;
	out = malloc(length > size ? length : size);
	if (!out)
		abort();
	unpack(data + 2, size - 2, data[0] % 9);
	sl_lzf(data + 2, size - 2, out, length);
	sl_bitshuffle_plain(data + 2, size - 2, data[0] % 9, data[1] & 0xf8, out);
	free(out);
	return 0;
}
