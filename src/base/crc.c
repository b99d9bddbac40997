/* crc.c - ISA-L behind one convention. */
#include "base/crc.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

/* crc32_iscsi() takes its length as an int. */
enum { CRC32C_CHUNK = 1 << 30, CRC32C_SHORT = 128 };

uint32_t sl_crc32(uint32_t crc, const void *data, size_t bytes)
{
	return crc32_gzip_refl(crc, data, bytes);
}

#ifdef __x86_64__
/* Records have 60 bytes: ISA-L's ways of going fast begin to pay beyond that. */
__attribute__((target("sse4.2"))) static uint32_t crc32c_short(uint32_t crc, const uint8_t *p,
							       size_t bytes)
{
	uint64_t sum = crc, word;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		memcpy(&word, p, 8);
		sum = __builtin_ia32_crc32di(sum, word);
	}
	for (; bytes; bytes--, p++)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, *p);
	return (uint32_t)sum;
}

static bool has_short(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t crc32c_short(uint32_t crc, const uint8_t *p, size_t bytes)
{
	return crc32_iscsi((unsigned char *)p, (int)bytes, crc);
}

static bool has_short(void)
{
	return false;
}
#endif

uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	if (bytes <= CRC32C_SHORT && has_short())
		return ~crc32c_short(~crc, p, bytes);
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
