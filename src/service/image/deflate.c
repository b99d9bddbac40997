/* deflate.c - streams of zlib, in pieces. */
#include "service/image/deflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const uint8_t sl_deflate_begin[SL_DEFLATE_BEGIN] = {0x78, 0x01};

bool sl_deflate_is_there(void)
{
	return true;
}

int sl_deflate_pack(const void *data, size_t bytes, uint8_t **packed, size_t *packed_bytes,
		    uint32_t *adler)
{
	z_stream z = {.zalloc = NULL};
	uint8_t *memory, *exact;
	size_t bound;
	int end;

	/* Negative: blocks alone. */
	if (deflateInit2(&z, 1, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&z, bytes);
	memory = malloc(bound);
	if (!memory) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (Bytef *)data;
	z.next_out = memory;
	do { /* in pieces: zlib counts in 32 bits */
		size_t left = bytes - (size_t)((const uint8_t *)z.next_in - (const uint8_t *)data);
		size_t room = bound - (size_t)(z.next_out - memory);

		z.avail_in = left < 1 << 30 ? (uInt)left : 1 << 30;
		z.avail_out = room < 1 << 30 ? (uInt)room : 1 << 30;
		end = deflate(&z, left == z.avail_in ? Z_FINISH : Z_NO_FLUSH);
	} while (end == Z_OK);
	*packed_bytes = (size_t)(z.next_out - memory);
	deflateEnd(&z);
	if (end != Z_STREAM_END) {
		free(memory);
		return -ENOMEM;
	}
	exact = realloc(memory, *packed_bytes);
	*packed = exact ? exact : memory;
	*adler = (uint32_t)adler32_z(1, data, bytes);
	return 0;
}

uint32_t sl_deflate_store(const void *data, size_t bytes, uint8_t *blocks)
{
	const uint8_t *from = data;

	for (size_t at = 0; at < bytes;) {
		size_t n = bytes - at < SL_DEFLATE_STORED ? bytes - at : SL_DEFLATE_STORED;

		*blocks++ = 0;
		*blocks++ = (uint8_t)n;
		*blocks++ = (uint8_t)(n >> 8);
		*blocks++ = (uint8_t)~n;
		*blocks++ = (uint8_t)(~n >> 8);
		memcpy(blocks, from + at, n);
		blocks += n;
		at += n;
	}
	return (uint32_t)adler32_z(1, data, bytes);
}

void sl_deflate_end(uint32_t first, uint32_t second, uint64_t bytes, uint8_t end[SL_DEFLATE_END])
{
	uint32_t all = (uint32_t)adler32_combine(first, second, (z_off_t)bytes);

	for (int i = 0; i < SL_DEFLATE_END; i++)
		end[i] = (uint8_t)(all >> (24 - 8 * i));
}
