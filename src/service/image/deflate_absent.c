/* deflate_absent.c - stands in where zlib was not found: answers are not packed. */
#include <errno.h>

#include "service/image/deflate.h"

const uint8_t sl_deflate_begin[SL_DEFLATE_BEGIN] = {0};

bool sl_deflate_is_there(void)
{
	return false;
}

int sl_deflate_pack(const void *data, size_t bytes, uint8_t **packed, size_t *packed_bytes,
		    uint32_t *adler)
{
	return -ENOTSUP;
}

uint32_t sl_deflate_store(const void *data, size_t bytes, uint8_t *blocks)
{
	return 0;
}

void sl_deflate_end(uint32_t first, uint32_t second, uint64_t bytes, uint8_t end[SL_DEFLATE_END])
{
}
