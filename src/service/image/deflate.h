/* deflate.h - pixels packed for the way to a browser: the format of zlib, in pieces. The one place
 * with <zlib.h> is deflate.c.
 *
 * Model:     a stream is the two bytes of sl_deflate_begin, blocks, and the checksum of all that
 *            they unpack to. Blocks of different makers may follow each other; only the last piece
 *            says that it is the last.
 * Threads:   functions of their arguments.
 * Cost:      about 10 ns a byte, at zlib's quickest level. */
#ifndef SL_SERVICE_IMAGE_DEFLATE_H
#define SL_SERVICE_IMAGE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this program has zlib; without it nothing below is called. */
bool sl_deflate_is_there(void);

enum { SL_DEFLATE_BEGIN = 2, SL_DEFLATE_STORED = 65535, SL_DEFLATE_BLOCK = 5, SL_DEFLATE_END = 4 };
extern const uint8_t sl_deflate_begin[SL_DEFLATE_BEGIN];

/* Blocks, the last one marked as such: malloc'ed. -ENOMEM. adler: their checksum. */
int sl_deflate_pack(const void *data, size_t bytes, uint8_t **packed, size_t *packed_bytes,
		    uint32_t *adler);

/* Bytes that sl_deflate_store() makes of so many. */
static inline size_t sl_deflate_stored(size_t bytes)
{
	return bytes + (bytes + SL_DEFLATE_STORED - 1) / SL_DEFLATE_STORED * SL_DEFLATE_BLOCK;
}
/* Blocks that are not packed, none of them the last; their checksum. */
uint32_t sl_deflate_store(const void *data, size_t bytes, uint8_t *blocks);

/* The end of a stream of `first`, and behind it `bytes` bytes with the checksum `second`. */
void sl_deflate_end(uint32_t first, uint32_t second, uint64_t bytes, uint8_t end[SL_DEFLATE_END]);

#endif
