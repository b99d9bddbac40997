/* hash.c - nettle's SHA-256. */
#include "audit/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <nettle/sha2.h>

struct sl_hash sl_hash_of(uint8_t first, const void *a, size_t a_bytes, const void *b,
			  size_t b_bytes)
{
	struct sha256_ctx context;
	struct sl_hash hash;

	sha256_init(&context);
	sha256_update(&context, 1, &first);
	sha256_update(&context, a_bytes, a);
	if (b_bytes)
		sha256_update(&context, b_bytes, b);
	sha256_digest(&context, SL_HASH_BYTES, hash.byte);
	return hash;
}

struct sl_hash sl_hash_of_nothing(void)
{
	struct sha256_ctx context;
	struct sl_hash hash;

	sha256_init(&context);
	sha256_digest(&context, SL_HASH_BYTES, hash.byte);
	return hash;
}

bool sl_hash_same(const struct sl_hash *a, const struct sl_hash *b)
{
	return !memcmp(a->byte, b->byte, SL_HASH_BYTES);
}

const char *sl_hash_text(const struct sl_hash *hash, char text[SL_HASH_TEXT])
{
	for (int i = 0; i < SL_HASH_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", hash->byte[i]);
	return text;
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int sl_hash_read(const char *text, struct sl_hash *hash)
{
	if (strlen(text) != 2 * SL_HASH_BYTES)
		return -EINVAL;
	for (int i = 0; i < SL_HASH_BYTES; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		hash->byte[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}
