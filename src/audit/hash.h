/* hash.h - SHA-256, from nettle.
 *
 * Threads:   functions of their arguments. */
#ifndef SL_AUDIT_HASH_H
#define SL_AUDIT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_HASH_BYTES = 32, SL_HASH_TEXT = 2 * SL_HASH_BYTES + 1 };

struct sl_hash {
	uint8_t byte[SL_HASH_BYTES];
};

/* Of a first byte, which says what is hashed, and two pieces; b may be NULL with 0 bytes. */
struct sl_hash sl_hash_of(uint8_t first, const void *a, size_t a_bytes, const void *b,
			  size_t b_bytes);
struct sl_hash sl_hash_of_nothing(void);

bool sl_hash_same(const struct sl_hash *a, const struct sl_hash *b);

/* 64 hexadecimal digits. */
const char *sl_hash_text(const struct sl_hash *hash, char text[SL_HASH_TEXT]);
/* -EINVAL: it is not that. */
int sl_hash_read(const char *text, struct sl_hash *hash);

#endif
