/* proof.c - what is proven, as bytes (docs/reference/wire.md has the same for other front ends). */
#include "control/tcp/proof.h"

#include <string.h>

enum { LABEL_BYTES = 16 };

bool sl_proof_is_asked(const struct sl_wire_hello *hello)
{
	static const uint8_t none[SL_WIRE_NONCE];

	return memcmp(hello->nonce, none, sizeof(none)) != 0;
}

void sl_proof_make(enum sl_proof_side side, const char *token, const struct sl_wire_hello *hello,
		   const struct sl_wire_challenge *challenge, struct sl_wire_proof *proof)
{
	static const char label[][LABEL_BYTES] = {
		[SL_PROOF_FRONT_END] = "sluice front end",
		[SL_PROOF_RECEIVER] = "sluice receiver ",
	};
	const struct sl_wire_message greeting = {.type = SL_WIRE_HELLO, .hello = *hello};
	uint8_t message[SL_WIRE_MAX], bytes[SL_WIRE_MAX];
	int whole = sl_wire_encode(&greeting, bytes, sizeof(bytes));
	size_t body = (size_t)(whole - SL_WIRE_HEADER);

	memcpy(message, label[side], LABEL_BYTES);
	memcpy(message + LABEL_BYTES, bytes + SL_WIRE_HEADER, body);
	memcpy(message + LABEL_BYTES + body, challenge->nonce, SL_WIRE_NONCE);
	sl_secret_proof(token, message, LABEL_BYTES + body + SL_WIRE_NONCE, proof->proof);
}

bool sl_proof_is_right(enum sl_proof_side side, const char *token,
		       const struct sl_wire_hello *hello, const struct sl_wire_challenge *challenge,
		       const struct sl_wire_proof *proof)
{
	struct sl_wire_proof right;

	sl_proof_make(side, token, hello, challenge, &right);
	return sl_secret_same(right.proof, proof->proof, sizeof(right.proof));
}
