/* crc.c - ISA-L behind one convention. */
#include "base/crc.h"

#include <isa-l/crc.h>

/* crc32_iscsi() takes its length as an int. */
enum { CRC32C_CHUNK = 1 << 30 };

uint32_t sl_crc32(uint32_t crc, const void *data, size_t bytes)
{
	return crc32_gzip_refl(crc, data, bytes);
}

uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	/* ISA-L inverts neither the start value nor the result here, unlike in the call above. */
	crc = ~crc;
	while (bytes) {
		int n = bytes < CRC32C_CHUNK ? (int)bytes : CRC32C_CHUNK;

		crc = crc32_iscsi((unsigned char *)p, n, crc);
		p += n;
		bytes -= (size_t)n;
	}
	return ~crc;
}
