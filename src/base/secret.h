/* secret.h - secrets: numbers that cannot be guessed, and proofs that a peer knows a secret which
 * is never sent.
 *
 * Threads:   functions of their arguments.
 * Errors:    without the kernel's random generator there is no safe fallback: the program ends. */
#ifndef SL_BASE_SECRET_H
#define SL_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_SECRET_PROOF_BYTES = 32 };

/* Keys, queue numbers, first PSNs, nonces. */
uint32_t sl_secret_u32(void);
void sl_secret_fill(void *out, size_t bytes);

/* HMAC-SHA256 (RFC 2104) of the message, with `key` (text) as the key. */
void sl_secret_proof(const char *key, const void *message, size_t bytes,
		     uint8_t proof[SL_SECRET_PROOF_BYTES]);

/* Takes the same time wherever the first difference is, so that timing does not help to guess. */
bool sl_secret_same(const void *a, const void *b, size_t bytes);

#endif
