/* proof.c - what is proven, as bytes (docs/reference/wire.md has the same for other front ends). */
#include "control/tcp/proof.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net/net.h"

enum { LABEL_BYTES = 32 };

bool sl_proof_is_asked(const struct sl_wire_hello *hello)
{
	static const uint8_t none[SL_WIRE_NONCE];

	return memcmp(hello->nonce, none, sizeof(none)) != 0;
}

int sl_proof_set_listener(struct sl_proof_terms *terms, enum sl_proof_side side, int fd)
{
	union sl_net_address at;
	socklen_t bytes = sizeof(at);
	int failed = side == SL_PROOF_CONNECTS ? getpeername(fd, &at.any, &bytes)
					       : getsockname(fd, &at.any, &bytes);

	if (failed)
		return -errno;
	terms->port = sl_net_gid(&at, terms->ip);
	return 0;
}

void sl_proof_make(enum sl_proof_side side, const char *token, const struct sl_proof_terms *terms,
		   struct sl_wire_proof *proof)
{
	static const char label[][2][LABEL_BYTES] = {
		[SL_PROOF_PLANS] = {[SL_PROOF_CONNECTS] = "sluice plans: front end",
				    [SL_PROOF_LISTENS] = "sluice plans: receiver"},
		[SL_PROOF_FEEDBACK] = {[SL_PROOF_CONNECTS] = "sluice feedback: receiver",
				       [SL_PROOF_LISTENS] = "sluice feedback: front end"},
		[SL_PROOF_SHARES] = {[SL_PROOF_CONNECTS] = "sluice shares: follower",
				     [SL_PROOF_LISTENS] = "sluice shares: share"},
	};
	const struct sl_wire_message greeting = {.type = SL_WIRE_HELLO, .hello = terms->hello};
	uint8_t message[SL_WIRE_MAX], bytes[SL_WIRE_MAX], *end = message;
	int whole = sl_wire_encode(&greeting, bytes, sizeof(bytes));

	end = mempcpy(end, label[terms->purpose][side], LABEL_BYTES);
	end = mempcpy(end, bytes + SL_WIRE_HEADER, (size_t)(whole - SL_WIRE_HEADER));
	end = mempcpy(end, terms->challenge.nonce, SL_WIRE_NONCE);
	end = mempcpy(end, terms->ip, sizeof(terms->ip));
	*end++ = (uint8_t)terms->port;
	*end++ = (uint8_t)(terms->port >> 8);
	sl_secret_proof(token, message, (size_t)(end - message), proof->proof);
}

bool sl_proof_is_right(enum sl_proof_side side, const char *token,
		       const struct sl_proof_terms *terms, const struct sl_wire_proof *proof)
{
	struct sl_wire_proof right;

	sl_proof_make(side, token, terms, &right);
	return sl_secret_same(right.proof, proof->proof, sizeof(right.proof));
}
