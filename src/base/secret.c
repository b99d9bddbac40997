/* secret.c - random numbers from the kernel, HMAC-SHA256 from nettle, which audit/hash.c
 * uses, too. */
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

void sl_secret_fill(void *out, size_t bytes)
{
	enum { AT_ONCE = 256 }; /* getrandom() gives these whole, or fails */
	uint8_t *at = out;

	for (size_t n; bytes; at += n, bytes -= n) {
		n = bytes < AT_ONCE ? bytes : AT_ONCE;
		if (getrandom(at, n, 0) != (ssize_t)n)
			abort();
	}
}

uint32_t sl_secret_u32(void)
{
	uint32_t value;

	sl_secret_fill(&value, sizeof(value));
	return value;
}

void sl_secret_proof(const char *key, const void *message, size_t bytes,
		     uint8_t proof[SL_SECRET_PROOF_BYTES])
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, strlen(key), (const uint8_t *)key);
	hmac_sha256_update(&hmac, bytes, message);
	hmac_sha256_digest(&hmac, SL_SECRET_PROOF_BYTES, proof);
	explicit_bzero(&hmac, sizeof(hmac));
}

bool sl_secret_same(const void *a, const void *b, size_t bytes)
{
	return memeql_sec(a, b, bytes);
}
