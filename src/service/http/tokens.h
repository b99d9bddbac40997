/* tokens.h - who may do what: the file of tokens.
 *
 * Model:     a line "ROLE NAME TOKEN" for each client, ROLE being view, operate or configure; empty
 *            lines and lines that begin with '#' count for nothing. A token has 16 to 200 printable
 *            characters without blanks. Tokens are kept as proofs (HMAC with a key of this process)
 *            and compared in constant time, all of them each time.
 * Threads:   read-only once it is read.
 * Errors:    sl_tokens_parse(): -EINVAL, with the line in `why`, which never quotes a token. */
#ifndef SL_SERVICE_TOKENS_H
#define SL_SERVICE_TOKENS_H

#include "base/secret.h"
#include "service/http/http.h"

enum { SL_TOKENS = 64, SL_TOKENS_BYTES = 32768, SL_TOKENS_NAME = 64 };

struct sl_tokens {
	unsigned n;
	char key[SL_SECRET_PROOF_BYTES * 2 + 1];
	struct {
		enum sl_role role;
		char name[SL_TOKENS_NAME];
		uint8_t proof[SL_SECRET_PROOF_BYTES];
	} token[SL_TOKENS];
};

/* text is overwritten. */
int sl_tokens_parse(char *text, struct sl_tokens *tokens, char *why, size_t why_bytes);
/* From a file that no other user may read; logged. */
int sl_tokens_read(const char *path, struct sl_tokens *tokens);
/* The role that a token has; SL_ROLE_NONE: no such token. name: of the client. */
enum sl_role sl_tokens_find(const struct sl_tokens *tokens, const char *token, const char **name);

#endif
